//! Mounts and directories in memory, for tests and scripts: shared by the volumes of a host and its plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{
    DeviceNumber, Hanging, LookError, Made, Mount, MountId, MountTable, Mounts, MountsAt, PathKind, PathLook,
    Place, PlaceError, Propagation,
};

#[derive(Debug, Default)]
struct Held {
    mounts: BTreeMap<PathBuf, u64>,
    directories: BTreeSet<PathBuf>,
    mounted: u64,
    /// Directories that stay when those below them are removed.
    kept: BTreeSet<PathBuf>,
    /// The common part of the paths whose file systems do not answer, and the duration of a look at them.
    hanging: Option<(String, Duration)>,
}

impl Held {
    /// Makes a directory and those above it.
    fn make(&mut self, place: &Place, path: &Path) -> Made {
        let made = match (self.mounts.contains_key(path), self.directories.contains(path)) {
            (true, _) => Made::Mounted,
            (false, true) => Made::AlreadyThere,
            (false, false) => Made::New,
        };
        let mut above: Vec<_> =
            path.ancestors().take_while(|path| *path != place.base()).map(Path::to_owned).collect();
        self.directories.extend(above.iter().cloned());
        above.reverse();
        above.truncate(place.kept());
        self.kept.extend(above);
        made
    }
}

/// The mounts of a kernel, and the directories that were made. Clones are the same kernel.
#[derive(Debug, Clone, Default)]
pub struct MemoryMounts(Arc<Mutex<Held>>);

impl MemoryMounts {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Mounts something at a path, unless something is mounted there: a plugin is idempotent.
    pub fn mount(&self, path: &str) {
        let mut held = self.held();
        held.mounted += 1;
        let number = held.mounted;
        held.mounts.entry(path.into()).or_insert(number);
    }

    /// Unmounts the mount at a path, if there is one.
    pub fn unmount(&self, path: &str) {
        self.held().mounts.remove(Path::new(path));
    }

    /// Whether something is mounted at a path.
    #[must_use]
    pub fn is_mounted(&self, path: &Path) -> bool {
        self.held().mounts.contains_key(path)
    }

    /// Whether this directory was made and not removed.
    #[must_use]
    pub fn is_made(&self, path: &Path) -> bool {
        self.held().directories.contains(path)
    }

    /// Every mount point.
    #[must_use]
    pub fn mounted(&self) -> Vec<PathBuf> {
        self.held().mounts.keys().cloned().collect()
    }

    /// The file systems at paths with this part no longer answer: a look at them takes this long, and has no result.
    pub fn hang(&self, part: &str, limit: Duration) {
        self.held().hanging = Some((part.to_owned(), limit));
    }

    /// Every mount point, and every directory that was made and neither removed nor is to stay.
    #[must_use]
    pub fn left(&self) -> Vec<PathBuf> {
        let held = self.held();
        let made = held.directories.difference(&held.kept);
        held.mounts.keys().chain(made).cloned().collect()
    }
}

impl Mounts for MemoryMounts {
    fn look(&self, path: PathBuf) -> BoxFuture<'static, Result<PathLook, LookError>> {
        let hanging = self.held().hanging.clone().filter(|(part, _)| path.to_string_lossy().contains(part));
        if let Some((_, limit)) = hanging {
            return async move {
                tokio::time::sleep(limit).await;
                Err(LookError::Hung { path, limit })
            }
            .boxed();
        }
        let mount = self.held().mounts.get(&path).map(|number| mount(*number, &path));
        let kind = if mount.is_some() { PathKind::Directory } else { PathKind::Absent };
        let mounts = MountsAt::Listed { mount, hidden: vec![] };
        std::future::ready(Ok(PathLook { path, kind, mode: 0, file: None, mounts })).boxed()
    }

    fn check(&self, _path: PathBuf) -> BoxFuture<'static, Result<(), LookError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn look_at_both(
        &self,
        path: PathBuf,
        other: PathBuf,
    ) -> BoxFuture<'static, Result<[PathLook; 2], LookError>> {
        let looks = [self.look(path), self.look(other)];
        async move {
            let [first, second] = looks;
            Ok([first.await?, second.await?])
        }
        .boxed()
    }

    fn table(&self) -> BoxFuture<'static, Result<MountTable, LookError>> {
        let mounts = self.held().mounts.iter().map(|(path, number)| mount(*number, path)).collect();
        std::future::ready(Ok(MountTable::new(mounts))).boxed()
    }

    fn make_mount_point(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>> {
        let made = self.held().make(&place, &place.path());
        std::future::ready(Ok(made)).boxed()
    }

    fn make_parent(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>> {
        let (mut held, path) = (self.held(), place.path());
        let made = path.parent().map(|parent| held.make(&place, parent));
        let made = made.filter(|_| !held.mounts.contains_key(&path)).unwrap_or(Made::Mounted);
        std::future::ready(Ok(made)).boxed()
    }

    fn make_file(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>> {
        self.make_mount_point(place)
    }

    fn remove(&self, place: Place) -> BoxFuture<'static, Result<Vec<PathBuf>, PlaceError>> {
        let mut held = self.held();
        let path = place.path();
        if held.mounts.contains_key(&path) {
            return std::future::ready(Err(PlaceError::Mounted { path })).boxed();
        }
        let mut removed = Vec::new();
        let own = place.names().len().saturating_sub(place.kept()).max(1);
        for path in path.ancestors().take(own) {
            let is_used = |other: &PathBuf| other != path && other.starts_with(path);
            if held.directories.iter().chain(held.mounts.keys()).any(is_used) {
                break;
            }
            removed.extend(held.directories.take(path));
        }
        std::future::ready(Ok(removed)).boxed()
    }

    fn hanging(&self) -> Vec<Hanging> {
        vec![]
    }
}

fn mount(number: u64, path: &Path) -> Mount {
    Mount {
        id: MountId(number),
        unique_id: None,
        parent: MountId(0),
        device: DeviceNumber { major: 0, minor: 1 },
        root: "/".into(),
        is_root_deleted: false,
        mount_point: path.to_owned(),
        options: "rw".to_owned(),
        propagation: Propagation::default(),
        fs_type: "tmpfs".to_owned(),
        source: "memory".to_owned(),
        fs_options: "rw".to_owned(),
    }
}
