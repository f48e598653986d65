//! The lines of the allocations.

use std::collections::BTreeMap;

use callboard_actors::allocation::AllocationNews;
use callboard_actors::allocations::{AllocationPhase, AllocationStatus, AllocationsNews, AllocationsView};
use callboard_actors::vocabulary::AllocationId;

use super::line::{Line, Participant};
use super::news_lines::NewsLines;

/// Converts the news of each allocation into lines. Its owner passes them on only later, when their consequences may have happened already,
/// so of the owner's own news only the end of an allocation is shown.
#[derive(Debug, Default)]
pub(super) struct AllocationsTeller {
    known: BTreeMap<AllocationId, AllocationPhase>,
}

impl NewsLines for AllocationsTeller {
    type News = AllocationsNews;
    type View = AllocationsView;

    fn begin(&mut self, view: &AllocationsView) -> Vec<Line> {
        self.known =
            view.allocations.iter().map(|status| (status.allocation.clone(), status.phase)).collect();
        Vec::new()
    }

    fn lines_of(&mut self, news: &AllocationsNews) -> Vec<Line> {
        match news {
            AllocationsNews::Gone(allocation) => {
                self.known.remove(allocation);
                vec![to_agent(allocation, "deregistered, and its socket is removed")]
            }
            AllocationsNews::Refused { allocation, reason } => {
                vec![to_agent(allocation, &format!("not prepared: {reason}"))]
            }
            AllocationsNews::Changed(_)
            | AllocationsNews::Task(_)
            | AllocationsNews::RestartRequested { .. } => Vec::new(),
        }
    }
}

impl AllocationsTeller {
    /// The lines for the news of an allocation itself.
    pub(super) fn lines_of_one(&mut self, allocation: &AllocationId, news: &AllocationNews) -> Vec<Line> {
        match news {
            AllocationNews::Changed(status) => self.changed(status).into_iter().collect(),
            AllocationNews::Task(event) => vec![to_agent(allocation, &event.message)],
            AllocationNews::RestartRequested { reason } => {
                vec![to_agent(allocation, &format!("restart it: {reason}"))]
            }
        }
    }

    /// The line for a new phase of an allocation, if it has changed.
    fn changed(&mut self, status: &AllocationStatus) -> Option<Line> {
        let before = self.known.insert(status.allocation.clone(), status.phase);
        if before == Some(status.phase) {
            return None;
        }
        let allocation = Participant::Allocation(status.allocation.clone());
        let process = Participant::Process(status.allocation.clone());
        let (from, to, message) = match status.phase {
            AllocationPhase::Prepared if before.is_none() => {
                (allocation, Participant::Agent, "prepared: this is its socket")
            }
            AllocationPhase::Prepared => (allocation, Participant::Agent, "noted: it can be started again"),
            AllocationPhase::AwaitingSocket => (allocation, process, "is your socket there?"),
            AllocationPhase::Probing => (allocation, process, "are you ready?"),
            AllocationPhase::Registering => (process, allocation, "ready"),
            AllocationPhase::Registered => (Participant::Registry, allocation, "you are registered"),
            AllocationPhase::AwaitingRestart => (process, allocation, status.last_event.as_str()),
            // The agent has reported the order to stop, and the actors that carry it out report its consequences.
            AllocationPhase::Stopping => return None,
        };
        Some(Line::new(from, to, message).of_allocation(&status.allocation))
    }
}

fn to_agent(allocation: &AllocationId, message: &str) -> Line {
    Line::new(Participant::Allocation(allocation.clone()), Participant::Agent, message)
        .of_allocation(allocation)
}

/// One piece of news as a complete sentence, for message scripts and their subscribers.
pub(super) fn sentence(news: &AllocationsNews) -> String {
    match news {
        AllocationsNews::Changed(status) => self::status(status),
        AllocationsNews::Gone(allocation) => format!("{allocation} is gone"),
        AllocationsNews::Refused { allocation, reason } => format!("{allocation} is not prepared: {reason}"),
        AllocationsNews::Task(event) => format!("event of {}: {}", event.allocation, event.message),
        AllocationsNews::RestartRequested { allocation, reason, .. } => {
            format!("asks the host to restart {allocation}: {reason}")
        }
    }
}

