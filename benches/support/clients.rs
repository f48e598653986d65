//! Closed-loop clients: each registers its allocation, waits for the answer, deregisters it, waits, and so on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use callboard_actors::registry::{Deregister, Deregistered, LeaveCause, Register, Registered, Registry};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};
use rustix::time::{ClockId, clock_gettime};

use super::bare::{Bare, Carried};
use super::curve::{Stretch, nanos};

/// The plugin of a client, or of a held registration.
pub(crate) fn plugin(name: impl AsRef<str>) -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new(name).expect("the benches choose good names"))
}

/// A registration like that of a CSI plugin's allocation.
pub(crate) fn registration(plugin: PluginKey, allocation: &str) -> Register {
    Register {
        policy: None,
        plugins: vec![plugin],
        allocation: AllocationId::new(allocation).expect("the benches choose good ids"),
        socket: SocketPath::new(format!("/var/lib/callboard/csi/plugins/{allocation}/csi.sock"))
            .expect("the benches choose short ids"),
        provider: Some("hostpath.csi.callboard.dev".into()),
        version: Some("1.0.0".into()),
        options: Arc::new(BTreeMap::new()),
    }
}

/// The matching deregistration.
pub(crate) fn departure(register: &Register) -> Deregister {
    Deregister {
        plugins: register.plugins.clone(),
        allocation: register.allocation.clone(),
        cause: LeaveCause::Stopped,
    }
}

/// An actor that accepts registrations: the registry, or one that only answers.
pub(crate) trait RegistryClient: Clone + 'static {
    async fn register(&self, message: Register);
    async fn deregister(&self, message: Deregister);
}

impl RegistryClient for Address<Registry> {
    async fn register(&self, message: Register) {
        let answer = self.ask(message).await.expect("the registry runs");
        assert_eq!(answer, Ok(Registered::New));
    }

    async fn deregister(&self, message: Deregister) {
        let answer = self.ask(message).await.expect("the registry runs");
        assert!(matches!(answer, Deregistered::Removed(_)));
    }
}

impl RegistryClient for Addr<Bare> {
    async fn register(&self, message: Register) {
        let answer = self.send(Carried(message)).await.expect("the actor runs");
        assert_eq!(answer, Ok(Registered::New));
    }

    async fn deregister(&self, message: Deregister) {
        let answer = self.send(Carried(message)).await.expect("the actor runs");
        assert!(matches!(answer, Deregistered::Removed(_)));
    }
}

/// The result of a closed loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Laps {
    /// The number of messages answered.
    pub(crate) messages: u64,
    /// The wall-clock time.
    pub(crate) took: Duration,
    /// The CPU time of this thread: the cost on an idle machine, if one thread does all work and never waits.
    pub(crate) busy: Duration,
}

/// One client that is not a task: the caller asks, waits, and asks again.
pub(crate) async fn asks(registry: &impl RegistryClient, client: &Register, pairs: u64) -> Laps {
    let (begun, busy_before) = (Instant::now(), thread_time());
    take_turns(registry, client, pairs).await;
    Laps { messages: 2 * pairs, took: begun.elapsed(), busy: thread_time() - busy_before }
}

/// Clients as tasks on the arbiter. Each sends `pairs_each` pairs of messages, one message at a time.
pub(crate) async fn closed_loop(
    registry: &impl RegistryClient,
    clients: &[Register],
    pairs_each: u64,
) -> Laps {
    let (begun, busy_before) = (Instant::now(), thread_time());
    let running: Vec<_> = clients
        .iter()
        .map(|client| {
            let (registry, client) = (registry.clone(), client.clone());
            actix_rt::spawn(async move { take_turns(&registry, &client, pairs_each).await })
        })
        .collect();
    for client in running {
        client.await.expect("no client fails");
    }
    let messages = 2 * pairs_each * u64::try_from(clients.len()).expect("few clients");
    Laps { messages, took: begun.elapsed(), busy: thread_time() - busy_before }
}

async fn take_turns(registry: &impl RegistryClient, client: &Register, pairs: u64) {
    for _ in 0..pairs {
        registry.register(client.clone()).await;
        registry.deregister(departure(client)).await;
    }
}

/// Every how many messages a client measures the latency: an odd number, so that both kinds of messages are measured.
const TIMED_EVERY: u64 = 7;

/// The same clients, each measuring the latency of some messages. A single client is the program's main future.
pub(crate) async fn timed_loop(
    registry: &impl RegistryClient,
    clients: &[Register],
    pairs_each: u64,
) -> Stretch {
    let begun = Instant::now();
    let latencies = match clients {
        [client] => take_timed_turns(registry, client, pairs_each).await,
        _ => {
            let running: Vec<_> = clients
                .iter()
                .map(|client| {
                    let (registry, client) = (registry.clone(), client.clone());
                    actix_rt::spawn(async move { take_timed_turns(&registry, &client, pairs_each).await })
                })
                .collect();
            let mut latencies = Vec::new();
            for client in running {
                latencies.extend(client.await.expect("no client fails"));
            }
            latencies
        }
    };
    let messages = 2 * pairs_each * u64::try_from(clients.len()).expect("few clients");
    Stretch::new(messages, begun.elapsed(), latencies.into_iter().collect())
}

async fn take_timed_turns(registry: &impl RegistryClient, client: &Register, pairs: u64) -> Vec<f64> {
    let mut latencies = Vec::with_capacity((2 * pairs / TIMED_EVERY + 1) as usize);
    for message in 0..2 * pairs {
        let asked = message.is_multiple_of(TIMED_EVERY).then(Instant::now);
        if message.is_multiple_of(2) {
            registry.register(client.clone()).await;
        } else {
            registry.deregister(departure(client)).await;
        }
        latencies.extend(asked.map(|asked| nanos(asked.elapsed())));
    }
    latencies
}

/// The CPU time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("it never runs backwards");
    Duration::new(seconds, u32::try_from(time.tv_nsec).expect("it is below a second"))
}

/// Clients distributed over these plugins, in addition to those that serve them already.
pub(crate) fn among(plugins: &[PluginKey], count: usize) -> Vec<Register> {
    let plugins = plugins.iter().cycle().take(count).enumerate();
    plugins.map(|(n, plugin)| registration(plugin.clone(), &format!("client-{n}"))).collect()
}

/// Clients with one plugin each.
pub(crate) fn apart(count: usize) -> Vec<Register> {
    (0..count).map(|n| registration(plugin(format!("plugin-{n}")), &format!("client-{n}"))).collect()
}
