//! Tells the news of any actor, one by one, in the order in which they left.

use std::any::Any;

use callboard_actors::registry::RegistryView;

use super::allocations::AllocationsTeller;
use super::drivers::DriversTeller;
use super::instances::InstancesTeller;
use super::inventory::InventoryTeller;
use super::line::Line;
use super::registry::RegistryTeller;
use super::retell::Retell;

/// Retells what the actors of a host say, for one who hears them all in order.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    registry: RegistryTeller,
    instances: InstancesTeller,
    inventory: InventoryTeller,
    allocations: AllocationsTeller,
    drivers: DriversTeller,
}

impl Teller {
    /// Takes in what the registry holds, and tells what of it is worth a line.
    pub(crate) fn begin(&mut self, view: &RegistryView) -> Vec<Line> {
        self.registry.begin(view).into_iter().map(|(_, line)| line).collect()
    }

    /// Tells one piece of news, of whatever actor it is. Nothing is told of others.
    pub(crate) fn tell(&mut self, news: &dyn Any) -> Vec<Line> {
        let told = tell(&mut self.registry, news)
            .or_else(|| tell(&mut self.instances, news))
            .or_else(|| tell(&mut self.inventory, news))
            .or_else(|| tell(&mut self.allocations, news))
            .or_else(|| tell(&mut self.drivers, news));
        told.unwrap_or_default()
    }
}

fn tell<R: Retell<News: 'static>>(teller: &mut R, news: &dyn Any) -> Option<Vec<Line>> {
    let lines = teller.retell(news.downcast_ref()?);
    Some(lines.into_iter().map(|(_, line)| line).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::registry::{Entry, Standing};
    use callboard_actors::vocabulary::{
        AllocationId, PluginKey, PluginName, PluginType, Registration, RegistrationNumber, SocketPath,
        Timestamp,
    };

    use super::*;

    #[test]
    fn what_was_found_on_disk_is_told_at_the_beginning() {
        let registration = Registration {
            plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
            allocation: AllocationId::new("a").unwrap(),
            socket: SocketPath::new("/run/a.sock").unwrap(),
            provider: None,
            version: None,
            options: Arc::default(),
        };
        let entry = Entry {
            number: RegistrationNumber::new(1),
            registration: Arc::new(registration),
            standing: Standing::Provisional,
            since: Timestamp::default(),
        };
        let lines = Teller::default().begin(&RegistryView { entries: vec![entry], active: vec![] });
        let told: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
        assert_eq!(told, ["restored in its place, not confirmed yet"]);
    }
}
