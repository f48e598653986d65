//! Provides a mount namespace in which hosts run one after the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Program, Stage, TIMEOUT, until_true};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A process that keeps a mount namespace, whose mounts outlive a host.
pub(crate) struct Namespace(Child);

impl Namespace {
    /// The namespace; or `None`, after reporting what is skipped: the system may forbid such namespaces.
    pub(crate) fn or_say(what: &str) -> Option<Self> {
        let unshare = |command: &[&str]| {
            let mut unshare = Command::new("unshare");
            let options: &[_] =
                if is_root() { &["--mount"] } else { &["--user", "--map-root-user", "--mount"] };
            unshare.args(options).arg("--").args(command).stderr(Stdio::null());
            unshare
        };
        if !unshare(&["true"]).status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: {what} is not shown, since such namespaces are refused here");
            return None;
        }
        let keeper = unshare(&["cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let keeper = Self(keeper.expect("it was there before"));
        let own = fs::read_link("/proc/self/ns/mnt").expect("a namespace");
        until_true("a namespace of its own", TIMEOUT, || {
            let command = fs::read_to_string(keeper.proc("cmdline")).unwrap_or_default();
            command.starts_with("cat") && fs::read_link(keeper.proc("ns/mnt")).is_ok_and(|other| other != own)
        });
        Some(keeper)
    }

    pub(crate) fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string()).join(name)
    }

    /// Runs a host in it.
    pub(crate) fn run<'s>(&self, stage: &'s Stage) -> Program<'s> {
        let target = self.0.id().to_string();
        let user: &[_] = if is_root() { &[] } else { &["--preserve-credentials", "--user"] };
        stage.run_through(&[&["nsenter"], user, &["--mount", "--target", &target, "--"]].concat())
    }

    /// The paths below a directory where a part of another directory is mounted.
    pub(crate) fn mounted(&self, below: &Path, of: &Path) -> Vec<String> {
        let table = fs::read_to_string(self.proc("mountinfo")).expect("it lives");
        let (below, of) =
            (below.to_str().expect("text"), of.file_name().expect("a name").to_str().expect("text"));
        let fields = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        fields
            .filter(|fields| fields[4].starts_with(below) && fields[3].contains(&format!("/{of}/")))
            .map(|fields| fields[4].to_owned())
            .collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The process has already ended if the test was killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
