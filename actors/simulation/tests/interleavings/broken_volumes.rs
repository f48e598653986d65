//! Owners of volumes with deliberate faults: the search finds each under the law that forbids its fault.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::kernel::CallKey;
use callboard_actors::shell::{Effect, Input, StopMode};
use callboard_actors::vocabulary::Generation;
use callboard_machines::volume::{Claimed, Disown, VolumeAsk, VolumeSpec};
use callboard_machines::volumes::{
    ClaimError, DeleteError, NoAnswer, Volumes, VolumesAnswer, VolumesAsk, VolumesCall, VolumesChange,
    VolumesNews, VolumesTimer,
};
use callboard_simulation::{AlterEffects, Law, TamperEffects, VolumesBounds, VolumesWorld};

use crate::{changed, tampered_is_found_out, without};

const NONE: VolumesBounds = VolumesBounds::NONE;
const CLAIMED: VolumesBounds = VolumesBounds { claims: 1, releases: 1, ..NONE };
const CREATED: VolumesBounds = VolumesBounds { are_registered: false, creations: 1, ..NONE };

fn spoiled(law: Law, bounds: VolumesBounds, spoil: AlterEffects<Volumes>) {
    tampered_is_found_out(law, bounds, VolumesWorld::new, TamperEffects(spoil));
}

/// The same call again.
fn called(call: VolumesCall) -> Effect<Volumes> {
    Effect::Call { key: CallKey::default(), deadline: Duration::from_secs(10), call }
}

/// Does not refuse such claims.
fn unrefused(effects: Vec<Effect<Volumes>>, is_meant: fn(&ClaimError) -> bool) -> Vec<Effect<Volumes>> {
    without(
        effects,
        |effect| matches!(effect, Effect::Reply(_, VolumesAnswer::Claim(Err(error))) if is_meant(error)),
    )
}

