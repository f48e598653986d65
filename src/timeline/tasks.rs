//! The lines of the tasks that drivers run.

use std::collections::BTreeMap;

use callboard_actors::vocabulary::AllocationId;

use super::line::{Line, Participant};
use super::news_lines::NewsLines;
use crate::tasks::{DriverProgress, TaskPhase, TaskReport, TasksNews, TasksView};

/// Converts the news of the tasks into lines.
#[derive(Debug, Default)]
pub(super) struct TasksTeller {
    known: BTreeMap<AllocationId, TaskReport>,
}

impl NewsLines for TasksTeller {
    type News = TasksNews;
    type View = TasksView;

    fn begin(&mut self, view: &TasksView) -> Vec<Line> {
        self.known = view.tasks.iter().map(|task| (task.name.clone(), task.clone())).collect();
        Vec::new()
    }

    fn lines_of(&mut self, news: &TasksNews) -> Vec<Line> {
        match news {
            TasksNews::TaskChanged(task) => {
                let before = self.known.insert(task.name.clone(), TaskReport::clone(task));
                let lines = events(task, before.as_ref()).into_iter().chain(turn(task, before.as_ref()));
                lines.map(|line| line.of_allocation(&task.name)).collect()
            }
            TasksNews::TaskForgotten(name) => {
                self.known.remove(name);
                let message = format!("task {name} is no longer in the configuration, and forgotten");
                vec![Line::new(Participant::Tasks, Participant::Everyone, message)]
            }
            TasksNews::DriverForgotten(name) => {
                let message = format!("driver {name} is no longer in the configuration, ended and forgotten");
                vec![Line::new(Participant::Tasks, Participant::Everyone, message)]
            }
            TasksNews::DriverChanged(entry) => match &entry.progress {
                DriverProgress::Asking | DriverProgress::Added | DriverProgress::Leaving => Vec::new(),
                DriverProgress::Pausing(reason) | DriverProgress::Refused(reason) => {
                    let message = format!("driver {} is unavailable: {reason}", entry.name);
                    vec![Line::new(Participant::Tasks, Participant::Everyone, message)]
                }
            },
        }
    }
}

/// The events of a task that its driver has reported since.
fn events(task: &TaskReport, before: Option<&TaskReport>) -> Vec<Line> {
    let count_before = |text: &str| {
        let entries = before.iter().flat_map(|before| &before.events);
        entries.filter(|entry| entry.text == text).map(|entry| entry.count).sum::<u64>()
    };
    let new = task.events.iter().filter(|entry| entry.count > count_before(&entry.text));
    let line = |text: &str| {
        Line::new(
            Participant::Driver(task.driver.clone()),
            Participant::Task(task.name.clone()),
            format!("event: {text}"),
        )
    };
    new.map(|entry| line(&entry.text)).collect()
}

/// The line for a new phase of a task, if it has changed.
fn turn(task: &TaskReport, before: Option<&TaskReport>) -> Option<Line> {
    if before.is_some_and(|before| before.phase == task.phase) {
        return None;
    }
    let (driver, name) = (Participant::Driver(task.driver.clone()), &task.name);
    let to_driver =
        |message: &str| Line::new(Participant::Tasks, driver.clone(), format!("{message} {name}"));
    let told = match task.phase {
        TaskPhase::Starting => to_driver("start"),
        TaskPhase::Recovering => to_driver("recover"),
        // It has already ended, and its driver need no longer know it.
        TaskPhase::Stopping if before.is_some_and(|before| before.exit != task.exit) => to_driver("forget"),
        TaskPhase::Stopping => to_driver("stop"),
        TaskPhase::Running => Line::new(driver, Participant::Tasks, format!("{name} runs")),
        TaskPhase::Stopped
        | TaskPhase::Waiting
        | TaskPhase::Ended
        | TaskPhase::Failed
        | TaskPhase::OutOfReach => {
            let message = format!("{name} is {}: {}", task.phase, task.note);
            Line::new(Participant::Tasks, Participant::Everyone, message)
        }
    };
    Some(told)
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::Folded;
    use callboard_actors::driver::client::{TaskEnd, TaskExit};
    use callboard_actors::vocabulary::{Attempt, DriverName, Timestamp};

    use super::*;

    fn report(phase: TaskPhase, events: &[(&str, u64)]) -> TaskReport {
        let event = |(text, count): &(&str, u64)| Folded {
            text: (*text).to_owned(),
            first: Timestamp::default(),
            last: Timestamp::default(),
            count: *count,
        };
        TaskReport {
            name: AllocationId::new("web").unwrap(),
            driver: DriverName::new("exec").unwrap(),
            phase,
            since: Timestamp::default(),
            attempt: Attempt::default(),
            id: None,
            exit: None,
            restarts: 0,
            note: "exited with code 0".to_owned(),
            events: events.iter().map(event).collect(),
            events_told: events.iter().map(|(_, count)| count).sum(),
            events_missed: 0,
            is_configured: true,
            due: None,
            stopping: None,
            ended: vec![],
        }
    }

    #[test]
    fn a_task_is_told_once_for_each_turn_it_takes_and_each_event_once() {
        let mut teller = TasksTeller::default();
        let mut lines = Vec::new();
        for report in [
            report(TaskPhase::Starting, &[]),
            report(TaskPhase::Running, &[]),
            report(TaskPhase::Running, &[("started", 1)]),
            report(TaskPhase::Recovering, &[("started", 1)]),
            report(TaskPhase::Running, &[("started", 1), ("late", 1)]),
            report(TaskPhase::Running, &[("started", 1), ("late", 2)]),
            report(TaskPhase::Ended, &[("started", 1), ("late", 2)]),
        ] {
            let told = teller.lines_of(&TasksNews::TaskChanged(Box::new(report)));
            lines.extend(told.iter().map(|line| format!("{} → {}: {}", line.from, line.to, line.message)));
        }
        assert_eq!(
            lines,
            [
                "tasks → driver exec: start web",
                "driver exec → tasks: web runs",
                "driver exec → task web: event: started",
                "tasks → driver exec: recover web",
                "driver exec → task web: event: late",
                "driver exec → tasks: web runs",
                "driver exec → task web: event: late",
                "tasks → everyone: web is ended: exited with code 0",
            ]
        );
    }
    #[test]
    fn a_task_that_runs_is_stopped_and_one_that_has_ended_forgotten() {
        let end = TaskExit { end: TaskEnd::Exited(0), oom_killed: false };
        for (exit, told) in [(None, "stop web"), (Some((end, Timestamp::default())), "forget web")] {
            let mut teller = TasksTeller::default();
            teller.lines_of(&TasksNews::TaskChanged(Box::new(report(TaskPhase::Running, &[]))));
            let stopping = TaskReport { exit, ..report(TaskPhase::Stopping, &[]) };
            let lines = teller.lines_of(&TasksNews::TaskChanged(Box::new(stopping)));
            assert_eq!(lines.iter().map(|line| &*line.message).collect::<Vec<_>>(), [told]);
        }
    }
    #[test]
    fn what_was_known_of_a_task_at_the_beginning_is_not_told() {
        let known = report(TaskPhase::Running, &[("started", 1)]);
        let mut teller = TasksTeller::default();
        assert_eq!(teller.begin(&TasksView { tasks: vec![known.clone()], ..TasksView::default() }), []);
        assert_eq!(teller.lines_of(&TasksNews::TaskChanged(Box::new(known))), []);
    }
}
