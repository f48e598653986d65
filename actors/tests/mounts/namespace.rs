//! Runs a test again, alone, in a user and mount namespace of its own. Its mounts end with the namespace.

use std::ffi::CStr;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use callboard_actors::mounts::{KernelMounts, MountLimits, MountTable, Place, mounts_of_this_process};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

/// The environment variable with the directory of a test that runs in its namespace.
const DIRECTORY: &str = "CALLBOARD_TEST_NAMESPACE";
/// The boot in the records of these tests.
pub(crate) const BOOT: &str = "this boot";

/// A time limit that is not exceeded on any busy machine.
pub(crate) const PATIENT: MountLimits =
    MountLimits { time: Duration::from_secs(60), threads: 32, hanging_per_device: 2 };

/// The surroundings of a test in a namespace: an empty directory in memory.
pub(crate) struct Stage {
    directory: PathBuf,
}

/// Runs a test in a namespace, or prints why not. `name` is the path of the test function in this program.
pub(crate) fn in_namespace<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Stage) -> F) {
    in_namespace_of(&["--user", "--map-root-user"], name, test);
}

/// The same for a test that has to be root of the machine.
#[allow(dead_code, reason = "only tests of block volumes need it")]
pub(crate) fn in_namespace_of_root<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Stage) -> F) {
    in_namespace_of(&[], name, test);
}

fn in_namespace_of<F: Future<Output = ()>>(of: &[&str], name: &str, test: impl FnOnce(Stage) -> F) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let stage = Stage { directory: PathBuf::from(directory) };
        stage.tmpfs("");
        return block_on(test(stage));
    }
    let unshare = |program: &Path| {
        let mut unshare = Command::new("unshare");
        unshare.args(of).args(["--mount", "--propagation", "private", "--"]).arg(program);
        unshare.stdin(Stdio::null());
        unshare
    };
    if !unshare(Path::new("true")).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        let of = of.join(" ");
        eprintln!("SKIPPED: {name} is not shown, since `unshare {of} --mount` is refused here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = unshare(&std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(DIRECTORY, directory.path().canonicalize().unwrap())
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{complained}");
    assert!(output.status.success() && said.contains("1 passed"), "{name}: {said}\n{complained}");
}

/// Runs a future to completion.
pub(crate) fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

/// Mounts with a time limit that is not exceeded on any busy machine.
pub(crate) fn patient() -> KernelMounts {
    KernelMounts::new(PATIENT)
}

/// Mounts that use the best look that this kernel allows, and mounts that read the mount table for each look.
pub(crate) fn both(limits: MountLimits) -> [KernelMounts; 2] {
    [KernelMounts::new(limits), KernelMounts::by_table(limits)]
}

impl Stage {
    /// A path below the directory of the test.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        if below.is_empty() { self.directory.clone() } else { self.directory.join(below) }
    }

    /// The same, to be made or removed.
    pub(crate) fn place(&self, below: &str) -> Place {
        Place::new(&self.directory, &self.path(below)).unwrap()
    }

    /// Makes a directory.
    pub(crate) fn directory(&self, below: &str) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Mounts a tmpfs.
    pub(crate) fn tmpfs(&self, below: &str) -> PathBuf {
        let path = self.directory(below);
        mount("callboard", &path, "tmpfs", MountFlags::empty(), None::<&CStr>).unwrap();
        path
    }

    /// Binds a directory or file on another.
    pub(crate) fn bind(&self, source: &Path, below: &str) -> PathBuf {
        let path = self.path(below);
        mount_bind(source, &path).unwrap();
        path
    }

    /// Unmounts what is on top.
    pub(crate) fn unmount(&self, below: &str) {
        unmount(self.path(below), UnmountFlags::NOFOLLOW).unwrap();
    }

    /// The mounts of this process.
    pub(crate) fn table(&self) -> MountTable {
        mounts_of_this_process().unwrap()
    }
}
