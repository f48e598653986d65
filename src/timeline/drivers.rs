//! The lines of the drivers.

use std::collections::BTreeMap;

use callboard_actors::driver::{DriverHealth, DriverReport, DriverStage};
use callboard_actors::drivers::{DriverSummary, DriversNews, DriversView};
use callboard_actors::vocabulary::{DriverName, Generation};
use callboard_proto::admin::v1::Fate;

use super::line::{Line, Participant};
use super::news_lines::{NewsLines, grouped};

/// Converts the news of the drivers into lines.
#[derive(Debug, Default)]
pub(super) struct DriversTeller {
    known: BTreeMap<DriverName, DriverReport>,
}

impl NewsLines for DriversTeller {
    type News = DriversNews;
    type View = DriversView;

    fn begin(&mut self, view: &DriversView) -> Vec<Line> {
        self.known = view.reports.iter().map(|report| (report.name.clone(), report.clone())).collect();
        Vec::new()
    }

    fn lines_of(&mut self, news: &DriversNews) -> Vec<Line> {
        let line = match news {
            DriversNews::Reported(report) => {
                let before = self.known.insert(report.name.clone(), report.clone());
                return reported(report, before.as_ref());
            }
            DriversNews::Left(report) => {
                self.known.remove(&report.name);
                Line::new(Participant::Driver(report.name.clone()), Participant::Drivers, "ended")
            }
            DriversNews::DeadLetters { driver, task, count, error } => {
                let of = task.as_ref().map_or("no task that can be named".to_owned(), ToString::to_string);
                let why = error.as_deref().unwrap_or("the task was not announced");
                let message = format!("{count} events of {of} have no handler: {why}");
                Line::new(Participant::Driver(driver.clone()), Participant::Everyone, message)
            }
            DriversNews::EventsInterrupted { driver, error, .. } => {
                let message = format!("the stream of task events ended: {error}");
                Line::new(Participant::Driver(driver.clone()), Participant::Drivers, message)
            }
        };
        vec![line]
    }
}

/// The lines for the changes of a driver: its process, the action on it, and its health.
fn reported(report: &DriverReport, before: Option<&DriverReport>) -> Vec<Line> {
    let driver = || Participant::Driver(report.name.clone());
    let to_driver = |message: String| Line::new(Participant::Drivers, driver(), message);
    let is_same_stage = before.is_some_and(|before| before.stage == report.stage);
    let pid = report.pid.filter(|pid| before.is_none_or(|before| before.pid != Some(*pid)));
    let mut lines = Vec::new();
    if let Some(pid) = pid {
        lines.push(if report.is_adopted {
            Line::new(driver(), Participant::Drivers, format!("still here: found again as process {pid}"))
        } else {
            to_driver(format!("run as process {pid}")).of_fate(driver(), Fate::Alive)
        });
    }
    let of_stage = match report.stage {
        _ if is_same_stage => None,
        DriverStage::Recalling => Some(to_driver("is a process of you still there?".to_owned())),
        DriverStage::Connecting => Some(to_driver("who are you, and what can you do?".to_owned())),
        DriverStage::Pausing => {
            let message =
                format!("{} is lost, and tried again after a pause: {}", report.name, report.reason);
            Some(
                Line::new(Participant::Drivers, Participant::Everyone, message).of_fate(driver(), Fate::Lost),
            )
        }
        DriverStage::Refused => {
            let message = format!("{} is {}", report.name, report.reason);
            Some(
                Line::new(Participant::Drivers, Participant::Everyone, message).of_fate(driver(), Fate::Lost),
            )
        }
        DriverStage::Stopping => Some(to_driver("end, or be left".to_owned())),
        // The process itself, its health, or its end are reported.
        DriverStage::Launching | DriverStage::Watching | DriverStage::Gone => None,
    };
    lines.extend(of_stage);
    let is_same_health =
        before.is_some_and(|before| (before.health, &before.reason) == (report.health, &report.reason));
    lines.extend(health(report).filter(|_| !is_same_health));
    let is_numbered = report.generation != Generation::default();
    lines
        .into_iter()
        .map(|line| if is_numbered { line.of_generation(report.generation) } else { line })
        .collect()
}

/// The health that a watched driver reports.
fn health(report: &DriverReport) -> Option<Line> {
    let version = report.version.as_deref().unwrap_or_default();
    let message = match (report.stage, report.health) {
        (DriverStage::Watching, DriverHealth::Healthy) => format!("healthy: {} {version}", report.name),
        (DriverStage::Watching, health @ (DriverHealth::Undetected | DriverHealth::Unhealthy)) => {
            format!("{health}: {}", report.reason)
        }
        (
            DriverStage::Recalling
            | DriverStage::Launching
            | DriverStage::Connecting
            | DriverStage::Watching
            | DriverStage::Pausing
            | DriverStage::Refused
            | DriverStage::Stopping
            | DriverStage::Gone,
            _,
        ) => return None,
    };
    Some(Line::new(Participant::Driver(report.name.clone()), Participant::Drivers, message))
}

