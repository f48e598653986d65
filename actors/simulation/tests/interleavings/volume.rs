//! A volume with its ledger, a plugin and the kernel: every order of claims, releases, answers of every kind, takeovers, lost mounts,
//! failed writes, crashes, killed hosts, boots, force and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_machines::volume::Expands;
use callboard_simulation::{VolumeBounds, VolumeWorld};

use crate::{is_full, try_all};

const NONE: VolumeBounds = VolumeBounds::NONE;
const CLAIMED: VolumeBounds = VolumeBounds { claims: 1, releases: 1, ..NONE };
const TWO: VolumeBounds = VolumeBounds { allocations: 2, claims: 2, releases: 2, ..NONE };
const CREATED: VolumeBounds = VolumeBounds { is_new: true, creations: 1, deletions: 1, ..NONE };
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: VolumeBounds, full: VolumeBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &VolumeWorld::new(bounds, None));
}

/// Holds C079, C122, C124, C131 and C132.
#[test]
fn every_order_of_two_and_three_claims_and_releases_leaves_what_is_held_and_nothing_else_v1_v3_vol_01() {
    let three = VolumeBounds { allocations: 3, claims: 3, releases: 1, ..NONE };
    holds("three claims", three, VolumeBounds { releases: 3, ..three });
    let taken_over = VolumeBounds { takeovers: 1, releases: 0, ..three };
    holds("three claims and a takeover", taken_over, VolumeBounds { releases: 1, ..taken_over });
    holds("two claims", TWO, VolumeBounds { claims: 3, releases: 3, ..TWO });
    let attached = VolumeBounds { attaches: true, ..TWO };
    holds("two claims with a controller", attached, VolumeBounds { claims: 3, releases: 3, ..attached });
    holds("two claims without a stage", VolumeBounds { stages: false, ..TWO }, TWO);
    let single = VolumeBounds { is_single: true, ..TWO };
    holds("two claims of which one is possible", single, VolumeBounds { claims: 3, ..single });
}

/// Holds C121, C122, C134, C140 and C141.
#[test]
fn every_order_of_refused_and_unclear_calls_skips_no_step_and_leaves_nothing_v4_vol_05() {
    let faults = VolumeBounds { faults: 2, pauses: 1, ..CLAIMED };
    holds("calls fail", faults, VolumeBounds { faults: 3, pauses: 3, ..faults });
    let attached = VolumeBounds { attaches: true, faults: 1, pauses: 1, ..CLAIMED };
    holds("calls of a plugin that attaches fail", attached, VolumeBounds { faults: 2, ..attached });
    let two = VolumeBounds { faults: 1, releases: 1, ..TWO };
    holds("calls for two claims fail", two, VolumeBounds { releases: 2, pauses: 1, ..two });
}

#[test]
fn every_order_of_lies_and_lost_mounts_hands_out_only_what_is_there_v7_vol_07() {
    let lies = VolumeBounds { lies: 2, pauses: 1, ..CLAIMED };
    holds("the plugin lies", lies, VolumeBounds { lies: 3, pauses: 2, ..lies });
    let losses = VolumeBounds { claims: 2, losses: 1, ..CLAIMED };
    holds("a mount is lost", losses, VolumeBounds { allocations: 2, losses: 2, faults: 1, ..losses });
}

/// Holds C001 and C120.
#[test]
fn every_order_of_takeovers_goes_on_with_the_same_claims_v2_v16_res_05() {
    let takeovers = VolumeBounds { takeovers: 1, releases: 1, ..TWO };
    holds("another instance takes over", takeovers, VolumeBounds { releases: 2, faults: 1, ..takeovers });
    let attached = VolumeBounds { attaches: true, takeovers: 1, changes: true, releases: 1, ..CLAIMED };
    holds("another instance attaches less", attached, VolumeBounds { takeovers: 2, faults: 1, ..attached });
    let changes = VolumeBounds { takeovers: 1, changes: true, claims: 2, ..CLAIMED };
    holds("another instance can do less", changes, VolumeBounds { takeovers: 2, ..changes });
}

#[test]
fn every_order_of_takeovers_keeps_the_access_mode_of_the_first_step_c013_c138_c154() {
    let single = VolumeBounds { takeovers: 2, changes: true, is_single: true, releases: 1, ..CLAIMED };
    holds("another instance knows other modes", single, VolumeBounds { faults: 1, ..single });
    let unstaged = VolumeBounds { stages: false, ..single };
    holds("another instance stages, and knows other modes", unstaged, VolumeBounds { faults: 1, ..unstaged });
    let attached = VolumeBounds { takeovers: 1, attaches: true, ..single };
    holds(
        "another controller knows other modes",
        attached,
        VolumeBounds { takeovers: 2, kills: 1, ..attached },
    );
}

