//! A plain model of a driver's surroundings: its process, as the owner of the processes knows it, and the plugin in it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::{EventPosition, TaskEvent, TaskEventItem, TaskKey};
use callboard_actors::process::{Launched, ProcessName, ProcessTag};
use callboard_actors::processes::Recalled;
use callboard_actors::vocabulary::Timestamp;

/// How many events a plugin keeps for later readers.
const KEPT_MAX: usize = 64;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    launch: u64,
    /// The run of the host in which it was launched.
    run: u64,
}

/// An event that the plugin has reported: its task, and its number within that task.
#[derive(Debug, Clone, Copy, Hash)]
struct SentEvent {
    task: u8,
    ordinal: u32,
}

/// The process of one driver and its plugin. It outlives hosts.
#[derive(Debug, Clone, Hash)]
pub struct Environment {
    name: ProcessName,
    tasks: Arc<[TaskKey]>,
    keeps_positions: bool,
    run: u64,
    process: Option<Process>,
    is_launching: bool,
    launches: u64,
    told: VecDeque<SentEvent>,
    /// The number of the next event.
    next: u64,
    ordinals: BTreeMap<u8, u32>,
}

impl Environment {
    /// No process runs yet.
    #[must_use]
    pub fn new(name: ProcessName, tasks: Arc<[TaskKey]>, keeps_positions: bool) -> Self {
        Self {
            name,
            tasks,
            keeps_positions,
            run: 1,
            process: None,
            is_launching: false,
            launches: 0,
            told: VecDeque::new(),
            next: 1,
            ordinals: BTreeMap::new(),
        }
    }

    // === The process ===

    /// Whether a process runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether this launch of it runs.
    #[must_use]
    pub fn runs(&self, tag: ProcessTag) -> bool {
        self.process.is_some_and(|process| tag_of(process.launch) == tag)
    }

    /// A launch is ordered. False if a process or a launch in flight exists already.
    pub(super) const fn launch_begins(&mut self) -> bool {
        let is_first = self.process.is_none() && !self.is_launching;
        self.is_launching = true;
        is_first
    }

    /// A launch has ended: the process is ready. `None` if the launch was given up meanwhile.
    pub(super) fn launch_succeeds(&mut self) -> Option<Launched> {
        if std::mem::take(&mut self.is_launching) {
            self.launches += 1;
            self.process = Some(Process { launch: self.launches, run: self.run });
            (self.next, self.ordinals) = (1, BTreeMap::new());
            self.told.clear();
        }
        self.launched()
    }

    pub(super) const fn launch_fails(&mut self) {
        self.is_launching = false;
    }

    fn launched(&self) -> Option<Launched> {
        let process = self.process?;
        Some(Launched {
            name: self.name.clone(),
            tag: tag_of(process.launch),
            pid: u32::try_from(100 + process.launch).unwrap_or(u32::MAX),
            started_at: Timestamp::default(),
            handshake: None,
            is_adopted: process.run != self.run,
            spec_digest: None,
        })
    }

    /// The state of the process. Waits for a launch in flight.
    pub(super) fn recalled(&mut self) -> Recalled {
        if self.is_launching {
            self.launch_succeeds();
        }
        self.launched().map_or(Recalled::Unknown, Recalled::Proven)
    }

    /// The process ends, by itself or by force.
    pub(super) fn exits(&mut self) {
        self.process = None;
    }

    /// Ends this launch, or any launch. Returns whether there was one.
    pub(super) fn stopped(&mut self, tag: Option<ProcessTag>) -> bool {
        let is_meant =
            self.process.is_some_and(|process| tag.is_none_or(|tag| tag == tag_of(process.launch)));
        let was_there = is_meant || self.is_launching && tag.is_none();
        if is_meant {
            self.process = None;
        }
        if tag.is_none() {
            self.is_launching = false;
        }
        was_there
    }

    /// The host is gone. A process that is bound to it ends with it, and so does a launch in flight.
    pub(super) fn next_run(&mut self, survives: bool) {
        self.run += 1;
        self.is_launching = false;
        if !survives {
            self.process = None;
        }
    }

    // === The plugin's events ===

    /// A task has an event, and the plugin reports it. Without a process there is no report.
    pub(super) fn happens(&mut self, task: u8) {
        if self.process.is_none() {
            return;
        }
        let ordinal = self.ordinals.entry(task).or_default();
        *ordinal += 1;
        self.told.push_back(SentEvent { task, ordinal: *ordinal });
        self.next += 1;
        if self.told.len() > KEPT_MAX {
            self.told.pop_front();
        }
    }

    /// The latest event of the task, and its launch.
    pub(super) fn latest_of(&self, task: u8) -> Option<(u64, u32)> {
        let process = self.process?;
        Some((process.launch, self.ordinals.get(&task).copied().unwrap_or(0)))
    }

    /// The name of the stream, if the plugin keeps positions.
    pub(super) fn stream(&self) -> Option<Arc<str>> {
        let process = self.process.filter(|_| self.keeps_positions)?;
        Some(Arc::from(format!("s{}", process.launch)))
    }

    /// The position of a stream that is opened after this event.
    pub(super) fn cursor_after(&self, after: Option<&EventPosition>) -> u64 {
        if !self.keeps_positions {
            return self.next;
        }
        let is_ours = |after: &&EventPosition| Some(&after.stream) == self.stream().as_ref();
        after.filter(is_ours).map_or(1, |after| after.sequence + 1)
    }

    /// Whether events can be read from here.
    pub(super) const fn has_more(&self, cursor: u64) -> bool {
        cursor < self.next
    }

    /// The events that can be read from here.
    pub(super) fn read(&self, cursor: u64) -> (Vec<Result<TaskEventItem, String>>, u64) {
        let first = self.next - u64::try_from(self.told.len()).unwrap_or(0);
        let stream = self.stream();
        let launch = self.process.map_or(0, |process| process.launch);
        let skipped = usize::try_from(cursor.saturating_sub(first)).unwrap_or(usize::MAX);
        let numbered = (first..).zip(&self.told).skip(skipped);
        let items = numbered.map(|(sequence, told)| {
            let position = stream.clone().map(|stream| EventPosition { stream, sequence });
            Ok(TaskEventItem::Event { event: Arc::new(self.event(launch, *told)), position })
        });
        (items.collect(), self.next)
    }

    fn event(&self, launch: u64, told: SentEvent) -> TaskEvent {
        TaskEvent {
            task_id: Arc::from("task"),
            task: self.tasks[usize::from(told.task) % self.tasks.len()].clone(),
            at: Some(mark(launch, told.ordinal)),
            message: String::new(),
            annotations: BTreeMap::new(),
        }
    }
}

/// The clock of these plugins counts launches in seconds and the events of a task in nanoseconds, so that the time of an event
/// identifies the event.
const fn mark(launch: u64, ordinal: u32) -> Timestamp {
    Timestamp::from_epoch(Duration::new(launch, ordinal))
}

/// The launch, and the number of the event within its task.
pub(super) fn marked(event: &TaskEvent) -> (u64, u32) {
    let at = event.at.unwrap_or_default().since_epoch();
    (at.as_secs(), at.subsec_nanos())
}

fn tag_of(launch: u64) -> ProcessTag {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&launch.to_le_bytes());
    ProcessTag::new(bytes)
}
