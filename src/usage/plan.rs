//! Decides which usage streams are read, and holds the results. Pure: task changes and reports in, orders out.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::driver::client::{DriverError, TaskId, TaskStats};
use callboard_actors::rpc::Code;
use callboard_actors::vocabulary::{
    AllocationId, Allowance, Backoff, BackoffState, DriverName, Moment, Rate, Timestamp,
};

use crate::tasks::{TaskPhase, TaskReport};

/// The limit of concurrent readers. Further tasks show an error about the limit.
const READERS_MAX: usize = 1_000;
/// The backoff for a broken stream.
const AGAIN: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
    jitter_percent: 10,
    reset_after: Duration::from_secs(120),
};
/// The pause after a driver died when it was asked and had reported no usage; it doubles with each such death. The request
/// itself may have killed the driver, and usage is not worth that.
const LEFT_ALONE_FIRST: Duration = Duration::from_secs(600);
const LEFT_ALONE_LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The rate limit for log lines about missing usage of one driver (LOG-03).
const LOGGED: Rate = Rate { burst: 8, per_minute: 6 };

/// The usage of a task, if its driver reports it.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskUsage {
    /// Its driver has not reported yet.
    Awaited,
    /// The last report of its driver.
    Told(Figures),
    /// There are no reports, for this reason.
    Missing(String),
}

/// A report about a task. Values that its driver does not report are `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Its time of arrival.
    pub at: Timestamp,
    /// CPU usage in percent of one processor.
    pub cpu_percent: Option<f64>,
    /// CPU usage in MHz.
    pub cpu_mhz: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// Peak memory, in bytes.
    pub memory_max_bytes: Option<u64>,
}

/// The usage of each running task, by name.
pub type UsageView = BTreeMap<AllocationId, TaskUsage>;

/// The source of a task's reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) driver: DriverName,
    pub(super) id: TaskId,
}

/// A reader's input.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// A report.
    Told(Box<TaskStats>),
    /// The stream ended without an error. Its reader has ended.
    Ended,
    /// The driver was unavailable. The reader has ended.
    NotHad(String),
    /// The stream broke. Its reader has ended.
    Broken(DriverError),
}

/// The plan's output.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    /// Open a stream after a pause; its messages carry this number. It replaces an earlier reader of the task.
    Open { name: AllocationId, number: u64, source: Source, pause: Duration },
    /// Close the reader of the task.
    Close(AllocationId),
    /// Show this usage of a task; `None` if it does not run.
    Show(AllocationId, Option<TaskUsage>),
    /// Log why a task has no usage, and how many such lines were left out.
    Log { name: AllocationId, driver: DriverName, reason: String, left_out: u64 },
    /// Log for how many tasks such lines were left out.
    LogLeftOut { driver: DriverName, left_out: u64 },
}

#[derive(Debug)]
struct Entry {
    source: Source,
    /// The number of its reader; `None` if the limit is reached.
    number: Option<u64>,
    backoff: BackoffState,
    /// Whether its usage is missing, and that was logged or counted.
    is_missing: bool,
}

/// The history of one driver.
#[derive(Debug)]
struct Manner {
    logged: Allowance,
    /// The number of consecutive deaths without a report.
    deaths: u32,
    /// Whether it was asked since its last death, and has not reported.
    is_asked: bool,
}

impl Manner {
    const fn new(now: Timestamp) -> Self {
        Self { logged: Allowance::new(LOGGED, now), deaths: 0, is_asked: false }
    }

    /// Counts its death, once, if it was asked and has not reported.
    fn died(&mut self) {
        if std::mem::take(&mut self.is_asked) {
            self.deaths = self.deaths.saturating_add(1);
        }
    }

    /// The pause before it is asked.
    fn pause(&self) -> Duration {
        match self.deaths.checked_sub(1) {
            Some(more) => LEFT_ALONE_FIRST.saturating_mul(1 << more.min(10)).min(LEFT_ALONE_LONGEST),
            None => Duration::ZERO,
        }
    }
}

#[derive(Debug)]
pub(super) struct Plan {
    tasks: BTreeMap<AllocationId, Entry>,
    readers_max: usize,
    numbers: u64,
    /// The drivers that were ever asked; a configuration has few.
    drivers: BTreeMap<DriverName, Manner>,
}

