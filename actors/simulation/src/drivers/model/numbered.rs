//! The model as the simulator addresses it: drivers by number, and always the latest actor of each.

use callboard_actors::driver::DriverCall;

use super::*;

impl DriversModel {
    /// The number of drivers.
    pub(in super::super::super) fn drivers(&self) -> u32 {
        u32::try_from(self.options.specs.len()).unwrap_or(u32::MAX)
    }

    /// The name of a driver.
    pub(in super::super::super) fn name(&self, number: u32) -> DriverName {
        self.options.specs[number as usize % self.options.specs.len()].name.clone()
    }

    /// The key of a task.
    pub(in super::super::super) fn task(&self, task: u8) -> callboard_actors::driver::TaskKey {
        self.options.tasks[usize::from(task) % self.options.tasks.len()].clone()
    }

    fn latest(&self, number: u32, kind: ChildKind) -> Option<Attempt> {
        let is_meant = |child: &Child| child.number == number && child.kind() == kind;
        self.children.iter().rev().find(|(_, child)| is_meant(child)).map(|(life, _)| *life)
    }

    // === Messages ===

    fn whose_mail(&self, number: u32, kind: ChildKind) -> Option<Attempt> {
        let is_late = |late: &Late| late.number == number && late.kind == kind;
        let late = self.late.iter().find(|(_, late)| is_late(late)).map(|(life, _)| *life);
        late.or_else(|| {
            let life = self.latest(number, kind)?;
            self.children.get(&life).is_some_and(|child| !child.mail.is_empty()).then_some(life)
        })
    }

    /// Whether a message of any actor of this kind of a driver is in flight.
    pub(in super::super::super) fn has_mail_of(&self, number: u32, kind: ChildKind) -> bool {
        self.whose_mail(number, kind).is_some()
    }

    /// The oldest message of any actor of this kind of a driver reaches the owner.
    pub(in super::super::super) fn deliver_mail_of(&mut self, moment: Moment, number: u32, kind: ChildKind) {
        if let Some(life) = self.whose_mail(number, kind) {
            self.deliver_mail(moment, life);
        }
    }

    // === Calls ===

    /// The step that a driver has in flight, or the read of its eventor: the oldest that returns by itself, or else the oldest.
    fn step_of(&self, life: Attempt) -> Option<u64> {
        match &self.children.get(&life)?.actor {
            Actor::Driver(child) => {
                let is_step = |call: &DriverCall| !matches!(call, DriverCall::AwaitEnd(_));
                let steps =
                    || child.actor.calls().filter(|(_, call)| is_step(call)).map(|(number, _)| number);
                steps().find(|number| self.natural(life, *number).is_some()).or_else(|| steps().next())
            }
            Actor::Eventor(child) => child.actor.calls().next().map(|(number, _)| number),
        }
    }

    /// How a call returns by itself, if it does.
    fn natural(&self, life: Attempt, call: u64) -> Option<Conduct> {
        if self.can_answer(life, call, Conduct::Well) {
            return Some(Conduct::Well);
        }
        let child = self.children.get(&life)?;
        let is_alone = match &child.actor {
            Actor::Driver(driver) => !self
                .environments
                .get(&child.name)
                .is_some_and(|environment| answering::is_linked(driver, environment)),
            Actor::Eventor(_) => false,
        };
        (is_alone && self.can_answer(life, call, Conduct::IsSilent)).then_some(Conduct::IsSilent)
    }

    /// Whether the step of a driver, or the read of its eventor, can return by itself.
    pub(in super::super::super) fn is_step_due(&self, number: u32, kind: ChildKind) -> bool {
        let due = || {
            let life = self.latest(number, kind)?;
            self.natural(life, self.step_of(life)?)
        };
        due().is_some()
    }

    fn answer_of(&mut self, moment: Moment, number: u32, kind: ChildKind, conduct: Conduct) {
        let Some(life) = self.latest(number, kind) else { return };
        let Some(call) = self.step_of(life) else { return };
        if conduct != Conduct::Well && self.can_answer(life, call, conduct) {
            self.answer(moment, life, call, conduct);
        } else if let Some(conduct) = self.natural(life, call) {
            self.answer(moment, life, call, conduct);
        }
    }

    /// The step of a driver returns, in this way if that is possible.
    pub(in super::super::super) fn answer_step(&mut self, moment: Moment, number: u32, conduct: Conduct) {
        self.answer_of(moment, number, ChildKind::Driver, conduct);
    }

    /// The read of a driver's eventor returns, in this way if that is possible.
    pub(in super::super::super) fn answer_stream(&mut self, moment: Moment, number: u32, conduct: Conduct) {
        self.answer_of(moment, number, ChildKind::Eventor, conduct);
    }

    /// The ended process whose driver waits for the notification.
    fn end_of(&self, number: u32) -> Option<(Attempt, u64)> {
        let life = self.latest(number, ChildKind::Driver)?;
        let Actor::Driver(child) = &self.children.get(&life)?.actor else { return None };
        let awaited = child.actor.calls().filter(|(_, call)| matches!(call, DriverCall::AwaitEnd(_)));
        let mut over = awaited.filter(|(call, _)| self.can_answer(life, *call, Conduct::Well));
        over.next().map(|(call, _)| (life, call))
    }

    /// Whether a driver waits for the notification of an end that has happened.
    pub(in super::super::super) fn is_end_due(&self, number: u32) -> bool {
        self.end_of(number).is_some()
    }

    /// A driver is notified that its process has ended.
    pub(in super::super::super) fn tell_end(&mut self, moment: Moment, number: u32) {
        if let Some((life, call)) = self.end_of(number) {
            self.answer(moment, life, call, Conduct::Well);
        }
    }

    // === Time and faults ===

    /// The time at which something is due for the owner.
    pub(in super::super::super) fn owner_timer(&self) -> Option<Timestamp> {
        self.owner.next_timer()
    }

    /// The time at which something is due for this actor of a driver.
    pub(in super::super::super) fn timer_of(&self, number: u32, kind: ChildKind) -> Option<Timestamp> {
        self.children.get(&self.latest(number, kind)?)?.next_timer()
    }

    /// Runs all timers of this actor of a driver that are due by now.
    pub(in super::super::super) fn timers_due_of(&mut self, moment: Moment, number: u32, kind: ChildKind) {
        if let Some(life) = self.latest(number, kind) {
            self.child_timers_due(moment, life);
        }
    }

    /// The next step of this actor of a driver crashes.
    pub(in super::super::super) fn crash_of(&mut self, number: u32, kind: ChildKind) {
        if let Some(life) = self.latest(number, kind) {
            self.crash_child(life);
        }
    }

    /// This actor of a driver crashes.
    pub(in super::super::super) fn falls_of(&mut self, moment: Moment, number: u32, kind: ChildKind) {
        if let Some(life) = self.latest(number, kind) {
            self.falls(moment, life);
        }
    }
}
