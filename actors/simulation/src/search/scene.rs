//! What an actor adds to the search: its scene.
//!
//! # How to add an actor
//!
//! 1. Write its laws: a [`Witness`] that holds every step against a plain account of what must come of it.
//! 2. Write its scene, a type that implements [`Scene`]: a plain model of everybody around the actor. It lists what can happen there
//!    ([`events`](Scene::events)), lets it happen ([`happens`](Scene::happens)), notes each call of the actor
//!    ([`called`](Scene::called)), and says what all comes to in the end ([`check_end`](Scene::check_end)). A call in flight is data
//!    of the scene; it comes back in an event of the scene, in each way that is possible.
//! 3. Write its bounds, a struct of numbers, and say which of them limits an event ([`bound`](Scene::bound)).
//!
//! The world does the rest: callers and their answers, time, crashes, commits that settle or fail, the rebuild of the machine, the
//! requests to stop, and the way to rest. `inventory/scene.rs` is an example.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::rc::Rc;

use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::Timestamp;

use super::Stage;
use crate::stand_in::{Disk, Settlement, StandIn};
use crate::tamper::Tamper;
use crate::witness::{Verdict, Violation, Witness};
use crate::writes::Outcome;

/// The actor of a scene.
pub type Actor<S> = StandIn<<S as Scene>::Machine, <S as Scene>::Books, <S as Scene>::Laws>;
/// A fault in the machine of a scene, if there is one.
pub type Fault<S> = Option<Rc<dyn Tamper<<S as Scene>::Machine>>>;

/// Who says something and waits for no answer.
pub(crate) const NOBODY: u64 = 0;

/// What a machine is built from, and how its writes settle.
pub trait Books<M: Machine>: Disk<M> {
    /// What the machine is built from.
    fn image(&mut self, now: Timestamp) -> M::Image;

    /// How many writes wait.
    fn waiting(&self) -> usize {
        0
    }

    /// Settles so many of the waiting writes as one commit.
    fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let _ = (count, outcome);
        None
    }

    /// One more of the next writes is refused at once.
    fn refuse_next(&mut self) {}
}

/// What an actor adds to the search: everybody around it, and what can happen there.
pub trait Scene: Clone + Debug + Hash {
    /// The machine of the actor.
    type Machine: Machine<Ask: Clone + Hash, Answer: Hash, Call: Hash, Timer: Hash, News: Hash, View: Hash>
        + Clone
        + Hash;
    /// Its disk.
    type Books: Books<Self::Machine> + Clone + Debug + Hash;
    /// Its laws.
    type Laws: Witness<Self::Machine> + Clone + Debug + Hash;
    /// How much may happen, of each kind.
    type Bounds: Copy + Debug + Hash;
    /// What can happen beside what can happen to every actor.
    type Event: Copy + Eq + Debug + Display;
    /// What is to be known of a question until it is answered.
    type Asked: Clone + Debug + Hash;

    /// Whether its store is read at once wherever it waits for that. If not, that is an event.
    const LOADS_AT_ONCE: bool = true;
    /// How often time passes at most on the way to rest.
    const CALM_MAX: u32 = 12;

    /// The scene at the beginning, and its actor.
    fn begin(bounds: &Self::Bounds, now: Timestamp) -> (Self, Actor<Self>);

    /// In which ways the actor may be told to stop, once.
    fn stops(bounds: &Self::Bounds) -> &'static [StopMode];

    /// What limits an event, if something does.
    fn bound<'a>(left: &'a mut Self::Bounds, event: &Event<Self::Event>) -> Option<&'a mut u8>;

    /// What is found of the actor.
    fn verdict(laws: &Self::Laws) -> &Verdict;

    /// The number from which lives of the machine count at random.
    fn random(&self) -> u64 {
        0
    }

    /// Everything that can happen here now, whether or not a bound permits it.
    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<Self::Event>>);

    /// Lets one of its own events happen.
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

    /// A question is answered; `None` means that it was refused.
    ///
    /// # Errors
    /// The law that was broken.
    fn answered(
        &mut self,
        stage: &mut Stage<Self>,
        asked: Self::Asked,
        answer: Option<&<Self::Machine as Machine>::Answer>,
    ) -> Result<(), Violation> {
        let _ = (stage, asked, answer);
        Ok(())
    }

    /// Subscribers are told something.
    fn told(&mut self, news: <Self::Machine as Machine>::News) {
        let _ = news;
    }

    /// Subscribers get a snapshot.
    fn shown(&mut self, stage: &mut Stage<Self>) {
        let _ = stage;
    }

    /// The machine is about to be built from its store.
    fn loads(&mut self, stage: &mut Stage<Self>) {
        let _ = stage;
    }

    /// The actor is about to be told to stop.
    fn stopping(&mut self, stage: &mut Stage<Self>) {
        let _ = stage;
    }

    /// The host is killed when so many of the waiting writes had reached the disk, and starts again.
    fn killed(&mut self, stage: &mut Stage<Self>, reached: usize) {
        let _ = (stage, reached);
    }

    /// When something is due around the actor.
    fn due(&self) -> Option<Timestamp> {
        None
    }

    /// Time has passed.
    fn passes(&mut self, stage: &mut Stage<Self>) {
        let _ = stage;
    }

    /// Everything that left was heard.
    fn heard(&mut self, stage: &mut Stage<Self>) {
        let _ = stage;
    }

    /// What happens next if nothing goes wrong any more, but for time.
    fn next(&self, stage: &Stage<Self>) -> Option<Self::Event>;

    /// What all comes to when nothing happens any more.
    ///
    /// # Errors
    /// The law that was broken.
    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation>;
}

/// One thing that can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<E> {
    /// Something around the actor.
    Own(E),
    /// So many of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The store is read.
    Load,
    /// Time passes until something is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The host is killed when so many of the waiting writes have reached the disk, and starts again.
    Kill(u8),
    /// The actor is told to stop.
    Stop(StopMode),
}

/// As a line of a history.
impl<E: Display> Display for Event<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(event) => event.fmt(f),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "write-fails {count}"),
            Self::Settle(count, Outcome::FailedButWritten) => write!(f, "write-fails-but-is-there {count}"),
            Self::RefuseNext => f.write_str("disk-full"),
            Self::Load => f.write_str("load"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Crash => f.write_str("crash-next"),
            Self::Kill(reached) => write!(f, "kill-host written={reached}"),
            Self::Stop(StopMode::Stop) => f.write_str("stop"),
            Self::Stop(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
