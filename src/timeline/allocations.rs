//! The lines of the allocations.

use std::collections::BTreeMap;

use callboard_actors::allocations::{AllocationPhase, AllocationStatus, AllocationsNews, AllocationsView};
use callboard_actors::vocabulary::AllocationId;

use super::line::{Line, Voice};
use super::merge::Rank;
use super::retell::Retell;

/// Retells what the allocations say.
#[derive(Debug, Default)]
pub(super) struct AllocationsTeller {
    known: BTreeMap<AllocationId, AllocationPhase>,
}

impl Retell for AllocationsTeller {
    type News = AllocationsNews;
    type View = AllocationsView;

    fn begin(&mut self, view: &AllocationsView) -> Vec<(Rank, Line)> {
        self.known =
            view.allocations.iter().map(|status| (status.allocation.clone(), status.phase)).collect();
        Vec::new()
    }

    fn retell(&mut self, news: &AllocationsNews) -> Vec<(Rank, Line)> {
        match news {
            AllocationsNews::Changed(status) => self.changed(status).into_iter().collect(),
            AllocationsNews::Gone(allocation) => {
                self.known.remove(allocation);
                vec![(Rank::Books, to_agent(allocation, "deregistered, and its socket is removed"))]
            }
            AllocationsNews::Task(event) => vec![(Rank::Books, to_agent(&event.allocation, &event.message))],
            AllocationsNews::RestartRequested { allocation, reason, .. } => {
                vec![(Rank::Books, to_agent(allocation, &format!("restart it: {reason}")))]
            }
        }
    }
}

impl AllocationsTeller {
    /// Tells where an allocation has got to, if it is elsewhere than before.
    fn changed(&mut self, status: &AllocationStatus) -> Option<(Rank, Line)> {
        let before = self.known.insert(status.allocation.clone(), status.phase);
        if before == Some(status.phase) {
            return None;
        }
        let allocation = Voice::Allocation(status.allocation.clone());
        let process = Voice::Process(status.allocation.clone());
        let (rank, from, to, message) = match status.phase {
            AllocationPhase::Prepared if before.is_none() => {
                (Rank::Prepared, allocation, Voice::Agent, "prepared: this is its socket")
            }
            AllocationPhase::Prepared => {
                (Rank::Prepared, allocation, Voice::Agent, "noted: it can be started again")
            }
            AllocationPhase::AwaitingSocket => (Rank::Asking, allocation, process, "is your socket there?"),
            AllocationPhase::Probing => (Rank::Asking, allocation, process, "are you ready?"),
            AllocationPhase::Registering => (Rank::Asking, process, allocation, "ready"),
            AllocationPhase::Registered => {
                (Rank::Answered, Voice::Registry, allocation, "you are registered")
            }
            AllocationPhase::AwaitingRestart => {
                (Rank::Asking, process, allocation, status.last_event.as_str())
            }
            // The agent has told of the order to stop, and what follows from it is told by those who do it.
            AllocationPhase::Stopping => return None,
        };
        Some((rank, Line::new(from, to, message).of_allocation(&status.allocation)))
    }
}

fn to_agent(allocation: &AllocationId, message: &str) -> Line {
    Line::new(Voice::Allocation(allocation.clone()), Voice::Agent, message).of_allocation(allocation)
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
        let allocation = || AllocationId::new("blue").unwrap();
        let task = || TaskName::new("plugin").unwrap();
        let event = TaskEvent {
            allocation: allocation(),
            task: task(),
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
            phases.map(|phase| AllocationsNews::Changed(status(phase))).into_iter().collect();
        let (allocation, reason) = (allocation(), "not ready within 30s".to_owned());
        news.extend([
            AllocationsNews::Task(event),
            AllocationsNews::RestartRequested { allocation: allocation.clone(), task: task(), reason },
            AllocationsNews::Gone(allocation),
            AllocationsNews::Changed(status(Prepared)),
        ]);
        let told: Vec<_> = news.iter().flat_map(|news| teller.retell(news)).collect();
        assert!(
            told.iter().all(|(_, line)| line.allocation.as_ref().is_some_and(|of| of.as_str() == "blue"))
        );
        let told: Vec<_> =
            told.iter().map(|(_, line)| format!("{} → {}: {}", line.from, line.to, line.message)).collect();
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
}
