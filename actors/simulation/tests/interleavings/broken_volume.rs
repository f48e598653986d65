//! Volumes with deliberate faults: the search finds each under the law that forbids its fault.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::kernel::{CallKey, Gate};
use callboard_actors::shell::{Effect, Input};
use callboard_actors::vocabulary::{Generation, PluginName, RunNumber, VolumeName, VolumeNamespace};
use callboard_machines::csi::AccessMode;
use callboard_machines::mounts::{BlockDevice, DeviceNumber};
use callboard_machines::volume::{
    Before, Claim, ClaimError, Claimed, ConfirmClaims, CreateArgs, DeleteError, Done, Expands, Known, Mark,
    OrderCall, Origin, RouteChanged, Seen, Step, Volume, VolumeAnswer, VolumeAsk, VolumeCall, VolumeChange,
    VolumeImage, VolumeKey, VolumeNews, VolumeOutcome, VolumeRecord, VolumeSpec, VolumeTimer,
};
use callboard_simulation::{
    AlterEffects, Law, TamperEffects, TamperImage, TamperInput, VolumeBounds, VolumeWorld,
};

use crate::{changed, tampered_is_found_out, without};

const CLAIMED: VolumeBounds = VolumeBounds { claims: 1, ..VolumeBounds::NONE };
const RELEASED: VolumeBounds = VolumeBounds { releases: 1, ..CLAIMED };

fn spoiled(law: Law, bounds: VolumeBounds, spoil: AlterEffects<Volume>) {
    tampered_is_found_out(law, bounds, VolumeWorld::new, TamperEffects(spoil));
}

fn misheard(law: Law, bounds: VolumeBounds, mishears: fn(Input<Volume>) -> Option<Input<Volume>>) {
    tampered_is_found_out(law, bounds, VolumeWorld::new, TamperInput(mishears));
}

/// The request, changed in this way.
fn asked(input: Input<Volume>, change: fn(VolumeAsk) -> VolumeAsk) -> Option<Input<Volume>> {
    Some(match input {
        Input::Asked { id, asked_at, ask } => Input::Asked { id, asked_at, ask: change(ask) },
        other => other,
    })
}

/// Treats an unpublish that failed in this way as done.
fn takes_for_done(input: Input<Volume>, failed: fn(Known) -> bool) -> Option<Input<Volume>> {
    Some(match input {
        Input::Returned {
            key,
            call: call @ VolumeCall::Unpublish(..),
            outcome: Ok(VolumeOutcome::Node(Err(failure), _)),
        } if failed(failure.known) => {
            Input::Returned { key, call, outcome: Ok(VolumeOutcome::Node(Ok(()), Seen::Nothing)) }
        }
        other => other,
    })
}

/// A mark that no volume of these worlds has at its paths.
const fn another_device() -> Mark {
    let device = BlockDevice { number: DeviceNumber { major: 0, minor: 9 }, sequence: None };
    Mark::Device { mount: None, device }
}

#[test]
fn a_volume_that_calls_before_its_claim_is_written_breaks_v1() {
    spoiled(Law::V1, CLAIMED, |_, effects| {
        without(
            effects,
            |effect| matches!(effect, Effect::Persist(_, VolumeChange::KeepClaim(row)) if !row.publish.is_up()),
        )
    });
}

#[test]
fn a_volume_that_publishes_before_its_intent_is_written_breaks_v5() {
    spoiled(Law::V5, CLAIMED, |_, effects| {
        without(effects, |effect| match effect {
            Effect::Persist(_, VolumeChange::KeepClaim(row)) => matches!(row.publish, Step::GoingUp(_)),
            _ => false,
        })
    });
}

#[test]
fn a_volume_that_never_writes_what_its_staging_brought_breaks_v5() {
    spoiled(Law::V5, CLAIMED, |_, effects| {
        without(
            effects,
            |effect| matches!(effect, Effect::Persist(_, VolumeChange::KeepVolume(row)) if row.stage.is_up()),
        )
    });
}

#[test]
fn a_volume_that_stages_without_the_context_of_its_attachment_breaks_v10() {
    spoiled(Law::V10, VolumeBounds { attaches: true, ..CLAIMED }, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: VolumeCall::Stage(_, _, args, ..), .. } = effect {
                args.publish_context.clear();
            }
        })
    });
}

#[test]
fn a_volume_that_makes_directories_for_a_step_that_it_has_not_written_breaks_v5() {
    spoiled(Law::V5, VolumeBounds { attaches: true, ..CLAIMED }, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: VolumeCall::Attach(.., Some(path)), .. } = effect {
                path.set_file_name("elsewhere");
            }
        })
    });
}

