//! Builds programs on the official Go packages, from the modules below `tests/interop`. They are built once for each test program, into
//! the same directory, where Go skips what is up to date. If there is no Go, or the modules are not available, tests report
//! what they skipped.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Programs that are built together: some packages of one module.
pub(crate) struct GoPrograms {
    /// The module's directory below `tests/interop`.
    module: &'static str,
    /// Its packages, as paths from there.
    packages: &'static [&'static str],
    /// The directory of the programs, which are named like their packages; or the reason why they are not built.
    built: OnceLock<Result<PathBuf, String>>,
}

/// A driver of our own and a host, both on the packages of the older, MPL-licensed version.
pub(crate) static ECHO_AND_HOST: GoPrograms = GoPrograms::of("go", &["./driver", "./host"]);
/// The drivers of the older version itself: `raw_exec`, `exec`, `java`, `mock_driver` and `docker` in one program.
pub(crate) static DRIVERS: GoPrograms = GoPrograms::of("go", &["./drivers"]);
/// A host that reports how long its tasks take to start, on the packages of the older version.
pub(crate) static STARTS: GoPrograms = GoPrograms::of("go", &["./starts"]);
/// The actions of a Nomad client with a driver, on the older version.
pub(crate) static NOMAD_CLIENT: GoPrograms = GoPrograms::of("go", &["./nomadclient"]);
/// The official checks of a CSI plugin.
pub(crate) static SANITY: GoPrograms = GoPrograms::of("sanity", &["."]);
/// The drivers of a newer version, which need topology, cores and both halves of the resources; without `docker`.
pub(crate) static NEWER_DRIVERS: GoPrograms = GoPrograms::of("go-newer", &["./drivers"]);

impl GoPrograms {
    const fn of(module: &'static str, packages: &'static [&'static str]) -> Self {
        Self { module, packages, built: OnceLock::new() }
    }

    /// The directory of the programs, or the reason why there is none.
    pub(crate) fn directory(&self) -> Result<&Path, &str> {
        self.built.get_or_init(|| self.build()).as_deref().map_err(String::as_str)
    }

    /// The directory of the programs; or `None`, after reporting what is skipped.
    pub(crate) fn or_say(&self, what: &str) -> Option<&Path> {
        match self.directory() {
            Ok(directory) => Some(directory),
            Err(why) => {
                eprintln!("SKIPPED: {what} is not shown, since {why}");
                None
            }
        }
    }

    fn build(&self) -> Result<PathBuf, String> {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(self.module);
        let name = self.packages.join("").replace("./", "-");
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interop-{}{name}", self.module));
        let go = |arguments: &[&str]| {
            let mut command = Command::new("go");
            command.args(arguments).args(self.packages).current_dir(&module).stdin(Stdio::null()).output()
        };
        match go(&["list", "-deps", "-f", ""]) {
            Err(error) => return Err(format!("there is no go: {error}")),
            Ok(listed) if !listed.status.success() => {
                let why = String::from_utf8_lossy(&listed.stderr);
                return Err(format!("the modules cannot be had: {}", why.trim()));
            }
            Ok(_) => {}
        }
        // One package at a time: there are many packages, and other tests run at the same time.
        let place = format!("{}/", output.to_str().expect("a path that is text"));
        let built = go(&["build", "-buildvcs=false", "-p", "1", "-o", &place]).expect("it ran before");
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "the Go programs do not build: {said}");
        Ok(output)
    }
}
