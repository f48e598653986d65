//! The shared environment of all runs of a host on one data directory, and the cleanup of processes without a record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::actor::Surroundings;
use super::bound::Binder;
use super::control_group::ControlGroups;
use super::look;
use super::owned;
use super::plugin_log::PluginLog;
use super::sockets::{self, Places};
use super::watcher::Watcher;
use super::{ProcessName, ProcessTag, Reach};

impl Surroundings {
    /// The environment for the processes of a host on this data directory, which must exist, and whose owner id is `owner`
    /// ([`settle`](crate::ownership::settle)). `binder` binds processes to the host; `with_control_groups` permits cgroups.
    ///
    /// # Errors
    /// When the directory cannot be accessed, or the system cannot start a thread.
    ///
    /// # Panics
    /// Outside of an arbiter.
    pub fn new(
        data_dir: &Path,
        owner: Arc<str>,
        binder: Option<Binder>,
        with_control_groups: bool,
    ) -> io::Result<Self> {
        let control_groups =
            if with_control_groups { ControlGroups::of_this_host(&owner) } else { ControlGroups::none() };
        let directory = data_dir.canonicalize()?.join("processes");
        let (watcher, plugin_log) = (Watcher::start(), PluginLog::start()?);
        let short_directory = sockets::settled_short(&directory, std::env::temp_dir());
        Ok(Self { owner, directory, short_directory, binder, control_groups, watcher, plugin_log })
    }

    /// Sets the short directory for sockets if their path would be too long in the data directory; the default is the
    /// system's directory for temporary files. A short directory that an earlier run used, and that still exists, takes precedence
    /// (TH030).
    #[must_use]
    pub fn with_short_directory(self, short_directory: PathBuf) -> Self {
        Self { short_directory: sockets::settled_short(&self.directory, short_directory), ..self }
    }

    pub(super) fn places(&self) -> Places<'_> {
        Places { processes: &self.directory, short: &self.short_directory, owner: &self.owner }
    }

    /// Removes the directory for the sockets of a process that has ended, unless it is still in use.
    pub(super) async fn retire_sockets(&self, place: PathBuf) -> io::Result<()> {
        let (processes, short, owner) =
            (self.directory.clone(), self.short_directory.clone(), Arc::clone(&self.owner));
        let retire = move || {
            sockets::retire(&Places { processes: &processes, short: &short, owner: &owner }, &[place])
        };
        look::beside(retire).await
    }
}

/// Ends processes that have our owner variable and none of these tags: the leaders of launches with lost records, with
/// their groups. Processes that left their group, such as the executor of a task, are never included, whether their driver
/// has a record or not (TH032). Removes empty cgroups of this owner, and socket directories that belong to none of these
/// names and are unused (TH030). Returns the PIDs of the ended processes.
///
/// # Errors
/// When processes cannot be inspected, or do not end.
pub async fn sweep(
    surroundings: &Surroundings,
    known: Vec<ProcessTag>,
    names: Vec<ProcessName>,
) -> Result<Vec<u32>, String> {
    let (owner, directory) = (Arc::clone(&surroundings.owner), surroundings.directory.clone());
    let tags = known.clone();
    let look = move || look::unrecorded(&owner, &tags, &directory);
    let found =
        look::beside(look).await.map_err(|error| format!("processes cannot be looked at: {error}"))?;
    let mut ended = Vec::new();
    for leader in found {
        let Some(tag) = leader.tag else { continue };
        tracing::warn!(pid = leader.pid, %tag, "found a process of ours without a record; ending it");
        let contained = surroundings.control_groups.existing(tag);
        let (pid, proven) = (leader.pid, [leader]);
        if owned::end_left(&proven, (tag, &surroundings.owner), Some(pid), Reach::Group, contained).await > 0
        {
            return Err(format!("process {pid} does not end"));
        }
        ended.push(pid);
    }
    let groups = surroundings.control_groups.clone();
    let surroundings =
        (surroundings.directory.clone(), surroundings.short_directory.clone(), surroundings.owner.clone());
    let tidy = move || {
        let (processes, short, owner) = &surroundings;
        sockets::sweep(&Places { processes, short, owner }, &names);
        let count = groups.sweep(&known);
        if count > 0 {
            tracing::info!(count, "removed empty control groups of earlier runs");
        }
    };
    actix_rt::task::spawn_blocking(tidy).await.map_err(|error| error.to_string())?;
    Ok(ended)
}