/// The directory above it would be removed as a directory of the volume.
#[test]
fn a_volume_that_unpublishes_the_directory_above_its_target_breaks_v6() {
    spoiled(Law::V6, RELEASED, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: VolumeCall::Unpublish(_, _, path), .. } = effect {
                path.pop();
            }
        })
    });
}

#[test]
fn a_volume_that_loses_the_context_of_its_creation_breaks_v10() {
    let bounds = VolumeBounds { is_new: true, creations: 1, ..CLAIMED };
    spoiled(Law::V10, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: VolumeCall::Publish(spec, ..), .. } = effect {
                Arc::make_mut(spec).volume_context.clear();
            }
        })
    });
}

/// Its own mount would be taken for a foreign one.
#[test]
fn a_volume_that_takes_a_step_that_may_be_up_for_down_breaks_v4() {
    let unclear = VolumeBounds { faults: 1, ..CLAIMED };
    spoiled(Law::V4, unclear, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: VolumeCall::Publish(_, _, _, before), .. } = effect {
                *before = Before::Down;
            }
        })
    });
}

#[test]
fn a_volume_that_makes_each_call_twice_breaks_v2() {
    spoiled(Law::V2, CLAIMED, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Call { key, deadline, call } if call.csi().is_some() => {
                Some(Effect::Call { key: *key, deadline: *deadline, call: call.clone() })
            }
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn a_volume_that_unstages_after_a_refused_unpublish_breaks_v3() {
    misheard(Law::V3, VolumeBounds { faults: 1, ..RELEASED }, |input| {
        takes_for_done(input, |known| known == Known::Refused)
    });
}

#[test]
fn a_volume_that_forgets_an_attachment_whose_undo_the_plugin_does_not_have_breaks_v9() {
    misheard(Law::V9, VolumeBounds { attaches: true, faults: 1, ..RELEASED }, |input| {
        Some(match input {
            Input::Returned {
                key,
                call: call @ VolumeCall::Detach(..),
                outcome: Ok(VolumeOutcome::Controller(Err(failure))),
            } if failure.known == Known::Unsupported => {
                let done = Ok(VolumeOutcome::Controller(Ok(Default::default())));
                Input::Returned { key, call, outcome: done }
            }
            other => other,
        })
    });
}

#[test]
fn a_volume_that_forgets_a_staging_whose_undo_the_plugin_denies_to_have_breaks_v9() {
    misheard(Law::V9, VolumeBounds { losses: 1, faults: 1, ..RELEASED }, |input| {
        Some(match input {
            Input::Returned {
                key,
                call: call @ VolumeCall::Unstage(..),
                outcome: Ok(VolumeOutcome::Node(Err(failure), Seen::Nothing)),
            } if failure.known == Known::Unsupported => {
                let done = Ok(VolumeOutcome::Node(Ok(()), Seen::Nothing));
                Input::Returned { key, call, outcome: done }
            }
            other => other,
        })
    });
}

#[test]
fn a_volume_that_unstages_below_what_was_given_up_and_is_mounted_breaks_v3() {
    misheard(Law::V3, VolumeBounds { gives_up: 1, faults: 3, pauses: 2, ..RELEASED }, |input| {
        Some(match input {
            Input::Returned { key, call: call @ VolumeCall::Look { .. }, outcome: Ok(_) } => {
                Input::Returned { key, call, outcome: Ok(VolumeOutcome::Looked(Seen::Nothing)) }
            }
            other => other,
        })
    });
}

#[test]
fn a_volume_that_forgets_a_damaged_claim_breaks_v9() {
    let misreads = TamperImage(|mut image: VolumeImage| {
        image.lost.clear();
        image
    });
    tampered_is_found_out(Law::V9, VolumeBounds { damages: 1, ..CLAIMED }, VolumeWorld::new, misreads);
}

/// It treats a damaged row as one that never existed, once nothing is published.
#[test]
fn a_volume_that_forgets_its_staging_with_its_damaged_row_breaks_v5() {
    let misreads = TamperImage(|mut image: VolumeImage| {
        if let (None, Some(claim)) = (&image.volume, image.claims.first()) {
            let registered = VolumeRecord {
                spec: claim.spec.clone(),
                existence: None,
                attach: Step::Down,
                stage: Step::Down,
            };
            image.volume.get_or_insert(registered);
        }
        image
    });
    let bounds = VolumeBounds { damages: 1, faults: 1, ..RELEASED };
    tampered_is_found_out(Law::V5, bounds, VolumeWorld::new, misreads);
}

#[test]
fn a_volume_whose_claims_do_not_have_its_attachment_breaks_v9() {
    let bounds = VolumeBounds { stages: false, attaches: true, damages: 1, ..RELEASED };
    spoiled(Law::V9, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Persist(_, VolumeChange::KeepClaim(row)) = effect {
                Arc::make_mut(row).attach = None;
            }
        })
    });
}

