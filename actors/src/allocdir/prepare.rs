//! Creates the directories of a task before a start. Existing ones are accepted or refused (T041 to T049).

use callboard_machines::allocdir::{Layout, SHARED, Seen, TaskNames};
use rustix::mount::MountFlags;

use super::binding::bind;
use super::chroot;
use super::error::AllocDirError;
use super::memory;
use super::roots::AllocDirs;
use super::tree::{Accepted, Dir, Owner, Wanted};
use crate::driver::FsIsolation;
use crate::users::Account;

/// The parameters of a task's directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTree {
    /// The names of the task.
    pub names: TaskNames,
    /// The isolation of its driver: `fs_isolation` of its capabilities.
    pub isolation: FsIsolation,
    /// The user of the task, if it names one that this machine knows. Used only when the host is root.
    pub user: Option<Account>,
}

/// The storage of a task's secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secrets {
    /// In memory.
    InMemory,
    /// In an ordinary directory, so possibly on a disk.
    OnDisk {
        /// The reason.
        reason: String,
    },
}

/// The result of a preparation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The paths on the host.
    pub layout: Layout,
    /// The paths as the task sees them.
    pub seen: Seen,
    /// The storage of its secrets.
    pub secrets: Secrets,
}

impl AllocDirs {
    /// Creates the directories of a task, or completes existing ones: before each start, and after a reboot too. Idempotent.
    ///
    /// # Errors
    /// [`AllocDirError`] when another file is in the place of a directory, or the kernel returns an error.
    pub fn prepare(&self, tree: &TaskTree) -> Result<Prepared, AllocDirError> {
        let names = &tree.names;
        if names.task.as_str() == SHARED {
            return Err(AllocDirError::Name(format!(
                "a task cannot be called `{SHARED}`: what the tasks of an allocation share has this name; give it another one"
            )));
        }
        let (hosts, everybody) = (self.hosts(), self.everybody());
        let open = |mode| Wanted { mode, owner: everybody, accepted: &hosts };
        let root = self.opened(&self.root)?;
        let ours = Wanted { mode: 0o755, owner: None, accepted: &hosts };
        let allocation = root.make(names.allocation.as_str(), &ours)?;
        let shared = allocation.make(SHARED, &open(0o777))?;
        let task = allocation.make(names.task.as_str(), &open(0o777))?;
        // Tasks may have created directories in these.
        let tasks = self.tasks_too(tree);
        let inside = |mode| Wanted { mode, owner: everybody, accepted: &tasks };
        for name in ["logs", "tmp", "data"] {
            shared.make(name, &inside(0o777))?;
        }
        task.make("local", &inside(0o777))?;
        task.make("tmp", &inside(0o1777))?;
        let secrets = self.secrets(&task, "secrets", tree, &tasks)?;
        self.secrets(&task, "private", tree, &tasks)?;
        match tree.isolation {
            FsIsolation::None | FsIsolation::Image => {}
            FsIsolation::Chroot => {
                task.make_or_mounted(SHARED, &inside(0o777))?;
                show(&shared, &task, SHARED, MountFlags::empty())?;
                chroot::fill(self, &task, &tasks)?;
            }
            FsIsolation::Unveil => self.unveil(tree, &shared, &task, &tasks)?,
        }
        let layout = self.layout(names);
        Ok(Prepared { seen: layout.seen(tree.isolation), layout, secrets })
    }

    fn tasks_too(&self, tree: &TaskTree) -> Accepted {
        let mut accepted = self.hosts();
        accepted.users.extend(tree.user.as_ref().map(|user| user.uid));
        accepted.dynamic = self.everybody.is_some();
        accepted
    }

    /// Creates a directory for secrets, in memory if permitted.
    fn secrets(
        &self,
        task: &Dir,
        name: &str,
        tree: &TaskTree,
        accepted: &Accepted,
    ) -> Result<Secrets, AllocDirError> {
        let (mode, owner) = self.secret_mode(tree);
        let wanted = Wanted { mode, owner, accepted };
        if task.look(name)?.is_some_and(|known| known.mount != task.known.mount) {
            // Only a privileged user can have mounted it, so its owner proves nothing; its type does.
            let mounted = task.open(name)?;
            if !memory::is_one(&mounted)? {
                return Err(AllocDirError::Mounted { path: mounted.path, found: "something".to_owned() });
            }
            mounted.become_wanted(&wanted)?;
            return Ok(Secrets::InMemory);
        }
        let plain = task.make(name, &wanted)?;
        if self.everybody.is_none() {
            return Ok(Secrets::OnDisk { reason: "only root mounts, and this host is not root".to_owned() });
        }
        match memory::mount_over(&plain, mode, owner)? {
            Ok(()) => Ok(Secrets::InMemory),
            Err(reason) => Ok(Secrets::OnDisk { reason }),
        }
    }

    /// The mode and owner of secrets: the task's user, if known. In an image the name may mean another user id.
    fn secret_mode(&self, tree: &TaskTree) -> (u32, Option<Owner>) {
        let Some(everybody) = self.everybody() else { return (0o700, None) };
        match &tree.user {
            Some(user) if tree.isolation != FsIsolation::Image => {
                (0o710, Some(Owner { uid: user.uid, gid: user.gid }))
            }
            Some(_) | None => (0o777, Some(everybody)),
        }
    }

    /// Bind-mounts a task below the root of mounts, with its shared directory and its secrets (T048).
    fn unveil(
        &self,
        tree: &TaskTree,
        shared: &Dir,
        task: &Dir,
        accepted: &Accepted,
    ) -> Result<(), AllocDirError> {
        let flags = MountFlags::NOSUID | MountFlags::NOATIME;
        let owner =
            tree.user.as_ref().map(|user| Owner { uid: user.uid, gid: user.gid }).or(self.everybody());
        let (mounts, name) = (self.opened(&self.mounts)?, tree.names.joined());
        if mounts.look(&name)?.is_none_or(|known| known.mount == mounts.known.mount) {
            mounts.make(&name, &Wanted { mode: 0o710, owner, accepted })?;
        }
        task.make(SHARED, &Wanted { mode: 0o777, owner: self.everybody(), accepted })?;
        show(task, &mounts, &name, flags)?;
        let shown = mounts.open(&name)?;
        show(shared, &shown, SHARED, flags)?;
        show(&task.open("secrets")?, &shown, "secrets", flags)
    }
}

/// Bind-mounts a directory under a name in another one, unless it is mounted there already.
pub(super) fn show(source: &Dir, parent: &Dir, name: &str, flags: MountFlags) -> Result<(), AllocDirError> {
    let target = parent.open(name)?;
    if target.is_same_as(source) {
        return Ok(());
    }
    if target.known.mount != parent.known.mount {
        return Err(AllocDirError::Mounted { path: target.path, found: "something".to_owned() });
    }
    bind(source, &target, flags)
}
