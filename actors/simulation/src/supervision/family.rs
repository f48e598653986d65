//! A tree of supervisors: a child that is itself a supervisor has a model of its own.

mod returning;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::shell::{Ending, StopMode};
use callboard_actors::supervisor::{AwaitStarted, Plan, Supervisor, SupervisorAnswer, SupervisorAsk};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::super::allocation::Reply;
use super::super::law::Law;
use super::super::law_checker::{NO_CALLER_WAITS, Verdict};
use super::super::observed::Observed;
use super::super::tamper::Tamper;
use super::environment::Task;
use super::model::SupervisionModel;

/// The asker that asks a child supervisor whether all its children are up.
const PARENT: u64 = 0;

/// The plan of one supervisor of a tree.
#[derive(Debug, Clone)]
pub(in super::super) struct Branch {
    pub(in super::super) plan: Plan,
    /// Its children that are supervisors, each with the number of its supervisor.
    pub(in super::super) below: Vec<(usize, usize)>,
}

/// An event that can happen by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum FamilyChange {
    /// This call of the supervisor with this number was made, or can return.
    Call(usize, Task),
    /// A child is being made.
    Make(usize, usize),
    /// A timer is due in a supervisor.
    Due(usize),
    /// The root is no longer held back.
    Begin,
}

/// The supervisors of a tree; the first one is the root.
#[derive(Debug, Clone)]
pub(in super::super) struct Family {
    branches: Arc<[Branch]>,
    tamper: Option<Rc<dyn Tamper<Supervisor>>>,
    members: Vec<Option<Member>>,
    steps_before: u64,
    /// Whether something happened since the effects were last taken.
    is_touched: bool,
    /// Whether only events from outside are possible.
    is_calm: bool,
    /// Finished questions: answered, refused, or sent to a supervisor that is gone.
    pub(in super::super) answered: Vec<u64>,
    pub(in super::super) changed: Vec<FamilyChange>,
    /// The effects that left, as a trace shows them, if a trace is made.
    pub(in super::super) told: Option<Vec<Observed>>,
    pub(in super::super) verdict: Verdict,
}

/// A living supervisor.
#[derive(Debug, Clone)]
struct Member {
    model: SupervisionModel,
    askers: BTreeSet<u64>,
    /// Whether all its children are up, or never will be, as reported to its parent.
    is_started: Option<bool>,
    told: Option<StopMode>,
}

impl Family {
    pub(in super::super) fn new(branches: Arc<[Branch]>, tamper: Option<Rc<dyn Tamper<Supervisor>>>) -> Self {
        let members = branches.iter().map(|_| None).collect();
        Self {
            branches,
            tamper,
            members,
            steps_before: 0,
            is_touched: true,
            is_calm: false,
            answered: Vec::new(),
            changed: Vec::new(),
            told: None,
            verdict: Verdict::NONE,
        }
    }

    // === The observable state ===

    pub(in super::super) fn len(&self) -> usize {
        self.branches.len()
    }

    pub(in super::super) fn children_of(&self, number: usize) -> usize {
        self.branches[number].plan.children.len()
    }

    pub(in super::super) fn steps(&self) -> u64 {
        let steps = |member: &Member| member.model.steps();
        self.steps_before + self.members.iter().flatten().map(steps).sum::<u64>()
    }

    pub(in super::super) fn lives(&self) -> bool {
        self.members[0].is_some()
    }

    pub(in super::super) fn next_timer(&self, number: usize) -> Option<Timestamp> {
        self.members[number].as_ref()?.model.next_timer()
    }

    /// The time at which a call returns at the latest.
    pub(in super::super) fn deadline_of(&self, number: usize, task: Task) -> Option<Timestamp> {
        self.members[number].as_ref()?.model.deadline_of(task)
    }

    /// The supervisor that a child is, if it is one.
    fn below(&self, number: usize, child: usize) -> Option<usize> {
        self.branches[number].below.iter().find_map(|(place, below)| (*place == child).then_some(*below))
    }

    // === Events ===

    /// The root is started, unless it lives.
    pub(in super::super) fn begin(&mut self, moment: Moment) {
        if !self.lives() {
            self.bring_to_life(moment, 0);
        }
    }

