//! The inventory as a part of a host.

use callboard_actors::inventory::{self, Inventory};

use super::options::Options;
use super::part::Part;
use crate::host::Host;

pub(super) fn part(host: &Host, options: &Options) -> Part<Inventory> {
    let options = options.inventory;
    Part::new(host.inventory(), move |address, context| {
        let (instances, drivers) = (context.host().instances().clone(), context.host().drivers().clone());
        inventory::start(address, instances, Some(drivers), options, context.settings())
    })
    .after("instances")
    .after("drivers")
}
