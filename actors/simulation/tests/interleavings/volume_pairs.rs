//! Every two troubles of a volume at once. Each single trouble, and larger bounds for some of them together, are in `volume.rs`.

use callboard_actors::shell::StopMode;
use callboard_machines::volume::Expands;
use callboard_simulation::{VolumeBounds, VolumeWorld};

use crate::{Trouble, is_full, try_all, try_pairs, with_large};

const TROUBLES: [Trouble<VolumeBounds>; 13] = [
    ("a fault", |bounds| bounds.faults += 1),
    ("a lie", |bounds| bounds.lies += 1),
    ("a lost mount", |bounds| bounds.losses += 1),
    ("a takeover", |bounds| bounds.takeovers += 1),
    ("a takeover by another plugin", |bounds| (bounds.takeovers, bounds.changes) = (1, true)),
    ("a failed write", |bounds| bounds.failures += 1),
    ("a crash", |bounds| bounds.crashes += 1),
    ("a killed host", |bounds| bounds.kills += 1),
    ("a damaged row", |bounds| bounds.damages += 1),
    ("a reboot", |bounds| bounds.reboots += 1),
    ("a force", |bounds| bounds.forces += 1),
    ("a claim that is given up", |bounds| bounds.gives_up += 1),
    ("a stop", |bounds| bounds.stops = &[StopMode::Stop, StopMode::Detach]),
];

/// In small bounds no allocation claims twice, and no orders are placed.
fn holds(small: VolumeBounds) {
    let orders: [Trouble<VolumeBounds>; 2] = [
        ("an expansion", |bounds| (bounds.expansions, bounds.expands) = (1, Expands::Online)),
        ("a group", |bounds| bounds.groups += 1),
    ];
    let base = if is_full() { VolumeBounds { claims: 2, pauses: 1, ..small } } else { small };
    try_pairs(base, &with_large(&TROUBLES, &orders), |bounds| VolumeWorld::new(bounds, None));
}

const CLAIMED: VolumeBounds = VolumeBounds { claims: 1, releases: 1, ..VolumeBounds::NONE };

#[test]
fn every_order_of_two_troubles_keeps_the_laws_of_a_volume_v1_v16() {
    holds(CLAIMED);
}

#[test]
fn every_order_of_two_troubles_keeps_the_laws_of_an_attached_volume_v1_v16() {
    holds(VolumeBounds { attaches: true, ..CLAIMED });
}

#[test]
fn every_order_of_two_troubles_keeps_the_laws_of_a_volume_that_is_only_published_v1_v16() {
    holds(VolumeBounds { stages: false, ..CLAIMED });
}

fn try_troubles(beside: &str, base: VolumeBounds) {
    for (what, trouble) in &TROUBLES {
        let mut bounds = base;
        trouble(&mut bounds);
        try_all(&format!("{beside} and {what}"), &VolumeWorld::new(bounds, None));
    }
}

/// An allocation claims again what it has released: only the released claim is undone. Three allocations are in the large bounds.
#[test]
fn every_order_of_a_trouble_and_a_second_claim_of_the_same_allocation_v8() {
    try_troubles("a second claim", VolumeBounds { claims: 2, ..CLAIMED });
    if is_full() {
        try_troubles("three claims", VolumeBounds { allocations: 3, claims: 3, ..CLAIMED });
    }
}
