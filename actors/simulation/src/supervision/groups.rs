//! Determines which children stop and start together: the plain rules of OTP.

use std::collections::BTreeSet;
use std::time::Duration;

use callboard_actors::shell::Ending;
use callboard_actors::supervisor::{Restart, Strategy};
use callboard_actors::vocabulary::Timestamp;

use super::known::State;
use super::laws::SupervisionLaws;

/// Children that stop together, wait for a pause, and start together.
#[derive(Debug, Clone, Hash)]
pub(super) struct Group {
    /// The children that are not up again.
    pub(super) members: BTreeSet<usize>,
    pub(super) pause: Duration,
    /// The time since which all of them are down.
    pub(super) down_since: Option<Timestamp>,
    reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// The start, or the supervisor was rebuilt.
    Opening,
    /// One of them ended and must be restarted.
    Fallen,
    /// The restart of one was requested.
    Asked,
}

impl Group {
    /// The time at which its first member may be started.
    pub(super) fn ready_at(&self) -> Option<Timestamp> {
        self.down_since.map(|since| since + self.pause)
    }
}

impl SupervisionLaws {
    /// The children that must stop and start with a child.
    pub(super) fn restarted_with(&self, child: usize) -> BTreeSet<usize> {
        let all = 0..self.children.len();
        match self.plan.spec.strategy {
            Strategy::OneForOne => BTreeSet::from([child]),
            Strategy::OneForAll => all.collect(),
            Strategy::RestForOne => all.skip(child).collect(),
        }
    }

    /// A child belongs to the latest group that includes it.
    pub(super) fn form(&mut self, members: BTreeSet<usize>, pause: Duration, reason: Reason) {
        for group in &mut self.groups {
            group.members.retain(|member| !members.contains(member));
        }
        self.groups.retain(|group| !group.members.is_empty());
        if !members.is_empty() {
            self.groups.push(Group { members, pause, down_since: None, reason });
        }
    }

    /// The restart of a child is requested: alone, or without its pause where it is due to start anyway.
    pub(super) fn hasten(&mut self, child: usize) {
        match self.groups.iter_mut().find(|group| group.members.contains(&child)) {
            Some(group) => group.pause = Duration::ZERO,
            None => self.form(BTreeSet::from([child]), Duration::ZERO, Reason::Asked),
        }
    }

    /// A child is up, and leaves the group that started it.
    pub(super) fn has_come_up(&mut self, child: usize) {
        for group in self.groups.iter_mut().filter(|group| group.down_since.is_some()) {
            group.members.remove(&child);
        }
        self.groups.retain(|group| !group.members.is_empty());
    }

    /// Whether a child must stop with its group and has not done so yet.
    pub(super) fn is_going_down(&self, child: usize) -> bool {
        self.groups.iter().any(|group| group.down_since.is_none() && group.members.contains(&child))
    }

    /// Whether a temporary child stays down although others of its group start.
    fn stays_down(&self, child: usize, reason: Reason) -> bool {
        let is_wanted = self.wanted.iter().any(|(wanted, _)| *wanted == child);
        let is_temporary = self.plan.children[child].restart == Restart::Temporary;
        is_temporary && reason != Reason::Asked && self.children[child].has_run && !is_wanted
    }

    /// Records the groups whose members are all down by now.
    pub(super) fn note_groups(&mut self, now: Timestamp) {
        for place in 0..self.groups.len() {
            let group = &self.groups[place];
            let is_down = |member: &usize| self.children[*member].state.is_at_rest();
            if group.down_since.is_some() || !group.members.iter().all(is_down) {
                continue;
            }
            let reason = group.reason;
            let staying: Vec<usize> =
                group.members.iter().copied().filter(|member| self.stays_down(*member, reason)).collect();
            let group = &mut self.groups[place];
            group.members.retain(|member| !staying.contains(member));
            group.down_since = Some(now);
        }
        self.groups.retain(|group| !group.members.is_empty());
    }

    /// The missing action of a group, if there is one: the last living member is being stopped, the pause runs, or the first member
    /// that is down is being started.
    pub(super) fn idle_group(&self) -> Option<String> {
        self.groups.iter().find_map(|group| {
            let state = |member: &usize| self.children[*member].state;
            let Some(ready_at) = group.ready_at() else {
                let last = group.members.iter().rev().find(|member| !state(member).is_at_rest())?;
                let is_stopping = matches!(state(last), State::Stopping { .. });
                return (!is_stopping).then(|| format!("c{last} is to go down, and is not stopped"));
            };
            let first = group.members.first()?;
            let is_starting = matches!(state(first), State::Starting(_));
            let is_waiting = !group.pause.is_zero() && self.pauses.values().any(|at| *at == ready_at);
            (!is_starting && !is_waiting).then(|| format!("c{first} is to be started, and is not"))
        })
    }
}

/// Whether a child that ended in this way is started again.
pub(super) fn is_due_after(restart: Restart, ending: &Ending) -> bool {
    match (restart, ending) {
        (Restart::Permanent, _) => true,
        (Restart::Transient, Ending::Normal) | (Restart::Temporary, _) => false,
        (
            Restart::Transient,
            Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_) | Ending::Killed,
        ) => true,
    }
}
