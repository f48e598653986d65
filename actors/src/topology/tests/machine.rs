//! Machines as directory trees, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::super::{Topology, read};

pub(super) struct Machine(tempfile::TempDir);

impl Machine {
    pub(super) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A machine with these files: path below its root, and content.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let machine = Self::empty();
        files.iter().for_each(|(path, text)| machine.write(path, text));
        machine
    }

    pub(super) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Like `write` in a broken tree, where another file may block the path; that stays then.
    pub(super) fn write_if_possible(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        if fs::create_dir_all(path.parent().unwrap()).is_ok() {
            fs::write(path, text).ok();
        }
    }

    pub(super) fn link_if_possible(&self, path: &str, target: &str) {
        let path = self.root().join(path);
        if fs::create_dir_all(path.parent().unwrap()).is_ok() {
            symlink(target, path).ok();
        }
    }

    pub(super) fn cpu(&self, number: u32, path: &str, text: &str) -> &Self {
        self.write(&format!("sys/devices/system/cpu/cpu{number}/{path}"), text);
        self
    }

    pub(super) fn node(&self, number: u32, cpus: &str, distances: &str) -> &Self {
        self.write(&format!("sys/devices/system/node/node{number}/cpulist"), cpus);
        self.write(&format!("sys/devices/system/node/node{number}/distance"), distances);
        self
    }

    pub(super) fn topology(&self) -> Topology {
        read(self.root())
    }
}

pub(super) const CPUS_ONLINE: &str = "sys/devices/system/cpu/online";
pub(super) const NODES_ONLINE: &str = "sys/devices/system/node/online";
pub(super) const STATUS: &str = "proc/self/status";
