//! The generic world of a search: an actor, its disk, its callers, and whatever else its [scene](Scene) adds.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use callboard_actors::shell::{CallLost, Machine, StopMode};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::scene::{Actor, Event, Fault, Scene};
use super::{Play, World};
use crate::law::Law;
use crate::law_checker::{NO_CALLER_WAITS, Violation, found, violation};
use crate::stand_in::{Left, Settlement};

/// The asker of a notification, which waits for no answer.
const NOTIFIER: u64 = 0;

/// The common part of every scene: the actor, time, callers, and the remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct Stage<S: Scene> {
    /// The actor.
    pub(crate) actor: Actor<S>,
    pub(crate) now: Timestamp,
    pub(crate) left: S::Bounds,
    stops: &'static [StopMode],
    askers: u64,
    /// The questions that wait for an answer.
    unanswered: BTreeSet<u64>,
    /// The mode in which the actor was asked to stop.
    pub(crate) stopped: Option<StopMode>,
}

impl<S: Scene> Stage<S> {
    pub(crate) const fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    /// The actor.
    pub const fn actor(&self) -> &Actor<S> {
        &self.actor
    }

    /// The present time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// The mode in which the actor was asked to stop.
    pub const fn stopped(&self) -> Option<StopMode> {
        self.stopped
    }

    /// Another actor notifies this one, without waiting for an answer.
    pub fn notify(&mut self, ask: <S::Machine as Machine>::Ask) {
        self.actor.ask(self.moment(), NOTIFIER, ask);
    }

    /// The number of the latest caller.
    pub const fn askers(&self) -> u64 {
        self.askers
    }

    /// Whether this caller waits for an answer.
    pub fn awaits(&self, asker: u64) -> bool {
        self.unanswered.contains(&asker)
    }

    /// A caller asks the actor.
    pub fn ask(&mut self, ask: <S::Machine as Machine>::Ask) {
        self.askers += 1;
        self.unanswered.insert(self.askers);
        self.actor.ask(self.moment(), self.askers, ask);
    }

    /// A call returns.
    pub fn returned(&mut self, call: u64, outcome: <S::Machine as Machine>::Outcome) {
        self.actor.returned(self.moment(), call, Ok(outcome));
    }

    /// A call is lost, with this error instead of an outcome.
    pub fn lost(&mut self, call: u64, lost: CallLost) {
        self.actor.returned(self.moment(), call, Err(lost));
    }

    /// The disk reports the progress of writes.
    pub fn settled(&mut self, settlement: Settlement) {
        self.actor.settled(self.moment(), settlement);
    }

    /// This caller, which received no answer, retries.
    pub fn ask_again(&mut self, asker: u64, ask: <S::Machine as Machine>::Ask) {
        self.actor.ask(self.moment(), asker, ask);
    }

    /// This actor replaces one that crashed. Its callers keep waiting.
    pub fn replace(&mut self, actor: Actor<S>) {
        self.actor = actor.tampered_with(self.actor.tamper());
    }

    /// The host was killed, and starts this actor. Callers of the former actor receive no answer.
    pub fn begin_run(&mut self, actor: Actor<S>) {
        self.replace(actor);
        self.unanswered.clear();
        self.stopped = None;
    }
}

/// The world of a scene.
#[derive(Debug, Clone, Hash)]
pub struct SceneWorld<S: Scene> {
    pub(crate) stage: Stage<S>,
    scene: S,
}

impl<S: Scene> SceneWorld<S> {
    /// A world with these bounds, with a fault in the machine if one is given.
    #[must_use]
    pub fn new(bounds: S::Bounds, tamper: Fault<S>) -> Self {
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let (scene, actor) = S::begin(&bounds, now);
        let stage = Stage {
            actor: actor.tampered_with(tamper),
            now,
            left: bounds,
            stops: S::stops(&bounds),
            askers: 0,
            unanswered: BTreeSet::new(),
            stopped: None,
        };
        let mut world = Self { stage, scene };
        world.load();
        // No law can be broken before its first step.
        let _ = world.hear();
        world
    }

    fn load(&mut self) {
        let Self { stage, scene } = self;
        let image = scene.loads(stage);
        stage.actor.loaded(Moment { random: scene.random(), ..stage.moment() }, image);
    }

    fn due(&self) -> Option<Timestamp> {
        let actor = &self.stage.actor;
        actor.pauses_until().or_else(|| actor.next_timer().into_iter().chain(self.scene.due()).min())
    }