#[test]
fn an_owner_that_starts_a_second_actor_of_a_volume_breaks_v2() {
    spoiled(Law::V2, CLAIMED, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Call { call: VolumesCall::Start { life, config }, .. } => {
                Some(called(VolumesCall::Start { life: life.next(), config: config.clone() }))
            }
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn an_owner_that_lets_a_claim_of_an_unknown_volume_pass_breaks_v12() {
    let bounds = VolumesBounds { claims: 1, creations: 0, ..CREATED };
    spoiled(Law::V12, bounds, |_, effects| {
        unrefused(effects, |error| matches!(error, ClaimError::Unknown(_)))
    });
}

#[test]
fn an_owner_that_does_not_count_the_volumes_on_its_node_breaks_v12() {
    let bounds = VolumesBounds { limit: 1, volumes: 2, claims: 2, ..NONE };
    spoiled(Law::V12, bounds, |_, effects| {
        unrefused(effects, |error| matches!(error, ClaimError::NodeFull { .. }))
    });
}

#[test]
fn an_owner_that_takes_new_claims_of_a_plugin_whose_stop_waits_breaks_v13() {
    let bounds = VolumesBounds { volumes: 2, claims: 2, waits: 1, ..NONE };
    spoiled(Law::V13, bounds, |_, effects| {
        unrefused(effects, |error| matches!(error, ClaimError::PluginLeaving(_)))
    });
}

#[test]
fn an_owner_that_does_not_heed_where_a_volume_can_be_reached_breaks_v12() {
    let bounds = VolumesBounds { is_apart: true, claims: 1, ..NONE };
    spoiled(Law::V12, bounds, |_, effects| {
        unrefused(effects, |error| matches!(error, ClaimError::Unreachable { .. }))
    });
}

#[test]
fn an_owner_that_tells_a_used_plugin_as_unused_breaks_v13() {
    let bounds = VolumesBounds { waits: 1, ..CLAIMED };
    spoiled(Law::V13, bounds, |input, effects| {
        let is_answer =
            |effect: &Effect<_>| matches!(effect, Effect::Reply(_, VolumesAnswer::AwaitUnused(_)));
        let mut effects = without(effects, is_answer);
        if let Input::Asked { id, ask: VolumesAsk::AwaitUnused(_), .. } = input {
            effects.push(Effect::Reply(*id, VolumesAnswer::AwaitUnused(Ok(()))));
        }
        effects
    });
}

#[test]
fn an_owner_that_never_asks_whether_a_volume_is_vacant_breaks_v13() {
    let bounds = VolumesBounds { faults: 1, claims: 1, ..NONE };
    spoiled(Law::V13, bounds, |_, effects| {
        let is_check =
            |call: &VolumesCall| matches!(call, VolumesCall::Ask { ask: VolumeAsk::DescribeVolume(_), .. });
        without(effects, |effect| matches!(effect, Effect::Call { call, .. } if is_check(call)))
    });
}

#[test]
fn an_owner_that_confirms_no_claims_of_an_actor_that_starts_later_breaks_v14() {
    let bounds = VolumesBounds { is_claimed: true, confirmations: 1, falls: 1, pauses: 1, ..NONE };
    spoiled(Law::V14, bounds, |input, mut effects| {
        let is_confirmation = |effect: &Effect<_>| {
            matches!(
                effect,
                Effect::Call { call: VolumesCall::Ask { ask: VolumeAsk::ConfirmClaims(_), .. }, .. }
            )
        };
        // The call for a caller's request comes before it.
        if let (Input::Elapsed(_), Some(place)) = (input, effects.iter().rposition(is_confirmation)) {
            effects.remove(place);
        }
        effects
    });
}

#[test]
fn an_owner_that_takes_every_allocation_of_an_earlier_run_for_dead_breaks_v8() {
    let bounds = VolumesBounds { is_claimed: true, confirmations: 1, ..NONE };
    spoiled(Law::V8, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call {
                call: VolumesCall::Ask { ask: VolumeAsk::ConfirmClaims(confirm), .. },
                ..
            } = effect
            {
                confirm.living = Arc::default();
            }
        })
    });
}

#[test]
fn an_owner_that_answers_success_for_an_actor_that_fell_breaks_v15() {
    let bounds = VolumesBounds { falls: 1, claims: 1, ..NONE };
    spoiled(Law::V15, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Reply(_, VolumesAnswer::Claim(answer @ Err(ClaimError::NoAnswer(_)))) = effect {
                *answer = Ok(Claimed {
                    path: "/t".into(),
                    is_block: false,
                    read_only: false,
                    generation: Generation::new(1),
                });
            }
        })
    });
}

#[test]
fn an_owner_that_stops_an_actor_by_its_report_breaks_v15() {
    spoiled(Law::V15, CLAIMED, |input, mut effects| {
        if let Input::Asked { ask: VolumesAsk::VolumeReported(reported), .. } = input {
            effects.push(called(VolumesCall::Stop { life: reported.life, mode: StopMode::Stop }));
        }
        effects
    });
}

#[test]
fn an_owner_that_keeps_a_route_to_itself_breaks_res_05() {
    spoiled(Law::Res5, VolumesBounds { words: 1, ..NONE }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Call { call: VolumesCall::SetRoute { .. }, .. }))
    });
}

#[test]
fn an_owner_that_tells_what_a_former_actor_reports_breaks_reg_08() {
    let bounds = VolumesBounds { falls: 1, claims: 1, ..NONE };
    spoiled(Law::Reg8, bounds, |input, mut effects| {
        if let Input::Asked { ask: VolumesAsk::VolumeReported(reported), .. } = input {
            effects.push(Effect::Publish(VolumesNews::Forgotten(reported.volume.clone())));
        }
        effects
    });
}