/// The state of an allocation.
pub(crate) fn status(status: &AllocationStatus) -> String {
    let AllocationStatus { allocation, phase, health, last_event, .. } = status;
    let health = health.to_string();
    // The last event may just repeat its health.
    let event = if *last_event == health { String::new() } else { format!(": {last_event}") };
    format!("{allocation} is {}, {health}{event}", phase.as_str())
}

#[cfg(test)]
mod tests {
    use callboard_actors::allocations::{TaskEvent, TaskEventKind};
    use callboard_actors::vocabulary::{Health, PluginName, Role, SocketPath, TaskName, Timestamp};

    use super::*;

    fn status(phase: AllocationPhase) -> AllocationStatus {
        AllocationStatus {
            allocation: AllocationId::new("blue").unwrap(),
            task: TaskName::new("plugin").unwrap(),
            plugin: PluginName::new("zfs").unwrap(),
            role: Role::Monolith,
            phase,
            health: Health::Starting,
            socket: SocketPath::new("/run/a.sock").unwrap(),
            since: Timestamp::default(),
            last_event: "its task ended".to_owned(),
        }
    }

    #[test]
    fn an_allocation_is_told_once_for_each_phase_and_again_when_it_came_back() {
        use AllocationPhase::*;

        let mut teller = AllocationsTeller::default();
        let view = AllocationsView { allocations: vec![status(Prepared)] };
        assert_eq!(teller.begin(&view), []);
        let blue = AllocationId::new("blue").unwrap();
        let event = TaskEvent {
            allocation: blue.clone(),
            task: TaskName::new("plugin").unwrap(),
            kind: TaskEventKind::Healthy,
            message: "healthy".to_owned(),
        };
        let phases = [
            Prepared,
            AwaitingSocket,
            AwaitingSocket,
            Probing,
            Registering,
            Registered,
            AwaitingRestart,
            Prepared,
            Stopping,
        ];
        let mut news: Vec<_> =
            phases.map(|phase| AllocationNews::Changed(status(phase))).into_iter().collect();
        let reason = "not ready within 30s".to_owned();
        news.extend([AllocationNews::Task(event), AllocationNews::RestartRequested { reason }]);
        let mut told: Vec<_> = news.iter().flat_map(|news| teller.lines_of_one(&blue, news)).collect();
        told.extend(teller.lines_of(&AllocationsNews::Gone(blue.clone())));
        told.extend(teller.lines_of_one(&blue, &AllocationNews::Changed(status(Prepared))));
        assert!(told.iter().all(|line| line.allocation.as_ref().is_some_and(|of| of.as_str() == "blue")));
        let told: Vec<_> =
            told.iter().map(|line| format!("{} → {}: {}", line.from, line.to, line.message)).collect();
        let expected = [
            "allocation blue → process blue: is your socket there?",
            "allocation blue → process blue: are you ready?",
            "process blue → allocation blue: ready",
            "registry → allocation blue: you are registered",
            "process blue → allocation blue: its task ended",
            "allocation blue → agent: noted: it can be started again",
            "allocation blue → agent: healthy",
            "allocation blue → agent: restart it: not ready within 30s",
            "allocation blue → agent: deregistered, and its socket is removed",
            "allocation blue → agent: prepared: this is its socket",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_an_allocation_tells_itself_is_not_told_again_when_its_owner_passes_it_on() {
        use AllocationPhase::*;
        let mut teller = AllocationsTeller::default();
        let blue = AllocationId::new("blue").unwrap();
        let mut lines = Vec::new();
        for phase in [Probing, Registering] {
            lines.extend(teller.lines_of_one(&blue, &AllocationNews::Changed(status(phase))));
        }
        let reason = || "not ready within 30s".to_owned();
        lines.extend(teller.lines_of_one(&blue, &AllocationNews::RestartRequested { reason: reason() }));
        let asked = AllocationsNews::RestartRequested {
            allocation: blue,
            task: TaskName::new("plugin").unwrap(),
            reason: reason(),
        };
        // The owner is behind: its first news are older than the phase that the allocation has reported.
        let passed_on = [Probing, Registering].map(|phase| AllocationsNews::Changed(status(phase)));
        lines.extend(passed_on.iter().chain([&asked]).flat_map(|news| teller.lines_of(news)));
        let told: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
        assert_eq!(told, ["are you ready?", "ready", "restart it: not ready within 30s"]);
    }
}
