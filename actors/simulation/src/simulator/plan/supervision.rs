//! Plans the events of supervisors and their children.

use callboard_actors::vocabulary::Timestamp;

use super::super::super::allocation::Reply;
use super::super::super::supervision::{Task, TaskEnd};
use super::super::event::EventKind;
use super::super::faults::Fault;
use super::super::host_model::HostModel;
use super::super::supervision::FamilyDoing;
use super::agenda::Planned;
use super::{Plan, micros};

/// A planned event of the supervisors, which is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FamilyTurn {
    /// A child ends by itself.
    End,
    /// A supervisor is asked something.
    Ask,
}

impl Plan {
    pub(super) fn begin_family(&mut self, host_model: &HostModel) {
        for turn in [FamilyTurn::End, FamilyTurn::Ask] {
            let within = self.random.below(500_000);
            self.add(host_model.now + micros(within), Planned::Family(turn));
        }
    }

    pub(super) fn turn_of_family(
        &mut self,
        at: Timestamp,
        turn: FamilyTurn,
        host_model: &HostModel,
    ) -> Option<EventKind> {
        let pause = match turn {
            FamilyTurn::End => self.random.below(600_000),
            FamilyTurn::Ask => 50_000 + self.random.below(3_000_000),
        };
        self.add(at + micros(pause), Planned::Family(turn));
        let supervisors = host_model.family.len() as u64;
        let number = usize::try_from(self.random.below(supervisors)).unwrap_or(0);
        let child = self.random.below(host_model.family.children_of(number) as u64);
        let child = u8::try_from(child).unwrap_or(0);
        let doing = match turn {
            FamilyTurn::End if self.does(Fault::Exit, 2) => FamilyDoing::End(child, TaskEnd::Falls),
            FamilyTurn::End => FamilyDoing::End(child, TaskEnd::Finishes),
            FamilyTurn::Ask => match self.random.below(4) {
                0 => FamilyDoing::Restart(child),
                1 => FamilyDoing::Await,
                _ => FamilyDoing::Describe,
            },
        };
        Some(EventKind::Family(u8::try_from(number).unwrap_or(0), doing))
    }

    /// How a call returns. Each bad way is a fault of its own; a call that hangs returns at its deadline.
    pub(super) fn family_goes_on(
        &mut self,
        number: u8,
        doing: FamilyDoing,
        host_model: &HostModel,
    ) -> Option<EventKind> {
        let FamilyDoing::Return(task, Reply::Good) = doing else {
            return Some(EventKind::Family(number, doing));
        };
        let has_deadline = host_model.family.deadline_of(number.into(), task).is_some();
        let reply = match task {
            Task::Start(_) if has_deadline && self.does(Fault::Hang, 40) => return None,
            Task::Start(_) if self.does(Fault::Fail, 40) => Reply::Bad,
            Task::Start(_) if self.does(Fault::Die, 40) => Reply::Odd,
            Task::Stop(_) if has_deadline && self.does(Fault::Hang, 30) => return None,
            Task::Stop(_) if self.does(Fault::Die, 30) => Reply::Odd,
            Task::Watch(_) if self.does(Fault::Lie, 200) => Reply::Bad,
            Task::Start(_) | Task::Stop(_) | Task::Watch(_) | Task::Found | Task::Describe => Reply::Good,
        };
        // The call for a child that has ended already, or does not live yet, has only one result.
        let is_possible = host_model.family.can_return(host_model.moment(), number.into(), task, reply);
        let reply = if is_possible { reply } else { Reply::Good };
        Some(EventKind::Family(number, FamilyDoing::Return(task, reply)))
    }
}
