//! Starting an actor, waiting for its end, and killing it.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{AsyncContext, Context};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::actor::Shell;
use super::address::Address;
use super::clock::Clock;
use super::drills::{Drills, Place};
use super::effect_handler::EffectHandler;
use super::journal::Journal;
use super::notice::Notices;
use super::store::Store;
use crate::kernel::{Ending, Machine, StopMode, StopStep, panic_message};
use crate::vocabulary::{Backoff, RestartBudget};

/// The default limit of messages in flight to an actor.
pub const IN_FLIGHT_MAX: usize = 4_096;

/// The settings of an actor.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The clock.
    pub clock: Clock,
    /// Where crashes, failed writes and dead letters are posted.
    pub notices: Notices,
    /// How many crashes are handled by rebuilding the machine; one more ends the actor, and its parent decides.
    pub budget: RestartBudget,
    /// The backoff before the store is loaded again after a failed write or load.
    pub rebuild_backoff: Backoff,
    /// How many calls run at once; further ones are queued.
    pub calls_running_max: usize,
    /// How many calls may be queued; one more fails as busy.
    pub calls_waiting_max: usize,
    /// The seed of the random numbers for jitter; `None` takes a random seed.
    pub seed: Option<u64>,
    /// The journal that the actor writes to; none by default. The actors of a host write to the journal of their host.
    pub journal: Option<Journal>,
    /// Lets drills inject faults into the actor by its name; none by default.
    pub drills: Option<Drills>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            notices: Notices::default(),
            budget: RestartBudget::default(),
            rebuild_backoff: Backoff {
                first: Duration::from_millis(10),
                longest: Duration::from_secs(1),
                jitter_percent: 10,
                reset_after: Duration::from_secs(5),
            },
            calls_running_max: 64,
            calls_waiting_max: 4_096,
            seed: None,
            journal: None,
            drills: None,
        }
    }
}

/// Stores the ending of a shell and what it stopped, and before that the bound of its stop.
#[derive(Clone, Default)]
pub(crate) struct EndingCell(Arc<Mutex<Word>>);

#[derive(Default)]
struct Word {
    ending: Option<Ending>,
    /// When the bound was set, and its length from then.
    bound: Option<(Instant, Duration)>,
    steps: Vec<StopStep>,
}

impl EndingCell {
    pub(crate) fn set(&self, ending: Ending) {
        self.lock().ending.get_or_insert(ending);
    }

    pub(crate) fn set_bound(&self, within: Duration) {
        self.lock().bound = Some((Instant::now(), within));
    }

    pub(crate) fn set_steps(&self, steps: Vec<StopStep>) {
        self.lock().steps = steps;
    }

    fn take(&self) -> Option<Ending> {
        self.lock().ending.take()
    }

    fn bound(&self) -> Option<(Instant, Duration)> {
        self.lock().bound
    }

    fn steps(&self) -> Vec<StopStep> {
        self.lock().steps.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Word> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running actor as its parent holds it. Dropping this does not end the actor.
pub struct Running {
    request_stop: Box<dyn Fn(StopMode)>,
    task: AbortHandle,
    ended: watch::Receiver<Option<Ending>>,
    word: EndingCell,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("ended", &*self.ended.borrow()).finish_non_exhaustive()
    }
}

impl Running {
    /// Builds the parent's handle of a task that the shell does not run, from the function that stops it, the task, and its ending.
    #[must_use]
    pub fn new(
        request_stop: impl Fn(StopMode) + 'static,
        task: AbortHandle,
        ended: watch::Receiver<Option<Ending>>,
    ) -> Self {
        Self { request_stop: Box::new(request_stop), task, ended, word: EndingCell::default() }
    }

    /// Asks the actor to stop gracefully.
    pub fn request_stop(&self, mode: StopMode) {
        (self.request_stop)(mode);
    }

    /// The bound of the stop, as a duration after `since`, once the stop was requested and the machine has given its bound
    /// ([`Machine::stops_within`]). The bound counts from the moment at which it was given. It is given again when the stop is
    /// requested again, and by a machine that was rebuilt meanwhile.
    #[must_use]
    pub fn stop_bound(&self, since: Instant) -> Option<Duration> {
        let (given_at, within) = self.word.bound()?;
        Some(given_at.saturating_duration_since(since).saturating_add(within))
    }

    /// The things that it stopped, once it has ended ([`Machine::stop_steps`]).
    #[must_use]
    pub fn stop_steps(&self) -> Vec<StopStep> {
        self.word.steps()
    }

    /// Kills the actor at once.
    pub fn kill(&self) {
        self.task.abort();
    }

    /// A future of the actor's ending; may be called any number of times.
    pub fn ended(&self) -> impl Future<Output = Ending> + 'static {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ending) => ending.clone().unwrap_or(Ending::Killed),
                // The task was dropped without an ending, which only a kill does.
                Err(_) => Ending::Killed,
            }
        }
    }
}

/// Starts an actor that runs machine `M` and gives it the slot of an address. The address must be vacant: a former holder
/// must have ended, and the caller must have waited for that. A former actor that was killed and is not dropped yet does no harm: it can no
/// longer vacate the slot. The [reservation](Address::reserve) prevents that two hosts start an actor at one address.
pub fn start<M, D, S>(
    address: &Address<M>,
    config: M::Config,
    handler: D,
    store: S,
    settings: Settings,
) -> Running
where
    M: Machine,
    D: EffectHandler<M>,
    S: Store<M>,
{
    let cell = EndingCell::default();
    let place = settings.drills.as_ref().map(|drills| drills.enlist(address));
    let shell = Shell::new(address, config, handler, store, settings, cell.clone());
    let context = Context::new();
    let incarnation = address.occupy(context.address().recipient());
    // The guard releases the slot also when this task is aborted, even before its first poll.
    let slot = Slot { address: address.clone(), incarnation, _place: place };
    let (tell, ended) = watch::channel(None);
    let word = cell.clone();
    // Boxed, since a future that awaits a captured future reserves space for it twice.
    let life = Box::pin(AssertUnwindSafe(context.into_future(shell)).catch_unwind());
    let task = actix_rt::spawn(async move {
        let ending = match life.await {
            Ok(()) => cell.take().unwrap_or(Ending::Normal),
            Err(panic) => Ending::Panicked(panic_message(&*panic)),
        };
        // The slot is vacant before the ending is visible.
        drop(slot);
        tell.send_replace(Some(ending));
    });
    let address = address.clone();
    let running =
        Running::new(move |mode| address.request_stop_of(incarnation, mode), task.abort_handle(), ended);
    Running { word, ..running }
}

struct Slot<M: Machine> {
    address: Address<M>,
    incarnation: u64,
    _place: Option<Place>,
}

impl<M: Machine> Drop for Slot<M> {
    fn drop(&mut self) {
        self.address.vacate(self.incarnation);
    }
}
