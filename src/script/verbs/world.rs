//! Time, the disk, and the news that the script shows.

use std::time::Duration;

use callboard_actors::persister::DiskFault;

use super::super::record::VOICES;
use super::{Entry, Mistake, Stage, Words};
use crate::duration::parse_duration;
use crate::picture::{Mark, Sign};

pub(super) const VERBS: &[Entry] = &[
    ("pass DURATION", pass),
    ("together", together),
    ("go", go),
    ("disk full|read-only|broken|no-sync|panics|mended|power-cut", disk),
    ("disk-holds TEXT", disk_holds),
    ("disk-damage TEXT", disk_damage),
    ("disk-syncs", disk_syncs),
    (
        "hear all|nothing|registry|instances|inventory|allocations|drivers|processes|volumes|host|notices...",
        hear,
    ),
];

/// The maximum time that may pass in one line.
const PASS_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Suspends the processing of the following messages.
fn together(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    stage.host()?;
    stage.hold(true);
    Ok(())
}

fn go(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    stage.hold(false);
    Ok(())
}

fn pass(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    stage.check_not_held()?;
    let said = words.next("duration")?;
    let span = parse_duration(said).map_err(|error| Mistake::new(error.to_string()))?;
    if span > PASS_MAX {
        return Err(Mistake::new(format!("{said} are too long; at most 24h pass in one line")));
    }
    stage.pass(span);
    Ok(())
}

#[derive(Clone, Copy)]
enum DiskEvent {
    Fault(DiskFault),
    Mended,
    PowerCut,
}

fn disk(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let events = [
        ("full", DiskEvent::Fault(DiskFault::Full)),
        ("read-only", DiskEvent::Fault(DiskFault::ReadOnly)),
        ("broken", DiskEvent::Fault(DiskFault::Broken)),
        ("no-sync", DiskEvent::Fault(DiskFault::Syncs)),
        ("panics", DiskEvent::Fault(DiskFault::Panics)),
        ("mended", DiskEvent::Mended),
        ("power-cut", DiskEvent::PowerCut),
    ];
    let (name, event) = {
        let name = words.next("event of the disk")?;
        let found = events.iter().find(|(known, _)| *known == name);
        found.copied().ok_or_else(|| {
            Mistake::new(format!(
                "unknown state of a disk {name:?}; `script --verbs` lists those that there are"
            ))
        })?
    };
    match event {
        DiskEvent::Fault(fault) => {
            stage.disk.set_fault(Some(fault));
            let (actor, text) = ("disk".to_owned(), name.to_owned());
            stage.record.draw(Mark::Sign { actor, text, about: String::new(), sign: Sign::Trouble });
        }
        DiskEvent::Mended => {
            stage.disk.set_fault(None);
            stage.record.in_picture(|drawn| drawn.recovers("disk", name));
        }
        DiskEvent::PowerCut => {
            stage.kill_host()?;
            stage.disk.cut_power();
            stage.record.in_picture(|drawn| drawn.falls("disk", name));
        }
    }
    Ok(())
}

/// Whether the disk contains a text unencrypted.
fn disk_holds(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let text = words.next("text to look for")?;
    let told = if stage.disk.holds(text.as_bytes()) { "it stands there" } else { "it stands nowhere" };
    stage.record.answer(told.to_owned());
    Ok(())
}

/// Flips a bit of a text on the disk, while no process has the file open.
fn disk_damage(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let text = words.next("text to damage")?;
    if stage.database_is_open() {
        return Err(Mistake::new("a host has the database open; say `host stop` or `host kill` before"));
    }
    if stage.disk.damage(text.as_bytes()) {
        Ok(())
    } else {
        Err(Mistake::new(format!("{text:?} stands nowhere on the disk")))
    }
}

/// The number of syncs of the disk since the last request for it.
fn disk_syncs(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let syncs = stage.disk.syncs();
    let count = syncs - std::mem::replace(&mut stage.syncs_told, syncs);
    stage.record.answer(if count == 1 { "once".to_owned() } else { format!("{count} times") });
    Ok(())
}

fn hear(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let first = words.next("whom to hear")?;
    let voices = match first {
        "all" => (0..VOICES.len()).collect(),
        "nothing" => std::collections::BTreeSet::new(),
        voice => {
            let named = std::iter::once(Some(voice)).chain(std::iter::repeat_with(|| words.maybe_next()));
            let places = named.map_while(|voice| voice).map(|voice| {
                let place = VOICES.iter().position(|known| *known == voice);
                place.ok_or_else(|| {
                    Mistake::new(format!("{voice:?} says nothing; there are {}", VOICES.join(", ")))
                })
            });
            places.collect::<Result<_, _>>()?
        }
    };
    stage.record.hear(voices);
    Ok(())
}
