//! The lines of the agent, which runs the processes.

use std::collections::BTreeMap;

use callboard_actors::vocabulary::AllocationId;
use callboard_proto::admin::v1::Fate;

use super::line::{Line, Participant};
use super::news_lines::NewsLines;
use crate::agent::{AgentNews, TaskPhase, TaskReport};

/// Converts the news of the agent into lines.
#[derive(Debug, Default)]
pub(super) struct AgentTeller {
    known: BTreeMap<AllocationId, TaskReport>,
}

impl NewsLines for AgentTeller {
    type News = AgentNews;
    type View = Vec<TaskReport>;

    fn begin(&mut self, view: &Vec<TaskReport>) -> Vec<Line> {
        self.known = view.iter().map(|task| (task.allocation.clone(), task.clone())).collect();
        Vec::new()
    }

    fn lines_of(&mut self, news: &AgentNews) -> Vec<Line> {
        let AgentNews::TaskChanged(task) = news;
        let before = self.known.insert(task.allocation.clone(), task.clone());
        let told = told(task, before.as_ref());
        told.into_iter().map(|line| line.of_allocation(&task.allocation)).collect()
    }
}

/// The line for a new state of a task, if it has changed.
fn told(task: &TaskReport, before: Option<&TaskReport>) -> Option<Line> {
    let process = Participant::Process(task.allocation.clone());
    let allocation = Participant::Allocation(task.allocation.clone());
    let is_same_phase = before.is_some_and(|before| (before.phase, before.pid) == (task.phase, task.pid));
    let is_same_event = before.is_some_and(|before| before.last_event == task.last_event);
    let was_stopping = before.is_some_and(|before| before.phase == TaskPhase::Stopping);
    let event = task.last_event.as_str();
    let told = match task.phase {
        TaskPhase::Stopping | TaskPhase::Waiting if is_same_phase && is_same_event => return None,
        TaskPhase::Starting | TaskPhase::Running | TaskPhase::Stopped | TaskPhase::Failed
            if is_same_phase =>
        {
            return None;
        }
        TaskPhase::Starting => Line::new(Participant::Agent, allocation, "prepare to be started"),
        TaskPhase::Running => {
            let message = task.pid.map_or("run".to_owned(), |pid| format!("run as process {pid}"));
            let line = Line::new(Participant::Agent, process.clone(), message);
            line.of_fate(process, Fate::Alive)
        }
        // It is deregistered first, and then its process is ended.
        TaskPhase::Stopping if was_stopping => Line::new(Participant::Agent, process, event),
        TaskPhase::Stopping => Line::new(Participant::Agent, allocation, "stop"),
        // Its process has ended first; then it is decided when it starts again.
        TaskPhase::Waiting if is_same_phase => {
            let decided = event.rsplit("; ").next().unwrap_or_default();
            let message = format!("{} {decided}", task.allocation);
            Line::new(Participant::Agent, Participant::Everyone, message)
        }
        TaskPhase::Waiting => {
            Line::new(process.clone(), Participant::Agent, event).of_fate(process, Fate::Lost)
        }
        TaskPhase::Stopped => Line::new(process, Participant::Agent, event),
        TaskPhase::Failed => Line::new(Participant::Agent, Participant::Everyone, event),
    };
    Some(told)
}

#[cfg(test)]
mod tests {
    use callboard_actors::vocabulary::{Attempt, PluginName, Role, Timestamp};

    use callboard_actors::allocations::RestartWhen;
    use callboard_actors::vocabulary::Probing;

    use super::*;

    fn report(phase: TaskPhase, pid: Option<u32>, event: &str) -> TaskReport {
        TaskReport {
            allocation: AllocationId::new("blue").unwrap(),
            plugin: PluginName::new("zfs").unwrap(),
            role: Role::Monolith,
            phase,
            since: Timestamp::default(),
            pid,
            restarts: 0,
            last_event: event.to_owned(),
            is_wanted: true,
            attempt: Attempt::default(),
            restart_when: RestartWhen::Never,
            probing: Probing::default(),
            survives: false,
            exit: None,
            due: None,
            stopping: None,
            ended: vec![],
        }
    }

    #[test]
    fn who_begins_to_listen_hears_nothing_of_what_is_known_and_all_that_is_new() {
        let known = report(TaskPhase::Waiting, None, "process ended: signal 9");
        let mut teller = AgentTeller::default();
        assert_eq!(teller.begin(&vec![known.clone()]), []);
        assert_eq!(teller.lines_of(&AgentNews::TaskChanged(known.clone())), []);
        let mut told = |phase, pid, event: &str| {
            let lines = teller.lines_of(&AgentNews::TaskChanged(report(phase, pid, event)));
            lines.first().map_or("nothing".to_owned(), |line| line.message.clone())
        };
        let decided = "process ended: signal 9; starts again";
        assert_eq!(told(TaskPhase::Waiting, None, decided), "blue starts again");
        assert_eq!(told(TaskPhase::Running, Some(7), "runs"), "run as process 7");
        assert_eq!(told(TaskPhase::Running, Some(7), "healthy"), "nothing");
        assert_eq!(told(TaskPhase::Running, Some(8), "runs"), "run as process 8");
        assert_eq!(told(TaskPhase::Failed, None, "given up"), "given up");
        assert_eq!(told(TaskPhase::Failed, None, "given up"), "nothing");
    }

    #[test]
    fn a_task_is_told_once_for_each_turn_it_takes() {
        let mut teller = AgentTeller::default();
        let mut lines = Vec::new();
        for (phase, pid, event) in [
            (TaskPhase::Starting, None, "preparing"),
            (TaskPhase::Starting, None, "launching"),
            (TaskPhase::Running, Some(7), "process 7 runs"),
            (TaskPhase::Running, Some(7), "healthy"),
            (TaskPhase::Waiting, None, "process ended: signal 9"),
            (TaskPhase::Waiting, None, "process ended: signal 9; starts again"),
            (TaskPhase::Starting, None, "preparing"),
            (TaskPhase::Running, Some(8), "process 8 runs"),
            (TaskPhase::Stopping, Some(8), "deregistering"),
            (TaskPhase::Stopping, Some(8), "ending process 8"),
            (TaskPhase::Stopped, None, "stopped: exit code 0"),
        ] {
            let told = teller.lines_of(&AgentNews::TaskChanged(report(phase, pid, event)));
            lines.extend(told.iter().map(|line| format!("{} → {}: {}", line.from, line.to, line.message)));
        }
        assert_eq!(
            lines,
            [
                "agent → allocation blue: prepare to be started",
                "agent → process blue: run as process 7",
                "process blue → agent: process ended: signal 9",
                "agent → everyone: blue starts again",
                "agent → allocation blue: prepare to be started",
                "agent → process blue: run as process 8",
                "agent → allocation blue: stop",
                "agent → process blue: ending process 8",
                "process blue → agent: stopped: exit code 0",
            ]
        );
    }
}
