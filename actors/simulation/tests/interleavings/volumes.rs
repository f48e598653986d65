//! The owner of the volumes with stand-ins for their actors: every order of claims, releases, creations, late answers, reports and
//! endings, notifications of the instances, crashed actors, failed writes, crashes, killed hosts, time and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_simulation::{Random, SceneEvent, VolumesBounds, VolumesEvent, VolumesWorld, wander};

use crate::{is_full, try_all};

const NONE: VolumesBounds = VolumesBounds::NONE;
const CLAIMED: VolumesBounds = VolumesBounds { claims: 1, releases: 1, ..NONE };
const CREATED: VolumesBounds = VolumesBounds { are_registered: false, creations: 1, ..NONE };

fn holds(what: &str, small: VolumesBounds, full: VolumesBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &VolumesWorld::new(bounds, None));
}

#[test]
fn every_order_of_claims_and_releases_keeps_one_actor_for_what_is_in_use_v2_v15() {
    holds("claims of a volume", CLAIMED, VolumesBounds { claims: 2, ..CLAIMED });
    let faults = VolumesBounds { faults: 1, claims: 1, ..NONE };
    holds("claims of a volume that fails", faults, VolumesBounds { releases: 1, ..faults });
}

#[test]
fn every_order_of_falls_answers_each_caller_once_with_an_error_v2_v15_reg_08() {
    let falls = VolumesBounds { falls: 1, claims: 1, ..NONE };
    holds("actors of volumes fall", falls, VolumesBounds { releases: 1, ..falls });
    let often = VolumesBounds { falls: 2, pauses: 1, ..falls };
    holds("actors of volumes fall too often", often, VolumesBounds { pauses: 2, ..often });
}

/// Holds C036.
#[test]
fn every_order_of_claims_on_a_full_node_or_out_of_reach_refuses_what_it_cannot_take_v12_c147_c148() {
    let full = VolumesBounds { limit: 1, is_claimed: true, volumes: 2, claims: 1, ..NONE };
    holds("claims on a full node", full, VolumesBounds { releases: 1, ..full });
    let apart = VolumesBounds { is_apart: true, claims: 1, ..NONE };
    holds("claims of a volume that is out of reach", apart, VolumesBounds { volumes: 2, claims: 2, ..apart });
}

#[test]
fn every_order_of_waiting_for_an_unused_plugin_answers_when_it_is_v13() {
    let waits = VolumesBounds { waits: 1, claims: 1, ..NONE };
    holds("waiting until a plugin is unused", waits, VolumesBounds { releases: 1, ..waits });
    let others = VolumesBounds { waits: 1, claims: 1, volumes: 2, is_claimed: true, ..NONE };
    holds("new claims while a stop waits", others, VolumesBounds { releases: 1, ..others });
    let released = VolumesBounds { waits: 1, claims: 1, confirmations: 1, is_claimed: true, ..NONE };
    holds(
        "claims that a confirmation releases while a stop waits",
        released,
        VolumesBounds { falls: 1, ..released },
    );
    let left = VolumesBounds { waits: 1, releases: 1, is_claimed: true, ..NONE };
    holds("waiting until a plugin of an earlier run is unused", left, VolumesBounds { pauses: 1, ..left });
}

#[test]
fn every_order_of_what_is_ordered_of_a_volume_keeps_its_actor_until_it_is_done_v5_v13_v15() {
    let ordered = VolumesBounds { orders: 1, faults: 1, ..NONE };
    holds("something is ordered of a volume", ordered, VolumesBounds { waits: 1, ..ordered });
    let released = VolumesBounds { orders: 1, releases: 1, faults: 1, ..NONE };
    holds("a release while something is ordered", released, VolumesBounds { claims: 1, ..released });
    let falls = VolumesBounds { orders: 1, falls: 1, ..NONE };
    holds("an actor falls that has an order", falls, VolumesBounds { faults: 1, kills: 1, ..falls });
    let forced = VolumesBounds { orders: 1, forces: 1, waits: 1, ..NONE };
    holds("an order is given up", forced, VolumesBounds { claims: 1, ..forced });
}

