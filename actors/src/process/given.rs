//! Determines which processes were given a path in their environment, and so may use the files there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::environment::{Environment, look_until_known};
use super::look::numbers;

/// The paths that living processes were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GivenPaths {
    /// The paths that are the value of a variable of a living process.
    pub given: BTreeSet<PathBuf>,
    /// Whether the environment of some process stayed unknown, since it was about to end or executed another program.
    pub is_any_unknown: bool,
}

impl GivenPaths {
    /// Searches all processes for these paths. A process that was started by such a process has them too, unless it was given another
    /// environment. Blocks for a bounded time while a process is in the middle of an `exec`.
    ///
    /// # Errors
    /// When the list of processes cannot be read.
    pub fn among(paths: &BTreeSet<PathBuf>) -> io::Result<Self> {
        let mut found = Self::default();
        if paths.is_empty() {
            return Ok(found);
        }
        let given = |environment: &Environment| (environment.is_unknown(), values(environment, paths));
        for (is_unknown, given) in look_until_known(numbers()?, |pid| Environment::look(pid, given)) {
            found.is_any_unknown |= is_unknown;
            found.given.extend(given);
        }
        Ok(found)
    }
}

/// The paths among these that are the value of a variable.
fn values(environment: &Environment, paths: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let Environment::Read(bytes) = environment else { return Vec::new() };
    let value = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        let path = Path::new(OsStr::from_bytes(entry.get(at + 1..)?));
        paths.get(path).cloned()
    };
    bytes.split(|byte| *byte == 0).filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_path_is_given_as_long_as_a_process_with_it_lives_v8() {
        let directory = tempfile::tempdir().expect("a directory");
        let [given, other] = ["given", "other"].map(|name| directory.path().join(name));
        let paths = BTreeSet::from([given.clone(), other.clone()]);
        let mut command = Command::new("/bin/sleep");
        // A path that is only a part of a value is not given.
        command.arg("600").env("GIVEN", &given).env("OTHER", other.join("below"));
        let mut child = command.spawn().expect("it starts");
        let found = GivenPaths::among(&paths).expect("processes can be listed");
        child.kill().expect("it is ours");
        assert_eq!(found.given, BTreeSet::from([given]));
        // A zombie uses nothing either.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !GivenPaths::among(&paths).expect("processes can be listed").given.is_empty() {
            assert!(std::time::Instant::now() < until, "it was killed");
        }
        child.wait().expect("it ends");
        assert_eq!(GivenPaths::among(&BTreeSet::new()).expect("nothing to look for"), GivenPaths::default());
    }
}
