//! Whose figures are read, and what is known of them. Pure: it is told what tasks do and what drivers said, and says what to do.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::driver::client::{DriverError, TaskId, TaskStats};
use callboard_actors::rpc::Code;
use callboard_actors::vocabulary::{
    AllocationId, Allowance, Backoff, BackoffState, DriverName, Moment, Rate, Timestamp,
};

use crate::tasks::{TaskPhase, TaskReport};

/// How many tasks have their figures read at once. The others are told that there are too many.
const READERS_MAX: usize = 1_000;
/// How soon a stream that broke is opened again.
const AGAIN: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
    jitter_percent: 10,
    reset_after: Duration::from_secs(120),
};
/// How long a driver is left alone that died when it was asked and had told no figures; that doubles with each such death. It may be
/// that it dies of being asked, and figures are worth no driver.
const LEFT_ALONE_FIRST: Duration = Duration::from_secs(600);
const LEFT_ALONE_LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// How often it is logged of one driver that figures are missing (LOG-03).
const LOGGED: Rate = Rate { burst: 8, per_minute: 6 };

/// What a task uses, as far as its driver tells.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskUsage {
    /// Its driver has told nothing yet.
    Awaited,
    /// What its driver told last.
    Told(Figures),
    /// Nothing is told, for this reason.
    Missing(String),
}

/// Figures of a task. What its driver does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// When they came.
    pub at: Timestamp,
    /// Percent of one processor.
    pub cpu_percent: Option<f64>,
    /// MHz of processors.
    pub cpu_mhz: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// The most memory that was ever in use, in bytes.
    pub memory_max_bytes: Option<u64>,
}

/// The usage of each task that runs, by its name.
pub type UsageView = BTreeMap<AllocationId, TaskUsage>;

/// Where the figures of a task come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) driver: DriverName,
    pub(super) id: TaskId,
}

/// What a reader has heard.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// Figures.
    Told(Box<TaskStats>),
    /// The stream ended without an error. Its reader has ended.
    Ended,
    /// The driver could not be had. The reader has ended.
    NotHad(String),
    /// The stream broke. Its reader has ended.
    Broken(DriverError),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    /// Open a stream after a pause; what comes is told with this number. It takes the place of an earlier reader of the task.
    Open { name: AllocationId, number: u64, source: Source, pause: Duration },
    /// Read no more of the task.
    Close(AllocationId),
    /// This is known of a task now; nothing of one that does not run.
    Show(AllocationId, Option<TaskUsage>),
    /// Say in the log why a task has no figures, and of how many more that was not said.
    Log { name: AllocationId, driver: DriverName, reason: String, left_out: u64 },
    /// Say in the log of how many tasks it was not said.
    LogLeftOut { driver: DriverName, left_out: u64 },
}

/// One task that runs.
#[derive(Debug)]
struct Entry {
    source: Source,
    /// The number of its reader; `None` if there are too many others.
    number: Option<u64>,
    backoff: BackoffState,
    /// Whether its figures are missing, and that was logged or counted.
    is_missing: bool,
}

/// What is known of one driver.
#[derive(Debug)]
struct Manner {
    logged: Allowance,
    /// How often in a row it has died without having told any figures.
    deaths: u32,
    /// Whether it was asked since its last death, and has told nothing.
    is_asked: bool,
}

impl Manner {
    const fn new(now: Timestamp) -> Self {
        Self { logged: Allowance::new(LOGGED, now), deaths: 0, is_asked: false }
    }

    /// How long it is left alone before it is asked.
    fn pause(&self) -> Duration {
        match self.deaths.checked_sub(1) {
            Some(more) => LEFT_ALONE_FIRST.saturating_mul(1 << more.min(10)).min(LEFT_ALONE_LONGEST),
            None => Duration::ZERO,
        }
    }
}

/// Decides whose figures are read.
#[derive(Debug)]
pub(super) struct Plan {
    tasks: BTreeMap<AllocationId, Entry>,
    readers_max: usize,
    numbers: u64,
    /// Those that were ever asked; a configuration has few.
    drivers: BTreeMap<DriverName, Manner>,
}

impl Plan {
    pub(super) const fn new() -> Self {
        Self { tasks: BTreeMap::new(), readers_max: READERS_MAX, numbers: 0, drivers: BTreeMap::new() }
    }

    /// Everything that there is: of any other task nothing is read any more.
    pub(super) fn sees_all(&mut self, reports: &[TaskReport]) -> Vec<Order> {
        let is_gone = |name: &&AllocationId| !reports.iter().any(|report| report.name == **name);
        let gone: Vec<_> = self.tasks.keys().filter(is_gone).cloned().collect();
        let mut orders: Vec<_> = gone.iter().flat_map(|name| self.forgets(name)).collect();
        orders.extend(reports.iter().flat_map(|report| self.sees(report)));
        orders
    }

    /// A task is at this.
    pub(super) fn sees(&mut self, report: &TaskReport) -> Vec<Order> {
        let id = report.id.clone().filter(|_| report.phase == TaskPhase::Running);
        let Some(id) = id else { return self.forgets(&report.name) };
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
                let reason = format!("the figures of {} other tasks are read already", self.readers_max);
                orders.push(Order::Show(report.name.clone(), Some(TaskUsage::Missing(reason))));
            }
        }
        orders
    }

    /// A task does not run any more, or is not there.
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

    /// A reader has heard this. One that was closed or replaced meanwhile does not count.
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
        // The death of a driver is told by others, and its tasks are recovered.
        let is_told_already = matches!(heard, Heard::Broken(DriverError::PluginGone { .. }));
        let manner = self.drivers.entry(driver.clone()).or_insert_with(|| Manner::new(moment.now));
        if is_told_already && std::mem::take(&mut manner.is_asked) {
            manner.deaths = manner.deaths.saturating_add(1);
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

    /// Opens the first stream of a run, or that of one that was recovered.
    fn begins(&mut self, name: &AllocationId) -> Vec<Order> {
        let Some(entry) = self.tasks.get(name) else { return vec![] };
        // Nothing was logged of a driver that was never heard.
        let never = Timestamp::default();
        let manner = self.drivers.entry(entry.source.driver.clone()).or_insert_with(|| Manner::new(never));
        manner.is_asked = true;
        let (deaths, pause) = (manner.deaths, manner.pause());
        let mut orders = self.opens(name, pause);
        if !pause.is_zero() {
            let reason = format!(
                "its driver died when it was asked for figures and had told none ({deaths} times), and is left alone for {pause:?}"
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

    /// Says why a task has no figures, unless too much was said of its driver; then it is counted.
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

    /// Says how often nothing was said, as soon as something may be said again.
    fn left_out(&mut self, driver: &DriverName, now: Timestamp) -> Option<Order> {
        let allowance = &mut self.drivers.get_mut(driver)?.logged;
        if !allowance.has_left_out() {
            return None;
        }
        let before = allowance.take_left_out();
        if allowance.take(now) {
            return Some(Order::LogLeftOut { driver: driver.clone(), left_out: before });
        }
        // What was asked for just now is no task without figures.
        allowance.take_left_out();
        allowance.leave_out(before);
        None
    }
}

/// Whether asking again does not help, as the driver says (T146).
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

/// What is shown of a driver's figures: drivers measure different ones of them.
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
