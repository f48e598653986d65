//! Finds the program of a command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::problem::Faults;
use super::table::Found;

/// Why a command names no program.
#[derive(Debug)]
enum NoProgram {
    /// The command cannot name a program.
    Malformed(String),
    /// The named file cannot be executed now.
    Absent(String),
}

/// The program of a command. A program that cannot be executed now prevents the start of a host, but not requests to it.
pub(super) fn read(command: &Found<String>, faults: &mut Faults) -> Option<PathBuf> {
    match find(&command.value, std::env::var_os("PATH").as_deref()) {
        Ok(program) => Some(program),
        Err(NoProgram::Absent(message)) => {
            faults.keep_from_starting(command.at, message);
            Some(PathBuf::from(&command.value))
        }
        Err(NoProgram::Malformed(message)) => {
            faults.add(command.at, message);
            None
        }
    }
}

/// The executable file of a command: an absolute path, or a bare name that is looked up in `search` (a `PATH`).
fn find(command: &str, search: Option<&OsStr>) -> Result<PathBuf, NoProgram> {
    if command.is_empty() {
        return Err(NoProgram::Malformed("the command is empty; name a program".to_owned()));
    }
    let path = Path::new(command);
    if path.is_absolute() {
        return executable(path).map(|()| path.to_owned()).map_err(NoProgram::Absent);
    }
    if command.contains('/') {
        let message =
            format!("the command {command:?} is a relative path; give an absolute path, or a name in PATH");
        return Err(NoProgram::Malformed(message));
    }
    let directories =
        search.map(|search| std::env::split_paths(search).collect::<Vec<_>>()).unwrap_or_default();
    let candidates = directories.iter().filter(|directory| directory.is_absolute()).map(|d| d.join(command));
    candidates
        .into_iter()
        .find(|candidate| executable(candidate).is_ok())
        .ok_or_else(|| NoProgram::Absent(format!("the command {command:?} is not found in PATH")))
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

    fn malformed(command: &str, search: Option<&str>) -> String {
        match find(command, search.map(OsStr::new)) {
            Err(NoProgram::Malformed(message)) => message,
            found => panic!("{found:?}"),
        }
    }

    fn absent(command: &str) -> String {
        match find(command, None) {
            Err(NoProgram::Absent(message)) => message,
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn a_bare_name_is_looked_for_in_path_and_nowhere_else() {
        let found = find("sh", Some(OsStr::new("/nowhere:/bin:/usr/bin"))).expect("every system has a shell");
        assert!(found.is_absolute());
        assert!(absent("sh").contains("not found in PATH"));
        assert!(malformed("bin/sh", Some("/")).contains("relative path"));
    }

    #[test]
    fn what_cannot_be_executed_is_told_from_what_is_not_there() {
        assert!(absent("/nowhere/plugin").contains("No such file"));
        assert!(absent("/etc").contains("no file"));
        assert!(absent("/etc/passwd").contains("not executable"));
        assert!(malformed("", None).contains("empty"));
    }
}