    fn bring_to_life(&mut self, moment: Moment, number: usize) {
        self.is_touched = true;
        let mut model = SupervisionModel::new(self.branches[number].plan.clone(), self.tamper.clone());
        model.told = self.told.is_some().then(Vec::new);
        if number > 0 {
            model.ask(moment, PARENT, SupervisorAsk::AwaitStarted(AwaitStarted));
        }
        let member = Member { model, askers: BTreeSet::new(), is_started: None, told: None };
        self.members[number] = Some(member);
    }

    /// A supervisor is gone, with all its children.
    fn drop_member(&mut self, number: usize) {
        let Some(mut member) = self.members[number].take() else { return };
        self.steps_before += member.model.steps();
        self.verdict.heard_of(member.model.broken());
        self.answered.extend(member.askers);
        if let (Some(told), Some(lines)) = (&mut self.told, &mut member.model.told) {
            told.append(lines);
        }
        for (_, below) in self.branches.clone()[number].below.iter().copied() {
            self.drop_member(below);
        }
    }

    /// The host is gone with all supervisors.
    pub(in super::super) fn fall(&mut self) {
        self.drop_member(0);
        self.answered.clear();
        self.changed.clear();
    }

    pub(in super::super) fn request_stop(&mut self, moment: Moment, mode: StopMode) {
        self.tell_to_stop(moment, 0, mode);
    }

    fn tell_to_stop(&mut self, moment: Moment, number: usize, mode: StopMode) {
        self.is_touched = true;
        if let Some(member) = &mut self.members[number]
            && member.told != Some(mode)
        {
            member.told = Some(mode);
            member.model.request_stop(moment, mode);
        }
    }

    /// Asks a supervisor, if it lives.
    pub(in super::super) fn ask(&mut self, moment: Moment, number: usize, asker: u64, ask: SupervisorAsk) {
        self.is_touched = true;
        match &mut self.members[number] {
            Some(member) => {
                member.askers.insert(asker);
                member.model.ask(moment, asker, ask);
            }
            None => self.answered.push(asker),
        }
    }

    pub(in super::super) fn timers_due(&mut self, moment: Moment, number: usize) {
        self.is_touched = true;
        if let Some(member) = &mut self.members[number] {
            member.model.timers_due(moment);
        }
    }

    pub(in super::super) fn crash(&mut self, number: usize) {
        if let Some(member) = &mut self.members[number] {
            member.model.crash_next_step();
        }
    }

    /// A child that is being started lives.
    pub(in super::super) fn make(&mut self, moment: Moment, number: usize, child: usize) {
        let Some(member) = &mut self.members[number] else { return };
        if !member.model.environment.is_being_made(child) {
            return;
        }
        member.model.environment.make(child);
        if let Some(below) = self.below(number, child) {
            self.drop_member(below);
            self.bring_to_life(moment, below);
        }
        self.changed.push(FamilyChange::Call(number, Task::Start(child)));
    }

    /// A child ends by itself; a supervisor ends with all its children.
    pub(in super::super) fn end(&mut self, number: usize, child: usize, ending: Ending) {
        let Some(member) = &mut self.members[number] else { return };
        if !member.model.environment.is_alive(child) {
            return;
        }
        member.model.environment.ends(child, ending);
        if let Some(below) = self.below(number, child) {
            self.drop_member(below);
        }
        self.has_ended(number, child);
    }

    /// A call that waits for the end of a child can be answered.
    fn has_ended(&mut self, number: usize, child: usize) {
        self.is_touched = true;
        let waiting = [Task::Start(child), Task::Watch(child), Task::Stop(child)];
        self.changed.extend(waiting.map(|task| FamilyChange::Call(number, task)));
    }

    // === Effects ===

    /// Carries out the effects that have left, those of the root first.
    pub(in super::super) fn hear(&mut self, moment: Moment) {
        if !std::mem::take(&mut self.is_touched) {
            return;
        }
        self.is_calm = false;
        for number in 0..self.members.len() {
            self.hear_member(moment, number);
        }
    }