#[test]
fn an_owner_that_knows_a_created_volume_by_another_id_breaks_c059() {
    spoiled(Law::C59, CREATED, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Persist(_, VolumesChange::Keep(known)) = effect {
                let known = Arc::make_mut(known);
                Arc::make_mut(&mut known.spec).volume_id = "another".to_owned();
            }
        })
    });
}

#[test]
fn an_owner_that_has_a_volume_forget_what_no_other_one_has_breaks_c059() {
    spoiled(Law::C59, CREATED, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: VolumesCall::Ask { ask, .. }, .. } = effect
                && matches!(ask, VolumeAsk::DescribeVolume(_))
            {
                *ask = VolumeAsk::Disown(Disown { volume_id: "v0-1".to_owned() });
            }
        })
    });
}

#[test]
fn an_owner_that_does_not_say_whether_what_it_named_before_its_id_was_known_may_be_deleted_breaks_c059() {
    spoiled(Law::C59, VolumesBounds { creations: 1, deletions: 1, ..CREATED }, |_, effects| {
        without(effects, |effect| {
            matches!(
                effect,
                Effect::Call { call: VolumesCall::Ask { ask: VolumeAsk::AllowDeletion(_), .. }, .. }
            )
        })
    });
}

#[test]
fn an_owner_that_does_not_write_that_a_deletion_was_asked_for_breaks_c059() {
    spoiled(Law::C59, VolumesBounds { deletions: 1, kills: 1, ..NONE }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Persist(_, VolumesChange::Delete(_))))
    });
}

#[test]
fn an_owner_that_does_not_write_what_it_knows_breaks_shell_2() {
    spoiled(Law::Shell2, VolumesBounds { changes: 1, ..NONE }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Persist(..)))
    });
}

#[test]
fn an_owner_that_leaves_an_actor_behind_breaks_s3() {
    let bounds = VolumesBounds { claims: 1, stops: &[StopMode::Stop], ..NONE };
    spoiled(Law::S3, bounds, |_, effects| {
        without(effects, |effect| {
            matches!(effect, Effect::Call { call: VolumesCall::Stop { .. } | VolumesCall::Kill { .. }, .. })
        })
    });
}

#[test]
fn an_owner_that_orders_a_group_of_the_volume_that_is_named_first_breaks_c002() {
    let bounds = VolumesBounds { volumes: 2, groups: 2, ..NONE };
    spoiled(Law::C2, bounds, |input, mut effects| {
        let Input::Asked { ask: VolumesAsk::CreateGroupSnapshot(asked), .. } = input else { return effects };
        for effect in &mut effects {
            if let Effect::Call { call: VolumesCall::Start { config, .. }, .. } = effect {
                let spec = VolumeSpec { key: asked.volumes[0].clone(), ..VolumeSpec::clone(&config.spec) };
                config.spec = Arc::new(spec);
            }
        }
        effects
    });
}

#[test]
fn an_owner_that_says_of_a_deletion_that_goes_on_that_nothing_was_begun_breaks_shell_1a() {
    spoiled(Law::Shell1a, VolumesBounds { sicknesses: 1, deletions: 1, ..NONE }, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Reply(_, VolumesAnswer::DeleteVolume(Err(DeleteError::NoAnswer(no_answer)))) =
                effect
                && let NoAnswer::NotDurable { is_begun, .. } = no_answer
            {
                *is_begun = false;
            }
        })
    });
}

#[test]
fn an_owner_that_keeps_the_record_of_a_deletion_that_was_refused_breaks_c059() {
    spoiled(Law::C59, VolumesBounds { sicknesses: 1, deletions: 1, ..NONE }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Persist(_, VolumesChange::Stay(_))))
    });
}

#[test]
fn an_owner_that_does_not_repeat_a_deletion_that_the_disk_did_not_take_breaks_v13() {
    let bounds = VolumesBounds { sicknesses: 1, deletions: 1, falls: 1, pauses: 1, ..NONE };
    spoiled(Law::V13, bounds, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(VolumesTimer::Delete(_), _)))
    });
}
