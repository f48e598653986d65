//! Holds the task events that were read. They are kept until they are on disk, across incarnations of the tasks.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use callboard_actors::driver::{EventPosition, TaskEventItem};
use callboard_actors::eventor::TaskEvents;
use callboard_actors::vocabulary::{AllocationId, DriverName};
use tokio::sync::Mutex;

/// The maximum number of events that are taken at once.
const BATCH_MAX: usize = 256;

/// The reader of each task.
pub(super) type Readers = Rc<RefCell<BTreeMap<AllocationId, Rc<Mutex<Reader>>>>>;

/// The events of a task that were read and not taken yet: they are delivered again until the machine has them on disk.
pub(super) struct Reader {
    pub(super) driver: DriverName,
    pub(super) events: TaskEvents,
    pub(super) waiting: VecDeque<TaskEventItem>,
    /// How many items were taken before the waiting ones.
    pub(super) taken: u64,
    pub(super) has_ended: bool,
}

impl Reader {
    /// The next items after those that were taken; empty at the end of the stream. Dropping this future loses nothing.
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
