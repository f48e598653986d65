//! The exclusive cores of tasks, which the adapter that prepares tasks and the store of their records share.

use std::cell::RefCell;
use std::rc::Rc;

use callboard_actors::topology::{CpuList, Topology};
use callboard_actors::vocabulary::AllocationId;

use super::{Cores, NoCores};

/// The exclusive cores of each task. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct CoreLedger(Rc<RefCell<Cores>>);

impl CoreLedger {
    /// Records the cores that a running task has.
    pub(super) fn hold(&self, task: &AllocationId, cores: CpuList) {
        self.0.borrow_mut().hold(task, cores);
    }

    /// Allocates cores to a task.
    ///
    /// # Errors
    /// If too few are free, or usable at all.
    pub(super) fn take(
        &self,
        task: &AllocationId,
        asked: usize,
        topology: &Topology,
    ) -> Result<CpuList, NoCores> {
        self.0.borrow_mut().take(task, asked, topology)
    }

    /// Releases the cores of a task that no longer runs.
    pub(super) fn release(&self, task: &AllocationId) {
        self.0.borrow_mut().release(task);
    }
}
