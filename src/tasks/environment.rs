//! The environment of a task: its directories, its user and its control group. It is made before each start, released after each
//! end, and removed when the task is forgotten (TH050, TH060).
//!
//! The kernel and the file system are the only source of truth; the database holds nothing of it that could become stale. An
//! error fails the task, never the host.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callboard_actors::allocdir::{AllocDirError, AllocDirs, Prepared, Secrets, TaskNames, TaskTree};
use callboard_actors::cgroups::{CgroupMode, Cores, GroupName, Places, TaskCgroups};
use callboard_actors::datadir::Lost;
use callboard_actors::driver::{DriverCapabilities, FsIsolation};
use callboard_actors::process::random_bytes;
use callboard_actors::users::{Reservations, accounts};
use callboard_actors::vocabulary::AllocationId;

use super::forgotten::{FIRST_PAUSE, Forgotten, LONGEST_PAUSE};
use super::{TaskIdentities, Trouble};

/// The settings for the environments of a host's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnvironmentOptions {
    /// The data directory of the host.
    pub data_dir: PathBuf,
    /// The directory of allocations; by default `alloc` in the data directory.
    pub alloc_dir: Option<PathBuf>,
    /// Whether tasks get control groups, where this host may create them.
    pub control_groups: bool,
    /// The directory where all hosts of this machine share which dynamic users they hold. `None` ignores the other hosts; that
    /// is for a host that is not root and so cannot assign users.
    pub machine_users: Option<PathBuf>,
}

/// Makes and removes the environments of one host's tasks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TaskEnvironment(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    alloc_dir: PathBuf,
    mounts_dir: PathBuf,
    groups: TaskCgroups,
    users: Reservations,
    identities: TaskIdentities,
    forgotten: Forgotten,
    /// Whether the warning that secrets may reach a disk was logged.
    is_disk_told: AtomicBool,
}

/// The result of preparing a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedEnvironment {
    /// The directories, and their paths as the task sees them.
    pub dirs: Prepared,
    /// The control groups; `None` if this host makes none.
    pub groups: Option<Places>,
    /// The user of the task; empty leaves it to the driver.
    pub user: String,
}

impl TaskEnvironment {
    /// Checks what this machine permits, and logs it once. Control groups of an earlier run stay as they are. Runs off the actor
    /// thread: disks may be slow, and other hosts may hold the shared lock.
    ///
    /// # Errors
    /// If the check panics, or the runtime ends.
    pub async fn new(options: TaskEnvironmentOptions, identities: TaskIdentities) -> std::io::Result<Self> {
        let made = actix_rt::task::spawn_blocking(move || Self::made(&options, identities)).await;
        made.map_err(std::io::Error::other)
    }

    fn made(options: &TaskEnvironmentOptions, identities: TaskIdentities) -> Self {
        let alloc_dir = options.alloc_dir.clone().unwrap_or_else(|| options.data_dir.join("alloc"));
        if let Err(error) = make_passable(&options.data_dir) {
            tracing::warn!(
                path = %options.data_dir.display(), %error,
                "cannot make the data directory passable; tasks of other users cannot reach their directories"
            );
        }
        Self(Arc::new(Inner {
            alloc_dir,
            mounts_dir: options.data_dir.join("mounts"),
            groups: groups(options.control_groups),
            users: users(options),
            identities,
            forgotten: Forgotten::new(options.data_dir.join("forgotten")),
            is_disk_told: AtomicBool::new(false),
        }))
    }

    /// The control groups of tasks: `v2`, `v1`, or `none` with the reason.
    #[must_use]
    pub fn control_groups(&self) -> String {
        self.0.groups.mode().to_string()
    }

    /// Makes the environment of a task before each start. Kills processes that an earlier run left in its control group.
    ///
    /// # Errors
    /// What cannot be made, and what to do.
    pub async fn prepare(
        &self,
        name: &AllocationId,
        user: &str,
        cores: Cores,
        capabilities: Option<&DriverCapabilities>,
    ) -> Result<PreparedEnvironment, Trouble> {
        let isolation = capabilities.map_or(FsIsolation::None, |told| told.fs_isolation);
        let is_dynamic = user.is_empty() && capabilities.is_some_and(|told| told.dynamic_workload_users);
        let (inner, names, user) = (Arc::clone(&self.0), self.names(name), user.to_owned());
        let made = actix_rt::task::spawn_blocking(move || {
            let user = if is_dynamic { inner.dynamic_user(&names)? } else { user };
            let dirs = inner.directories(&names, isolation, &user)?;
            let groups = inner.group(&names, cores)?;
            Ok(PreparedEnvironment { dirs, groups, user })
        });
        made.await.map_err(|error| Trouble::passing(format!("cannot create its directories: {error}")))?
    }

