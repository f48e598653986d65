//! All verbs of scripts, one per line.

mod allocations;
mod drivers;
mod host;
mod instances;
mod leases;
mod networks;
mod orders;
mod plugins;
mod registry;
mod sessions;
mod subscribers;
mod tasks;
mod volumes;
mod world;

use std::collections::BTreeMap;

use super::player::Verb;
use super::stage::Stage;
use super::words::{Mistake, Words};

type Plain = fn(&mut Stage, &mut Words<'_>) -> Result<(), Mistake>;

/// The form of a verb's line, and the action of the verb. The verb is the first word.
type Entry = (&'static str, Plain);

/// The verbs during which time passes.
const TAKE_TIME: [&str; 1] = ["pass"];

/// All verbs by name.
pub(super) fn all() -> BTreeMap<String, Verb> {
    let tables = [
        registry::VERBS,
        instances::VERBS,
        leases::VERBS,
        allocations::VERBS,
        drivers::VERBS,
        tasks::VERBS,
        sessions::VERBS,
        networks::VERBS,
        subscribers::VERBS,
        host::VERBS,
        plugins::VERBS,
        volumes::VERBS,
        orders::VERBS,
        world::VERBS,
    ];
    let verbs = tables.into_iter().flatten().map(|(usage, play)| {
        let name = usage.split(' ').next().unwrap_or_default();
        let takes_time = TAKE_TIME.contains(&name);
        (name.to_owned(), Verb { usage: (*usage).to_owned(), takes_time, play: Box::new(*play) })
    });
    verbs.collect()
}