#[test]
fn every_order_of_a_group_of_snapshots_is_one_order_of_one_volume_c002_v5_v13_v15() {
    let taken = VolumesBounds { volumes: 2, groups: 1, deletions: 1, ..NONE };
    holds("a group of snapshots is taken", taken, VolumesBounds { faults: 1, waits: 1, ..taken });
    let twice = VolumesBounds { volumes: 2, groups: 2, ..NONE };
    holds("a group of snapshots is asked for twice", twice, VolumesBounds { faults: 1, ..twice });
    let falls = VolumesBounds { volumes: 2, groups: 2, falls: 1, ..NONE };
    holds("an actor falls that has a group", falls, VolumesBounds { waits: 1, ..falls });
    let kills = VolumesBounds { volumes: 2, groups: 2, kills: 1, ..NONE };
    holds("a host is killed that has a group", kills, VolumesBounds { faults: 1, ..kills });
    let forced = VolumesBounds { volumes: 2, groups: 1, forces: 1, waits: 1, ..NONE };
    holds("a group of snapshots is given up", forced, VolumesBounds { claims: 1, ..forced });
}

#[test]
fn every_order_of_a_restart_confirms_each_claim_of_an_earlier_run_v14() {
    let left = VolumesBounds { is_claimed: true, confirmations: 1, falls: 1, ..NONE };
    holds("claims of an earlier run", left, VolumesBounds { crashes: 1, pauses: 1, ..left });
    let kills = VolumesBounds { kills: 1, claims: 1, ..NONE };
    holds("a host with a claim is killed", kills, VolumesBounds { confirmations: 1, ..kills });
}

#[test]
fn every_order_of_the_news_of_the_instances_sends_the_route_of_the_last_res_05() {
    let words = VolumesBounds { words: 3, losses: 1, pauses: 1, ..NONE };
    holds("routes", words, VolumesBounds { words: 4, losses: 2, crashes: 1, ..words });
}

#[test]
fn every_order_of_creations_and_deletions_knows_what_is_there_c059() {
    let created = VolumesBounds { deletions: 1, ..CREATED };
    holds("a volume is created and deleted", created, VolumesBounds { claims: 1, ..created });
    let faults = VolumesBounds { faults: 1, ..CREATED };
    holds("a creation fails", faults, VolumesBounds { deletions: 1, ..faults });
    let falls = VolumesBounds { falls: 1, ..CREATED };
    holds("an actor falls that creates", falls, VolumesBounds { deletions: 1, ..falls });
    let kills = VolumesBounds { kills: 1, ..CREATED };
    holds("a host that creates is killed", kills, VolumesBounds { deletions: 1, ..kills });
    let deleted = VolumesBounds { deletions: 1, kills: 1, ..NONE };
    holds("a host that deletes is killed", deleted, VolumesBounds { faults: 1, claims: 1, ..deleted });
    let lost = VolumesBounds { deletions: 1, falls: 1, ..NONE };
    holds("an actor falls that deletes", lost, VolumesBounds { kills: 1, claims: 1, ..lost });
    let again = VolumesBounds { creations: 1, is_claimed: true, ..lost };
    holds("an actor falls that deletes what is to be created", again, VolumesBounds { releases: 1, ..again });
    let changes = VolumesBounds { changes: 1, claims: 1, ..NONE };
    holds("a volume is known otherwise", changes, VolumesBounds { deletions: 1, ..changes });
}

#[test]
fn every_order_of_a_sick_disk_refuses_what_is_new_and_never_does_it_later_shell_1a_c059() {
    let deleted = VolumesBounds { sicknesses: 1, deletions: 1, ..NONE };
    holds(
        "a volume is deleted on a sick disk",
        deleted,
        VolumesBounds { sicknesses: 2, pauses: 1, ..deleted },
    );
    let killed = VolumesBounds { kills: 1, ..deleted };
    holds("a host that deletes on a sick disk is killed", killed, VolumesBounds { sicknesses: 2, ..killed });
    let falls = VolumesBounds { falls: 1, ..deleted };
    holds("an actor falls that deletes on a sick disk", falls, VolumesBounds { pauses: 1, ..falls });
    let created = VolumesBounds { sicknesses: 1, ..CREATED };
    holds("a volume is created on a sick disk", created, VolumesBounds { deletions: 1, ..created });
    let claimed = VolumesBounds { sicknesses: 1, claims: 1, ..NONE };
    holds("a volume is claimed on a sick disk", claimed, VolumesBounds { releases: 1, ..claimed });
    let ordered = VolumesBounds { sicknesses: 1, orders: 1, ..NONE };
    holds("something is ordered on a sick disk", ordered, VolumesBounds { kills: 1, ..ordered });
    let forced = VolumesBounds { sicknesses: 1, forces: 1, ..ordered };
    let released = VolumesBounds { forces: 1, releases: 1, is_claimed: true, orders: 0, ..ordered };
    holds("what a sick disk holds is forced", forced, released);
}