    /// Releases the environment of a run that has nothing left: kills processes in its control group, removes the group, releases its user,
    /// and unmounts what was mounted for it. Files stay. Errors are logged, and retried with the next run.
    pub async fn release(&self, name: &AllocationId) {
        let (inner, names) = (Arc::clone(&self.0), self.names(name));
        let released = actix_rt::task::spawn_blocking(move || inner.release(&names)).await;
        if let Err(error) = released {
            tracing::warn!(task = %name, %error, "cannot release the resources of a task");
        }
    }

    /// Begins to remove the environment of a forgotten task. If it is busy or has a mount below it, that is logged and retried, by
    /// this run of the host and by the next.
    pub async fn remove(&self, names: TaskNames) {
        let (inner, noted) = (Arc::clone(&self.0), names.clone());
        let written = actix_rt::task::spawn_blocking(move || inner.forgotten.note(&noted)).await;
        if let Err(error) = written.map_err(std::io::Error::other).flatten() {
            let task = &names.task;
            tracing::warn!(%task, %error, "cannot record the pending removal of a task's directories");
        }
        self.begin_removal(names);
    }

    /// Removes it in the background, unless a removal is in progress. The retries end with the last owner of the environment.
    fn begin_removal(&self, names: TaskNames) {
        if !self.0.forgotten.begin(&names) {
            return;
        }
        let environment = Arc::downgrade(&self.0);
        actix_rt::spawn(async move {
            let (mut pause, mut told) = (FIRST_PAUSE, String::new());
            while let Some(inner) = environment.upgrade() {
                let tried = names.clone();
                let removed = actix_rt::task::spawn_blocking(move || inner.remove(&tried)).await;
                let Err(error) = removed.map_err(|error| error.to_string()).flatten() else { return };
                let task = &names.task;
                if error != told {
                    tracing::warn!(%task, %error, "cannot remove the directories of a forgotten task; retrying");
                    told = error;
                }
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        });
    }

    /// Removes control groups that dead runs of unknown tasks left, and logs which directories of such tasks exist. Retries
    /// removals that earlier runs could not finish. `known` names all tasks of the configuration and of the database.
    pub async fn sweep(&self, known: BTreeSet<AllocationId>) {
        let (inner, known) = (Arc::clone(&self.0), known.iter().map(|name| self.names(name)).collect());
        let swept = actix_rt::task::spawn_blocking(move || inner.sweep(known)).await;
        match swept {
            Ok(forgotten) => forgotten.into_iter().for_each(|names| self.begin_removal(names)),
            Err(error) => tracing::warn!(%error, "cannot search for leftovers of ended tasks"),
        }
    }

    /// The names of a task's directories and groups.
    #[must_use]
    pub fn names(&self, name: &AllocationId) -> TaskNames {
        let identity = self.0.identities.of(name);
        TaskNames { allocation: identity.allocation, task: identity.task }
    }
}

impl Inner {
    fn dirs(&self) -> Result<AllocDirs, AllocDirError> {
        AllocDirs::open(&self.alloc_dir, &self.mounts_dir)
    }

    fn directories(
        &self,
        names: &TaskNames,
        isolation: FsIsolation,
        user: &str,
    ) -> Result<Prepared, Trouble> {
        // A name that is unknown on this machine may be known to the driver.
        let account = if user.is_empty() { None } else { accounts::user(user).ok() };
        let tree = TaskTree { names: names.clone(), isolation, user: account };
        let made = self.dirs().and_then(|dirs| dirs.prepare(&tree)).map_err(|error| Trouble {
            is_transient: error.is_transient() || is_of_the_disk(&error),
            ..Trouble::passing(format!("cannot create its directories: {error}"))
        })?;
        if let Secrets::OnDisk { reason } = &made.secrets
            && !self.is_disk_told.swap(true, Ordering::Relaxed)
        {
            tracing::info!(%reason, "the secrets of tasks are stored on disk, not in memory");
        }
        Ok(made)
    }

    fn group(&self, names: &TaskNames, cores: Cores) -> Result<Option<Places>, Trouble> {
        let failed = |reason: String| Trouble::passing(format!("cannot create its control group: {reason}"));
        if matches!(self.groups.mode(), CgroupMode::None { .. }) {
            return Ok(None);
        }
        let name = GroupName::new(&names.allocation, &names.task).map_err(Trouble::lasting)?;
        let made = self.groups.destroy(&name).and_then(|()| self.groups.create(&name, cores));
        let made = made
            .map_err(|error| Trouble { is_transient: error.is_transient(), ..failed(error.to_string()) })?;
        Ok(made.map(|made| made.places))
    }

