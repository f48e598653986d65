//! Returns the calls of the supervisors of a tree.

use callboard_actors::vocabulary::Moment;

use super::super::super::allocation::Reply;
use super::super::environment::Task;
use super::Family;

impl Family {
    /// A call returns in this way, if it can do so now.
    pub(in super::super::super) fn returns(
        &mut self,
        moment: Moment,
        number: usize,
        task: Task,
        reply: Reply,
    ) {
        let Some(reply) = self.possible(moment, number, task, reply) else { return };
        let Some(member) = &mut self.members[number] else { return };
        let Some(place) = member.model.place_of(task, reply) else { return };
        member.model.returns(moment, place, reply);
        self.is_touched = true;
        // A killed child ends with all its children.
        if let Task::Start(child) | Task::Stop(child) = task
            && let Some(below) = self.below(number, child)
            && self.members[number].as_ref().is_some_and(|member| !member.model.environment.is_alive(child))
        {
            self.drop_member(below);
        }
    }

    /// Whether a call can return in this way now.
    pub(in super::super::super) fn can_return(
        &self,
        moment: Moment,
        number: usize,
        task: Task,
        reply: Reply,
    ) -> bool {
        let (Some(reply), Some(member)) = (self.possible(moment, number, task, reply), &self.members[number])
        else {
            return false;
        };
        member.model.place_of(task, reply).is_some()
    }

    /// The reply that is possible instead of this one: a supervisor is up when it reports so, and down when it ended.
    fn possible(&self, moment: Moment, number: usize, task: Task, reply: Reply) -> Option<Reply> {
        if reply == Reply::Late {
            return self.deadline_of(number, task).filter(|until| *until <= moment.now).map(|_| reply);
        }
        let (Task::Start(child) | Task::Stop(child)) = task else { return Some(reply) };
        let Some(below) = self.below(number, child) else { return Some(reply) };
        let environment = &self.members[number].as_ref()?.model.environment;
        match task {
            Task::Start(_) if environment.is_being_made(child) => (reply != Reply::Good).then_some(reply),
            Task::Start(_) if environment.is_alive(child) => {
                let is_started = self.members[below].as_ref()?.is_started?;
                Some(if is_started { Reply::Good } else { Reply::Bad })
            }
            Task::Stop(_) if environment.is_alive(child) => None,
            Task::Start(_) | Task::Stop(_) | Task::Found | Task::Watch(_) | Task::Describe => {
                Some(Reply::Good)
            }
        }
    }
}
