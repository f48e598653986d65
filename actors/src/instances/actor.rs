//! What the supervisor of the instances does: it holds their actors.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use tokio::sync::{Mutex, mpsc};

use super::messages::{InstanceReported, InstancesNews};
use super::state::{ChildEnded, Instances, InstancesCall, InstancesOptions, InstancesOutcome, RegistryItem};
use crate::instance::{self, Half, Instance, InstanceConfig, LookNow, Retire};
use crate::registry::{Registry, RegistryNews};
use crate::shell::{
    Address, AskError, Doing, FeedItem, Follower, Machine, NoStore, Running, Settings, start as start_machine,
};
use crate::vocabulary::Attempt;

/// How many messages may be in flight to one instance. Only its supervisor talks to it.
const INSTANCE_IN_FLIGHT_MAX: usize = 64;
/// How many orders to instances may wait to be carried out: enough to start as many instances as there may be
/// registrations in one step.
const ORDERS_MAX: usize = 1 << 20;

/// Starts the supervisor of the instances and gives it a seat at a vacant address. It follows `registry`, whether that runs
/// already or comes later. The instances get the same settings.
pub fn start(
    address: &Address<Instances>,
    registry: Address<Registry>,
    options: InstancesOptions,
    settings: Settings,
) -> Running {
    let (ended, endings) = mpsc::unbounded_channel();
    let hands = Hands {
        address: address.clone(),
        registry: Follower::new(registry),
        children: Rc::default(),
        settings: settings.clone(),
        ended,
        endings: Rc::new(Mutex::new(endings)),
    };
    // A look that hangs may keep nobody's instance from being started.
    let calls_running_max = settings.calls_running_max.max(options.waiting_max.saturating_add(64));
    let settings = Settings { calls_running_max, calls_waiting_max: ORDERS_MAX, ..settings };
    start_machine(address, options, hands, NoStore, settings)
}

/// The actor of one instance.
struct Held {
    address: Address<Instance>,
    running: Running,
}

/// The actors that have not ended, by the life of their instance.
type Children = Rc<RefCell<HashMap<Attempt, Held>>>;

struct Hands {
    address: Address<Instances>,
    registry: Follower<Registry>,
    children: Children,
    settings: Settings,
    ended: mpsc::UnboundedSender<ChildEnded>,
    endings: Rc<Mutex<mpsc::UnboundedReceiver<ChildEnded>>>,
}

impl Doing<Instances> for Hands {
    fn call(&mut self, call: InstancesCall) -> LocalBoxFuture<'static, InstancesOutcome> {
        match call {
            InstancesCall::Follow { afresh } => return self.follow(afresh),
            InstancesCall::AwaitEndings => return self.await_endings(),
            InstancesCall::Look { life, .. } => return self.look(life),
            InstancesCall::Describe => {
                let children = self.children.borrow();
                let vitals = children.iter().map(|(life, held)| (*life, held.address.vitals()));
                return ready(InstancesOutcome::Described(vitals.collect()));
            }
            InstancesCall::Sweep => self.kill_all(),
            InstancesCall::Start { life, config } => self.start(life, *config),
            InstancesCall::Retire { life } => {
                if let Some(held) = self.children.borrow().get(&life) {
                    // One that has ended already is heard of by its ending.
                    let _ = held.address.notify(Retire);
                }
            }
            InstancesCall::Kill { life } => {
                if let Some(held) = self.children.borrow().get(&life) {
                    held.running.kill();
                }
            }
        }
        ready(InstancesOutcome::Done)
    }

    fn published(&mut self, news: &InstancesNews) {
        match news {
            InstancesNews::Expected(plugins) => {
                let plugins: Vec<String> = plugins.iter().map(ToString::to_string).collect();
                tracing::info!(?plugins, "plugins registered before are awaited");
            }
            InstancesNews::Settled => tracing::info!("every plugin registered before is known by now"),
            // Each instance logs for itself.
            InstancesNews::Reported(_) | InstancesNews::Left(_) => {}
        }
    }
}

impl Hands {
    fn follow(&mut self, afresh: bool) -> LocalBoxFuture<'static, InstancesOutcome> {
        let followed = self.registry.follow(afresh);
        Box::pin(async move {
            let followed = followed.await;
            followed.iter().flatten().for_each(log_others);
            InstancesOutcome::Followed(followed)
        })
    }

    fn start(&mut self, life: Attempt, config: InstanceConfig) {
        let plugin = config.plugin.clone();
        let address = Address::vacant(format!("instance {plugin}"), INSTANCE_IN_FLIGHT_MAX);
        let parent = self.address.clone();
        let told = move |report: &_| {
            // A parent that has ended takes its instances with it.
            let _ = parent.notify(InstanceReported { life, report: Clone::clone(report) });
        };
        let running = instance::start(&address, config, told, self.settings.clone());
        let (ended, ending, children) = (self.ended.clone(), running.ended(), Rc::clone(&self.children));
        self.children.borrow_mut().insert(life, Held { address, running });
        actix_rt::spawn(async move {
            let ending = ending.await;
            children.borrow_mut().remove(&life);
            // Nobody listens any more when the supervisor has ended.
            let _ = ended.send(ChildEnded { plugin, life, ending });
        });
    }

    fn await_endings(&self) -> LocalBoxFuture<'static, InstancesOutcome> {
        let endings = Rc::clone(&self.endings);
        Box::pin(async move {
            let mut endings = endings.lock().await;
            let mut all = Vec::new();
            all.extend(endings.recv().await);
            all.extend(std::iter::from_fn(|| endings.try_recv().ok()));
            InstancesOutcome::Ended(all)
        })
    }

    fn look(&self, life: Attempt) -> LocalBoxFuture<'static, InstancesOutcome> {
        let asked = self.children.borrow().get(&life).map(|held| held.address.ask(LookNow));
        Box::pin(async move {
            InstancesOutcome::Looked(match asked {
                Some(asked) => asked.await,
                None => Err(AskError::NotRunning { actor: Instance::KIND.to_owned() }),
            })
        })
    }

    fn kill_all(&self) {
        for held in self.children.borrow().values() {
            held.running.kill();
        }
    }
}

impl Drop for Hands {
    /// No instance outlives its supervisor, however that ends (S4).
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn ready(outcome: InstancesOutcome) -> LocalBoxFuture<'static, InstancesOutcome> {
    Box::pin(std::future::ready(outcome))
}

/// Word of plugins that have no instances is passed over, but not in silence.
fn log_others(item: &RegistryItem) {
    let FeedItem::Change { news: RegistryNews::ActiveChanged { plugin, .. }, .. } = item else { return };
    if Half::of(plugin.plugin_type).is_none() {
        tracing::debug!(%plugin, "plugins of this type have no instances here");
    }
}
