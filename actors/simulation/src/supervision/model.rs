//! One supervisor with its children, and all messages in flight between them.

use std::rc::Rc;

use callboard_actors::shell::{Ending, StopMode};
use callboard_actors::supervisor::{Plan, Supervisor, SupervisorAnswer, SupervisorAsk};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::super::allocation::Reply;
use super::super::instances::NoDisk;
use super::super::law_checker::Violation;
use super::super::observed::Observed;
use super::super::stand_in::{Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::environment::{Environment, Task, Work};
use super::laws::SupervisionLaws;

/// A supervisor and its children.
#[derive(Debug, Clone, Hash)]
pub(in super::super) struct SupervisionModel {
    supervisor: StandIn<Supervisor, NoDisk, SupervisionLaws>,
    pub(in super::super) environment: Environment,
    /// Its ending, if it has ended.
    pub(in super::super) ending: Option<Ending>,
    /// The callers that were answered, with the answers; `None` for refused callers.
    pub(in super::super) answered: Vec<(Option<u64>, Option<Rc<SupervisorAnswer>>)>,
    /// The calls that were made.
    pub(super) set_out: Vec<Task>,
    /// The effects that left, as a trace shows them, if a trace is made.
    pub(super) told: Option<Vec<Observed>>,
}

impl SupervisionModel {
    pub(in super::super) fn new(plan: Plan, tamper: Option<Rc<dyn Tamper<Supervisor>>>) -> Self {
        let environment = Environment::new(plan.children.len());
        let laws = SupervisionLaws::new(plan.clone());
        let supervisor = StandIn::begin(plan, NoDisk, laws, Rules::default()).tampered_with(tamper);
        Self { supervisor, environment, ending: None, answered: Vec::new(), set_out: Vec::new(), told: None }
    }

    // === The observable state ===

    pub(in super::super) fn broken(&self) -> Option<&Violation> {
        self.supervisor.checker.verdict.broken().or_else(|| self.environment.verdict.broken())
    }

    pub(in super::super) const fn steps(&self) -> u64 {
        self.supervisor.steps()
    }

    pub(in super::super) const fn machine(&self) -> Option<&Supervisor> {
        self.supervisor.machine()
    }

    pub(in super::super) const fn crashes_next(&self) -> bool {
        self.supervisor.crashes_next()
    }

    pub(in super::super) fn next_timer(&self) -> Option<Timestamp> {
        self.supervisor.next_timer()
    }

    /// The time at which the next call returns at the latest.
    pub(in super::super) fn next_deadline(&self) -> Option<Timestamp> {
        self.environment.work.values().filter_map(|work| self.environment.due_of(work)).min()
    }

    /// The number of calls in flight.
    pub(in super::super) fn calls(&self) -> usize {
        self.environment.work.len()
    }

    /// The calls in flight.
    pub(super) fn tasks(&self) -> Vec<Task> {
        self.environment.work.values().map(Work::task).collect()
    }

    /// The oldest call for this that can return in this way.
    pub(super) fn place_of(&self, task: Task, reply: Reply) -> Option<usize> {
        self.environment
            .work
            .values()
            .position(|work| work.task() == task && self.environment.can_return(work, reply))
    }

    /// The time at which a call for this returns at the latest.
    pub(super) fn deadline_of(&self, task: Task) -> Option<Timestamp> {
        let mut alike = self.environment.work.values().filter(|work| work.task() == task);
        alike.find_map(|work| self.environment.due_of(work))
    }

    /// Checks that the state is as required when no further event happens.
    pub(in super::super) fn check_calm(&mut self) {
        self.supervisor.checker.check_calm(&self.environment);
    }

    fn number_of(&self, place: usize) -> Option<u64> {
        self.environment.work.keys().nth(place).copied()
    }

    /// Whether the call at this position, counted from the oldest, can return in this way now: earlier deadlines come first.
    pub(in super::super) fn can_return(&self, place: usize, reply: Reply) -> bool {
        let Some(work) = self.number_of(place).and_then(|number| self.environment.work.get(&number)) else {
            return false;
        };
        let waits = match (work, reply) {
            (Work::Start { .. }, Reply::Late) | (Work::Stop { .. }, Reply::Late | Reply::Bad) => true,
            (
                Work::Found(_) | Work::Watch { .. } | Work::Describe | Work::Start { .. } | Work::Stop { .. },
                Reply::Good | Reply::Bad | Reply::Odd | Reply::Late,
            ) => false,
        };
        let is_its_turn = || {
            let due = self.environment.due_of(work);
            due <= self.next_deadline() && self.next_timer().is_none_or(|timer| Some(timer) >= due)
        };
        self.environment.can_return(work, reply) && (!waits || is_its_turn())
    }

    // === Events ===

    /// A call returns; later, if it took until its deadline. Returns the time of that.
    pub(in super::super) fn returns(&mut self, moment: Moment, place: usize, reply: Reply) -> Timestamp {
        let Some(number) = self.number_of(place) else { return moment.now };
        let (until, outcome) = self.environment.give_back(number, reply);
        let now = until.unwrap_or(moment.now).max(moment.now);
        if let Some(outcome) = outcome {
            self.supervisor.returned(Moment { now, ..moment }, number, outcome);
        }
        now
    }

    pub(in super::super) fn ask(&mut self, moment: Moment, asker: u64, ask: SupervisorAsk) {
        self.supervisor.ask(moment, asker, ask);
    }

    pub(in super::super) fn request_stop(&mut self, moment: Moment, mode: StopMode) {
        self.supervisor.request_stop(moment, mode);
    }

    pub(in super::super) fn timers_due(&mut self, moment: Moment) {
        self.supervisor.timers_due(moment);
    }

    pub(in super::super) fn crash_next_step(&mut self) {
        self.supervisor.crash_next_step();
    }

    /// Carries out the effects that have left.
    pub(in super::super) fn hear(&mut self, moment: Moment) {
        loop {
            if self.supervisor.is_loading() {
                self.environment.cut_off();
            }
            let left = self.supervisor.leaving(moment);
            if let Some(told) = &mut self.told {
                told.extend(Observed::noted("supervisor", &mut self.supervisor));
                told.extend(left.iter().map(|left| Observed::left_to("supervisor", left, |asker| asker > 0)));
            }
            for left in left {
                self.take_in(moment, left);
            }
            if !self.supervisor.is_loading() {
                return;
            }
        }
    }

    fn take_in(&mut self, moment: Moment, left: Left<Supervisor>) {
        match left {
            Left::Answer(asker, answer) => self.answered.push((asker, Some(answer))),
            Left::Refused(asker, _) => self.answered.push((Some(asker), None)),
            Left::Call { number, deadline, call } if self.supervisor.awaits(number) => {
                self.environment.begin(moment.now, number, deadline, call);
                self.set_out.extend(self.environment.work.get(&number).map(Work::task));
            }
            Left::Ended(ending) => {
                self.supervisor.checker.ended_with(&self.environment);
                self.environment.drop_all();
                self.ending = Some(ending);
            }
            // The calls of a step after which another step crashed are cancelled with it.
            Left::Call { .. } | Left::News(..) | Left::Snapshot(..) => {}
        }
    }
}
