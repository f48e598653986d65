//! The owner of the supervisors of one or two allocations, these as plain models, and the host: small enough to try every order of events.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use callboard_actors::allocation::Layout;
use callboard_actors::allocations::{
    AllocationReported, Allocations, AllocationsAnswer, AllocationsAsk, AllocationsCall, AllocationsImage,
    AllocationsOptions, AllocationsOutcome,
};
use callboard_actors::shell::{CallLost, StopMode};
use callboard_actors::vocabulary::{AllocationId, Backoff, RestartBudget, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{Verdict, Violation, violation};
use super::super::search::{Actor, Scene, SceneEvent as Event, Stage};
use super::super::stand_in::{Refusal, Rules, StandIn};
use super::event::{AllocationsBounds, AllocationsEvent, HostOrder, SupervisorAct, VolumesWord, name};
use super::handler::Handler;
use super::laws::AllocationsLaws;
use super::memory::Memory;

/// The supervisors, the host and the owner of the volumes.
#[derive(Debug, Clone, Hash)]
pub struct AllocationsScene {
    pub(super) handler: Handler,
    await_endings: Option<u64>,
    /// The unanswered questions whether a plugin is unused.
    pub(super) questions: VecDeque<u64>,
    /// The allocation of each unanswered message of the host.
    pub(super) asked: BTreeMap<u64, usize>,
}

impl AllocationsScene {
    // === The supervisors ===

    fn act(&mut self, stage: &mut Stage<Self>, place: usize, act: SupervisorAct) {
        if act == SupervisorAct::IsStuck
            && let Some(call) = self.handler.entries[place].oldest()
        {
            return stage.lost(call, CallLost::DeadlineExceeded(Duration::from_secs(30)));
        }
        self.excuse(stage, place, act == SupervisorAct::Crashes);
        self.handler.act(place, act);
    }

    /// A supervisor that crashes while everything ends is not replaced.
    fn excuse(&mut self, stage: &Stage<Self>, place: usize, falls: bool) {
        self.handler.entries[place].is_excused |= falls && stage.stopped.is_some();
    }

    // === Arrivals ===

    fn answer(&mut self, stage: &mut Stage<Self>, place: usize) {
        if let Some((call, answer)) = self.handler.entries[place].answers.pop_front() {
            stage.returned(call, AllocationsOutcome::Told(answer));
        }
    }

    fn news(&mut self, stage: &mut Stage<Self>, place: usize) {
        if let Some((life, news)) = self.handler.entries[place].news.pop_front() {
            let reported = AllocationReported { allocation: allocation(place), life, news };
            stage.notify(AllocationsAsk::AllocationReported(reported));
        }
    }

    fn endings(&mut self, stage: &mut Stage<Self>) {
        if let Some(call) = self.await_endings.take() {
            stage.returned(call, AllocationsOutcome::Ended(self.handler.take_endings()));
        }
    }

    fn have_ended(&self) -> bool {
        self.await_endings.is_some() && self.handler.has_endings()
    }

    // === The owner ===

    /// A successor replaces an owner that ended by force or let go of everything, a moment later.
    fn succeed(&mut self, stage: &mut Stage<Self>) {
        self.handler.let_go();
        self.asked.clear();
        stage.now = stage.now + Duration::from_millis(1);
        let (memory, mut laws) = (stage.actor.store.clone(), stage.actor.checker.clone());
        laws.succeed();
        stage.begin_run(owner(memory, laws));
    }

    fn kill(&mut self, stage: &mut Stage<Self>) {
        self.handler.forget_all();
        self.asked.clear();
        stage.begin_run(owner(Memory::default(), AllocationsLaws::default()));
    }
}

impl Scene for AllocationsScene {
    type Machine = Allocations;
    type Disk = Memory;
    type Laws = AllocationsLaws;
    type Bounds = AllocationsBounds;
    type Event = AllocationsEvent;

    fn begin(bounds: &AllocationsBounds, _: Timestamp) -> (Self, Actor<Self>) {
        let scene = Self {
            handler: Handler::new(bounds.allocations),
            await_endings: None,
            questions: VecDeque::new(),
            asked: BTreeMap::new(),
        };
        (scene, owner(Memory::default(), AllocationsLaws::default()))
    }

    fn stops(bounds: &AllocationsBounds) -> &'static [StopMode] {
        bounds.stops
    }

    fn bound<'a>(left: &'a mut AllocationsBounds, event: &Event<AllocationsEvent>) -> Option<&'a mut u8> {
        match event {
            Event::Own(AllocationsEvent::Say(_, order)) => Some(match order {
                HostOrder::Prepare | HostOrder::Started | HostOrder::Exited => &mut left.orders,
                HostOrder::PrepareOther | HostOrder::Adopt => &mut left.oddities,
                HostOrder::Stop | HostOrder::StopEvenIfUsed => &mut left.leaves,
            }),
            Event::Own(AllocationsEvent::Act(_, act)) => match act {
                SupervisorAct::FailsToMake | SupervisorAct::PutsAwayInDebt | SupervisorAct::IsStuck => {
                    Some(&mut left.faults)
                }
                SupervisorAct::Crashes => Some(&mut left.falls),
                SupervisorAct::Tells => Some(&mut left.news),
                SupervisorAct::Makes
                | SupervisorAct::Registers
                | SupervisorAct::Deregisters
                | SupervisorAct::PutsAway => None,
            },
            Event::Own(AllocationsEvent::Succeed) => Some(&mut left.successors),
            Event::Own(AllocationsEvent::Kill) => Some(&mut left.kills),
            Event::Pass => Some(&mut left.pauses),
            Event::Crash => Some(&mut left.crashes),
            Event::Own(
                AllocationsEvent::Answer(_)
                | AllocationsEvent::News(_)
                | AllocationsEvent::Endings
                | AllocationsEvent::Volumes(_),
            )
            | Event::Stop(_) => None,
        }
    }

    fn verdict(laws: &AllocationsLaws) -> &Verdict {
        &laws.verdict
    }

    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<AllocationsEvent>>) {
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(Event::Own(event)));
        let may_succeed = stage.stopped.is_none() || stage.actor.has_ended();
        maybe(may_succeed && stage.stopped != Some(StopMode::Stop), AllocationsEvent::Succeed);
        if stage.actor.has_ended() {
            return;
        }
        for (place, entry) in self.handler.entries.iter().enumerate() {
            for order in HostOrder::ALL {
                maybe(Self::may_say(stage, place, order), AllocationsEvent::Say(place, order));
            }
            for act in SupervisorAct::ALL {
                maybe(entry.can(act), AllocationsEvent::Act(place, act));
            }
            maybe(!entry.answers.is_empty(), AllocationsEvent::Answer(place));
            maybe(!entry.news.is_empty(), AllocationsEvent::News(place));
        }
        for word in VolumesWord::ALL {
            maybe(!self.questions.is_empty(), AllocationsEvent::Volumes(word));
        }
        maybe(self.have_ended(), AllocationsEvent::Endings);
        maybe(true, AllocationsEvent::Kill);
    }

    fn happens(&mut self, stage: &mut Stage<Self>, event: AllocationsEvent) -> Result<(), Violation> {
        match event {
            AllocationsEvent::Say(place, order) => self.say(stage, place, order),
            AllocationsEvent::Act(place, act) => self.act(stage, place, act),
            AllocationsEvent::Answer(place) => self.answer(stage, place),
            AllocationsEvent::News(place) => self.news(stage, place),
            AllocationsEvent::Endings => self.endings(stage),
            AllocationsEvent::Volumes(word) => self.volumes(stage, word),
            AllocationsEvent::Succeed => self.succeed(stage),
            AllocationsEvent::Kill => self.kill(stage),
        }
        Ok(())
    }

    fn called(
        &mut self,
        stage: &mut Stage<Self>,
        number: u64,
        call: AllocationsCall,
    ) -> Result<(), Violation> {
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
                self.excuse(stage, place, true);
                self.handler.kill(place, life);
                AllocationsOutcome::Done
            }
            AllocationsCall::AwaitUnused { .. } if stage.left.waits > 0 => {
                stage.left.waits -= 1;
                self.questions.push_back(number);
                return Ok(());
            }
            AllocationsCall::AwaitUnused { .. } => AllocationsOutcome::Unused(Ok(Ok(()))),
            AllocationsCall::Describe(_) => AllocationsOutcome::Described(BTreeMap::new()),
        };
        stage.returned(number, outcome);
        Ok(())
    }

    fn answered(&mut self, _: &Stage<Self>, asker: u64, answer: &AllocationsAnswer) -> Result<(), Violation> {
        self.asked.remove(&asker).map_or(Ok(()), |place| self.check_answer(place, answer))
    }

    fn refused(&mut self, asker: u64, _: Refusal) -> Result<(), Violation> {
        self.asked.remove(&asker);
        Ok(())
    }

    /// The owner is notified of crashed supervisors only when everything ends.
    fn stopping(&mut self, stage: &Stage<Self>) {
        for (place, entry) in self.handler.entries.iter_mut().enumerate() {
            let known = stage.actor.checker.known(&allocation(place));
            let is_unheard = known.is_none_or(|known| !known.is_down);
            entry.is_excused |= is_unheard && entry.supervisor.is_none();
        }
    }

    fn heard(&mut self, stage: &mut Stage<Self>) -> Result<(), Violation> {
        let owner = &stage.actor;
        for entry in &mut self.handler.entries {
            entry.answers.retain(|(call, _)| owner.awaits(*call));
        }
        self.questions.retain(|call| owner.awaits(*call));
        if owner.has_ended() {
            self.asked.clear();
        }
        Ok(())
    }

    fn loads(&mut self, stage: &mut Stage<Self>) -> AllocationsImage {
        stage.actor.store.image()
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }

    fn passes(&mut self, _: &mut Stage<Self>) {}

    fn next(&self, stage: &Stage<Self>) -> Option<AllocationsEvent> {
        const DUTIES: [SupervisorAct; 4] = [
            SupervisorAct::Makes,
            SupervisorAct::Deregisters,
            SupervisorAct::PutsAway,
            SupervisorAct::Registers,
        ];
        if stage.actor.has_ended() {
            return None;
        }
        if self.have_ended() {
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

    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        self.check_rest(stage)
    }
}

fn owner(memory: Memory, laws: AllocationsLaws) -> Actor<AllocationsScene> {
    StandIn::begin(options(), memory, laws, Rules::default())
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