/// It looks there again instead, and counts that as its tries.
#[test]
fn a_volume_that_never_unpublishes_what_was_given_up_breaks_v3() {
    spoiled(Law::V3, VolumeBounds { gives_up: 1, faults: 1, pauses: 2, ..RELEASED }, |input, effects| {
        let was_looked_at = matches!(input, Input::Returned { call: VolumeCall::Look { .. }, .. });
        changed(effects, |effect| match effect {
            Effect::Call { call: call @ VolumeCall::Unpublish(..), .. } if was_looked_at => {
                if let VolumeCall::Unpublish(_, _, path) = call {
                    *call = VolumeCall::Look { path: path.clone(), staging: None };
                }
            }
            _ => {}
        })
    });
}

#[test]
fn a_volume_that_takes_a_timeout_for_done_breaks_v4() {
    misheard(Law::V4, VolumeBounds { faults: 1, ..RELEASED }, |input| {
        takes_for_done(input, |known| known == Known::Unclear)
    });
}

#[test]
fn a_volume_that_is_deleted_by_an_id_that_its_owner_has_not_named_breaks_c059() {
    let bounds = VolumeBounds { creations: 1, deletions: 1, is_new: true, ..VolumeBounds::NONE };
    spoiled(Law::C59, bounds, |input, mut effects| {
        let Input::Returned { key, .. } = input else { return effects };
        let made = effects.iter().find_map(|effect| match effect {
            Effect::Persist(_, VolumeChange::KeepVolume(row)) => {
                row.existence.as_ref().filter(|existence| existence.step.is_up()).map(|_| row.spec.clone())
            }
            _ => None,
        });
        let deadline = Duration::from_secs(1);
        let delete =
            |spec| Effect::Call { key: *key, deadline, call: VolumeCall::Delete(spec, key.generation) };
        effects.extend(made.map(delete));
        effects
    });
}

#[test]
fn a_volume_that_writes_no_intent_breaks_v5() {
    spoiled(Law::V5, CLAIMED, |_, effects| {
        without(effects, |effect| match effect {
            Effect::Persist(_, VolumeChange::KeepVolume(row)) => matches!(row.stage, Step::GoingUp(_)),
            _ => false,
        })
    });
}

#[test]
fn a_volume_that_believes_a_plugin_without_a_look_breaks_v7() {
    misheard(Law::V7, VolumeBounds { lies: 1, ..CLAIMED }, |input| {
        Some(match input {
            Input::Returned {
                key,
                call: call @ VolumeCall::Publish(..),
                outcome: Ok(VolumeOutcome::Node(Ok(()), Seen::Nothing)),
            } => {
                let seen = Seen::Present(another_device());
                Input::Returned { key, call, outcome: Ok(VolumeOutcome::Node(Ok(()), seen)) }
            }
            other => other,
        })
    });
}

/// Written data would go to the disk of the host.
#[test]
fn a_volume_that_hands_out_a_bare_staging_directory_breaks_v7() {
    misheard(Law::V7, VolumeBounds { lies: 1, ..CLAIMED }, |input| {
        Some(match input {
            Input::Returned {
                key,
                call: call @ VolumeCall::Publish(..),
                outcome: Ok(VolumeOutcome::Node(Ok(()), Seen::BareStaging)),
            } => {
                let seen = Seen::Present(another_device());
                Input::Returned { key, call, outcome: Ok(VolumeOutcome::Node(Ok(()), seen)) }
            }
            other => other,
        })
    });
}

#[test]
fn a_volume_that_releases_the_claims_of_the_living_breaks_v8() {
    misheard(Law::V8, VolumeBounds { kills: 1, ..CLAIMED }, |input| {
        asked(input, |ask| match ask {
            VolumeAsk::ConfirmClaims(_) => {
                VolumeAsk::ConfirmClaims(ConfirmClaims { living: Arc::default(), unclear: Arc::default() })
            }
            other => other,
        })
    });
}

