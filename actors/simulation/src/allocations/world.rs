//! The owner of the supervisors of one or two allocations, these as plain models, and the host: small enough to try every order.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocation::Layout;
use callboard_actors::allocations::{
    AllocationReported, Allocations, AllocationsAsk, AllocationsCall, AllocationsOptions, AllocationsOutcome,
};
use callboard_actors::shell::{CallLost, StopMode};
use callboard_actors::vocabulary::{AllocationId, Backoff, Moment, RestartBudget, Timestamp};

use super::super::law::Law;
use super::super::search::{Play, World};
use super::super::stand_in::{Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::witness::{NO_CALLER_WAITS, Violation, found, violation};
use super::event::{AllocationsBounds, AllocationsEvent, HostOrder, SupervisorAct, VolumesWord, name};
use super::handler::Handler;
use super::laws::AllocationsLaws;
use super::memory::Memory;

type Owner = StandIn<Allocations, Memory, AllocationsLaws>;

/// How often time passes at most while everything calms down.
const CALM_MAX: u32 = 12;
/// Who tells news, and waits for no answer.
const NO_ASKER: u64 = 0;

/// The world, with what may still happen.
#[derive(Debug, Clone, Hash)]
pub struct AllocationsWorld {
    pub(super) owner: Owner,
    tamper: Option<Rc<dyn Tamper<Allocations>>>,
    pub(super) handler: Handler,
    now: Timestamp,
    pub(super) left: AllocationsBounds,
    await_endings: Option<u64>,
    /// The questions whether a plugin is unused that are not answered.
    pub(super) questions: VecDeque<u64>,
    pub(super) askers: u64,
    /// Who of the host waits for an answer, and about which allocation.
    pub(super) unanswered: BTreeMap<u64, usize>,
    pub(super) stopped: Option<StopMode>,
}

impl AllocationsWorld {
    /// A world in which so much may happen, with a fault in the owner if one is given.
    #[must_use]
    pub fn new(bounds: AllocationsBounds, tamper: Option<Rc<dyn Tamper<Allocations>>>) -> Self {
        let mut world = Self {
            owner: owner(Memory::default(), AllocationsLaws::default(), tamper.clone()),
            tamper,
            handler: Handler::new(bounds.allocations),
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
            await_endings: None,
            questions: VecDeque::new(),
            askers: NO_ASKER,
            unanswered: BTreeMap::new(),
            stopped: None,
        };
        // Nothing that could be broken has happened before its first step.
        let _ = world.hear();
        world
    }

    pub(super) const fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    // === The supervisors ===

    fn may_act(&self, place: usize, act: SupervisorAct) -> bool {
        let AllocationsBounds { faults, falls, news, .. } = self.left;
        let is_allowed = match act {
            SupervisorAct::Crashes => falls > 0,
            SupervisorAct::Tells => news > 0,
            other => faults > 0 || !other.is_fault(),
        };
        is_allowed && self.handler.entries[place].can(act)
    }

    fn act(&mut self, place: usize, act: SupervisorAct) {
        let left = &mut self.left;
        left.faults = left.faults.saturating_sub(u8::from(act.is_fault()));
        left.falls = left.falls.saturating_sub(u8::from(act == SupervisorAct::Crashes));
        left.news = left.news.saturating_sub(u8::from(act == SupervisorAct::Tells));
        if act == SupervisorAct::IsStuck
            && let Some(call) = self.handler.entries[place].oldest()
        {
            let lost = CallLost::DeadlineExceeded(Duration::from_secs(30));
            self.owner.returned(self.moment(), call, Err(lost));
            return;
        }
        self.excuse(place, act == SupervisorAct::Crashes);
        self.handler.act(place, act);
    }

    /// A supervisor that falls while everything ends is not replaced.
    fn excuse(&mut self, place: usize, falls: bool) {
        self.handler.entries[place].is_excused |= falls && self.stopped.is_some();
    }

    /// Of these the owner hears only when everything ends.
    fn excuse_the_fallen(&mut self) {
        for (place, entry) in self.handler.entries.iter_mut().enumerate() {
            let known = self.owner.witness.known(&allocation(place));
            let is_unheard = known.is_none_or(|known| !known.is_down);
            entry.is_excused |= is_unheard && entry.supervisor.is_none();
        }
    }

    // === What arrives ===

    fn returned(&mut self, call: u64, outcome: AllocationsOutcome) {
        self.owner.returned(self.moment(), call, Ok(outcome));
    }

    fn answer(&mut self, place: usize) {
        if let Some((call, answer)) = self.handler.entries[place].answers.pop_front() {
            self.returned(call, AllocationsOutcome::Told(answer));
        }
    }

    fn news(&mut self, place: usize) {
        if let Some((life, news)) = self.handler.entries[place].news.pop_front() {
            let reported = AllocationReported { allocation: allocation(place), life, news };
            self.owner.ask(self.moment(), NO_ASKER, AllocationsAsk::AllocationReported(reported));
        }
    }

    fn endings(&mut self) {
        if let Some(call) = self.await_endings.take() {
            let ended = self.handler.take_endings();
            self.returned(call, AllocationsOutcome::Ended(ended));
        }
    }

    /// When something is due next.
    fn due(&self) -> Option<Timestamp> {
        self.owner.next_timer()
    }

    fn pass(&mut self) {
        self.now = self.due().unwrap_or(self.now).max(self.now);
        self.owner.timers_due(self.moment());
    }

    // === The owner ===

    fn hear(&mut self) -> Result<(), Violation> {
        let mut left = Vec::new();
        loop {
            if self.owner.is_loading() {
                let (moment, image) = (self.moment(), self.owner.books.image());
                self.owner.loaded(moment, image);
            }
            self.owner.take_left(&mut left);
            if left.is_empty() && !self.owner.is_loading() {
                break;
            }
            left.drain(..).try_for_each(|left| self.take_in(left))?;
        }
        let owner = &self.owner;
        for entry in &mut self.handler.entries {
            entry.answers.retain(|(call, _)| owner.awaits(*call));
        }
        self.questions.retain(|call| owner.awaits(*call));
        found(self.owner.witness.verdict.broken())
    }

    fn take_in(&mut self, left: Left<Allocations>) -> Result<(), Violation> {
        match left {
            Left::Answer(Some(NO_ASKER), _) | Left::Refused(NO_ASKER, _) => {}
            Left::Answer(Some(asker), answer) => {
                let Some(place) = self.unanswered.remove(&asker) else {
                    return violation(Law::Shell7, format!("question {asker} was answered twice"));
                };
                self.check_answer(place, &answer)?;
            }
            Left::Refused(asker, _) => {
                self.unanswered.remove(&asker);
            }
            Left::Answer(None, _) => return violation(Law::Shell7, NO_CALLER_WAITS),
            Left::Call { number, call, .. } => return self.called(number, call),
            // The shell answers the callers that still wait.
            Left::Ended(_) => self.unanswered.clear(),
            Left::News(..) | Left::Snapshot(..) => {}
        }
        Ok(())
    }

    fn called(&mut self, number: u64, call: AllocationsCall) -> Result<(), Violation> {
        let outcome = match call {
            AllocationsCall::AwaitEndings => {
                self.await_endings = Some(number);
                return Ok(());
            }
            AllocationsCall::Tell { allocation, life, order, .. } => {
                let place = self.handler.place(&allocation);
                self.handler.entries[place].told(number, life, &order);
                return Ok(());
            }
            AllocationsCall::Start { life, config } => {
                let allocation = config.spec.allocation.clone();
                if !self.handler.start(life, *config) {
                    return violation(Law::A5, format!("two supervisors of {allocation} live at once"));
                }
                AllocationsOutcome::Done
            }
            AllocationsCall::Look { allocation, life } => {
                AllocationsOutcome::Seen(self.handler.look(self.handler.place(&allocation), life))
            }
            AllocationsCall::End { allocation, life, mode } => {
                self.handler.stop(self.handler.place(&allocation), life, mode);
                AllocationsOutcome::Done
            }
            AllocationsCall::Kill { allocation, life } => {
                let place = self.handler.place(&allocation);
                self.excuse(place, true);
                self.handler.kill(place, life);
                AllocationsOutcome::Done
            }
            AllocationsCall::AwaitUnused { .. } if self.left.waits > 0 => {
                self.left.waits -= 1;
                self.questions.push_back(number);
                return Ok(());
            }
            AllocationsCall::AwaitUnused { .. } => AllocationsOutcome::Unused(Ok(Ok(()))),
            AllocationsCall::Describe(_) => AllocationsOutcome::Described(BTreeMap::new()),
        };
        self.returned(number, outcome);
        Ok(())
    }

    /// Another owner takes the place of one that ended by force or let go of everything, a moment later.
    fn succeed(&mut self) {
        self.handler.let_go();
        self.unanswered.clear();
        self.stopped = None;
        self.now = self.now + Duration::from_millis(1);
        let (memory, mut laws) = (self.owner.books.clone(), self.owner.witness.clone());
        laws.succeed();
        self.owner = owner(memory, laws, self.tamper.clone());
    }

    fn kill(&mut self) {
        self.handler.forget_all();
        self.unanswered.clear();
        self.stopped = None;
        self.owner = owner(Memory::default(), AllocationsLaws::default(), self.tamper.clone());
    }

    /// What happens next of itself, if anything.
    fn next(&self) -> Option<AllocationsEvent> {
        const DUTIES: [SupervisorAct; 4] = [
            SupervisorAct::Makes,
            SupervisorAct::Deregisters,
            SupervisorAct::PutsAway,
            SupervisorAct::Registers,
        ];
        if self.await_endings.is_some() && self.handler.has_endings() {
            return Some(AllocationsEvent::Endings);
        }
        if !self.questions.is_empty() {
            return Some(AllocationsEvent::Volumes(VolumesWord::Unused));
        }
        self.handler.entries.iter().enumerate().find_map(|(place, entry)| {
            let duty = DUTIES.into_iter().find(|act| entry.can(*act));
            if !entry.answers.is_empty() {
                Some(AllocationsEvent::Answer(place))
            } else if !entry.news.is_empty() {
                Some(AllocationsEvent::News(place))
            } else {
                duty.map(|act| AllocationsEvent::Act(place, act))
            }
        })
    }
}

impl World for AllocationsWorld {
    fn events(&self) -> Vec<AllocationsEvent> {
        let may_succeed = self.left.successors > 0 && self.stopped != Some(StopMode::Stop);
        if self.owner.has_ended() {
            return may_succeed.then_some(AllocationsEvent::Succeed).into_iter().collect();
        }
        let mut events = Vec::new();
        for (place, entry) in self.handler.entries.iter().enumerate() {
            let orders = HostOrder::ALL.into_iter().filter(|order| self.may_say(place, *order));
            events.extend(orders.map(|order| AllocationsEvent::Say(place, order)));
            let acts = SupervisorAct::ALL.into_iter().filter(|act| self.may_act(place, *act));
            events.extend(acts.map(|act| AllocationsEvent::Act(place, act)));
            events.extend((!entry.answers.is_empty()).then_some(AllocationsEvent::Answer(place)));
            events.extend((!entry.news.is_empty()).then_some(AllocationsEvent::News(place)));
        }
        if !self.questions.is_empty() {
            events.extend(VolumesWord::ALL.map(AllocationsEvent::Volumes));
        }
        let has_endings = self.await_endings.is_some() && self.handler.has_endings();
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(has_endings, AllocationsEvent::Endings);
        maybe(self.left.pauses > 0 && self.due().is_some(), AllocationsEvent::Pass);
        maybe(self.left.crashes > 0 && !self.owner.is_fuse_lit(), AllocationsEvent::Crash);
        maybe(may_succeed && self.stopped.is_none(), AllocationsEvent::Succeed);
        maybe(self.left.kills > 0, AllocationsEvent::Kill);
        events.extend(self.left.stops.iter().map(|mode| AllocationsEvent::Stop(*mode)));
        events
    }
}

impl Play for AllocationsWorld {
    type Event = AllocationsEvent;

    fn can(&self, event: &AllocationsEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &AllocationsEvent) -> Result<(), Violation> {
        match *event {
            AllocationsEvent::Say(place, order) => self.say(place, order),
            AllocationsEvent::Act(place, act) => self.act(place, act),
            AllocationsEvent::Answer(place) => self.answer(place),
            AllocationsEvent::News(place) => self.news(place),
            AllocationsEvent::Endings => self.endings(),
            AllocationsEvent::Volumes(word) => self.volumes(word),
            AllocationsEvent::Pass => {
                self.left.pauses = self.left.pauses.saturating_sub(1);
                self.pass();
            }
            AllocationsEvent::Crash => {
                self.left.crashes -= 1;
                self.owner.light_fuse();
            }
            AllocationsEvent::Succeed => {
                self.left.successors -= 1;
                self.succeed();
            }
            AllocationsEvent::Kill => {
                self.left.kills -= 1;
                self.kill();
            }
            AllocationsEvent::Stop(mode) => {
                (self.left.stops, self.stopped) = (&[], Some(mode));
                self.excuse_the_fallen();
                self.owner.request_stop(self.moment(), mode);
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        while !self.owner.has_ended() {
            if let Some(event) = self.next() {
                self.take(&event)?;
            } else if calm < CALM_MAX && self.due().is_some() {
                calm += 1;
                self.take(&AllocationsEvent::Pass)?;
            } else {
                break;
            }
        }
        self.check_end()
    }
}

fn owner(memory: Memory, laws: AllocationsLaws, tamper: Option<Rc<dyn Tamper<Allocations>>>) -> Owner {
    StandIn::begin(options(), memory, laws, Rules::default()).tampered_with(tamper)
}

fn options() -> AllocationsOptions {
    let layout = Layout::new("/data", "/run/callboard").expect("they are short and absolute");
    let limits = AllocationsOptions::new(layout);
    AllocationsOptions {
        allocations_max: 2,
        orders_max: 3,
        restart_budget: RestartBudget { limit: 1, ..RestartBudget::default() },
        restart_pauses: Backoff { jitter_percent: 0, ..Backoff::default() },
        ..limits
    }
}

/// The allocation at this place.
pub(super) fn allocation(place: usize) -> AllocationId {
    AllocationId::new(name(place)).expect("it is a name")
}
