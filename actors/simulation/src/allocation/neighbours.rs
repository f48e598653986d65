//! The neighbours of an allocation's supervisor as plain models: the task's plugin, its files, the registry and the instances.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocation::{AllocationCall, AllocationOutcome};
use callboard_actors::registry::{Deregister, Deregistered, Register, RegisterError, Registered};
use callboard_actors::shell::{AskError, CallLost};

use super::event::{Receipt, Reply};
use super::surroundings::Surroundings;

/// A call that returns to the supervisor, with its outcome.
pub(super) type Returned = (u64, Result<AllocationOutcome, CallLost>);

/// A call that has not returned.
#[derive(Debug, Clone, Hash)]
struct Pending {
    number: u64,
    call: AllocationCall,
    /// The process of the plugin that was asked.
    process: u64,
}

/// A message in flight to the registry, and the caller that waits for the answer.
#[derive(Debug, Clone, Hash)]
struct InFlight {
    number: Option<u64>,
    message: Message,
}

#[derive(Debug, Clone, Hash)]
enum Message {
    Register(Register),
    Deregister(Deregister),
}

/// All neighbours of one supervisor.
#[derive(Debug, Clone, Hash)]
pub(super) struct Neighbours {
    pub(super) around: Surroundings,
    calls: Vec<Pending>,
    in_flight: VecDeque<InFlight>,
    /// The version under which the registry knows the allocation.
    pub(super) registered: Option<Arc<str>>,
}

impl Neighbours {
    pub(super) const fn new(around: Surroundings) -> Self {
        Self { around, calls: Vec::new(), in_flight: VecDeque::new(), registered: None }
    }

    pub(super) fn called(&mut self, number: u64, call: AllocationCall) {
        let message = match call {
            AllocationCall::Register(message) => Message::Register(message),
            AllocationCall::Deregister(message) => Message::Deregister(message),
            call => return self.calls.push(Pending { number, call, process: self.around.process }),
        };
        self.in_flight.push_back(InFlight { number: Some(number), message });
    }

    /// No caller waits for answers any longer. Messages in flight still arrive.
    pub(super) fn forget_caller(&mut self) {
        self.calls.clear();
        self.in_flight.iter_mut().for_each(|in_flight| in_flight.number = None);
    }

    /// The host is killed: nothing in flight arrives.
    pub(super) fn next_run(&mut self) {
        self.calls.clear();
        self.in_flight.clear();
    }

    // === Possible results ===

    pub(super) fn has_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The ways in which the calls in flight can return.
    pub(super) fn replies(&self) -> impl Iterator<Item = (usize, Reply)> + '_ {
        let all = [Reply::Good, Reply::Bad, Reply::Odd, Reply::Late];
        let pending = self.calls.iter().enumerate();
        pending.flat_map(move |(place, pending)| {
            let is_possible = move |reply: &Reply| *reply != Reply::Odd || has_odd_reply(&pending.call);
            all.into_iter().filter(is_possible).map(move |reply| (place, reply))
        })
    }

    /// The ways in which the registry can handle the next message.
    pub(super) fn receipts(&self) -> impl Iterator<Item = Receipt> + '_ {
        let is_awaited = self.in_flight.front().is_some_and(|in_flight| in_flight.number.is_some());
        let all = [Receipt::Taken, Receipt::Refused, Receipt::GivenUp];
        all.into_iter()
            .filter(move |receipt| is_awaited || *receipt == Receipt::Taken && self.has_in_flight())
    }

    // === Results ===

    pub(super) fn reply(&mut self, place: usize, reply: Reply) -> Option<Returned> {
        if place >= self.calls.len() {
            return None;
        }
        let Pending { number, call, process } = self.calls.remove(place);
        Some((number, self.around.meet(&call, process, reply)?))
    }

    /// The registry handles the next message.
    pub(super) fn receive(&mut self, receipt: Receipt) -> Option<Returned> {
        if receipt == Receipt::GivenUp {
            let number = self.in_flight.front_mut()?.number.take()?;
            return Some((number, Err(CallLost::DeadlineExceeded(Duration::from_secs(10)))));
        }
        let InFlight { number, message } = self.in_flight.pop_front()?;
        let away = || AskError::NotRunning { actor: "registry".to_owned() };
        let outcome = match (message, receipt) {
            (Message::Register(_), Receipt::Refused | Receipt::GivenUp) => {
                AllocationOutcome::Registered(Ok(Err(RegisterError::Full { held: 5 })))
            }
            (Message::Deregister(_), Receipt::Refused | Receipt::GivenUp) => {
                AllocationOutcome::Deregistered(Err(away()))
            }
            (Message::Register(message), Receipt::Taken) => {
                self.registered = message.version;
                AllocationOutcome::Registered(Ok(Ok(Registered::New)))
            }
            (Message::Deregister(message), Receipt::Taken) => {
                AllocationOutcome::Deregistered(Ok(match self.registered.take() {
                    Some(_) => Deregistered::Removed(message.plugins),
                    None => Deregistered::NotRegistered,
                }))
            }
        };
        Some((number?, Ok(outcome)))
    }
}

const fn has_odd_reply(call: &AllocationCall) -> bool {
    matches!(call, AllocationCall::FindSocket | AllocationCall::AskHealth | AllocationCall::AwaitRetired)
}
