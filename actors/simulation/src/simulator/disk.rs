//! The disk below a simulated host with temporary faults: it takes no commits, takes them late, or does not answer.
//!
//! The registry, the owner of the processes and the volumes share it. Whatever its fault, only promises wait for it (SHELL-1A): questions
//! are answered, crashed actors are rebuilt, and actors that are requested to stop end.

use std::fmt;

use super::super::law::Law;
use super::host_model::{HostModel, HostPhase};

/// A fault of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskTrouble {
    /// It refuses each commit at once: it is full.
    Full,
    /// It refuses each commit at once: its file system is read-only.
    ReadOnly,
    /// It takes commits late.
    Slow,
    /// No commit and no read returns.
    Hangs,
}

impl fmt::Display for DiskTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::ReadOnly => "read-only",
            Self::Slow => "slow",
            Self::Hangs => "hanging",
        })
    }
}

impl HostModel {
    /// A fault of the disk begins or ends.
    pub(super) fn disk_becomes(&mut self, trouble: Option<DiskTrouble>) {
        self.disk = trouble;
        if trouble.is_none() {
            self.tell_of_disk(false);
        }
    }

    /// A commit has reached its time limit.
    pub(super) fn disk_is_late(&mut self) {
        let is_under_way =
            self.registry.store.waiting() > 0 || self.owned.model.waiting() > 0 || self.volumes.is_writing();
        if is_under_way && matches!(self.disk, Some(DiskTrouble::Slow | DiskTrouble::Hangs)) {
            self.tell_of_disk(true);
        }
    }

    /// Whether the disk takes a commit now. If it refuses, all actors are notified.
    pub(super) fn disk_takes(&mut self) -> bool {
        match self.disk {
            None | Some(DiskTrouble::Slow) => true,
            Some(DiskTrouble::Hangs) => false,
            Some(DiskTrouble::Full | DiskTrouble::ReadOnly) => {
                self.tell_of_disk(true);
                false
            }
        }
    }

    /// A commit is on disk.
    pub(super) fn disk_has_taken(&mut self) {
        self.tell_of_disk(false);
    }

    fn tell_of_disk(&mut self, is_sick: bool) {
        self.registry_disk(is_sick);
        self.owned.model.disk(self.now, is_sick);
        self.volumes_disk(is_sick);
    }

    /// While its disk is sick the registry lives, answers its callers, and ends on request. A database, unlike rows, is read
    /// when the disk is sound.
    pub(super) fn look_at_the_sick_disk(&mut self) {
        if !self.registry.is_sick() || self.registry.has_ended() || self.database.is_some() {
            return;
        }
        if self.registry.machine().is_none() {
            if !self.registry.is_loading() && self.registry.pauses_until().is_none() {
                let waits = "the disk is sick, and the registry waits for it to be built again";
                self.violation(Law::Shell1a, waits.to_owned());
            }
            return;
        }
        let waits = |asker: &&u64| self.unanswered.contains(asker);
        if let Some(asker) = self.prompt.iter().find(waits) {
            let waits = format!("the disk is sick, and question {asker} waits for it");
            self.violation(Law::Shell1a, waits);
        }
        if self.registry.checker.checks_held() > 0 {
            self.violation(Law::Shell1a, "the disk is sick, and an identity check waits for it".to_owned());
        }
        if self.phase == HostPhase::StoppingRegistry {
            self.violation(Law::Shell1a, "the disk is sick, and the registry does not end".to_owned());
        }
        let unanswered = &self.unanswered;
        self.prompt.retain(|asker| unanswered.contains(asker));
    }
}