impl Plan {
    pub(super) const fn new() -> Self {
        Self { tasks: BTreeMap::new(), readers_max: READERS_MAX, numbers: 0, drivers: BTreeMap::new() }
    }

    /// Handles a snapshot: all other tasks are removed.
    pub(super) fn sees_all(&mut self, reports: &[TaskReport]) -> Vec<Order> {
        let is_gone = |name: &&AllocationId| !reports.iter().any(|report| report.name == **name);
        let gone: Vec<_> = self.tasks.keys().filter(is_gone).cloned().collect();
        let mut orders: Vec<_> = gone.iter().flat_map(|name| self.forgets(name)).collect();
        orders.extend(reports.iter().flat_map(|report| self.sees(report)));
        orders
    }

    /// Handles a task's state.
    pub(super) fn sees(&mut self, report: &TaskReport) -> Vec<Order> {
        let id = report.id.clone().filter(|_| report.phase == TaskPhase::Running);
        let Some(id) = id else {
            // The end of its driver may be reported by its task before it is reported by its reader.
            if report.phase == TaskPhase::Recovering {
                self.loses_driver(&report.name);
            }
            return self.forgets(&report.name);
        };
        let source = Source { driver: report.driver.clone(), id };
        if self.tasks.get(&report.name).is_some_and(|entry| entry.source == source) {
            return vec![];
        }
        let mut orders = self.forgets(&report.name);
        let entry = Entry { source, number: None, backoff: BackoffState::default(), is_missing: false };
        self.tasks.insert(report.name.clone(), entry);
        match self.has_room() {
            true => orders.extend(self.begins(&report.name)),
            false => {
                let reason =
                    format!("the figures of {} other tasks are already being read", self.readers_max);
                orders.push(Order::Show(report.name.clone(), Some(TaskUsage::Missing(reason))));
            }
        }
        orders
    }

    /// Handles that the driver of a task has died, if the task has a reader.
    fn loses_driver(&mut self, name: &AllocationId) {
        let Some(Entry { source, number: Some(_), .. }) = self.tasks.get(name) else { return };
        if let Some(manner) = self.drivers.get_mut(&source.driver) {
            manner.died();
        }
    }

    /// Handles that a task no longer runs, or no longer exists.
    pub(super) fn forgets(&mut self, name: &AllocationId) -> Vec<Order> {
        if self.tasks.remove(name).is_none() {
            return vec![];
        }
        let mut orders = vec![Order::Close(name.clone()), Order::Show(name.clone(), None)];
        let waiting = self.tasks.iter().find(|(_, entry)| entry.number.is_none());
        if let Some(name) = waiting.map(|(name, _)| name.clone()).filter(|_| self.has_room()) {
            orders.extend(self.begins(&name));
        }
        orders
    }

    /// Handles a reader's message. Messages of a closed or replaced reader are stale and ignored.
    pub(super) fn hears(
        &mut self,
        moment: Moment,
        name: &AllocationId,
        number: u64,
        heard: Heard,
    ) -> Vec<Order> {
        let Some(entry) = self.tasks.get_mut(name).filter(|entry| entry.number == Some(number)) else {
            return vec![];
        };
        let driver = entry.source.driver.clone();
        // Other parts report the death of a driver, and recover its tasks.
        let is_told_already = matches!(heard, Heard::Broken(DriverError::PluginGone { .. }));
        let manner = self.drivers.entry(driver.clone()).or_insert_with(|| Manner::new(moment.now));
        if is_told_already {
            manner.died();
        }
        let (reason, is_lasting) = match heard {
            Heard::Told(stats) => {
                entry.is_missing = false;
                (manner.deaths, manner.is_asked) = (0, false);
                let told = TaskUsage::Told(figures(&stats, moment.now));
                let mut orders = vec![Order::Show(name.clone(), Some(told))];
                orders.extend(self.left_out(&driver, moment.now));
                return orders;
            }
            Heard::Ended => ("its driver ended the stream of its figures".to_owned(), false),
            Heard::NotHad(reason) => (reason, false),
            Heard::Broken(error) => (error.to_string(), is_lasting(&error)),
        };
        let pause = entry.backoff.failed(&AGAIN, moment);
        let is_first = !is_told_already && !std::mem::replace(&mut entry.is_missing, true);
        let mut orders = vec![Order::Show(name.clone(), Some(TaskUsage::Missing(reason.clone())))];
        match is_first {
            true => orders.extend(self.log(name, driver, reason, moment.now)),
            false => orders.extend(self.left_out(&driver, moment.now)),
        }
        if !is_lasting {
            orders.extend(self.opens(name, pause));
        }
        orders
    }

