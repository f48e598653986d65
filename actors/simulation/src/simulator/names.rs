//! The names of a host: plugins and allocations by number.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::registry::{Deregister, LeaveCause, Register};
use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};

/// Plugins come in pairs: the controller half has an even number, the node half the next odd one.
#[derive(Debug, Clone)]
pub(in super::super) struct Names {
    plugins: Vec<PluginKey>,
    numbers: BTreeMap<PluginKey, u32>,
    allocations: Vec<AllocationId>,
}

/// One allocation in this many is a monolith, and one a controller; all others are nodes.
const MONOLITHS: u32 = 4;
const CONTROLLERS: u32 = 5;

impl Names {
    pub(super) fn new(plugins: u32, allocations: u32) -> Self {
        let name =
            |number: u32| PluginName::new(format!("p{number}")).expect("a letter and digits are a name");
        let both = [PluginType::CsiController, PluginType::CsiNode];
        let plugins: Vec<PluginKey> =
            (0..plugins).flat_map(|number| both.map(|kind| PluginKey::new(kind, name(number)))).collect();
        let numbers = (0..).zip(&plugins).map(|(number, plugin)| (plugin.clone(), number)).collect();
        let id =
            |number: u32| AllocationId::new(format!("a{number}")).expect("a letter and digits are a name");
        Self { plugins, numbers, allocations: (0..allocations).map(id).collect() }
    }

    pub(in super::super) fn allocations(&self) -> u32 {
        u32::try_from(self.allocations.len()).unwrap_or(u32::MAX)
    }

    /// How many plugins there are, each half counted.
    pub(super) fn halves(&self) -> u32 {
        u32::try_from(self.plugins.len()).unwrap_or(u32::MAX)
    }

    pub(in super::super) fn plugin(&self, number: u32) -> PluginKey {
        self.plugins[number as usize % self.plugins.len()].clone()
    }

    pub(in super::super) fn plugin_number(&self, plugin: &PluginKey) -> u32 {
        self.numbers.get(plugin).copied().unwrap_or(0)
    }

    /// The number of a registration: the number of its plugin combined with that of its allocation.
    pub(super) fn number_of(&self, (plugin, allocation): &(PluginKey, AllocationId)) -> u32 {
        let plugin = self.plugin_number(plugin);
        let digits = allocation.as_str().trim_start_matches('a');
        plugin * self.allocations() + digits.parse::<u32>().unwrap_or(0)
    }

    /// The registration with this number.
    pub(super) fn place(&self, number: u32) -> (PluginKey, AllocationId) {
        (self.plugin(number / self.allocations().max(1)), self.allocation(number % self.allocations().max(1)))
    }

    pub(in super::super) fn allocation(&self, number: u32) -> AllocationId {
        self.allocations[number as usize % self.allocations.len()].clone()
    }

    /// The plugins that an allocation serves.
    pub(in super::super) fn served_by(&self, number: u32) -> Vec<PluginKey> {
        let pair = number % (self.halves() / 2) * 2;
        let turn = number / (self.halves() / 2);
        match turn {
            _ if turn % MONOLITHS == MONOLITHS - 1 => vec![self.plugin(pair), self.plugin(pair + 1)],
            _ if turn % CONTROLLERS == CONTROLLERS - 1 => vec![self.plugin(pair)],
            _ => vec![self.plugin(pair + 1)],
        }
    }

    pub(super) fn registering(&self, number: u32, kind: u8) -> Register {
        let provider = format!("p{}.example", number % (self.halves() / 2));
        Register {
            policy: None,
            plugins: self.served_by(number),
            allocation: self.allocation(number),
            socket: SocketPath::new(format!("/run/a{number}-{kind}.sock")).expect("it is short and absolute"),
            // Some plugins do not report their name, and so cannot be proven after a restart.
            provider: (number % 7 != 6).then(|| provider.into()),
            version: None,
            options: Arc::default(),
        }
    }

    pub(super) fn deregistering(&self, number: u32) -> Deregister {
        Deregister {
            plugins: self.served_by(number),
            allocation: self.allocation(number),
            cause: LeaveCause::Stopped,
        }
    }
}
