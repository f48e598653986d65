//! The mounts of this process, by the kernel.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::kernel::SharedTable;
use super::threads::{Threads, Ticket};
use super::{
    Hanging, LookError, Made, MountLimits, MountTable, Mounts, PathLook, Place, PlaceError, directories,
    kernel,
};

/// The mounts of this process.
#[derive(Debug, Clone)]
pub struct KernelMounts {
    threads: Threads,
    tables: Arc<SharedTable>,
    look: Look,
}

/// The function of a look.
type Look = fn(&Path, &SharedTable, &Ticket) -> Result<PathLook, LookError>;

impl KernelMounts {
    /// Looks within these limits.
    #[must_use]
    pub fn new(limits: MountLimits) -> Self {
        Self { threads: Threads::new(limits), tables: Arc::default(), look: kernel::look }
    }

    /// The same, but on any kernel as on one without unique ids: each look reads the mount table.
    #[must_use]
    pub fn by_table(limits: MountLimits) -> Self {
        Self { look: kernel::by_table, ..Self::new(limits) }
    }

    /// Runs work on a place.
    fn on<T: Send + 'static>(
        &self,
        attempt: &'static str,
        place: Place,
        work: impl FnOnce(&Place) -> Result<T, PlaceError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, PlaceError>> {
        let threads = self.threads.clone();
        let path = place.path();
        async move { threads.run(attempt, path, move |_| work(&place)).await? }.boxed()
    }
}

impl Mounts for KernelMounts {
    fn look(&self, path: PathBuf) -> BoxFuture<'static, Result<PathLook, LookError>> {
        let Self { threads, tables, look } = self.clone();
        let looked_at = path.clone();
        let looks = move |ticket: &mut Ticket| {
            kernel::in_place(&looked_at)?;
            look(&looked_at, &tables, ticket)
        };
        async move { threads.run("look at", path, looks).await? }.boxed()
    }

    fn check(&self, path: PathBuf) -> BoxFuture<'static, Result<(), LookError>> {
        let (threads, checked) = (self.threads.clone(), path.clone());
        async move { threads.run("look at", path, move |_| kernel::in_place(&checked)).await? }.boxed()
    }

    fn look_at_both(
        &self,
        path: PathBuf,
        other: PathBuf,
    ) -> BoxFuture<'static, Result<[PathLook; 2], LookError>> {
        let Self { threads, tables, look } = self.clone();
        let first = path.clone();
        let looks = move |ticket: &mut Ticket| {
            kernel::in_place(&first)?;
            let found = look(&first, &tables, ticket)?;
            ticket.goes_on_at(&other);
            Ok([found, look(&other, &tables, ticket)?])
        };
        async move { threads.run("look at", path, looks).await? }.boxed()
    }

    fn table(&self) -> BoxFuture<'static, Result<MountTable, LookError>> {
        let threads = self.threads.clone();
        async move { threads.run("read the mounts of", "/".into(), |_| kernel::table()).await? }.boxed()
    }

    fn make_mount_point(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>> {
        self.on("make", place, directories::make_mount_point)
    }

    fn make_parent(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>> {
        self.on("make the parent of", place, directories::make_parent)
    }

    fn make_file(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>> {
        self.on("make", place, directories::make_file)
    }

    fn remove(&self, place: Place) -> BoxFuture<'static, Result<Vec<PathBuf>, PlaceError>> {
        self.on("remove", place, directories::remove)
    }

    fn hanging(&self) -> Vec<Hanging> {
        self.threads.hanging()
    }
}
