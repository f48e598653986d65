//! The chapters of the demo, in the order in which they are played.

mod interleaved;
mod takeover;

mod killed_plugin;
mod late_plugin;

mod killed_host;

mod ordered_end;

mod driven_tasks;
mod killed_driver;
mod reattached;

mod driven_end;

mod shared_volume;

mod killed_between;
mod killed_stage;
mod replaced_plugin;

mod volumes_end;

mod volumes;

use callboard_proto::admin::v1::{DriverStatus, Said};
use clap::ValueEnum;

use super::check::Look;
use super::error::DemoError;
use super::stage::{Scene, Stage};
use super::workspace::{BATCH, BLUE, DRIVER, GREEN, WEB};

/// The roles of the two first allocations, known after the first chapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// The newer of the two.
    pub(super) newer: &'static str,
    /// The older one.
    pub(super) older: &'static str,
}

impl Parts {
    fn with_newer(newer: &str) -> Option<Self> {
        match newer {
            BLUE => Some(Self { newer: BLUE, older: GREEN }),
            GREEN => Some(Self { newer: GREEN, older: BLUE }),
            _ => None,
        }
    }
}

/// The process ids of the two tasks, from their driver's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tasks {
    /// The task that runs until it is stopped.
    pub(super) web: u32,
    /// The task that ends by itself.
    pub(super) batch: u32,
}

impl Tasks {
    fn seen(scene: &Scene) -> Result<Self, DemoError> {
        let process = |task| scene.status.task_process(task).ok_or(DemoError::StepFailed);
        Ok(Self { web: process(WEB)?, batch: process(BATCH)? })
    }
}

/// A part of the demo, with a host of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoPart {
    /// A storage plugin
    Storage,
    /// A driver with its tasks
    Tasks,
    /// Volumes, which tasks use
    Volumes,
}

/// Plays all chapters, or those of one part.
pub(super) async fn play(stage: &mut Stage, part: Option<DemoPart>) -> Result<(), DemoError> {
    let is_meant = |this| part.is_none_or(|part| part == this);
    if is_meant(DemoPart::Storage) {
        play_storage(stage).await?;
    }
    if is_meant(DemoPart::Tasks) {
        play_tasks(stage).await?;
    }
    if is_meant(DemoPart::Volumes) {
        play_volumes(stage).await?;
    }
    Ok(())
}

async fn play_storage(stage: &mut Stage) -> Result<(), DemoError> {
    let parts = interleaved::play(stage).await?;
    takeover::play(stage, parts).await?;
    killed_plugin::play(stage, parts).await?;
    late_plugin::play(stage, parts).await?;
    killed_host::play(stage, parts).await?;
    ordered_end::play(stage).await
}

async fn play_tasks(stage: &mut Stage) -> Result<(), DemoError> {
    let driver = driven_tasks::play(stage).await?;
    let driver = killed_driver::play(stage, driver).await?;
    reattached::play(stage, driver).await?;
    driven_end::play(stage).await
}

async fn play_volumes(stage: &mut Stage) -> Result<(), DemoError> {
    // None if the system permits no mounts; the first chapter reports that.
    let Some(mut shared) = shared_volume::play(stage).await? else { return Ok(()) };
    replaced_plugin::play(stage, &mut shared).await?;
    killed_stage::play(stage, &mut shared).await?;
    killed_between::play(stage, &mut shared).await?;
    volumes_end::play(stage, &shared).await
}

/// The index of the first line, from `start` on, with this sender, this receiver and this prefix.
fn position(said: &[Said], start: usize, from: &str, to: &str, message: &str) -> Option<usize> {
    let is_it = |line: &Said| line.from == from && line.to == to && line.message.starts_with(message);
    said.iter().skip(start).position(is_it).map(|at| at + start)
}

/// Checks that the timeline has these lines in this order; each is given as sender, receiver and prefix.
fn in_order(said: &[Said], lines: &[(&str, &str, &str)]) -> Look {
    let mut found = Vec::new();
    for (from, to, message) in lines {
        let start = found.last().map_or(0, |last| last + 1);
        match position(said, start, from, to, message) {
            Some(at) => found.push(at),
            None => return Look::new(false, format!("no \"{from} → {to}: {message}\" after line {start}")),
        }
    }
    let (first, last) =
        (found.first().copied().unwrap_or_default(), found.last().copied().unwrap_or_default());
    let took_ms = said[last].at_unix_ms.saturating_sub(said[first].at_unix_ms);
    let messages: Vec<_> = lines.iter().map(|(_, _, message)| *message).collect();
    Look::new(true, format!("{}, within {took_ms} ms", messages.join(", then ")))
}

/// Checks that the driver is healthy, in a process that fulfils `is_meant`.
fn driver_serves(scene: &Scene, is_meant: impl Fn(&DriverStatus) -> bool) -> Look {
    let Some(driver) = scene.status.driver(DRIVER) else { return Look::new(false, "there is no driver") };
    let how = if driver.adopted { "found again" } else { "launched" };
    let seen = format!("{}, process {}, {how}", driver.health, driver.pid);
    Look::new(driver.health == "healthy" && driver.pid != 0 && is_meant(driver), seen)
}

/// Checks that a task was started exactly once, as this process; the task itself wrote this down.
fn started_once(stage: &Stage, task: &str, pid: u32) -> Look {
    let starts = stage.workspace.starts(task);
    Look::new(starts == [pid.to_string()], format!("{task} was started as {}", starts.join(", ")))
}

/// Checks that both generations have grown.
fn grown(before: [u64; 2], now: [u64; 2]) -> Look {
    compared(before, now, |before, now| before < now)
}

/// Checks that both generations have changed. The generation of a standby may have begun before the generation that it replaces.
fn changed(before: [u64; 2], now: [u64; 2]) -> Look {
    compared(before, now, |before, now| before != now && now != 0)
}

fn compared(before: [u64; 2], now: [u64; 2], is_meant: impl Fn(u64, u64) -> bool) -> Look {
    let holds = before.into_iter().zip(now).all(|(before, now)| is_meant(before, now));
    let told = |[controller, node]: [u64; 2]| format!("controller @{controller}, node @{node}");
    Look::new(holds, format!("{}, then {}", told(before), told(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: &str, to: &str, message: &str) -> Said {
        Said { from: from.to_owned(), to: to.to_owned(), message: message.to_owned(), ..Said::default() }
    }

    #[test]
    fn lines_in_another_order_are_not_in_order() {
        let said = [line("a", "b", "Deregister"), line("b", "everyone", "active: a → c")];
        let (first, second) = (("a", "b", "Deregister"), ("b", "everyone", "active: a"));
        assert!(in_order(&said, &[first, second]).holds);
        let look = in_order(&said, &[second, first]);
        assert_eq!(look, Look::new(false, "no \"a → b: Deregister\" after line 2"));
    }

    #[test]
    fn generations_have_grown_only_if_both_have() {
        assert!(grown([1, 2], [3, 4]).holds);
        assert!(!grown([1, 2], [3, 2]).holds);
        assert!(!grown([1, 2], [0, 0]).holds);
    }

    #[test]
    fn generations_have_changed_only_if_both_have() {
        assert!(changed([10, 8], [9, 11]).holds);
        assert!(!changed([10, 8], [9, 8]).holds);
        assert!(!changed([1, 2], [0, 3]).holds);
    }
}
