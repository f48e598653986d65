//! The actix actor that runs a machine. Messages become events of its kernel; the port carries out what the kernel requests.

use std::collections::{HashMap, VecDeque};

use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle};
use tokio::sync::watch;

use super::address::{Address, Asker, Drill, Envelope};
use super::effect_handler::EffectHandler;
use super::feed::FeedSender;
use super::port::{Environment, ShellPort};
use super::spawn::{EndingCell, Settings};
use super::store::{Store, first_epoch};
use crate::kernel::{CallLost, Event, Kernel, Limits, Machine, Terms};
use crate::pauses;
use crate::persister::{DiskHealth, Settled};
use crate::vocabulary::Timestamp;

/// The kernel's type parameters in the shell: real askers and subscribers.
pub(super) struct ShellTerms;

impl<M: Machine> Terms<M> for ShellTerms {
    type Asker = Asker<M>;
    type Reader = FeedSender<M::News, M::View>;
    type Answer = M::Answer;
    type View = M::View;
}

/// The outcome of a call, delivered to the actor as a message.
pub(super) struct Returned<M: Machine> {
    pub(super) number: u64,
    pub(super) outcome: Result<M::Outcome, CallLost>,
}

impl<M: Machine> actix::Message for Returned<M> {
    type Result = ();
}

pub(super) struct Shell<M: Machine, D, S> {
    kernel: Kernel<M, ShellTerms>,
    environment: Environment<M, D, S>,
    armed: Option<(Timestamp, SpawnHandle)>,
    /// The number of the latest pause of the process for which its timers were postponed.
    pause: u64,
}

/// The shell needs no structural pinning: actix only requires that it is `Unpin`.
impl<M: Machine, D, S> Unpin for Shell<M, D, S> {}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> Shell<M, D, S> {
    pub(super) fn new(
        address: &Address<M>,
        config: M::Config,
        handler: D,
        store: S,
        settings: Settings,
        ending: EndingCell,
    ) -> Self {
        let limits = Limits {
            budget: settings.budget,
            rebuild_backoff: settings.rebuild_backoff,
            calls_running_max: settings.calls_running_max,
            calls_waiting_max: settings.calls_waiting_max,
        };
        let environment = Environment {
            mailbox: address.mailbox(),
            handler,
            store,
            ending,
            random: settings.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            calls: HashMap::new(),
            returned: VecDeque::new(),
            loading: None,
            readers: Vec::new(),
            readers_ever: 0,
            settings,
        };
        Self { kernel: Kernel::new(config, limits, first_epoch()), environment, armed: None, pause: 0 }
    }

    pub(super) fn handle_event(&mut self, event: Event<M, ShellTerms>, context: &mut Context<Self>) {
        self.kernel.handle(event, &mut ShellPort { environment: &mut self.environment, context });
        self.arm(context);
    }

    /// Notifies the kernel whenever the disk becomes sick or sound.
    fn watch_disk(&mut self, mut disk: watch::Receiver<DiskHealth>, context: &mut Context<Self>) {
        let sick = disk.borrow_and_update().reason().map(str::to_owned);
        if sick.as_deref() != self.kernel.sick() {
            self.handle_event(Event::Disk(sick), context);
        }
        let changed = async move { disk.changed().await.is_ok().then_some(disk) };
        context.spawn(wrap_future(changed).map(|disk, shell: &mut Self, context| {
            if let Some(disk) = disk {
                shell.watch_disk(disk, context);
            }
        }));
    }

    /// Postpones the timers that were set before a pause of the process by its length: the actor could not run meanwhile.
    fn postpone_timers(&mut self) {
        if let Some(pause) = pauses::latest().filter(|pause| pause.number > self.pause) {
            self.pause = pause.number;
            let set_by = self.environment.settings.clock.last_before(&pause);
            self.kernel.postpone_timers(set_by, pause.length());
        }
    }

    /// Wakes the kernel when its next timer is due.
    fn arm(&mut self, context: &mut Context<Self>) {
        let Some(next) = self.kernel.next_timer() else { return };
        match self.armed {
            Some((at, _)) if at <= next => return,
            Some((_, handle)) => {
                context.cancel_future(handle);
            }
            None => {}
        }
        let pause = next.since(self.environment.settings.clock.now());
        let handle = context.run_later(pause, |shell, context| {
            shell.armed = None;
            shell.postpone_timers();
            shell.handle_event(Event::TimersDue, context);
        });
        self.armed = Some((next, handle));
    }
}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> Actor for Shell<M, D, S> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.environment.store.open(context.address().recipient());
        if let Some(disk) = self.environment.store.disk() {
            self.watch_disk(disk.watch(), context);
        }
        self.kernel.begin(&mut ShellPort { environment: &mut self.environment, context });
    }
}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> Handler<Envelope<M>> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<M>, context: &mut Context<Self>) {
        let event = match envelope {
            Envelope::Ask { ask, reply, permit } => {
                Event::Asked { ask, asker: Asker { reply, permit: Some(permit) } }
            }
            Envelope::Stop(mode) => Event::StopRequested(mode),
            Envelope::Subscribe(reader) => Event::Subscribed(reader),
            Envelope::Resync => Event::Resync,
            Envelope::Describe => Event::Describe,
            Envelope::Drill(Drill::Crash) => Event::Crash("a drill"),
            Envelope::Drill(Drill::GiveUp) => Event::GiveUp("a drill"),
        };
        self.handle_event(event, context);
    }
}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> Handler<Returned<M>> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, Returned { number, outcome }: Returned<M>, context: &mut Context<Self>) {
        self.environment.calls.remove(&number);
        self.handle_event(Event::Returned { number, outcome }, context);
    }
}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> Handler<Settled> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, settled: Settled, context: &mut Context<Self>) {
        let Settled { epoch, through, outcome } = settled;
        let outcome = outcome.map_err(|error| error.to_string());
        self.handle_event(Event::Settled { epoch, through, outcome }, context);
    }
}
