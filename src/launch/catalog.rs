//! The catalog of plugins as a part of a host: it launches plugins briefly to ask for their identity.

use callboard_actors::catalog::{self, Catalog};

use super::options::Options;
use super::part::Part;
use crate::host::Host;

pub(super) fn part(host: &Host, options: &Options) -> Part<Catalog> {
    let options = options.catalog.clone();
    Part::new(host.catalog(), move |address, context| {
        catalog::start(address, context.host().processes().clone(), options.clone(), context.settings())
    })
    .after("processes")
}
