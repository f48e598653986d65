//! What the plugins of one type have for themselves.

use std::fmt::Debug;
use std::hash::Hash;

use super::calls::{Reached, SessionCall, SessionTimer, Trouble};
use super::status::SessionHealth;
use crate::kernel::Machine;

/// A step that only plugins of one type have.
pub trait ServiceStep: Copy + PartialEq + Eq + Hash + Debug + Send + 'static {
    /// What it is, in a sentence about what failed.
    fn as_str(self) -> &'static str;
}

/// The service that plugins of one type offer beside the base service, and what was learned of it.
pub trait Service: Clone + Hash + Debug + 'static {
    /// Its own steps.
    type Step: ServiceStep;
    /// What its own steps and its stream bring.
    type Told: Clone + PartialEq + Debug + Send + 'static;

    /// The word for such a plugin.
    const NOUN: &'static str;
    /// Its own steps, in order. They come after the configuration and before the stream.
    const STEPS: &'static [Self::Step];

    /// Whether a plugin that does not have the call of this step goes on without it.
    fn may_lack(step: Self::Step) -> bool;

    /// Takes what a step of its own brought; `None` if that was done and brings nothing. False if it is the answer to another question.
    fn take(&mut self, step: Self::Step, told: Option<&Self::Told>) -> bool;

    /// Takes what the stream brought. `None` if that is the answer to another question.
    fn take_from_stream(&mut self, told: &Self::Told) -> Option<Said>;
}

/// What a plugin says of its own health.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Said {
    /// Undetected, unhealthy or healthy.
    pub health: SessionHealth,
    /// In its own words.
    pub description: String,
}

/// A machine that holds a session of this service: the calls and timers of the session are its own.
pub trait Plugin<S: Service>:
    Machine<Call = SessionCall<S::Step>, Outcome = Result<Reached<S::Told>, Trouble>, Timer = SessionTimer>
{
}

impl<S: Service, M> Plugin<S> for M where
    M: Machine<
            Call = SessionCall<S::Step>,
            Outcome = Result<Reached<S::Told>, Trouble>,
            Timer = SessionTimer,
        >
{
}