    fn pass(&mut self) {
        let due = self.due();
        let Self { stage, scene } = self;
        stage.now = due.unwrap_or(stage.now).max(stage.now);
        if stage.actor.pauses_until().is_some() {
            stage.actor.wake();
        } else {
            stage.actor.timers_due(stage.moment());
            scene.passes(stage);
        }
    }

    fn hear(&mut self) -> Result<(), Violation> {
        let mut left = Vec::new();
        loop {
            if self.stage.actor.is_loading() {
                self.load();
            }
            self.stage.actor.take_left(&mut left);
            if left.is_empty() && !self.stage.actor.is_loading() {
                break;
            }
            left.drain(..).try_for_each(|left| self.take_in(left))?;
        }
        if self.stage.actor.has_ended() {
            // The shell answers the remaining callers with an error.
            self.stage.unanswered.clear();
        }
        self.scene.heard(&mut self.stage)?;
        found(S::verdict(&self.stage.actor.checker).broken())
    }

    fn take_in(&mut self, left: Left<S::Machine>) -> Result<(), Violation> {
        let Self { stage, scene } = self;
        match left {
            Left::Answer(Some(NOTIFIER), _) | Left::Refused(NOTIFIER, _) => Ok(()),
            Left::Answer(Some(asker), answer) if stage.unanswered.remove(&asker) => {
                scene.answered(stage, asker, &answer)
            }
            Left::Refused(asker, refusal) if stage.unanswered.remove(&asker) => scene.refused(asker, refusal),
            Left::Answer(Some(asker), _) | Left::Refused(asker, _) => {
                violation(Law::Shell7, format!("question {asker} was answered twice"))
            }
            Left::Answer(None, _) => violation(Law::Shell7, NO_CALLER_WAITS),
            Left::Call { number, call, .. } => scene.called(stage, number, call),
            left @ (Left::News(..) | Left::Snapshot(..)) => {
                scene.told(stage, left);
                Ok(())
            }
            Left::Ended(_) => Ok(()),
        }
    }

    /// Whether the bounds permit an event. A pause after a failed write ends in any case.
    fn is_permitted(&self, event: &Event<S::Event>) -> bool {
        let mut left = self.stage.left;
        *event == Event::Pass && self.stage.actor.pauses_until().is_some()
            || S::bound(&mut left, event).is_none_or(|left| *left > 0)
    }

    /// The next event without faults.
    fn next(&self, may_pass: bool) -> Option<Event<S::Event>> {
        let passes = may_pass
            && !self.stage.actor.has_ended()
            && self.due().is_some()
            && !self.scene.is_at_rest(&self.stage);
        let own = self.scene.next(&self.stage).map(Event::Own);
        own.or_else(|| passes.then_some(Event::Pass))
    }
}

impl<S: Scene> World for SceneWorld<S> {
    fn events(&self) -> Vec<Event<S::Event>> {
        let mut events = Vec::new();
        let Stage { actor, stops, .. } = &self.stage;
        self.scene.events(&self.stage, &mut events);
        if !actor.has_ended() {
            events.extend(self.due().map(|_| Event::Pass));
            events.extend((S::MAY_CRASH && !actor.crashes_next()).then_some(Event::Crash));
            events.extend(stops.iter().map(|mode| Event::Stop(*mode)));
        }
        events.retain(|event| self.is_permitted(event));
        events
    }
}

impl<S: Scene> Play for SceneWorld<S> {
    type Event = Event<S::Event>;

    fn can(&self, event: &Event<S::Event>) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &Event<S::Event>) -> Result<(), Violation> {
        let Self { stage, scene } = self;
        if let Some(left) = S::bound(&mut stage.left, event) {
            *left = left.saturating_sub(1);
        }
        match *event {
            Event::Own(event) => scene.happens(stage, event)?,
            Event::Pass => self.pass(),
            Event::Crash => stage.actor.crash_next_step(),
            Event::Stop(mode) => {
                (stage.stops, stage.stopped) = (&[], Some(mode));
                scene.stopping(stage);
                stage.actor.request_stop(stage.moment(), mode);
            }
        }
        self.hear()
    }

    /// Only events that happen by themselves remain; then every caller has an answer, and the scene is in its expected state.
    fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        while let Some(event) = self.next(calm < S::CALM_MAX) {
            calm += u32::from(event == Event::Pass);
            self.take(&event)?;
        }
        let unanswered = &self.stage.unanswered;
        if !unanswered.is_empty() {
            return violation(Law::Shell7, format!("questions {unanswered:?} were never answered"));
        }
        self.scene.check_end(&self.stage)
    }
}
