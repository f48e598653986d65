//! The launcher of the processes of drivers, if it is not the host's own owner of processes.

use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::driver::ProcessOwner;

/// Makes an owner of processes for each start of a host.
#[derive(Clone)]
pub(crate) struct ProcessOwners(Arc<dyn Fn() -> Rc<dyn ProcessOwner> + Send + Sync>);

impl ProcessOwners {
    /// The process owners of message scripts; a host has its own.
    #[cfg(feature = "cli")]
    pub(crate) fn new(make: impl Fn() -> Rc<dyn ProcessOwner> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(super) fn make(&self) -> Rc<dyn ProcessOwner> {
        (self.0)()
    }
}

impl std::fmt::Debug for ProcessOwners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessOwners").finish_non_exhaustive()
    }
}