    /// The user of a task whose driver demands a dynamic user: kept until the run is gone (T116, TH070).
    fn dynamic_user(&self, names: &TaskNames) -> Result<String, Trouble> {
        let random = random_bytes::<8>().map(u64::from_le_bytes);
        let taken = random.and_then(|random| self.users.take(&names.joined(), random));
        let user = taken
            .map_err(|error| Trouble::passing(format!("cannot allocate a dynamic user for it: {error}")))?;
        Ok(user.to_string())
    }

    fn release(&self, names: &TaskNames) {
        let task = &names.task;
        if let Ok(name) = GroupName::new(&names.allocation, task)
            && let Err(error) = self.groups.destroy(&name)
        {
            tracing::warn!(%task, %error, "cannot remove the control group of a task");
        }
        if let Err(error) = self.dirs().and_then(|dirs| dirs.release(names)) {
            tracing::warn!(%task, %error, "cannot unmount the directories of a task");
        }
        if let Err(error) = self.users.give_back(&names.joined()) {
            tracing::warn!(%task, %error, "cannot release the dynamic user of a task");
        }
    }

    /// Removes the environment of a forgotten task. Idempotent.
    fn remove(&self, names: &TaskNames) -> Result<(), String> {
        // A name that is too long for a group has no group.
        if let Ok(group) = GroupName::new(&names.allocation, &names.task) {
            self.groups.destroy(&group).map_err(|error| error.to_string())?;
        }
        if self.alloc_dir.exists() || self.mounts_dir.exists() {
            self.dirs().and_then(|dirs| dirs.remove(names)).map_err(|error| error.to_string())?;
        }
        self.users.give_back(&names.joined()).map_err(|error| error.to_string())?;
        self.forgotten.settle(names).map_err(|error| error.to_string())?;
        self.forgotten.end(names);
        tracing::info!(task = %names.task, "removed the directories of a forgotten task");
        Ok(())
    }

    /// The forgotten tasks whose directories have to be removed. A task that is known again keeps its own. A task of another
    /// host came with a copy of its data directory, and is left alone (TH053).
    fn to_remove(&self, known: &BTreeSet<TaskNames>) -> BTreeSet<TaskNames> {
        let mut noted = self.forgotten.all().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the pending removals of directories of forgotten tasks");
            BTreeSet::new()
        });
        noted.retain(|names| {
            let is_wanted = !known.contains(names) && self.is_of_this_host(names);
            if !is_wanted && let Err(error) = self.forgotten.settle(names) {
                tracing::warn!(task = %names.task, %error, "cannot delete the record of a pending removal of a task's directories");
            }
            is_wanted
        });
        noted
    }

    /// Removes and logs the remains of dead tasks. Returns the tasks whose directories have to be removed.
    fn sweep(&self, mut known: BTreeSet<TaskNames>) -> BTreeSet<TaskNames> {
        let to_remove = self.to_remove(&known);
        known.extend(to_remove.iter().cloned());
        self.sweep_unknown(&known);
        to_remove
    }

    fn sweep_unknown(&self, known: &BTreeSet<TaskNames>) {
        let (removed, left) = self.groups.sweep(|name| self.is_ours(name), &group_names(known));
        for name in removed {
            tracing::info!(group = name.as_str(), "removed the control group of an unknown task");
        }
        for (name, error) in left {
            tracing::warn!(group = name.as_str(), %error, "cannot remove the control group of an unknown task");
        }
        if !self.alloc_dir.exists() {
            return;
        }
        match self.dirs().and_then(|dirs| dirs.list()) {
            Ok(found) => self.tell_unknown(&found, known),
            Err(error) => tracing::warn!(%error, "cannot list the directories of tasks"),
        }
    }

    /// Whether this host gives the group name, `ALLOCID.NAME`.
    fn is_ours(&self, group: &str) -> bool {
        let Some((allocation, task)) = group.split_once('.') else { return false };
        AllocationId::new(task).is_ok_and(|name| self.identities.of(&name).allocation.as_str() == allocation)
    }

    fn is_of_this_host(&self, names: &TaskNames) -> bool {
        self.is_ours(&format!("{}.{}", names.allocation, names.task))
    }

    fn tell_unknown(&self, found: &[(String, Vec<String>)], known: &BTreeSet<TaskNames>) {
        let is_known = |allocation: &str| known.iter().any(|names| names.allocation.as_str() == allocation);
        for (allocation, tasks) in found.iter().filter(|(allocation, _)| !is_known(allocation)) {
            let (path, tasks) = (self.alloc_dir.join(allocation), tasks.join(", "));
            tracing::warn!(
                path = %path.display(), tasks,
                "directories of a task that neither configuration nor database knows; remove them when they are not needed: \
                 first unmount what `findmnt -R` shows below, then rm -r --one-file-system"
            );
        }
    }
}

