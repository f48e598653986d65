//! Every two troubles of a world at once, in the smallest bounds in which they can meet; the database, the agent and the tasks have no
//! pairs. Each single trouble, and larger bounds for related troubles, are in the file of its world; the pairs of a volume are in
//! `volume_pairs.rs`.

use callboard_actors::shell::StopMode;
use callboard_actors::supervisor::Strategy;
use callboard_simulation::{
    AllocationBounds, AllocationWorld, AllocationsBounds, AllocationsWorld, Behaviour, Conduct,
    DriversBounds, DriversTampers, DriversWorld, InstancesBounds, InstancesWorld, InventoryBounds,
    InventoryWorld, Order, ProcessesBounds, ProcessesWorld, RegistryBounds, RegistryWorld, SupervisionBounds,
    SupervisionWorld, VolumesBounds, VolumesWorld, World,
};

use crate::{is_full, try_all};

/// An additional event that may happen in a world with such bounds.
pub(crate) type Trouble<B> = (&'static str, fn(&mut B));

/// Tries every two of these at once, and each one twice.
pub(crate) fn try_pairs<B: Copy, W: World>(base: B, troubles: &[Trouble<B>], world: impl Fn(B) -> W) {
    for (place, (one, first)) in troubles.iter().enumerate() {
        for (other, second) in &troubles[place..] {
            let mut bounds = base;
            first(&mut bounds);
            second(&mut bounds);
            try_all(&format!("{one} and {other}"), &world(bounds));
        }
    }
}

/// These troubles, and in the large bounds also those with too many pairs for the ordinary run.
pub(crate) fn with_large<B: Copy>(troubles: &[Trouble<B>], large: &[Trouble<B>]) -> Vec<Trouble<B>> {
    let large = if is_full() { large } else { &[] };
    troubles.iter().chain(large).copied().collect()
}

const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

#[test]
fn every_order_of_two_troubles_of_an_allocation_a1_a4() {
    let base = AllocationBounds { orders: if is_full() { 2 } else { 1 }, ..AllocationBounds::NONE };
    try_pairs(
        base,
        &[
            ("a fault", |bounds| bounds.faults += 1),
            ("a pause", |bounds| bounds.pauses += 1),
            ("news", |bounds| bounds.news += 1),
            ("a supervisor that falls", |bounds| bounds.falls += 1),
            ("a killed host", |bounds| bounds.kills += 1),
            ("a stop of the allocation", |bounds| bounds.leaves += 1),
            ("a stop", |bounds| bounds.stops = EITHER),
        ],
        |bounds| AllocationWorld::new(bounds, None),
    );
}

#[test]
fn every_order_of_two_troubles_of_the_owner_of_the_allocations_a5_v13() {
    let base = AllocationsBounds { orders: 2, ..AllocationsBounds::NONE };
    try_pairs(
        base,
        &[
            ("a stop of an allocation", |bounds| bounds.leaves += 1),
            ("an adoption", |bounds| bounds.oddities += 1),
            ("a fault", |bounds| bounds.faults += 1),
            ("a supervisor that falls", |bounds| bounds.falls += 1),
            ("news", |bounds| bounds.news += 1),
            ("a stop that waits for volumes", |bounds| bounds.waits += 1),
            ("a crash", |bounds| bounds.crashes += 1),
            ("a new owner", |bounds| bounds.successors += 1),
            ("a killed host", |bounds| bounds.kills += 1),
            ("a pause", |bounds| bounds.pauses += 1),
            ("a stop", |bounds| bounds.stops = EITHER),
        ],
        |bounds| AllocationsWorld::new(bounds, None),
    );
}

#[test]
fn every_order_of_two_troubles_of_the_owner_of_the_processes_prc_03_prc_09() {
    let base = ProcessesBounds { launches: 1, ..ProcessesBounds::NONE };
    try_pairs(
        base,
        &[
            ("another launch", |bounds| bounds.launches += 1),
            ("an order to end it", |bounds| bounds.orders += 1),
            ("a fault", |bounds| bounds.faults += 1),
            ("an exit", |bounds| bounds.exits += 1),
            ("an actor that falls", |bounds| bounds.falls += 1),
            ("a failed write", |bounds| bounds.failures += 1),
            ("a sick disk", |bounds| bounds.sicknesses += 1),
            ("a crash", |bounds| bounds.crashes += 1),
            ("a killed host", |bounds| bounds.kills += 1),
            ("a pause", |bounds| bounds.pauses += 1),
            ("a stop", |bounds| bounds.stops = EITHER),
        ],
        |bounds| ProcessesWorld::new(bounds, None),
    );
}

#[test]
fn every_order_of_two_troubles_of_a_driver_hlt_04_s4() {
    const BAD: &[Conduct] = &[Conduct::Refuses, Conduct::Hangs, Conduct::IsUnwell];
    let base = DriversBounds { is_prompt: true, ..DriversBounds::NONE };
    try_pairs(
        base,
        &[
            ("a bad answer", |bounds| bounds.faults = (bounds.faults.0 + 1, BAD)),
            ("an exit", |bounds| bounds.exits += 1),
            ("a removal", |bounds| bounds.orders = (bounds.orders.0 + 1, &[Order::Remove])),
            ("a pause", |bounds| bounds.pauses += 1),
            ("a crash", |bounds| bounds.crashes += 1),
            ("a killed host", |bounds| bounds.kills += 1),
            ("a stop", |bounds| bounds.stops = EITHER),
        ],
        |bounds| DriversWorld::new(bounds, DriversTampers::default()),
    );
}

#[test]
fn every_order_of_two_troubles_of_a_supervisor_s1_s4() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        try_pairs(
            SupervisionBounds { strategy, ..SupervisionBounds::NONE },
            &[
                ("a child that ends", |bounds| bounds.ends += 1),
                ("a fault", |bounds| bounds.faults += 1),
                ("a question", |bounds| bounds.asks += 1),
                ("a quiet time", |bounds| bounds.waits += 1),
                ("a crash", |bounds| bounds.crashes += 1),
                ("a stop", |bounds| (bounds.stops, bounds.stops_max) = (EITHER, 1)),
            ],
            |bounds| SupervisionWorld::new(bounds, None),
        );
    }
}