#[test]
fn a_volume_that_is_forced_without_an_audit_breaks_v9() {
    spoiled(Law::V9, VolumeBounds { forces: 1, ..RELEASED }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Publish(VolumeNews::Forced(_))))
    });
    // It forgets the audit before it is published, and its host is killed in between.
    spoiled(Law::V9, VolumeBounds { forces: 1, kills: 1, ..RELEASED }, |_, effects| {
        let with_more = |effect| {
            let forgets = match &effect {
                Effect::Persist(gate, VolumeChange::Force { audit, .. }) => {
                    Some(Effect::Persist(*gate, VolumeChange::ForgetAudits(vec![audit.number])))
                }
                _ => None,
            };
            [Some(effect), forgets].into_iter().flatten()
        };
        effects.into_iter().flat_map(with_more).collect()
    });
}

#[test]
fn a_volume_that_does_not_heed_the_access_mode_breaks_v12() {
    let bounds = VolumeBounds { allocations: 2, claims: 2, is_single: true, ..CLAIMED };
    misheard(Law::V12, bounds, |input| {
        asked(input, |ask| match ask {
            VolumeAsk::Claim(Claim { allocation, mut usage, within }) => {
                usage.capability.access_mode = AccessMode::MultiNodeMultiWriter;
                VolumeAsk::Claim(Claim { allocation, usage, within })
            }
            other => other,
        })
    });
}

#[test]
fn a_volume_that_takes_claims_of_an_earlier_run_for_its_own_breaks_v14() {
    let misreads = TamperImage(|mut image: VolumeImage| {
        image.claims.iter_mut().for_each(|claim| claim.run = RunNumber::new(2));
        image
    });
    let bounds = VolumeBounds { kills: 1, ..CLAIMED };
    tampered_is_found_out(Law::V14, bounds, VolumeWorld::new, misreads);
}

#[test]
fn a_volume_that_answers_success_to_a_caller_that_gave_up_breaks_v15() {
    spoiled(Law::V15, VolumeBounds { pauses: 1, ..CLAIMED }, |input, mut effects| {
        if let Input::Elapsed(VolumeTimer::Waiter(_)) = input {
            for effect in &mut effects {
                if let Effect::Reply(_, VolumeAnswer::Claim(answer @ Err(ClaimError::Pending { .. }))) =
                    effect
                {
                    *answer = Ok(Claimed {
                        path: "/d".into(),
                        is_block: true,
                        read_only: false,
                        generation: Generation::new(1),
                    });
                }
            }
        }
        effects
    });
}

#[test]
fn a_volume_that_goes_on_with_the_former_instance_breaks_v16() {
    misheard(Law::V16, VolumeBounds { takeovers: 1, ..CLAIMED }, |input| {
        asked(input, |ask| match ask {
            VolumeAsk::RouteChanged(RouteChanged { mut route }) => {
                if let Some(node) = &mut route.node {
                    node.generation = Generation::new(1);
                }
                VolumeAsk::RouteChanged(RouteChanged { route })
            }
            other => other,
        })
    });
}

const CREATED: VolumeBounds = VolumeBounds { is_new: true, creations: 1, ..VolumeBounds::NONE };

/// The same arguments under another name.
fn renamed(args: &Arc<CreateArgs>) -> Arc<CreateArgs> {
    Arc::new(CreateArgs { name: format!("{}-again", args.name), ..CreateArgs::clone(args) })
}

#[test]
fn a_volume_that_is_created_by_another_name_after_an_unclear_try_breaks_v4() {
    spoiled(Law::V4, VolumeBounds { faults: 1, pauses: 1, ..CREATED }, |input, mut effects| {
        if !matches!(input, Input::Elapsed(VolumeTimer::Retry)) {
            return effects;
        }
        for effect in &mut effects {
            match effect {
                Effect::Persist(_, VolumeChange::KeepVolume(row)) => {
                    let Some(existence) = &mut Arc::make_mut(row).existence else { continue };
                    if let Origin::Created(args) = &mut existence.origin {
                        *args = renamed(args);
                    }
                }
                Effect::Call { call: VolumeCall::Create(_, _, args), .. } => *args = renamed(args),
                _ => {}
            }
        }
        effects
    });
}

