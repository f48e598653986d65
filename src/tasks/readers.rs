//! What was read of the events of tasks. It is kept until it is on disk, from one life of the tasks to the next.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use callboard_actors::driver::{EventPosition, TaskEventItem};
use callboard_actors::eventor::TaskEvents;
use callboard_actors::vocabulary::{AllocationId, DriverName};
use tokio::sync::Mutex;

/// How many events are taken at once at most.
const BATCH_MAX: usize = 256;

/// The reader of each task.
pub(super) type Readers = Rc<RefCell<BTreeMap<AllocationId, Rc<Mutex<Reader>>>>>;

/// What was read of a task's events and not taken yet: it is handed over until the machine has it on disk.
pub(super) struct Reader {
    pub(super) driver: DriverName,
    pub(super) events: TaskEvents,
    pub(super) waiting: VecDeque<TaskEventItem>,
    /// How many items were taken before those that wait.
    pub(super) taken: u64,
    pub(super) has_ended: bool,
}

impl Reader {
    /// The next items behind those that were taken; none if none comes any more. Giving up this future loses nothing.
    pub(super) async fn beyond(&mut self, taken: u64) -> Vec<TaskEventItem> {
        while self.taken < taken && self.waiting.pop_front().is_some() {
            self.taken += 1;
        }
        if self.waiting.is_empty() {
            match self.events.next().await {
                Some(item) => self.waiting.push_back(item),
                None => self.has_ended = true,
            }
        }
        while self.waiting.len() < BATCH_MAX
            && let Some(item) = self.events.try_next()
        {
            self.waiting.push_back(item);
        }
        self.waiting.iter().cloned().collect()
    }
}

pub(super) fn position(item: &TaskEventItem) -> Option<EventPosition> {
    match item {
        TaskEventItem::Event { position, .. } => position.clone(),
        TaskEventItem::Gap { .. } => None,
    }
}
