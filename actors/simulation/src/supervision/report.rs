//! Checks the answers of a supervisor against the true state.

use std::collections::BTreeSet;

use callboard_actors::shell::AskId;
use callboard_actors::supervisor::{
    RestartError, ShutdownReport, StartError, StopOutcome, SupervisorAnswer, TreeNode,
};
use callboard_actors::vocabulary::Timestamp;

use super::super::law::Law;
use super::known::{Cause, End, State};
use super::laws::SupervisionLaws;

impl SupervisionLaws {
    pub(super) fn answers(&mut self, now: Timestamp, id: AskId, answer: &SupervisorAnswer) {
        match answer {
            SupervisorAnswer::AwaitStarted(answer) => self.answers_the_start(answer),
            SupervisorAnswer::RestartChild(answer) => self.answers_a_restart(id, answer),
            SupervisorAnswer::DescribeTree(tree) => self.shows(tree),
            SupervisorAnswer::Shutdown(Ok(report)) => self.reports(now, report),
            SupervisorAnswer::Shutdown(Err(_)) => {}
        }
    }

    fn answers_the_start(&mut self, answer: &Result<(), StartError>) {
        let cause = self.end.as_ref().map(|end| end.cause);
        let is_so = match answer {
            Ok(()) => self.end.is_none() && self.has_found && self.groups.is_empty(),
            Err(StartError::Child { .. }) => cause == Some(Cause::Undone) && self.is_over(),
            Err(StartError::GaveUp { .. }) => cause == Some(Cause::GaveUp) && self.is_over(),
            Err(StartError::Stopping) => cause == Some(Cause::Asked),
            Err(StartError::TooManyWaiting { .. }) => true,
        };
        if !is_so {
            self.verdict.violation(Law::S2, || format!("who waits for the start is told {answer:?}"));
        }
    }

    /// Whether nothing remains to be stopped.
    fn is_over(&self) -> bool {
        (0..self.children.len()).all(|child| self.is_done(child))
    }

    fn answers_a_restart(&mut self, id: AskId, answer: &Result<(), RestartError>) {
        let Some(place) = self.wanted.iter().position(|(_, asked)| *asked == id) else { return };
        let (child, _) = self.wanted.remove(place);
        let state = self.children[child].state;
        let is_so = match answer {
            Ok(()) => matches!(state, State::Up { .. }),
            Err(RestartError::NotStarted { .. }) => !matches!(state, State::Up { .. }),
            Err(RestartError::Stopping) => self.end.is_some(),
            Err(RestartError::Unknown { .. }) => false,
            Err(RestartError::TooManyWaiting { .. }) => true,
        };
        if !is_so {
            self.verdict.violation(Law::S1, || {
                format!("who wants c{child} started again is told {answer:?}: {state:?}")
            });
        }
    }

    fn shows(&mut self, tree: &TreeNode) {
        let names = tree.children.iter().map(|node| &node.name);
        if !names.eq(self.plan.children.iter().map(|spec| &spec.name)) {
            self.verdict
                .violation(Law::S2, || "the tree does not show the children in their order".to_owned());
        }
        for (child, node) in tree.children.iter().enumerate() {
            let is_up = matches!(self.children[child].state, State::Up { .. });
            if is_up != (node.state == "running") {
                self.verdict.violation(Law::S1, || format!("c{child} is shown as {}", node.state));
            }
        }
    }

    /// The report names each child once, with its ending and the time it took.
    fn reports(&mut self, now: Timestamp, report: &ShutdownReport) {
        let Some(end) = &self.end else {
            self.verdict.violation(Law::S3, || "an end is reported that has not begun".to_owned());
            return;
        };
        if let Some(what) = self.fault_of(end, now, report) {
            self.verdict.violation(Law::S3, || what);
        }
    }

    fn fault_of(&self, end: &End, now: Timestamp, report: &ShutdownReport) -> Option<String> {
        let names: BTreeSet<&str> = report.children.iter().map(|ending| ending.name.as_str()).collect();
        let is_whole = names.len() == self.children.len() && report.children.len() == names.len();
        if !is_whole || !self.is_over() {
            return Some(format!("the report does not name each child once: {report:?}"));
        }
        if report.took != now.since(end.begun) {
            return Some(format!("the end took {:?} and not {:?}", now.since(end.begun), report.took));
        }
        let named = |name: &str| report.children.iter().position(|ending| ending.name == name);
        let mut order = Vec::new();
        for (child, outcome, took) in &end.stopped {
            let place = named(&self.plan.children[*child].name)?;
            let told = &report.children[place];
            let is_so = match outcome {
                StopOutcome::NotStarted => self.is_told_as_down(*child, &told.ending),
                // It no longer lived when its turn came.
                StopOutcome::EndedBefore { .. } if self.may_leave(*child) => {
                    self.is_told_as_down(*child, &told.ending)
                }
                StopOutcome::Stopped
                | StopOutcome::Killed { .. }
                | StopOutcome::Crashed { .. }
                | StopOutcome::EndedBefore { .. }
                | StopOutcome::Stuck { .. } => told.ending == *outcome,
            };
            if !is_so || told.took != *took {
                return Some(format!(
                    "c{child} ended as {outcome:?} after {took:?}, and is told as {told:?}"
                ));
            }
            order.push(place);
        }
        if !order.is_sorted() {
            return Some(format!("the report is not in the order of the ends: {report:?}"));
        }
        let was_stopped = |child: usize| end.stopped.iter().any(|(stopped, ..)| *stopped == child);
        (0..self.children.len()).filter(|child| !was_stopped(*child)).find_map(|child| {
            let told = &report.children[named(&self.plan.children[child].name)?].ending;
            let is_so = match self.children[child].state {
                State::Stuck => matches!(told, StopOutcome::Stuck { .. }),
                State::Unseen
                | State::Down
                | State::Starting(_)
                | State::Up { .. }
                | State::Stopping { .. } => self.is_told_as_down(child, told),
            };
            (!is_so).then(|| format!("c{child} was down before, and is told as {told:?}"))
        })
    }

    /// Whether a child that did not live when its turn came is reported correctly.
    fn is_told_as_down(&self, child: usize, told: &StopOutcome) -> bool {
        let known = &self.children[child];
        match told {
            StopOutcome::NotStarted => !known.has_run && !known.has_failed,
            StopOutcome::EndedBefore { .. } => known.has_run || known.has_failed,
            StopOutcome::Stopped
            | StopOutcome::Killed { .. }
            | StopOutcome::Crashed { .. }
            | StopOutcome::Stuck { .. } => false,
        }
    }
}