#[test]
fn every_order_of_failed_writes_and_crashes_of_the_owner_keeps_known_and_disk_together_shell_1_shell_4() {
    let failures = VolumesBounds { failures: 1, changes: 1, pauses: 1, claims: 1, ..NONE };
    holds("writes of known volumes fail", failures, VolumesBounds { failures: 2, ..failures });
    let created = VolumesBounds { failures: 1, pauses: 1, ..CREATED };
    holds("writes of created volumes fail", created, VolumesBounds { deletions: 1, ..created });
    let crashes = VolumesBounds { crashes: 1, claims: 1, ..NONE };
    holds("the owner of the volumes crashes", crashes, VolumesBounds { releases: 1, ..crashes });
}

#[test]
fn every_order_of_a_stop_ends_all_actors_and_of_force_forgets_what_is_released_v9_s3_s4() {
    const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];
    let stops = VolumesBounds { stops: EITHER, waits: 1, claims: 1, ..NONE };
    holds("the owner of the volumes stops", stops, VolumesBounds { falls: 1, ..stops });
    let forced = VolumesBounds { forces: 1, releases: 1, is_claimed: true, ..NONE };
    holds("a release is forced", forced, VolumesBounds { claims: 1, ..forced });
}

/// How many worlds the ordinary run walks through, and how many steps it takes in each.
const WORLDS: u64 = 60;
const STEPS: u64 = 500;

/// All events that the searches try separately, together: at random, in longer histories than any search can try.
/// `CALLBOARD_WALK_WORLDS` sets the number of worlds.
#[test]
fn whatever_happens_by_chance_two_volumes_and_three_allocations_keep_every_law_v2_v8_v13_v14_v15_c059() {
    let worlds = std::env::var("CALLBOARD_WALK_WORLDS")
        .ok()
        .map_or(WORLDS, |worlds| worlds.parse().expect("CALLBOARD_WALK_WORLDS is a number of worlds"));
    let mut steps = 0;
    for seed in 1..=worlds {
        let mut random = Random::from_seed(seed);
        let bounds = of_everything(&mut random);
        let is_rare = |event: &SceneEvent<_>| match event {
            SceneEvent::Own(event) => VolumesEvent::is_rare(event),
            SceneEvent::Pass => false,
            SceneEvent::Crash | SceneEvent::Stop(_) => true,
        };
        let walked =
            wander(&VolumesWorld::new(bounds, None), STEPS, &mut random, is_rare, &mut |_| steps += 1);
        if let Err(found) = walked {
            panic!("world {seed}, {bounds:?}: {found}");
        }
    }
    println!("{steps} steps through {worlds} worlds");
}

fn of_everything(random: &mut Random) -> VolumesBounds {
    const MANY: u8 = u8::MAX;
    let is_registered = random.once_in(2);
    VolumesBounds {
        volumes: 2,
        allocations: 3,
        claims: MANY,
        releases: MANY,
        confirmations: MANY,
        forces: MANY,
        creations: MANY,
        deletions: MANY,
        orders: MANY,
        groups: MANY,
        changes: MANY,
        waits: MANY,
        words: MANY,
        losses: MANY,
        faults: MANY,
        falls: MANY,
        failures: MANY,
        sicknesses: if random.once_in(2) { MANY } else { 0 },
        crashes: MANY,
        kills: MANY,
        pauses: MANY,
        are_registered: is_registered,
        is_claimed: is_registered && random.once_in(2),
        limit: random.below(3),
        is_apart: random.once_in(4),
        stops: if random.once_in(4) { &[StopMode::Stop, StopMode::Detach] } else { &[] },
    }
}
