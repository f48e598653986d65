//! The registry as a part of a host: it is ready when it has read its records and answers.

use callboard_actors::registry::{self, DurableStore, List, Registry, SocketCheck};

use super::options::Options;
use super::part::Part;
use crate::host::Host;

pub(super) fn part(host: &Host, options: &Options) -> Part<Registry> {
    let options = options.registry.clone();
    Part::remembering(host.registry(), move |address, context| {
        let (address, options, settings) = (address.clone(), options.clone(), context.settings());
        let store = DurableStore::new(context.host().own_database());
        move || {
            let check = SocketCheck { deadline: options.check_deadline };
            Ok(registry::start(&address, options.clone(), check, store.clone(), settings.clone()))
        }
    })
    .after("persister")
    .ready_when(|| List)
}
