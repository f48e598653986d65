//! Defines the service that plugins of one type have.

use std::fmt::Debug;
use std::hash::Hash;

use super::calls::{Reached, SessionCall, SessionTimer, Trouble};
use super::status::SessionHealth;
use crate::kernel::Machine;

/// A step that only plugins of one type have.
pub trait ServiceStep: Copy + PartialEq + Eq + Hash + Debug + Send + 'static {
    /// The name of the step, for a sentence about its failure.
    fn as_str(self) -> &'static str;
}

/// The service that plugins of one type offer beside the base service, and the state learned about it.
pub trait Service: Clone + Hash + Debug + 'static {
    /// Its own steps.
    type Step: ServiceStep;
    /// The results of its own steps and of its stream.
    type Told: Clone + PartialEq + Debug + Send + 'static;

    /// The noun for such a plugin.
    const NOUN: &'static str;
    /// Its own steps, in order, after the configuration and before the stream.
    const STEPS: &'static [Self::Step];

    /// Whether a plugin that does not have the call of this step continues without it.
    fn may_lack(step: Self::Step) -> bool;

    /// Handles the result of one of its own steps; `None` if the step has none. False if it is the answer to another question.
    fn take(&mut self, step: Self::Step, told: Option<&Self::Told>) -> bool;

    /// Handles an item of the stream. `None` if that is the answer to another question.
    fn take_from_stream(&mut self, told: &Self::Told) -> Option<Said>;
}

/// The health that a plugin reports.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Said {
    /// Undetected, unhealthy or healthy.
    pub health: SessionHealth,
    /// The plugin's own words.
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