/// Whether the file system rejects writes, or the data directory is lost: no fault of the task, which continues when that is over.
fn is_of_the_disk(error: &AllocDirError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let AllocDirError::Refused { source, .. } = error else { return false };
    matches!(source.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem) || Lost::is_in(source)
}

fn group_names(known: &BTreeSet<TaskNames>) -> BTreeSet<GroupName> {
    known.iter().filter_map(|names| GroupName::new(&names.allocation, &names.task).ok()).collect()
}

fn groups(are_wanted: bool) -> TaskCgroups {
    if !are_wanted {
        return TaskCgroups::none("the configuration says so");
    }
    let groups = TaskCgroups::of_this_machine();
    let groups = match groups.prepare() {
        Ok(()) => groups,
        Err(error) => TaskCgroups::none(error.to_string()),
    };
    match groups.mode() {
        CgroupMode::None { reason } => tracing::info!(%reason, "tasks have no control groups"),
        mode => tracing::info!(%mode, "tasks have control groups"),
    }
    groups
}

/// The dynamic users of this host. The other hosts of this machine are informed which users it still holds.
fn users(options: &TaskEnvironmentOptions) -> Reservations {
    let users = Reservations::new(options.data_dir.join("users"));
    let Some(machine) = &options.machine_users else { return users };
    let users = users.shared_in(machine);
    match users.claim() {
        Ok(lost) => lost.iter().for_each(|user| {
            tracing::warn!(%user, "another host on this machine has this user now; the task that had it gets another one");
        }),
        Err(error) => tracing::warn!(%error, "cannot publish the users of this host to the other hosts of this machine"),
    }
    users
}

/// Lets the users of tasks traverse the data directory, if this host is root; its other entries are closed to them.
fn make_passable(data_dir: &Path) -> std::io::Result<()> {
    let found = std::fs::metadata(data_dir)?;
    let mode = found.permissions().mode() & 0o7777;
    let is_roots = rustix::process::geteuid().is_root() && found.uid() == 0;
    if is_roots && mode & 0o011 != 0o011 {
        std::fs::set_permissions(data_dir, std::fs::Permissions::from_mode(mode | 0o011))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use callboard_actors::machine::Locked;
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_file_system_that_takes_no_writes_is_no_fault_of_a_task() {
        let is_told = |errno: Errno| {
            let (doing, path) = ("created".to_owned(), PathBuf::from("/data/alloc"));
            is_of_the_disk(&AllocDirError::Refused { doing, path, source: errno.into() })
        };
        assert!([Errno::NOSPC, Errno::DQUOT, Errno::ROFS].into_iter().all(is_told));
        assert!(![Errno::ACCESS, Errno::NAMETOOLONG, Errno::IO].into_iter().any(is_told));
        let not_a_directory =
            AllocDirError::NotADirectory { path: PathBuf::from("/data/alloc"), found: "a file" };
        assert!(!is_of_the_disk(&not_a_directory));
    }

    #[actix::test]
    async fn actors_go_on_while_the_users_of_this_machine_are_waited_for_th070() {
        let root = tempfile::tempdir().unwrap();
        let (data_dir, machine) = (root.path().join("data"), root.path().join("machine"));
        fs::create_dir_all(data_dir.join("users")).unwrap();
        std::os::unix::fs::symlink("a.web", data_dir.join("users/80007")).unwrap();
        fs::create_dir(&machine).unwrap();
        fs::set_permissions(&machine, fs::Permissions::from_mode(0o700)).unwrap();
        let lock = fs::File::create(machine.join("lock")).unwrap();
        let lock = Locked::within(lock, std::time::Duration::ZERO).unwrap();
        let options = TaskEnvironmentOptions {
            data_dir,
            alloc_dir: None,
            control_groups: false,
            machine_users: Some(machine.clone()),
        };
        // The lock is released only if the thread runs something besides the environment.
        let other = async move { drop(lock) };
        let (environment, ()) =
            tokio::join!(TaskEnvironment::new(options, TaskIdentities::of_owner("0123")), other);
        environment.unwrap();
        assert!(fs::symlink_metadata(machine.join("80007")).is_ok(), "the others are told of the user");
    }
}