    fn has_room(&self) -> bool {
        self.tasks.values().filter(|entry| entry.number.is_some()).count() < self.readers_max
    }

    /// Opens the first stream of a run, or of a recovered run.
    fn begins(&mut self, name: &AllocationId) -> Vec<Order> {
        let Some(entry) = self.tasks.get(name) else { return vec![] };
        // There are no log lines about a driver without reports.
        let never = Timestamp::default();
        let manner = self.drivers.entry(entry.source.driver.clone()).or_insert_with(|| Manner::new(never));
        manner.is_asked = true;
        let (deaths, pause) = (manner.deaths, manner.pause());
        let mut orders = self.opens(name, pause);
        if !pause.is_zero() {
            let reason = format!(
                "its driver died when it was asked for figures and reported none ({deaths} times); the next request follows after {pause:?}"
            );
            orders.push(Order::Show(name.clone(), Some(TaskUsage::Missing(reason))));
        }
        orders
    }

    fn opens(&mut self, name: &AllocationId, pause: Duration) -> Vec<Order> {
        let Some(entry) = self.tasks.get_mut(name) else { return vec![] };
        self.numbers += 1;
        entry.number = Some(self.numbers);
        let open =
            Order::Open { name: name.clone(), number: self.numbers, source: entry.source.clone(), pause };
        match entry.is_missing {
            true => vec![open],
            false => vec![Order::Show(name.clone(), Some(TaskUsage::Awaited)), open],
        }
    }

    /// Logs why a task has no usage; lines beyond the rate limit are counted.
    fn log(
        &mut self,
        name: &AllocationId,
        driver: DriverName,
        reason: String,
        now: Timestamp,
    ) -> Option<Order> {
        let allowance = &mut self.drivers.get_mut(&driver)?.logged;
        allowance.take(now).then(|| {
            let left_out = allowance.take_left_out();
            Order::Log { name: name.clone(), driver, reason, left_out }
        })
    }

    /// Logs how many lines were left out, as soon as the rate limit allows it.
    fn left_out(&mut self, driver: &DriverName, now: Timestamp) -> Option<Order> {
        let allowance = &mut self.drivers.get_mut(driver)?.logged;
        if !allowance.has_left_out() {
            return None;
        }
        let before = allowance.take_left_out();
        if allowance.take(now) {
            return Some(Order::LogLeftOut { driver: driver.clone(), left_out: before });
        }
        // The failed `take` was counted as left out, too, but it belongs to no task.
        allowance.take_left_out();
        allowance.leave_out(before);
        None
    }
}

/// Whether the driver reports that a retry does not help (T146).
const fn is_lasting(error: &DriverError) -> bool {
    match error {
        DriverError::Refused { code: Code::Unimplemented, .. }
        | DriverError::Refused { recoverable: Some(false), .. } => true,
        DriverError::Refused { .. }
        | DriverError::PluginGone { .. }
        | DriverError::DeadlineExceeded { .. }
        | DriverError::Disconnected { .. }
        | DriverError::Malformed { .. } => false,
    }
}

/// Extracts the values to show; drivers measure different values.
fn figures(stats: &TaskStats, at: Timestamp) -> Figures {
    let (cpu, memory) = (&stats.total.cpu, &stats.total.memory);
    let parts = match (cpu.user_percent, cpu.system_percent) {
        (Some(user), Some(system)) => Some(user + system),
        (user, system) => user.or(system),
    };
    Figures {
        at,
        cpu_percent: cpu.percent.or(parts),
        cpu_mhz: cpu.total_ticks,
        memory_bytes: memory.usage.or(memory.rss),
        memory_max_bytes: memory.max_usage,
    }
}

#[cfg(test)]
mod tests;
