//! Finds the program of a command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The executable file of a command: an absolute path, or a bare name that is looked up in `search` (a `PATH`).
pub(super) fn find(command: &str, search: Option<&OsStr>) -> Result<PathBuf, String> {
    if command.is_empty() {
        return Err("the command is empty; name a program".to_owned());
    }
    let path = Path::new(command);
    if path.is_absolute() {
        return executable(path).map(|()| path.to_owned());
    }
    if command.contains('/') {
        return Err(format!(
            "the command {command:?} is a relative path; give an absolute path, or a name in PATH"
        ));
    }
    let directories =
        search.map(|search| std::env::split_paths(search).collect::<Vec<_>>()).unwrap_or_default();
    let candidates = directories.iter().filter(|directory| directory.is_absolute()).map(|d| d.join(command));
    candidates
        .into_iter()
        .find(|candidate| executable(candidate).is_ok())
        .ok_or_else(|| format!("the command {command:?} is not found in PATH"))
}

fn executable(path: &Path) -> Result<(), String> {
    let found = std::fs::metadata(path)
        .map_err(|error| format!("the command {} cannot be used: {error}", path.display()))?;
    if !found.is_file() {
        return Err(format!("the command {} is no file", path.display()));
    }
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK)
        .map_err(|_| format!("the command {} is not executable for this user", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_for_in_path_and_nowhere_else() {
        let found = find("sh", Some(OsStr::new("/nowhere:/bin:/usr/bin"))).expect("every system has a shell");
        assert!(found.is_absolute());
        assert!(find("sh", None).expect_err("no path").contains("not found in PATH"));
        assert!(find("bin/sh", Some(OsStr::new("/"))).expect_err("relative").contains("relative path"));
    }

    #[test]
    fn what_cannot_be_executed_is_told_from_what_is_not_there() {
        assert!(find("/nowhere/plugin", None).expect_err("absent").contains("No such file"));
        assert!(find("/etc", None).expect_err("a directory").contains("no file"));
        assert!(find("/etc/passwd", None).expect_err("data").contains("not executable"));
        assert!(find("", None).expect_err("empty").contains("empty"));
    }
}