#[test]
fn a_volume_that_is_forgotten_after_an_unclear_creation_breaks_v5() {
    spoiled(Law::V5, VolumeBounds { faults: 1, ..CREATED }, |input, mut effects| {
        let is_unclear = matches!(input, Input::Returned { outcome: Ok(VolumeOutcome::Created(Err(failure))), .. }
            if failure.known == Known::Unclear);
        if is_unclear {
            effects.insert(0, Effect::Persist(Gate::Everything, VolumeChange::ForgetVolume));
        }
        effects
    });
}

#[test]
fn a_volume_that_is_deleted_while_it_is_claimed_breaks_v3() {
    let bounds = VolumeBounds { claims: 1, deletions: 1, ..CREATED };
    spoiled(Law::V3, bounds, |input, effects| {
        let Input::Asked { ask: VolumeAsk::DeleteVolume(_), .. } = input else { return effects };
        let is_refused = |effect: &Effect<Volume>| {
            matches!(effect, Effect::Reply(_, VolumeAnswer::DeleteVolume(Err(DeleteError::InUse { .. }))))
        };
        if !effects.iter().any(is_refused) {
            return effects;
        }
        let (generation, spec) = (Generation::new(1), spec());
        let key = CallKey { generation, ..CallKey::default() };
        vec![Effect::Call {
            key,
            deadline: Duration::from_secs(1),
            call: VolumeCall::Delete(spec, generation),
        }]
    });
}

const EXPANDED: VolumeBounds = VolumeBounds { expansions: 1, expands: Expands::Online, ..CLAIMED };

#[test]
fn a_volume_that_is_told_to_be_larger_before_its_plugin_has_answered_breaks_v4() {
    spoiled(Law::V4, EXPANDED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(VolumeNews::Changed(status)) = effect
                && !status.orders.is_empty()
            {
                Arc::make_mut(status).expanded_bytes = Some(10);
            }
        }
        effects
    });
}

#[test]
fn a_volume_that_does_not_grow_on_the_node_after_a_restart_breaks_v15() {
    let misreads = TamperImage(|mut image: VolumeImage| {
        image.orders.retain(|order| !order.at_controller.is_up());
        image
    });
    tampered_is_found_out(Law::V15, VolumeBounds { kills: 1, ..EXPANDED }, VolumeWorld::new, misreads);
}

#[test]
fn a_volume_that_forgets_an_expansion_when_its_storage_is_larger_breaks_v5() {
    spoiled(Law::V5, EXPANDED, |_, effects| {
        let forgets = |effect| match effect {
            Effect::Persist(gate, VolumeChange::KeepOrder(row)) if row.at_controller.is_up() => {
                Effect::Persist(gate, VolumeChange::ForgetOrder(row.number))
            }
            other => other,
        };
        let effects = effects.into_iter().map(forgets);
        let is_on_node = |effect: &Effect<Volume>| {
            matches!(effect, Effect::Call { call: VolumeCall::Order(_, _, OrderCall::Grow(_)), .. })
        };
        effects.filter(|effect| !is_on_node(effect)).collect()
    });
}

const GROUPED: VolumeBounds = VolumeBounds { groups: 1, ..VolumeBounds::NONE };

#[test]
fn a_volume_that_takes_a_group_before_that_is_on_disk_breaks_v5() {
    spoiled(Law::V5, GROUPED, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Persist(_, VolumeChange::KeepOrder(_))))
    });
}

#[test]
fn a_volume_that_tells_a_group_as_taken_that_its_plugin_has_not_answered_breaks_v4() {
    let bounds = VolumeBounds { faults: 2, pauses: 3, ..GROUPED };
    spoiled(Law::V4, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Reply(_, VolumeAnswer::PlaceOrder(answer @ Err(_))) = effect {
                *answer = Ok(Done::GroupTaken(Arc::default()));
            }
        })
    });
}

#[test]
fn a_volume_that_forgets_a_group_of_an_earlier_run_breaks_v15() {
    let misreads = TamperImage(|mut image: VolumeImage| {
        image.orders.clear();
        image
    });
    tampered_is_found_out(Law::V15, VolumeBounds { kills: 1, ..GROUPED }, VolumeWorld::new, misreads);
}

/// The volume of this world, as it was created.
fn spec() -> Arc<VolumeSpec> {
    let key = VolumeKey {
        namespace: VolumeNamespace::new("n").expect("it is a name"),
        name: VolumeName::new("v").expect("it is a name"),
    };
    let plugin = PluginName::new("p").expect("it is a name");
    let volume_id = "id-1".to_owned();
    let volume_context = [("of".to_owned(), volume_id.clone())].into();
    Arc::new(VolumeSpec { key, plugin, volume_id, volume_context })
}