#[test]
fn every_order_of_two_troubles_of_the_instances_i1_i7() {
    let base = InstancesBounds { routes: 1, ..InstancesBounds::NONE };
    let troubles: [Trouble<InstancesBounds>; 8] = [
        ("a lost connection", |bounds| bounds.hangups += 1),
        ("an answer that does not come", |bounds| {
            (bounds.faults, bounds.behaviours) = (bounds.faults + 1, &[Behaviour::Hangs]);
        }),
        ("a question", |bounds| bounds.asks += 1),
        ("a gate", |bounds| bounds.gates += 1),
        ("a pause", |bounds| bounds.pauses += 1),
        ("a crash", |bounds| bounds.crashes += 1),
        ("a new owner", |bounds| bounds.successors += 1),
        ("a stop", |bounds| bounds.stops = true),
    ];
    let large: [Trouble<InstancesBounds>; 2] =
        [("a takeover", |bounds| bounds.routes += 1), ("a standby", |bounds| bounds.standbys += 1)];
    try_pairs(base, &with_large(&troubles, &large), |bounds| InstancesWorld::new(bounds, None, None));
}

#[test]
fn every_order_of_two_troubles_of_the_registry_r1_r8() {
    let allocations = if is_full() { 2 } else { 1 };
    let base = RegistryBounds { allocations, orders_each: 2, ..RegistryBounds::NONE };
    try_pairs(
        base,
        &[
            ("a report", |bounds| bounds.reports += 1),
            ("a new generation", |bounds| bounds.renewals += 1),
            ("a caller that waits", |bounds| bounds.waits += 1),
            ("a question", |bounds| bounds.questions += 1),
            ("a failed write", |bounds| bounds.failures += 1),
            ("a sick disk", |bounds| bounds.sicknesses += 1),
            ("a crash", |bounds| bounds.crashes += 1),
            ("a killed host", |bounds| bounds.restarts += 1),
            ("a pause", |bounds| bounds.pauses += 1),
            ("a stop", |bounds| bounds.stops = true),
        ],
        |bounds| RegistryWorld::new(bounds, None),
    );
}

#[test]
fn every_order_of_two_troubles_of_the_inventory_n1_hlt_08() {
    let words = if is_full() { 2 } else { 1 };
    let base = InventoryBounds { words, has_drivers: true, ..InventoryBounds::NONE };
    try_pairs(
        base,
        &[
            ("another report", |bounds| bounds.words += 1),
            ("a gap", |bounds| bounds.losses += 1),
            ("a question", |bounds| bounds.asks += 1),
            ("a pause", |bounds| bounds.pauses += 1),
            ("a crash", |bounds| bounds.crashes += 1),
            ("a stop", |bounds| bounds.stops = EITHER),
        ],
        |bounds| InventoryWorld::new(bounds, None),
    );
}

#[test]
fn every_order_of_two_troubles_of_the_owner_of_the_volumes_v2_v15() {
    let base = VolumesBounds { claims: 1, releases: u8::from(is_full()), ..VolumesBounds::NONE };
    let troubles: [Trouble<VolumesBounds>; 9] = [
        ("a caller that waits", |bounds| bounds.waits += 1),
        ("a fault", |bounds| bounds.faults += 1),
        ("an actor that falls", |bounds| bounds.falls += 1),
        ("a failed write", |bounds| bounds.failures += 1),
        ("a sick disk", |bounds| bounds.sicknesses += 1),
        ("a crash", |bounds| bounds.crashes += 1),
        ("a killed host", |bounds| bounds.kills += 1),
        ("a pause", |bounds| bounds.pauses += 1),
        ("a stop", |bounds| bounds.stops = EITHER),
    ];
    let large: [Trouble<VolumesBounds>; 4] = [
        ("a force", |bounds| bounds.forces += 1),
        ("a confirmation", |bounds| bounds.confirmations += 1),
        ("a deletion", |bounds| bounds.deletions += 1),
        ("an order", |bounds| bounds.orders += 1),
    ];
    try_pairs(base, &with_large(&troubles, &large), |bounds| VolumesWorld::new(bounds, None));
}
