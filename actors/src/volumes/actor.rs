//! The effect handler of the owner of the volumes: holds their actors.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::reads;
use super::{ChildEnded, VolumeReported, Volumes, VolumesCall, VolumesConfig, VolumesNews, VolumesOutcome};
use crate::instances::Instances;
use crate::shell::{
    Address, AskError, Children, EffectHandler, Follower, Machine, Message, Running, Settings, Started,
    Store, start as start_machine,
};
use crate::vocabulary::{Attempt, PluginName};
use crate::volume::{
    self, Forced, Route, RouteChanged, Shared, Volume, VolumeAnswer, VolumeAsk, VolumeConfig, VolumeKey,
};

/// The limit of running and queued calls: one for each caller that waits for a volume, since none may delay another.
const CALLS_MAX: usize = 1 << 20;
/// The limit of messages in flight to one volume. Only its owner sends to it, and bounds the number.
const VOLUME_IN_FLIGHT_MAX: usize = 4_096;

/// Starts the owner of the volumes at a vacant address. Follows `instances`, which may start later. Each incarnation of a volume's actor
/// gets the store that `ledgers` makes for its key and number, and the same settings. Pass the same `shared` when the owner is restarted.
pub fn start<S: Store<Volume>>(
    address: &Address<Volumes>,
    instances: Address<Instances>,
    config: VolumesConfig,
    shared: Shared,
    store: impl Store<Volumes>,
    ledgers: impl Fn(&VolumeKey, Attempt) -> S + 'static,
    settings: Settings,
) -> Running {
    let handler = Handler {
        address: address.clone(),
        instances: Follower::new("volumes", instances),
        children: Children::default(),
        shared,
        ledgers,
        settings: settings.clone(),
    };
    let settings = Settings { calls_running_max: CALLS_MAX, calls_waiting_max: CALLS_MAX, ..settings };
    start_machine(address, config, handler, store, settings)
}

struct Handler<L> {
    address: Address<Volumes>,
    instances: Follower<Instances>,
    /// The actor of a volume, and its plugin.
    children: Children<(PluginName, Address<Volume>), ChildEnded>,
    shared: Shared,
    ledgers: L,
    settings: Settings,
}

impl<S: Store<Volume>, L: Fn(&VolumeKey, Attempt) -> S + 'static> EffectHandler<Volumes> for Handler<L> {
    fn call(&mut self, call: VolumesCall) -> Started<VolumesOutcome> {
        match call {
            VolumesCall::Follow { afresh } => {
                return Started::running(self.instances.follow(afresh).map(VolumesOutcome::Followed));
            }
            VolumesCall::AwaitEndings => {
                return Started::running(self.children.endings().map(VolumesOutcome::Ended));
            }
            VolumesCall::Ask { life, ask } => return Started::Running(self.ask(life, ask)),
            VolumesCall::Read(read) => {
                return Started::running(reads::read(self.shared.clone(), *read).map(VolumesOutcome::Found));
            }
            VolumesCall::Sweep => {
                self.children.kill_all();
                self.shared.routes().clear();
            }
            VolumesCall::Start { life, config } => self.start(life, *config),
            VolumesCall::SetRoute { plugin, route } => self.set_route(plugin, &route),
            VolumesCall::Stop { life, mode } => {
                self.children.with(life, |child| child.running.request_stop(mode));
            }
            VolumesCall::Kill { life } => {
                self.children.with(life, |child| child.running.kill());
            }
        }
        Started::Done(VolumesOutcome::Done)
    }

    fn published(&mut self, news: &VolumesNews) {
        match news {
            VolumesNews::ClaimFailed { volume, allocation, reason } => {
                tracing::error!(%volume, %allocation, error = reason, "a claim failed and is being undone");
            }
            VolumesNews::OrderFailed { volume, what, reason } => {
                tracing::error!(%volume, order = what, error = reason, "an order failed and is not retried");
            }
            VolumesNews::Forced(Forced { volume, reason, left, .. }) => {
                let left = left.join(", ");
                tracing::warn!(%volume, reason, left, "a volume was released by force");
            }
            // Each volume logs its own changes.
            VolumesNews::Changed(_) | VolumesNews::Forgotten(_) => {}
        }
    }
}

