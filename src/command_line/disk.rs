//! Shows the disk and the data directory of a host.

use callboard_proto::admin::v1 as wire;

use super::times::ago;
use crate::host::Unwritten;
use crate::output::{Palette, Tone, harmless};

/// Whether the disk is sound; else why not, since when, and which writes it has not taken.
pub(super) fn disk_line(disk: &wire::DiskStatus, palette: Palette) -> String {
    if disk.health == "sound" {
        return format!("disk {}\n", palette.paint(Tone::Good, "sound"));
    }
    let sick = palette.paint(Tone::Bad, &format!("disk {}", harmless(&disk.health)));
    let (since, reason) = (ago(disk.since_unix_ms), harmless(&disk.reason));
    format!(
        "{sick} for {since}: {reason}\n  {} not on disk; new registrations and claims, launches of drivers and starts of tasks wait or are refused until it takes writes\n{}",
        changes(disk.unwritten),
        unwritten_line(disk)
    )
}

fn changes(count: u64) -> String {
    if count == 1 { "1 change is".to_owned() } else { format!("{count} changes are") }
}

fn unwritten_line(disk: &wire::DiskStatus) -> String {
    match unwritten(disk) {
        names if names.is_empty() => names,
        names => format!("  not on disk: {names}\n"),
    }
}

/// The subjects of the changes that are not on disk.
pub(super) fn unwritten(disk: &wire::DiskStatus) -> String {
    let names = disk.unwritten_names.iter().map(|name| harmless(name)).collect();
    Unwritten { names, more: usize::try_from(disk.unwritten_more).unwrap_or(usize::MAX) }.line()
}

/// Whether the data directory is in its place.
pub(super) fn directory_line(host: &wire::HostStatus, palette: Palette) -> String {
    match &*host.data_dir_problem {
        "" => format!("data directory {}\n", palette.paint(Tone::Good, "in its place")),
        problem => format!("{}: {}\n", palette.paint(Tone::Bad, "data directory"), harmless(problem)),
    }
}