/// Holds C124, C130 and C141.
#[test]
fn every_order_of_killed_hosts_and_boots_resumes_from_the_ledger_v5_v14_res_04_res_09() {
    let killed = VolumeBounds { kills: 1, ..CLAIMED };
    holds("a host is killed", killed, VolumeBounds { kills: 2, faults: 1, attaches: true, ..killed });
    let attached = VolumeBounds { attaches: true, releases: 1, ..killed };
    holds("a host of an attached volume is killed", attached, VolumeBounds { kills: 2, ..attached });
    let two = VolumeBounds { kills: 1, releases: 1, ..TWO };
    let both = VolumeBounds { attaches: true, ..two };
    holds("a host of two claims of an attached volume is killed", both, VolumeBounds { faults: 1, ..both });
    holds("a host of two claims is killed", two, VolumeBounds { kills: 2, releases: 2, ..two });
    let boots = VolumeBounds { reboots: 1, claims: 2, ..CLAIMED };
    holds("the machine is booted", boots, VolumeBounds { kills: 1, ..boots });
}

#[test]
fn every_order_of_failed_writes_and_crashes_keeps_ledger_and_calls_together_v1_v5_shell_1() {
    let failures = VolumeBounds { failures: 1, pauses: 1, ..CLAIMED };
    holds("writes of a volume fail", failures, VolumeBounds { failures: 2, faults: 1, ..failures });
    let attached = VolumeBounds { attaches: true, releases: 1, ..failures };
    holds("writes of an attached volume fail", attached, VolumeBounds { failures: 2, ..attached });
    let attached = VolumeBounds { attaches: true, crashes: 1, releases: 1, ..CLAIMED };
    holds("an attached volume crashes", attached, VolumeBounds { crashes: 2, faults: 1, ..attached });
    let again = VolumeBounds { claims: 2, crashes: 1, ..CLAIMED };
    holds("a volume that is claimed again crashes", again, VolumeBounds { crashes: 2, faults: 1, ..again });
    let crashes = VolumeBounds { crashes: 1, ..CLAIMED };
    holds("a volume crashes", crashes, VolumeBounds { crashes: 2, faults: 1, ..crashes });
}

#[test]
fn every_order_of_a_stop_and_of_force_is_resumed_or_audited_v8_v9_v13_shd_01() {
    let stops = VolumeBounds { stops: EITHER, faults: 1, ..CLAIMED };
    holds("a host of a volume stops", stops, VolumeBounds { allocations: 2, claims: 2, pauses: 1, ..stops });
    let forced = VolumeBounds { forces: 1, faults: 1, claims: 2, ..CLAIMED };
    holds("a volume is forced", forced, VolumeBounds { forces: 2, kills: 1, ..forced });
    let killed = VolumeBounds { forces: 1, kills: 1, releases: 1, ..CLAIMED };
    holds("a host of a forced volume is killed", killed, VolumeBounds { kills: 2, faults: 1, ..killed });
}

/// Nothing that claims share is undone while a claim that was given up is still mounted.
#[test]
fn every_order_of_a_claim_that_is_given_up_by_force_undoes_the_rest_after_it_v3_c131() {
    let given_up = VolumeBounds { gives_up: 1, faults: 3, releases: 1, ..CLAIMED };
    holds("a claim is given up", given_up, VolumeBounds { gives_up: 2, kills: 1, ..given_up });
    let beside = VolumeBounds { gives_up: 1, claims: 2, releases: 2, allocations: 2, ..CLAIMED };
    holds("a claim beside another one is given up", beside, VolumeBounds { faults: 1, ..beside });
    let killed = VolumeBounds { kills: 1, releases: 1, ..beside };
    holds("a host of a claim that is given up is killed", killed, VolumeBounds { releases: 2, ..killed });
    let again = VolumeBounds { claims: 2, faults: 2, pauses: 1, ..given_up };
    holds("who gave up a claim claims again", again, VolumeBounds { kills: 1, ..again });
}

/// Damaged rows: a held claim is not undone before it is released, and then it is undone completely.
#[test]
fn every_order_of_damaged_rows_undoes_nothing_in_use_and_leaves_nothing_v3_v8_res_08() {
    let damaged = VolumeBounds { damages: 1, ..CLAIMED };
    holds("a row of a claimed volume is damaged", damaged, VolumeBounds { damages: 2, ..damaged });
    let faults = VolumeBounds { faults: 1, releases: 1, ..damaged };
    holds("calls fail after a row was damaged", faults, VolumeBounds { faults: 2, pauses: 1, ..faults });
    let two = VolumeBounds { damages: 1, releases: 1, ..TWO };
    holds("a row of two claims is damaged", two, VolumeBounds { releases: 2, ..two });
    let attached = VolumeBounds { attaches: true, ..damaged };
    holds("a row of an attached volume is damaged", attached, VolumeBounds { faults: 1, ..attached });
    let alone = VolumeBounds { stages: false, ..attached };
    holds("a row of a volume that is only attached is damaged", alone, VolumeBounds { faults: 1, ..alone });
    let given_up = VolumeBounds { gives_up: 1, releases: 1, ..damaged };
    holds("a damaged claim is given up", given_up, VolumeBounds { claims: 2, faults: 1, ..given_up });
    let single = VolumeBounds { allocations: 2, claims: 2, is_single: true, releases: 0, ..given_up };
    holds("a damaged claim of the only writer is given up", single, VolumeBounds { releases: 1, ..single });
    let killed = VolumeBounds { kills: 1, ..damaged };
    holds("a host with a damaged row is killed", killed, VolumeBounds { faults: 1, ..killed });
}

