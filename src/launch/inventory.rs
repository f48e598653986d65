//! The inventory as a part of a host.

use callboard_actors::inventory::{self, Besides, Inventory, InventoryOptions};
use callboard_actors::shell::Clock;

use super::options::Options;
use super::part::Part;
use crate::host::Host;

pub(super) fn part(host: &Host, options: &Options) -> Part<Inventory> {
    let clock = options.clock.unwrap_or_else(Clock::system);
    let probings = options.probings.clone();
    let mut options = InventoryOptions { probings, ..options.inventory.clone() };
    options.expected_until = clock.now() + options.first_wait;
    Part::new(host.inventory(), move |address, context| {
        let host = context.host();
        let besides = Besides {
            drivers: Some(host.drivers().clone()),
            allocations: Some(host.allocations().clone()),
            volumes: Some(host.volumes().clone()),
        };
        inventory::start(address, host.instances().clone(), besides, options.clone(), context.settings())
    })
    .after("instances")
    .after("drivers")
    // So that it receives the news of each allocation.
    .after("allocations")
}
