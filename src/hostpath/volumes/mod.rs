//! Real volumes in a directory of the node: `callboard plugin hostpath --volumes DIR`.
//!
//! ```text
//!   records    the records of volumes, snapshots, groups and of the node, each in a file of its own
//!   check      the arguments of calls
//!   data       the content: a directory, or an image for a block volume; snapshots are copies
//!   create     make and delete volumes, also from a snapshot or another volume
//!   change     attach, detach, validate, expand, modify
//!   listing    one volume, all volumes, the free capacity
//!   snapshots  of one volume, and of several as a group
//!   stage      the node: stage and unstage
//!   publish    the node: publish and unpublish
//!   usage      the node: expand, statistics and condition
//!   mounts     bind mounts, tmpfs and loop devices
//! ```
//!
//! Phases of a volume, as in the specification: created, attached to the node, staged, published at any number of targets. Each call
//! is idempotent, and is refused out of order.
//!
//! Invariants:
//! - A record is replaced as a whole, so a plugin that dies leaves the old or the new record. The id of a volume or snapshot is derived
//!   from its name, so a repeated call finds what was begun, and completes it.
//! - The record of a stage or publish is on disk before anything is made, and is removed after everything is gone: nothing is mounted
//!   without a record of it.
//! - Nothing in use is removed: an attached or staged volume is not deleted, a published volume is not unstaged.
//! - A call on a volume with another one in flight is refused with ABORTED.
//!
//! The records survive the plugin. They are written to disk before an answer, the content of volumes is left to the kernel.

mod records;

mod check;
mod data;
mod mounts;

pub(super) mod change;
pub(super) mod create;
pub(super) mod listing;
pub(super) mod snapshots;

pub(super) mod publish;
pub(super) mod stage;
pub(super) mod usage;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tonic::Status;

use super::faults::Plan;
use records::{Store, id_of};

/// The attribute of a volume's publish context that names its node.
const ATTACHED: &str = "attached";
/// The parameter of a volume for the location of its content: `disk`, or `memory` for a tmpfs that is lost when it is unstaged.
const MEDIUM: &str = "medium";

/// The settings for volumes from the command line.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) directory: PathBuf,
    /// The bytes that all volumes may have together. `None`: the capacity of the file system.
    pub(super) capacity: Option<i64>,
    /// The node of this process, or the nodes that a controller knows.
    pub(super) nodes: Vec<String>,
    /// The most volumes that are attached to one node; 0: no limit.
    pub(super) attached_max: i64,
    pub(super) topology: Option<BTreeMap<String, String>>,
    pub(super) claims: Claims,
}

/// The capabilities that change what a call requires of its caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims {
    pub(super) attaches: bool,
    pub(super) stages: bool,
    pub(super) expands_offline: bool,
    pub(super) expands_on_node: bool,
}

/// The volumes of the plugin.
#[derive(Debug)]
pub(super) struct Volumes {
    settings: Settings,
    store: Store,
    /// Held by one call at a time while it changes them.
    turn: Mutex<()>,
}

impl Volumes {
    pub(super) fn open(settings: Settings) -> io::Result<Self> {
        let store = Store::open(&settings.directory)?;
        Ok(Self { settings, store, turn: Mutex::new(()) })
    }

    /// Executes a call.
    pub(super) fn carry_out<T>(
        &self,
        plan: &Plan,
        effect: impl FnOnce(&Work<'_>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        // A panic leaves the same state as a crash of the plugin.
        let _turn = self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before =
            plan.forgets().then(|| self.store.image()).transpose().map_err(|error| failed("read", &error))?;
        let work = Work { settings: &self.settings, store: &self.store, plan };
        let answer = effect(&work);
        if let Some(before) = before {
            self.store.restore(&before).map_err(|error| failed("forget", &error))?;
        }
        answer
    }
}

/// One call while its effect is executed.
pub(super) struct Work<'a> {
    settings: &'a Settings,
    store: &'a Store,
    plan: &'a Plan,
}

impl Work<'_> {
    /// Marks that something has changed and more is to change. The plugin dies here if a fault requires it.
    fn changed(&self) {
        self.plan.middle();
    }

    /// The node of this process.
    fn node(&self) -> &str {
        self.settings.nodes.first().map_or("", String::as_str)
    }

    fn lies(&self) -> bool {
        self.plan.lies()
    }

    fn content(&self, id: &str) -> PathBuf {
        self.store.content(id)
    }
}

/// The id of the volume of this name.
pub(super) fn id_of_volume(name: &str) -> String {
    id_of("vol", name)
}

/// The id of the snapshot of this name.
pub(super) fn id_of_snapshot(name: &str) -> String {
    id_of("snap", name)
}

/// The id of the group of snapshots of this name.
pub(super) fn id_of_group(name: &str) -> String {
    id_of("group", name)
}

/// An error of the operating system.
fn failed(doing: &str, error: &io::Error) -> Status {
    Status::internal(format!("cannot {doing}: {error}"))
}

fn failed_at(doing: &str, path: &Path, error: &io::Error) -> Status {
    Status::internal(format!("cannot {doing} {}: {error}", path.display()))
}
