//! Subscribers of the script.

use super::super::readers::Read;
use super::{Entry, Mistake, Stage, Words};

pub(super) const VERBS: &[Entry] = &[
    (
        "subscribe NAME registry|instances|inventory|allocations|drivers|processes|volumes [capacity=NUMBER]",
        subscribe,
    ),
    ("read NAME [items=NUMBER]", read),
    ("unsubscribe NAME", unsubscribe),
];

/// The queue capacity of a subscriber unless its line sets another.
const CAPACITY: u32 = 64;

#[derive(Clone, Copy)]
enum Of {
    Registry,
    Instances,
    Inventory,
    Allocations,
    Drivers,
    Processes,
    Volumes,
}

fn subscribe(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the subscriber")?;
    let choices = [
        ("registry", Of::Registry),
        ("instances", Of::Instances),
        ("inventory", Of::Inventory),
        ("allocations", Of::Allocations),
        ("drivers", Of::Drivers),
        ("processes", Of::Processes),
        ("volumes", Of::Volumes),
    ];
    let of = words.one_of("whose news", &choices)?;
    let capacity = words.number("capacity")?.unwrap_or(CAPACITY) as usize;
    let host = stage.host()?;
    let readers = &mut stage.readers;
    let subscribed = match of {
        Of::Registry => readers.subscribe(name, host.registry(), capacity, |view| view.entries.len()),
        Of::Instances => readers.subscribe(name, host.instances(), capacity, |view| view.reports.len()),
        Of::Inventory => readers.subscribe(name, host.inventory(), capacity, |view| view.offers.len()),
        Of::Allocations => {
            readers.subscribe(name, host.allocations(), capacity, |view| view.allocations.len())
        }
        Of::Drivers => readers.subscribe(name, host.drivers(), capacity, |view| view.reports.len()),
        Of::Processes => readers.subscribe(name, host.processes(), capacity, |view| view.reports.len()),
        Of::Volumes => readers.subscribe(name, host.volumes(), capacity, |view| view.volumes.len()),
    };
    if let Err(error) = subscribed {
        stage.record.answer(error.to_string());
    }
    Ok(())
}

fn read(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the subscriber")?;
    let items = words.number("items")?.unwrap_or(u32::MAX);
    for count in 0..items {
        let read = stage
            .readers
            .next(name)
            .ok_or_else(|| Mistake::new(format!("there is no subscriber {name:?}; `subscribe` it before")))?;
        match read {
            Read::Line(line) => stage.record.answer(line),
            Read::Nothing => {
                if count == 0 {
                    stage.record.answer("nothing to read".to_owned());
                }
                break;
            }
        }
    }
    Ok(())
}

fn unsubscribe(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the subscriber")?;
    if stage.readers.end(name) {
        Ok(())
    } else {
        Err(Mistake::new(format!("there is no subscriber {name:?}")))
    }
}
