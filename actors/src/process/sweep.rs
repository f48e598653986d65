//! What every run of a host on one data directory shares, and what it ends of earlier ones that stands in no record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::actor::Surroundings;
use super::bound::Binder;
use super::control_group::ControlGroups;
use super::herald::Herald;
use super::look;
use super::name::{ProcessName, ProcessTag};
use super::owned;
use super::sockets::{self, Places};
use super::spec::Reach;
use super::watcher::Watcher;

impl Surroundings {
    /// The surroundings of the processes of a host on this data directory, which has to be there, and whose mark is `owner`
    /// ([`settle`](crate::ownership::settle)). `binder` is what binds processes to the host; `with_control_groups` lets control
    /// groups be made where the host may.
    ///
    /// # Errors
    /// When the directory cannot be looked at, or the system gives no thread.
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
        let (watcher, herald) = (Watcher::start(), Herald::start()?);
        let short_directory = sockets::settled_short(&directory, std::env::temp_dir());
        Ok(Self { owner, directory, short_directory, binder, control_groups, watcher, herald })
    }

    /// Names another short directory than the system's for temporary files: sockets lie below it whose path would be too long
    /// in the data directory.
    /// A short directory that an earlier run used for sockets, and that is still there, goes on being used instead (TH030).
    #[must_use]
    pub fn with_short_directory(self, short_directory: PathBuf) -> Self {
        Self { short_directory: sockets::settled_short(&self.directory, short_directory), ..self }
    }

    /// Where sockets of its processes may lie.
    pub(super) fn places(&self) -> Places<'_> {
        Places { processes: &self.directory, short: &self.short_directory, owner: &self.owner }
    }
}

/// Ends what is ours by its mark and carries none of these tags: the leaders of launches whose records are lost, with their
/// groups. What has left its group, such as the executor of a task, is never among them, whether its driver stands in a record or
/// not (TH032). Control groups of this owner in which nothing is go, and directories of sockets that belong to none of these names
/// go when nothing is in them that lives (TH030). Gives the process ids of what was ended.
///
/// # Errors
/// When processes cannot be looked at, or do not end.
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
        tracing::warn!(pid = leader.pid, %tag, "a process of ours stands in no record; it is ended");
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
            tracing::info!(count, "empty control groups that earlier runs left were removed");
        }
    };
    actix_rt::task::spawn_blocking(tidy).await.map_err(|error| error.to_string())?;
    Ok(ended)
}
