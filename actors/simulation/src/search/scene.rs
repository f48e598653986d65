//! Defines the part of a search that is specific to one actor: its scene.
//!
//! # How to add an actor
//!
//! 1. Write its laws: a [`LawChecker`] that compares every step with a plain model of the required result.
//! 2. Write its scene, a type that implements [`Scene`]: a plain model of everything around the actor. It lists the possible events
//!    ([`events`](Scene::events)), applies them ([`happens`](Scene::happens)), records each call of the actor
//!    ([`called`](Scene::called)), and checks the final state ([`check_end`](Scene::check_end)). A call in flight is data
//!    of the scene; it returns in an event of the scene, with each possible result.
//! 3. Write its bounds, a struct of numbers, and define which of them limits an event ([`bound`](Scene::bound)).
//!
//! The world does the rest: callers and their answers, time, crashes, the rebuild of the machine, the request to stop, and the way to
//! rest. `inventory/scene.rs` is an example. Commits and the kill of a host are events of the scene: see `volumes/scene.rs`.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::rc::Rc;

use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::Timestamp;

use super::Stage;
use crate::law_checker::{LawChecker, Verdict, Violation};
use crate::stand_in::{Disk, Left, Refusal, StandIn};
use crate::tamper::Tamper;

/// The actor of a scene.
pub type Actor<S> = StandIn<<S as Scene>::Machine, <S as Scene>::Disk, <S as Scene>::Laws>;
/// A fault in the machine of a scene, if there is one.
pub type Fault<S> = Option<Rc<dyn Tamper<<S as Scene>::Machine>>>;

/// The specific part of an actor in the search: its surroundings, and the events there.
pub trait Scene: Clone + Debug + Hash {
    /// The machine of the actor.
    type Machine: Machine<
            Ask: Clone + Hash,
            Answer: Hash,
            Call: Hash,
            Timer: Hash,
            Change: Hash,
            News: Hash,
            View: Hash,
        > + Clone
        + Hash;
    /// Its disk.
    type Disk: Disk<Self::Machine> + Clone + Debug + Hash;
    /// Its laws.
    type Laws: LawChecker<Self::Machine> + Clone + Debug + Hash;
    /// How often each kind of event may happen.
    type Bounds: Copy + Debug + Hash;
    /// The events of this scene beside those of every actor.
    type Event: Copy + Eq + Debug + Display;
    /// How often time passes at most before the world comes to rest.
    const CALM_MAX: u32 = 12;
    /// Whether a step of the actor may crash.
    const MAY_CRASH: bool = true;

    /// The scene at the beginning, and its actor.
    fn begin(bounds: &Self::Bounds, now: Timestamp) -> (Self, Actor<Self>);

    /// The modes in which the actor may be asked to stop, once.
    fn stops(bounds: &Self::Bounds) -> &'static [StopMode];

    /// The bound of an event, if it has one.
    fn bound<'a>(left: &'a mut Self::Bounds, event: &Event<Self::Event>) -> Option<&'a mut u8>;

    /// The violations found of the actor.
    fn verdict(laws: &Self::Laws) -> &Verdict;

    /// The events that are possible here now, whether or not a bound permits them.
    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<Self::Event>>);

    /// Applies one of its own events.
    ///
    /// # Errors
    /// The law that was broken.
    fn happens(&mut self, stage: &mut Stage<Self>, event: Self::Event) -> Result<(), Violation>;

    /// The actor makes a call.
    ///
    /// # Errors
    /// The law that was broken.
    fn called(
        &mut self,
        stage: &mut Stage<Self>,
        number: u64,
        call: <Self::Machine as Machine>::Call,
    ) -> Result<(), Violation>;

    /// A caller receives its answer.
    ///
    /// # Errors
    /// The law that was broken.
    fn answered(
        &mut self,
        stage: &Stage<Self>,
        asker: u64,
        answer: &<Self::Machine as Machine>::Answer,
    ) -> Result<(), Violation> {
        let _ = (stage, asker, answer);
        Ok(())
    }

    /// A caller is refused.
    ///
    /// # Errors
    /// The law that was broken.
    fn refused(&mut self, asker: u64, refusal: Refusal) -> Result<(), Violation> {
        let _ = (asker, refusal);
        Ok(())
    }

    /// The actor sends a notification or a snapshot to its subscriber.
    fn told(&mut self, stage: &mut Stage<Self>, left: Left<Self::Machine>) {
        let _ = (stage, left);
    }

    /// The actor is about to be asked to stop.
    fn stopping(&mut self, stage: &Stage<Self>) {
        let _ = stage;
    }

    /// All effects that left after an event were taken in.
    ///
    /// # Errors
    /// The law that was broken.
    fn heard(&mut self, stage: &mut Stage<Self>) -> Result<(), Violation> {
        let _ = stage;
        Ok(())
    }

    /// The machine is about to be built from this image. Calls of its former life have no effect.
    fn loads(&mut self, stage: &mut Stage<Self>) -> <Self::Machine as Machine>::Image;

    /// The random number given to the machine when it is built.
    fn random(&self) -> u64 {
        0
    }

    /// The time at which something is due around the actor.
    fn due(&self) -> Option<Timestamp>;

    /// Time has passed.
    fn passes(&mut self, stage: &mut Stage<Self>);

    /// The next event without faults, except time that passes.
    fn next(&self, stage: &Stage<Self>) -> Option<Self::Event>;

    /// Whether passing time can have no further effect.
    fn is_at_rest(&self, stage: &Stage<Self>) -> bool {
        let _ = stage;
        false
    }

    /// Checks the final state when no further event happens.
    ///
    /// # Errors
    /// The law that was broken.
    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation>;
}

/// An event of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<E> {
    /// An event around the actor.
    Own(E),
    /// Time passes until the next timer is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The actor is requested to stop.
    Stop(StopMode),
}

/// As a line of a history.
impl<E: Display> Display for Event<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(event) => event.fmt(f),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Crash => f.write_str("crash-next"),
            Self::Stop(StopMode::Stop) => f.write_str("stop"),
            Self::Stop(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