/// One piece of news as a complete sentence, for message scripts and their subscribers.
pub(super) fn sentence(news: &DriversNews) -> String {
    match news {
        DriversNews::Reported(report) => driver(report),
        DriversNews::Left(report) => format!("{} left", report.name),
        DriversNews::DeadLetters { driver, task, count, error } => {
            let task = task.as_ref().map_or("no task".to_owned(), ToString::to_string);
            let error = error.as_ref().map_or(String::new(), |error| format!(": {error}"));
            format!("{count} events of {driver} for {task} are dead letters{error}")
        }
        DriversNews::EventsInterrupted { driver, generation, error } => {
            format!("the events of {driver} @{generation} were interrupted: {error}")
        }
    }
}

/// The known facts about the drivers.
pub(crate) fn driver_summary(summary: &DriverSummary) -> String {
    let DriverSummary { healthy, unhealthy, undetected, no_answer } = summary;
    grouped(healthy, unhealthy, undetected, no_answer)
}

/// The known facts about a driver.
pub(crate) fn driver(report: &DriverReport) -> String {
    let DriverReport { name, generation, health, reason, stage, version, is_adopted, .. } = report;
    let version = version.as_ref().map_or(String::new(), |version| format!(", {version}"));
    let adopted = if *is_adopted { ", adopted" } else { "" };
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("{name} @{generation} is {}, {}{version}{adopted}{reason}", stage.as_str(), health.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::vocabulary::{Attempt, Timestamp};

    use super::*;

    fn report(stage: DriverStage, health: DriverHealth, pid: Option<u32>, reason: &str) -> DriverReport {
        DriverReport {
            name: DriverName::new("exec").unwrap(),
            generation: Generation::default(),
            health,
            ending: None,
            reason: reason.to_owned(),
            since: Timestamp::default(),
            stage,
            attributes: Arc::default(),
            capabilities: None,
            version: Some("1.0".into()),
            pid,
            is_adopted: false,
            launches: 1,
            restart: Attempt::default(),
        }
    }

    fn told(teller: &mut DriversTeller, reports: Vec<DriverReport>) -> Vec<String> {
        let news = reports.into_iter().map(DriversNews::Reported);
        let lines = news.flat_map(|news| teller.lines_of(&news));
        lines.map(|line| format!("{} → {}: {}", line.from, line.to, line.message)).collect()
    }

    #[test]
    fn a_driver_that_is_killed_is_told_once_for_each_turn_it_takes() {
        use DriverHealth::{Healthy, NoAnswerYet, Unhealthy};
        let lines = told(
            &mut DriversTeller::default(),
            vec![
                report(DriverStage::Recalling, NoAnswerYet, None, ""),
                report(DriverStage::Recalling, NoAnswerYet, None, "its record is looked for"),
                report(DriverStage::Launching, NoAnswerYet, None, ""),
                report(DriverStage::Connecting, NoAnswerYet, Some(7), ""),
                report(DriverStage::Watching, Healthy, Some(7), ""),
                report(DriverStage::Watching, Healthy, Some(7), ""),
                report(DriverStage::Pausing, Unhealthy, None, "signal 9"),
                report(DriverStage::Launching, Unhealthy, None, "signal 9"),
                report(DriverStage::Connecting, Unhealthy, Some(8), "signal 9"),
                report(DriverStage::Watching, Healthy, Some(8), ""),
            ],
        );
        assert_eq!(
            lines,
            [
                "drivers → driver exec: is a process of you still there?",
                "drivers → driver exec: run as process 7",
                "drivers → driver exec: who are you, and what can you do?",
                "driver exec → drivers: healthy: exec 1.0",
                "drivers → everyone: exec is lost, and tried again after a pause: signal 9",
                "drivers → driver exec: run as process 8",
                "drivers → driver exec: who are you, and what can you do?",
                "driver exec → drivers: healthy: exec 1.0",
            ]
        );
    }

    #[test]
    fn a_driver_that_outlived_its_host_is_found_again() {
        let found = report(DriverStage::Connecting, DriverHealth::NoAnswerYet, Some(7), "");
        let lines = told(&mut DriversTeller::default(), vec![DriverReport { is_adopted: true, ..found }]);
        assert_eq!(lines[0], "driver exec → drivers: still here: found again as process 7");
    }
    #[test]
    fn what_is_told_of_a_driver_carries_its_generation_if_it_has_one() {
        let found = report(DriverStage::Connecting, DriverHealth::NoAnswerYet, Some(7), "");
        for (number, told) in [(0, None), (3, Some(Generation::new(3)))] {
            let found = DriverReport { generation: Generation::new(number), ..found.clone() };
            let lines = DriversTeller::default().lines_of(&DriversNews::Reported(found));
            assert!(lines.iter().all(|line| line.generation == told) && lines.len() == 2, "{lines:?}");
        }
    }
    #[test]
    fn what_was_known_of_a_driver_at_the_beginning_is_not_told() {
        let known = report(DriverStage::Watching, DriverHealth::Healthy, Some(7), "");
        let mut teller = DriversTeller::default();
        assert_eq!(teller.begin(&DriversView { reports: vec![known.clone()] }), []);
        assert_eq!(told(&mut teller, vec![known]), Vec::<String>::new());
    }
}
