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
                vec![(Rank::Books, to_agent(allocation, "out of the books, and its socket is removed"))]
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
