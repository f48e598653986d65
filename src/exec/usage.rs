//! The resource usage of a task's processes.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use callboard_actors::process::ProcessStatus;
use callboard_proto::drivers::{
    CpuUsage, MemoryUsage, TaskResourceUsage, TaskStats, cpu_usage, memory_usage,
};
use tokio::time::Instant;

use super::figures::{self, CpuTime};
use super::processes;
use super::record::TaskRecord;

/// One sample of a task's processes and control groups, the base of the next one.
#[derive(Debug)]
pub(super) struct Usage {
    at: Instant,
    seen: BTreeMap<i32, ProcessStatus>,
    counted: Option<CpuTime>,
    /// The speed of a core, in MHz.
    core_mhz: Option<f64>,
}

impl Usage {
    pub(super) fn begin(task: &TaskRecord, core_mhz: Option<f64>) -> Self {
        Self { at: Instant::now(), seen: of(task), counted: figures::cpu_time(&task.groups), core_mhz }
    }

    /// Takes a sample and returns the usage since the last one. The total is from the control groups, which include processes
    /// that have ended meanwhile; without such groups it is the sum over the processes.
    pub(super) fn look(&mut self, task: &TaskRecord, task_id: &str) -> TaskStats {
        let (now, seen, counted) = (Instant::now(), of(task), figures::cpu_time(&task.groups));
        let elapsed = now.duration_since(self.at);
        let by_pid: HashMap<String, TaskResourceUsage> =
            seen.values().map(|process| (process.pid.to_string(), self.used(process, elapsed))).collect();
        let mut sum = by_pid.values().fold(empty(), add);
        if let (Some(before), Some(counted)) = (self.counted, counted) {
            sum.cpu = Some(by_group(before, counted, elapsed));
        }
        if let Some(memory) = figures::memory(&task.groups) {
            sum.memory = Some(memory);
        }
        if let (Some(cpu), Some(mhz)) = (&mut sum.cpu, self.core_mhz) {
            cpu.total_ticks = cpu.percent / 100.0 * mhz;
            cpu.measured_fields.push(cpu_usage::Fields::TotalTicks.into());
        }
        (self.at, self.seen, self.counted) = (now, seen, counted);
        TaskStats {
            id: task_id.to_owned(),
            timestamp: Some(SystemTime::now().into()),
            agg_resource_usage: Some(sum),
            resource_usage_by_pid: by_pid,
        }
    }

    /// The usage of one process since the last sample; its whole usage if it was not in that sample.
    fn used(&self, process: &ProcessStatus, elapsed: Duration) -> TaskResourceUsage {
        let before =
            self.seen.get(&process.pid).filter(|before| before.started_ticks == process.started_ticks);
        let (user_before, system_before) = before.map_or((0, 0), |seen| (seen.user_ticks, seen.system_ticks));
        let user = percent(process.user_ticks.saturating_sub(user_before), elapsed);
        let system = percent(process.system_ticks.saturating_sub(system_before), elapsed);
        usage(user, system, process.resident_pages * rustix::param::page_size() as u64)
    }
}

/// The processes of a task: the descendants of its supervisor, or the processes with its tag if the supervisor is gone.
fn of(task: &TaskRecord) -> BTreeMap<i32, ProcessStatus> {
    if processes::lives(&task.supervisor) {
        processes::descendants(task.supervisor.pid)
    } else {
        processes::tagged(&task.tag)
    }
}

/// The usage of a control group between two samples.
fn by_group(before: CpuTime, now: CpuTime, elapsed: Duration) -> CpuUsage {
    use cpu_usage::Fields::{Percent, SystemMode, ThrottledPeriods, ThrottledTime, UserMode};
    let percent = |before: u64, now: u64| {
        let used = Duration::from_micros(now.saturating_sub(before));
        if elapsed.is_zero() { 0.0 } else { 100.0 * used.as_secs_f64() / elapsed.as_secs_f64() }
    };
    let (user_mode, system_mode) =
        (percent(before.user_us, now.user_us), percent(before.system_us, now.system_us));
    CpuUsage {
        system_mode,
        user_mode,
        percent: user_mode + system_mode,
        throttled_periods: now.throttled_periods,
        throttled_time: now.throttled_us.saturating_mul(1_000),
        measured_fields: [SystemMode, UserMode, Percent, ThrottledPeriods, ThrottledTime]
            .map(Into::into)
            .to_vec(),
        ..Default::default()
    }
}

/// The share of one processor, in percent.
#[allow(clippy::cast_precision_loss, reason = "no process runs for so long that this counts")]
fn percent(ticks: u64, elapsed: Duration) -> f64 {
    let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    if elapsed.is_zero() { 0.0 } else { 100.0 * seconds / elapsed.as_secs_f64() }
}

fn empty() -> TaskResourceUsage {
    usage(0.0, 0.0, 0)
}

fn usage(user_mode: f64, system_mode: f64, rss: u64) -> TaskResourceUsage {
    use cpu_usage::Fields::{Percent, SystemMode, UserMode};
    let cpu = CpuUsage {
        system_mode,
        user_mode,
        percent: user_mode + system_mode,
        measured_fields: vec![SystemMode.into(), UserMode.into(), Percent.into()],
        ..Default::default()
    };
    let measured_fields = vec![memory_usage::Fields::Rss.into()];
    TaskResourceUsage {
        cpu: Some(cpu),
        memory: Some(MemoryUsage { rss, measured_fields, ..Default::default() }),
    }
}

fn add(sum: TaskResourceUsage, one: &TaskResourceUsage) -> TaskResourceUsage {
    let cpu =
        |of: &TaskResourceUsage| of.cpu.as_ref().map_or((0.0, 0.0), |cpu| (cpu.user_mode, cpu.system_mode));
    let rss = |of: &TaskResourceUsage| of.memory.as_ref().map_or(0, |memory| memory.rss);
    let ((user, system), (more_user, more_system)) = (cpu(&sum), cpu(one));
    usage(user + more_user, system + more_system, rss(&sum) + rss(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_counts_by_the_time_between_two_looks_and_never_backwards_t176() {
        let time = |user_us, system_us| CpuTime { user_us, system_us, throttled_periods: 3, throttled_us: 9 };
        let used = by_group(time(0, 500_000), time(1_000_000, 1_500_000), Duration::from_secs(2));
        assert!((used.percent - 100.0).abs() < 0.01 && (used.user_mode - 50.0).abs() < 0.01);
        assert_eq!((used.throttled_periods, used.throttled_time), (3, 9_000));
        let anew = by_group(time(9, 9), time(1, 1), Duration::from_secs(1));
        assert!(anew.percent.abs() < 0.01, "a group that was made anew");
    }

    #[test]
    fn a_tick_counts_by_the_time_in_which_it_was_used() {
        let ticks = rustix::param::clock_ticks_per_second();
        assert!((percent(ticks, Duration::from_secs(1)) - 100.0).abs() < 0.01);
        assert!((percent(ticks, Duration::from_secs(4)) - 25.0).abs() < 0.01);
        assert!(percent(5, Duration::ZERO).abs() < 0.01);
    }
}