#[test]
fn every_order_of_callers_that_give_up_answers_them_with_an_error_and_goes_on_v15_vol_02() {
    let waits = VolumeBounds { pauses: 2, faults: 1, claims: 2, ..CLAIMED };
    holds("callers give up", waits, VolumeBounds { pauses: 3, faults: 2, ..waits });
}

/// Holds C.4.
#[test]
fn every_order_of_creation_and_deletion_makes_one_volume_and_forgets_it_when_it_is_gone_v4_v5_c050_c061_c065()
{
    let faults = VolumeBounds { faults: 2, pauses: 1, ..CREATED };
    holds(
        "creation and deletion of a volume fail",
        faults,
        VolumeBounds { faults: 3, creations: 2, ..faults },
    );
    let claimed = VolumeBounds { claims: 1, releases: 1, ..CREATED };
    holds("a created volume is claimed", claimed, VolumeBounds { faults: 1, ..claimed });
    let killed = VolumeBounds { kills: 1, faults: 1, ..CREATED };
    holds(
        "a host that creates a volume is killed",
        killed,
        VolumeBounds { kills: 2, creations: 2, ..killed },
    );
    let failures = VolumeBounds { failures: 1, pauses: 1, crashes: 1, ..CREATED };
    holds("writes of a new volume fail", failures, VolumeBounds { faults: 1, ..failures });
    let takeovers = VolumeBounds { takeovers: 1, faults: 1, ..CREATED };
    holds("another instance creates", takeovers, VolumeBounds { takeovers: 2, pauses: 1, ..takeovers });
    let forced = VolumeBounds { forces: 1, faults: 1, ..CREATED };
    holds("a deletion is forced", forced, VolumeBounds { faults: 2, ..forced });
}

#[test]
fn every_order_of_groups_of_snapshots_is_done_once_or_is_in_the_ledger_v4_v5_c106_c107_c108() {
    let taken = VolumeBounds { groups: 1, ..NONE };
    let two = VolumeBounds { groups: 2, ..taken };
    holds("groups of a volume are taken and deleted", two, VolumeBounds { faults: 1, groups: 3, ..two });
    let late = VolumeBounds { is_late: true, pauses: 1, ..two };
    holds("a group of a volume is ready late", late, VolumeBounds { faults: 1, kills: 1, ..late });
    let faults = VolumeBounds { faults: 2, pauses: 1, ..taken };
    holds("groups of a volume fail", faults, VolumeBounds { groups: 2, ..faults });
    let killed = VolumeBounds { kills: 1, ..taken };
    holds(
        "a host that takes a group is killed",
        killed,
        VolumeBounds { kills: 2, faults: 1, groups: 2, ..killed },
    );
    let failures = VolumeBounds { failures: 1, crashes: 1, ..taken };
    holds("writes of a group fail", failures, VolumeBounds { faults: 1, ..failures });
    let takeovers = VolumeBounds { takeovers: 1, faults: 1, ..taken };
    holds("another instance takes a group", takeovers, VolumeBounds { groups: 2, pauses: 1, ..takeovers });
    let claimed = VolumeBounds { groups: 1, ..CLAIMED };
    holds("a volume with a group is claimed", claimed, VolumeBounds { faults: 1, ..claimed });
    let forced = VolumeBounds { forces: 1, faults: 1, ..taken };
    holds("a group of a volume is forced", forced, VolumeBounds { groups: 2, kills: 1, ..forced });
}

#[test]
fn every_order_of_expansions_is_done_at_storage_and_node_or_is_in_the_ledger_v4_v5_c109_c111_c149() {
    let online = VolumeBounds { expansions: 1, expands: Expands::Online, ..CLAIMED };
    let two = VolumeBounds { expansions: 2, claims: 2, releases: 1, ..online };
    holds("a volume is expanded twice", two, VolumeBounds { faults: 1, ..two });
    let faults = VolumeBounds { faults: 2, pauses: 1, ..online };
    holds("expansions of a volume fail", faults, VolumeBounds { faults: 3, expansions: 2, ..faults });
    let killed = VolumeBounds { kills: 1, ..online };
    holds("a host that expands a volume is killed", killed, VolumeBounds { kills: 2, faults: 1, ..killed });
    let failures = VolumeBounds { failures: 1, crashes: 1, releases: 0, ..online };
    holds("writes of an expansion fail", failures, VolumeBounds { faults: 1, ..failures });
    let takeovers = VolumeBounds { takeovers: 1, faults: 1, ..online };
    holds("another instance expands", takeovers, VolumeBounds { takeovers: 2, pauses: 1, ..takeovers });
    let offline = VolumeBounds { expands: Expands::Offline, faults: 1, pauses: 1, ..online };
    holds("a volume is expanded offline", offline, VolumeBounds { claims: 2, kills: 1, ..offline });
    let forced = VolumeBounds { forces: 1, faults: 1, ..online };
    holds("an expansion is forced", forced, VolumeBounds { expansions: 2, kills: 1, ..forced });
}