impl<S: Store<Volume>, L: Fn(&VolumeKey, Attempt) -> S> Handler<L> {
    fn start(&mut self, life: Attempt, config: VolumeConfig) {
        let (key, plugin) = (config.spec.key.clone(), config.spec.plugin.clone());
        let address = Address::vacant(format!("volume {key}"), VOLUME_IN_FLIGHT_MAX);
        let seed = self.settings.seed.map(|seed| seed.wrapping_add(life.get()));
        let settings = Settings { seed, ..self.settings.clone() };
        let (parent, volume) = (self.address.clone(), key.clone());
        let told = move |news: &_| {
            // An owner that has ended has killed its children.
            let _ = parent.notify(VolumeReported { volume: volume.clone(), life, news: Clone::clone(news) });
        };
        let store = (self.ledgers)(&key, life);
        let running = volume::start(&address, config, self.shared.clone(), store, told, settings);
        let ended = move |ending| ChildEnded { volume: key, life, ending };
        self.children.hold(life, (plugin, address), running, ended);
    }
}

impl<L> Handler<L> {
    /// Keeps a route, and sends it to the volumes of its plugin.
    fn set_route(&self, plugin: PluginName, route: &Route) {
        let of_plugin: Vec<Option<Address<Volume>>> = self.children.look(|_, child| {
            let (its_plugin, address) = &child.address;
            (*its_plugin == plugin).then(|| address.clone())
        });
        self.shared.routes().set(plugin, route.clone());
        for address in of_plugin.into_iter().flatten() {
            // An actor that has ended is reported by its ending.
            let _ = address.notify(RouteChanged { route: route.clone() });
        }
    }

    fn ask(&self, life: Attempt, ask: VolumeAsk) -> LocalBoxFuture<'static, VolumesOutcome> {
        // It is sent synchronously, so that messages arrive in the order of the calls.
        let answer = self.children.with(life, |child| hand_in(&child.address.1, ask));
        Box::pin(async move {
            VolumesOutcome::Answered(match answer {
                Some(answer) => answer.await,
                None => Err(AskError::NotRunning { actor: Volume::KIND.to_owned() }),
            })
        })
    }
}

type Answering = LocalBoxFuture<'static, Result<VolumeAnswer, AskError>>;

fn hand_in(address: &Address<Volume>, ask: VolumeAsk) -> Answering {
    match ask {
        VolumeAsk::CreateVolume(asked) => sent(address, asked, VolumeAnswer::CreateVolume),
        VolumeAsk::DeleteVolume(asked) => sent(address, asked, VolumeAnswer::DeleteVolume),
        VolumeAsk::AllowDeletion(asked) => sent(address, asked, VolumeAnswer::AllowDeletion),
        VolumeAsk::Disown(asked) => sent(address, asked, VolumeAnswer::Disown),
        VolumeAsk::PlaceOrder(asked) => sent(address, asked, VolumeAnswer::PlaceOrder),
        VolumeAsk::Claim(asked) => sent(address, asked, VolumeAnswer::Claim),
        VolumeAsk::Release(asked) => sent(address, asked, VolumeAnswer::Release),
        VolumeAsk::ConfirmClaims(asked) => sent(address, asked, VolumeAnswer::ConfirmClaims),
        VolumeAsk::PrepareForce(asked) => sent(address, asked, VolumeAnswer::PrepareForce),
        VolumeAsk::ForceRelease(asked) => sent(address, asked, VolumeAnswer::ForceRelease),
        VolumeAsk::RouteChanged(asked) => sent(address, asked, VolumeAnswer::RouteChanged),
        VolumeAsk::DescribeVolume(asked) => sent(address, asked, VolumeAnswer::DescribeVolume),
    }
}

fn sent<Q: Message<Volume>>(
    address: &Address<Volume>,
    asked: Q,
    wrap: fn(Q::Reply) -> VolumeAnswer,
) -> Answering {
    address.ask(asked).map(move |answer| answer.map(wrap)).boxed_local()
}