    fn hear_member(&mut self, moment: Moment, number: usize) {
        let Some(member) = &mut self.members[number] else { return };
        member.model.hear(moment);
        if let (Some(told), Some(lines)) = (&mut self.told, &mut member.model.told) {
            told.append(lines);
        }
        self.verdict.heard_of(member.model.broken());
        let mut answers = std::mem::take(&mut member.model.answered);
        for (asker, answer) in answers.drain(..) {
            self.answers(number, asker, answer.as_deref());
        }
        let Some(member) = &mut self.members[number] else { return };
        member.model.answered = answers;
        let set_out = std::mem::take(&mut member.model.set_out);
        if member.model.next_timer().is_some() {
            self.changed.push(FamilyChange::Due(number));
        }
        for task in set_out {
            self.sets_out(moment, number, task);
        }
        self.tell_parent(number);
    }

    fn answers(&mut self, number: usize, asker: Option<u64>, answer: Option<&SupervisorAnswer>) {
        let Some(member) = &mut self.members[number] else { return };
        match asker {
            Some(PARENT) => {
                member.is_started = Some(matches!(answer, Some(SupervisorAnswer::AwaitStarted(Ok(())))));
                if let Some((parent, child)) = self.parent_of(number) {
                    self.changed.push(FamilyChange::Call(parent, Task::Start(child)));
                }
            }
            Some(asker) if member.askers.remove(&asker) => self.answered.push(asker),
            Some(asker) => {
                self.verdict.violation(Law::Shell7, || format!("question {asker} was answered twice"));
            }
            None => self.verdict.violation(Law::Shell7, || NO_CALLER_WAITS.to_owned()),
        }
    }

    fn parent_of(&self, number: usize) -> Option<(usize, usize)> {
        self.branches.iter().enumerate().find_map(|(parent, branch)| {
            branch.below.iter().find_map(|(child, below)| (*below == number).then_some((parent, *child)))
        })
    }

    /// A call was made: it returns by itself, except a watch.
    fn sets_out(&mut self, moment: Moment, number: usize, task: Task) {
        match task {
            Task::Start(child) => self.changed.push(FamilyChange::Make(number, child)),
            Task::Stop(child) => {
                let told =
                    self.members[number].as_ref().and_then(|member| member.model.environment.told(child));
                if let (Some(mode), Some(below)) = (told, self.below(number, child)) {
                    self.tell_to_stop(moment, below, mode);
                }
            }
            Task::Found | Task::Watch(_) | Task::Describe => {}
        }
        self.changed.push(FamilyChange::Call(number, task));
    }

    /// A supervisor that has ended is a child that has ended.
    fn tell_parent(&mut self, number: usize) {
        let ending = self.members[number].as_ref().and_then(|member| member.model.ending.clone());
        let Some(ending) = ending else { return };
        self.drop_member(number);
        match self.parent_of(number) {
            Some((parent, child)) => {
                if let Some(member) = &mut self.members[parent] {
                    member.model.environment.ends(child, ending);
                }
                self.has_ended(parent, child);
            }
            None => self.changed.push(FamilyChange::Begin),
        }
    }

    // === Without faults ===

    /// All possible events happen with good results.
    pub(in super::super) fn calm_down(&mut self, moment: Moment) {
        self.hear(moment);
        if self.is_calm {
            return;
        }
        let steps = self.steps();
        for number in 0..self.members.len() {
            self.timers_due(moment, number);
            self.hear(moment);
            for child in 0..self.children_of(number) {
                self.make(moment, number, child);
            }
            let Some(member) = &self.members[number] else { continue };
            for task in member.model.tasks() {
                self.returns(moment, number, task, Reply::Good);
                self.hear(moment);
            }
        }
        self.is_calm =
            self.steps() == steps && (0..self.members.len()).all(|number| self.next_timer(number).is_none());
    }

    pub(in super::super) fn check_calm(&mut self) {
        if !self.lives() {
            self.verdict.violation(Law::S1, || "the root of the supervisors does not live".to_owned());
        }
        for member in self.members.iter_mut().flatten() {
            member.model.check_calm();
            self.verdict.heard_of(member.model.broken());
        }
    }
}
