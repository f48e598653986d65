//! A registry and the supervisor of the instances, as a host starts them.

use std::time::Duration;

use callboard_actors::csi::ListenerCheck;
use callboard_actors::instances::{self, Instances, InstancesOptions, Leases};
use callboard_actors::lease::Connections;
use callboard_actors::registry::{self, MemoryStore, Registry, RegistryOptions};
use callboard_actors::shell::{Address, IN_FLIGHT_MAX, Settings, StopMode};

use super::rig::NoAnswer;

/// A timeout longer than any dial or call, with the most concurrency in a bench.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A registry and the supervisor of the instances. Plugins are only probed on request, unless a round is given.
pub(crate) struct Stage {
    pub(crate) registry: Address<Registry>,
    pub(crate) instances: Address<Instances>,
    pub(crate) leases: Leases,
}

impl Stage {
    pub(crate) fn start() -> Self {
        Self::probing(Duration::from_secs(3_600))
    }

    /// With this pause between two probes of a plugin.
    pub(crate) fn probing(round: Duration) -> Self {
        let registry = Address::vacant("registry", IN_FLIGHT_MAX);
        let store = MemoryStore::default();
        registry::start(&registry, RegistryOptions::default(), NoAnswer, store, Settings::default());
        let instances = Address::vacant("instances", IN_FLIGHT_MAX);
        let mut options = InstancesOptions::default();
        options.limits.call_deadline = TIMEOUT;
        options.limits.round = round;
        let connections = Connections::default();
        let leases = Leases::new(instances.clone(), connections.clone());
        instances::start(
            &instances,
            registry.clone(),
            options,
            connections,
            ListenerCheck::default(),
            Settings::default(),
        );
        Self { registry, instances, leases }
    }

    pub(crate) fn end(self) {
        self.instances.request_stop(StopMode::Stop).expect("it runs");
        self.registry.request_stop(StopMode::Stop).expect("it runs");
    }
}
