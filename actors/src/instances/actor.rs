//! The effect handler of the supervisor of instances: holds their actors.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{
    ChildEnded, InstanceReported, Instances, InstancesCall, InstancesNews, InstancesOptions,
    InstancesOutcome, RegistryItem,
};
use crate::csi::ListenerCheck;
use crate::instance::{self, Half, Instance, InstanceConfig, LookNow, Retire};
use crate::lease::Connections;
use crate::registry::{Registry, RegistryNews};
use crate::shell::{
    Address, AskError, Children, EffectHandler, FeedItem, Follower, Machine, NoStore, Running, Settings,
    Started, start as start_machine,
};
use crate::vocabulary::{Attempt, Generation, PluginKey};

/// The limit of messages in flight to one instance. Only its supervisor sends to it.
const INSTANCE_IN_FLIGHT_MAX: usize = 64;
/// The limit of queued calls to instances: enough to start an instance for every possible registration in one step.
const ORDERS_MAX: usize = 1 << 20;

/// Starts the supervisor of instances at a vacant address. Follows `registry`, which may start later. Instances share the
/// settings, keep their connections among `connections`, and talk only to listeners that `listeners` accepts.
pub fn start(
    address: &Address<Instances>,
    registry: Address<Registry>,
    options: InstancesOptions,
    connections: Connections,
    listeners: ListenerCheck,
    settings: Settings,
) -> Running {
    let handler = Handler {
        address: address.clone(),
        told: registry.clone(),
        registry: Follower::new("instances", registry),
        children: Children::default(),
        connections,
        listeners,
        settings: settings.clone(),
    };
    // Checks that hang must not delay the start of an instance.
    let calls_running_max = settings.calls_running_max.max(options.waiting_max.saturating_add(64));
    let settings = Settings { calls_running_max, calls_waiting_max: ORDERS_MAX, ..settings };
    start_machine(address, options, handler, NoStore, settings)
}

/// The plugin and generation of an instance.
type Served = (PluginKey, Generation);

struct Handler {
    address: Address<Instances>,
    registry: Follower<Registry>,
    children: Children<(Served, Address<Instance>), ChildEnded>,
    told: Address<Registry>,
    connections: Connections,
    listeners: ListenerCheck,
    settings: Settings,
}

impl EffectHandler<Instances> for Handler {
    fn call(&mut self, call: InstancesCall) -> Started<InstancesOutcome> {
        match call {
            InstancesCall::Follow { afresh } => return Started::Running(self.follow(afresh)),
            InstancesCall::AwaitEndings => {
                return Started::running(self.children.endings().map(InstancesOutcome::Ended));
            }
            InstancesCall::Look { life, .. } => return Started::Running(self.look(life)),
            InstancesCall::Describe => {
                let described = self.children.look(|life, child| {
                    let ((plugin, generation), address) = &child.address;
                    (life, (address.vitals(), self.connections.calls_of(plugin, *generation)))
                });
                return Started::Done(InstancesOutcome::Described(described));
            }
            InstancesCall::Report(report) => return Started::Running(sent(self.told.ask(report))),
            InstancesCall::Renew(renew) => return Started::Running(sent(self.told.ask(renew))),
            InstancesCall::Sweep => {
                self.children.kill_all();
                return Started::Done(InstancesOutcome::Swept(self.connections.had_instances()));
            }
            InstancesCall::Start { life, config } => self.start(life, *config),
            InstancesCall::Retire { life, cause } => {
                // An instance that has ended already is reported by its ending.
                let _ = self.children.with(life, |child| child.address.1.notify(Retire { cause }));
            }
            InstancesCall::Kill { life } => {
                self.children.with(life, |child| child.running.kill());
            }
        }
        Started::Done(InstancesOutcome::Done)
    }

    fn published(&mut self, news: &InstancesNews) {
        match news {
            InstancesNews::Expected(plugins) => {
                let plugins: Vec<String> = plugins.iter().map(ToString::to_string).collect();
                tracing::info!(
                    plugins = plugins.join(", "),
                    "waiting for plugins that were registered before"
                );
            }
            InstancesNews::Settled => tracing::info!("finished the search for plugins of earlier runs"),
            // Each instance logs its own reports.
            InstancesNews::Reported(_) | InstancesNews::Standby(_) | InstancesNews::Left(_) => {}
        }
    }
}

impl Handler {
    fn follow(&mut self, afresh: bool) -> LocalBoxFuture<'static, InstancesOutcome> {
        let followed = self.registry.follow(afresh);
        Box::pin(async move {
            let followed = followed.await;
            followed.iter().flatten().for_each(log_others);
            InstancesOutcome::Followed(followed)
        })
    }

    fn start(&mut self, life: Attempt, config: InstanceConfig) {
        let (plugin, allocation) = (config.plugin.clone(), config.allocation.clone());
        let served = (plugin.clone(), config.generation);
        let name = format!("instance {plugin} of {allocation}");
        let address = Address::vacant(name, INSTANCE_IN_FLIGHT_MAX);
        let parent = self.address.clone();
        let told = move |report: &_| {
            // A parent that has ended has killed its instances.
            let _ = parent.notify(InstanceReported { life, report: Clone::clone(report) });
        };
        let (connections, listeners) = (self.connections.clone(), self.listeners.clone());
        connections.instance_started();
        let running = instance::start(&address, config, connections, listeners, told, self.settings.clone());
        let ended = move |ending| ChildEnded { plugin, allocation, life, ending };
        self.children.hold(life, (served, address), running, ended);
    }

    fn look(&self, life: Attempt) -> LocalBoxFuture<'static, InstancesOutcome> {
        let asked = self.children.with(life, |child| child.address.1.ask(LookNow));
        Box::pin(async move {
            InstancesOutcome::Looked(match asked {
                Some(asked) => asked.await,
                None => Err(AskError::NotRunning { actor: Instance::KIND.to_owned() }),
            })
        })
    }
}

fn sent(
    taken: impl Future<Output = Result<(), AskError>> + 'static,
) -> LocalBoxFuture<'static, InstancesOutcome> {
    taken.map(InstancesOutcome::Sent).boxed_local()
}

/// News about plugins without instances are skipped, but logged.
fn log_others(item: &RegistryItem) {
    let FeedItem::Change { news: RegistryNews::ActiveChanged { plugin, .. }, .. } = item else { return };
    if Half::of(plugin.plugin_type).is_none() {
        tracing::debug!(%plugin, "plugins of this type have no instances here");
    }
}
