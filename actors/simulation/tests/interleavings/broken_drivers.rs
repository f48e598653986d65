//! Drivers, eventors and owners of them with deliberate faults: the search finds each under the law that forbids its fault.

use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::driver::{
    Driver, DriverCall, DriverConfig, DriverHealth, DriverLimits, DriverMode, DriverSpec, DriverStage,
    DriverTimer, GapReason, Reached, StartStep, TaskEventItem, process_name,
};
use callboard_actors::drivers::{
    DispensedDriver, Drivers, DriversAnswer, DriversAsk, DriversCall, DriversNews, DriversTimer, NotDispensed,
};
use callboard_actors::eventor::{Eventor, EventorCall, EventorTimer, JournalId};
use callboard_actors::process::{Executable, ProcessSpec};
use callboard_actors::processes::Recalled;
use callboard_actors::shell::{CallKey, Effect, Ending, Input, StopMode};
use callboard_actors::vocabulary::{DriverName, Generation, Timestamp};
use callboard_simulation::{
    AlterEffects, Conduct, DriversBounds, DriversTampers, DriversWorld, Law, Order, TamperEffects,
    TamperInput,
};

use crate::{changed, is_found_out, without};

const NONE: DriversBounds = DriversBounds::NONE;
const SERVING: DriversBounds =
    DriversBounds { begin: &[Order::Add, Order::Handle], is_serving: true, ..DriversBounds::NONE };
const ENDING: DriversBounds = DriversBounds { faults: (1, &[Conduct::Refuses]), ..SERVING };

fn found_out(law: Law, bounds: DriversBounds, tampers: DriversTampers) {
    let sound = DriversWorld::new(bounds, DriversTampers::default());
    is_found_out(law, &DriversWorld::new(bounds, tampers), &sound);
}

fn driver(law: Law, bounds: DriversBounds, spoil: AlterEffects<Driver>) {
    let tampers = DriversTampers { driver: Some(Rc::new(TamperEffects(spoil))), ..DriversTampers::default() };
    found_out(law, bounds, tampers);
}

fn eventor(law: Law, bounds: DriversBounds, spoil: AlterEffects<Eventor>) {
    let tampers =
        DriversTampers { eventor: Some(Rc::new(TamperEffects(spoil))), ..DriversTampers::default() };
    found_out(law, bounds, tampers);
}

fn owner(law: Law, bounds: DriversBounds, spoil: AlterEffects<Drivers>) {
    let tampers = DriversTampers { owner: Some(Rc::new(TamperEffects(spoil))), ..DriversTampers::default() };
    found_out(law, bounds, tampers);
}

fn config() -> DriverConfig {
    let name = DriverName::new("exec").unwrap();
    let process = process_name(&name).unwrap();
    let spec = DriverSpec::new(name, ProcessSpec::new(Executable::at("/bin/driver")));
    DriverConfig { spec, process, mode: DriverMode::Serve, limits: DriverLimits::default() }
}

// === Drivers ===

#[test]
fn a_driver_that_goes_on_although_it_is_told_to_stop_breaks_i6() {
    driver(Law::I6, DriversBounds { stops: &[StopMode::Stop], ..NONE }, |input, mut effects| {
        if matches!(input, Input::StopRequested(_)) {
            let call = DriverCall::Advance(StartStep::Recall, None);
            let deadline = std::time::Duration::from_secs(60);
            effects.insert(0, Effect::Call { key: CallKey::default(), deadline, call });
        }
        effects
    });
}

#[test]
fn a_driver_that_launches_again_what_was_refused_breaks_sec_07() {
    let refused = DriversBounds { faults: (1, &[Conduct::Declines]), ..NONE };
    driver(Law::Sec7, refused, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call, .. } = effect
                && *call == DriverCall::AwaitChange
            {
                *call = DriverCall::Advance(StartStep::Recall, None);
            }
        }
        effects
    });
}

#[test]
fn a_driver_that_counts_a_launch_of_which_nothing_was_begun_breaks_hlt_04() {
    driver(Law::Hlt4, DriversBounds { faults: (1, &[Conduct::Refuses]), ..NONE }, |_, effects| {
        changed(effects, |effect| match effect {
            Effect::Publish(report) if report.stage == DriverStage::Pausing => report.launches += 1,
            _ => {}
        })
    });
}

#[test]
fn a_driver_that_waits_longer_each_time_for_a_launch_of_which_nothing_was_begun_breaks_hlt_05() {
    let bounds = DriversBounds { faults: (1, &[Conduct::Refuses]), ..NONE };
    driver(Law::Hlt5, bounds, |input, effects| {
        let is_launch =
            matches!(input, Input::Returned { call: DriverCall::Advance(StartStep::Launch, _), .. });
        changed(effects, |effect| match effect {
            Effect::StartTimer(DriverTimer::Retry, at) if is_launch => {
                *at = *at + std::time::Duration::from_secs(5)
            }
            _ => {}
        })
    });
}

#[test]
fn a_driver_that_stops_and_leaves_its_process_breaks_shd_06() {
    driver(Law::Shd6, DriversBounds { stops: &[StopMode::Stop], ..SERVING }, |input, mut effects| {
        if matches!(input, Input::StopRequested(_)) {
            effects.push(Effect::Stop(Ending::Normal));
        }
        effects
    });
}

#[test]
fn a_driver_that_launches_beside_the_process_it_left_breaks_prc_04() {
    let mishears = TamperInput(|input| match input {
        Input::Returned {
            key,
            call: call @ DriverCall::Advance(StartStep::Recall, _),
            outcome: Ok(Ok(_)),
        } => {
            let outcome = Ok(Ok(Reached::Recalled(Recalled::Unknown)));
            Some(Input::Returned { key, call, outcome })
        }
        other => Some(other),
    });
    let bounds = DriversBounds { kills: 1, survives: true, ..SERVING };
    let tampers = DriversTampers { driver: Some(Rc::new(mishears)), ..DriversTampers::default() };
    found_out(Law::Prc4, bounds, tampers);
}

#[test]
fn a_driver_that_tries_again_at_once_breaks_hlt_05() {
    driver(Law::Hlt5, ENDING, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::StartTimer(DriverTimer::Retry, at) = effect {
                *at = Timestamp::default();
            }
        }
        effects
    });
}

#[test]
fn a_driver_that_gives_up_after_the_end_of_its_stream_breaks_hlt_05() {
    driver(Law::Hlt5, ENDING, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(DriverTimer::Retry, _)))
    });
}

const HANGING: DriversBounds =
    DriversBounds { pings: true, faults: (1, &[Conduct::Hangs]), pauses: 2, ..SERVING };

#[test]
fn a_driver_that_is_not_pinged_again_breaks_hlt_03() {
    driver(Law::Hlt3, HANGING, |input, effects| {
        let is_due = matches!(input, Input::Elapsed(DriverTimer::Ping));
        without(effects, |effect| is_due && matches!(effect, Effect::StartTimer(DriverTimer::Ping, _)))
    });
}

/// Changes the report of a driver to healthy as soon as a ping has returned, answered or not.
fn healthy_after_pings(
    input: &Input<Driver>,
    effects: Vec<Effect<Driver>>,
    is_answered: bool,
) -> Vec<Effect<Driver>> {
    let is_meant = matches!(input, Input::Returned { call: DriverCall::Ping, outcome, .. } if outcome.is_ok() == is_answered);
    changed(effects, |effect| {
        if let Effect::Publish(report) = effect
            && is_meant
        {
            report.health = DriverHealth::Healthy;
        }
    })
}

#[test]
fn a_driver_that_takes_a_ping_without_an_answer_for_one_that_has_one_breaks_hlt_03() {
    driver(Law::Hlt3, HANGING, |input, effects| healthy_after_pings(input, effects, false));
}

#[test]
fn a_driver_that_loses_what_it_was_told_before_a_ping_was_answered_breaks_hlt_03() {
    let bounds = DriversBounds { faults: (2, &[Conduct::Hangs, Conduct::IsUnwell]), pauses: 3, ..HANGING };
    driver(Law::Hlt3, bounds, |input, effects| healthy_after_pings(input, effects, true));
}

#[test]
fn a_driver_that_hangs_up_over_a_ping_without_an_answer_breaks_hlt_03() {
    driver(Law::Hlt3, HANGING, |input, mut effects| {
        if matches!(input, Input::Returned { call: DriverCall::Ping, outcome: Err(_), .. }) {
            let (reason, within) = (String::new(), std::time::Duration::ZERO);
            let call = DriverCall::HangUp { is_worth_retrying: true, reason, within };
            let deadline = std::time::Duration::from_secs(2);
            effects.push(Effect::Call { key: CallKey::default(), deadline, call });
        }
        effects
    });
}

#[test]
fn a_driver_that_keeps_its_first_fingerprint_to_itself_breaks_hlt_04() {
    driver(Law::Hlt4, NONE, |_, effects| {
        without(
            effects,
            |effect| matches!(effect, Effect::Publish(report) if report.health == DriverHealth::Healthy),
        )
    });
}

#[test]
fn a_driver_that_does_not_hang_up_when_its_process_ends_breaks_prc_05() {
    driver(Law::Prc5, DriversBounds { exits: 1, ..SERVING }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Call { call: DriverCall::HangUp { .. }, .. }))
    });
}

#[test]
fn a_driver_that_does_not_hang_up_when_it_is_stopped_breaks_shd_03() {
    let bounds = DriversBounds { stops: &[StopMode::Detach], survives: true, ..SERVING };
    driver(Law::Shd3, bounds, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Call { call: DriverCall::HangUp { .. }, .. }))
    });
}

#[test]
fn a_driver_that_is_asked_to_end_over_calls_in_flight_breaks_shd_04() {
    driver(Law::Shd4, DriversBounds { stops: &[StopMode::Stop], ..SERVING }, |_, effects| {
        let hurries = |effect: Effect<Driver>| match effect {
            Effect::Call { key, deadline, call: call @ DriverCall::HangUp { .. } } => {
                let shutdown = Effect::Call { key, deadline, call: DriverCall::ShutdownAnswer };
                vec![Effect::Call { key, deadline, call }, shutdown]
            }
            other => vec![other],
        };
        effects.into_iter().flat_map(hurries).collect()
    });
}

// === Eventors ===

#[test]
fn an_eventor_that_does_not_subscribe_again_breaks_evt_03() {
    eventor(Law::Evt3, ENDING, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(EventorTimer::Reopen, _)))
    });
}

#[test]
fn an_eventor_that_opens_its_stream_one_event_too_late_breaks_evt_02() {
    eventor(Law::Evt2, DriversBounds { events: 2, ..ENDING }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: EventorCall::Open { after: Some(after), .. }, .. } = effect {
                after.sequence += 1;
            }
        }
        effects
    });
}

#[test]
fn an_eventor_that_hides_an_interruption_breaks_evt_02() {
    eventor(Law::Evt2, DriversBounds { events: 3, keeps_positions: false, ..ENDING }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: EventorCall::Hand(items), .. } = effect {
                Arc::make_mut(items).retain(|(_, item)| matches!(item, TaskEventItem::Event { .. }));
            }
        }
        effects
    });
}

#[test]
fn an_eventor_that_hands_events_over_backwards_breaks_evt_02() {
    eventor(Law::Evt2, DriversBounds { events: 2, keeps_positions: false, ..SERVING }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: EventorCall::Hand(items), .. } = effect {
                Arc::make_mut(items).reverse();
            }
        }
        effects
    });
}

/// An event, replaced by a gap without a number.
fn uncounted(item: &TaskEventItem) -> TaskEventItem {
    match item {
        TaskEventItem::Event { .. } => TaskEventItem::Gap { missed: None, reason: GapReason::HandlerTooSlow },
        gap @ TaskEventItem::Gap { .. } => gap.clone(),
    }
}

#[test]
fn an_eventor_that_does_not_say_how_much_a_slow_handler_missed_breaks_evt_01() {
    eventor(Law::Evt1, DriversBounds { events: 2, ..SERVING }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: EventorCall::Hand(items), .. } = effect {
                Arc::make_mut(items).iter_mut().for_each(|(_, item)| *item = uncounted(item));
            }
        }
        effects
    });
}

#[test]
fn an_eventor_that_ends_and_tells_its_handlers_nothing_breaks_s4() {
    eventor(Law::S4, DriversBounds { stops: &[StopMode::Stop], ..SERVING }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: EventorCall::Finish(sinks), .. } = effect {
                *sinks = Vec::<JournalId>::new();
            }
        }
        effects
    });
}

// === Their owner ===

#[test]
fn an_owner_that_does_not_renew_what_is_watched_breaks_evt_03() {
    owner(Law::Evt3, DriversBounds { crashes: 1, ..SERVING }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Call { call: DriversCall::Watch(_, _, true), .. }))
    });
}

#[test]
fn an_owner_that_starts_another_driver_before_the_first_has_ended_breaks_prc_04() {
    let bounds = DriversBounds { orders: (1, &[Order::Restart]), ..SERVING };
    owner(Law::Prc4, bounds, |input, effects| {
        let restart = matches!(input, Input::Asked { ask: DriversAsk::RestartDriver(_), .. });
        let begins = |effect| match effect {
            Effect::Call { key, deadline, call: DriversCall::RestartNow(life, _) } if restart => {
                Effect::Call {
                    key,
                    deadline,
                    call: DriversCall::StartDriver(life.next(), Box::new(config())),
                }
            }
            other => other,
        };
        effects.into_iter().map(begins).collect()
    });
}

#[test]
fn an_owner_that_leaves_those_waiting_who_waited_for_a_driver_breaks_hlt_04() {
    let bounds = DriversBounds { begin: &[Order::Add, Order::Dispense], ..NONE };
    owner(Law::Hlt4, bounds, |input, effects| {
        let is_report = matches!(input, Input::Asked { ask: DriversAsk::DriverReported(_), .. });
        without(effects, |effect| {
            is_report && matches!(effect, Effect::Reply(_, DriversAnswer::DispenseDriver(Ok(_))))
        })
    });
}

/// A driver whose program is refused, and a caller that waits for it.
const REFUSED: DriversBounds = DriversBounds {
    begin: &[Order::Add, Order::Dispense],
    faults: (1, &[Conduct::Declines]),
    is_prompt: true,
    ..NONE
};

#[test]
fn an_owner_that_leaves_those_waiting_who_wait_for_a_driver_that_is_refused_breaks_hlt_04() {
    owner(Law::Hlt4, REFUSED, |input, effects| {
        let is_report = matches!(input, Input::Asked { ask: DriversAsk::DriverReported(_), .. });
        without(effects, |effect| {
            is_report && matches!(effect, Effect::Reply(_, DriversAnswer::DispenseDriver(Err(_))))
        })
    });
}

#[test]
fn an_owner_that_lets_a_caller_wait_for_a_driver_that_is_refused_breaks_hlt_04() {
    let later = DriversBounds { begin: &[Order::Add], orders: (1, &[Order::Dispense]), ..REFUSED };
    owner(Law::Hlt4, later, |input, effects| {
        let is_asked = matches!(input, Input::Asked { ask: DriversAsk::DispenseDriver(_), .. });
        let is_refusal = |effect: &Effect<Drivers>| match effect {
            Effect::Reply(_, DriversAnswer::DispenseDriver(Err(error))) => !error.is_transient(),
            _ => false,
        };
        without(effects, |effect| is_asked && is_refusal(effect))
    });
}

#[test]
fn an_owner_that_takes_a_driver_on_its_way_for_one_that_is_refused_breaks_res_01() {
    owner(Law::Res1, REFUSED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::StartTimer(DriversTimer::Dispense(driver, id), _) = effect {
                let (driver, reason) = (driver.clone(), "refused".to_owned());
                let answer = Err(NotDispensed::Refused { driver, reason });
                *effect = Effect::Reply(*id, DriversAnswer::DispenseDriver(answer));
            }
        }
        effects
    });
}

#[test]
fn an_owner_that_forgets_a_restart_when_the_driver_falls_breaks_res_01() {
    let bounds = DriversBounds { orders: (1, &[Order::Restart]), crashes: 1, pauses: 1, ..SERVING };
    owner(Law::Res1, bounds, |_, effects| {
        let starts = |effect: &Effect<Drivers>| {
            matches!(effect, Effect::Call { call: DriversCall::StartDriver(..), .. })
        };
        let begins = effects.iter().any(starts);
        without(effects, |effect| {
            begins && matches!(effect, Effect::Call { call: DriversCall::RestartNow(..), .. })
        })
    });
}

#[test]
fn an_owner_that_believes_what_a_driver_reported_before_it_heard_of_its_restart_breaks_reg_08() {
    let bounds = DriversBounds { begin: &[Order::Add], orders: (1, &[Order::Restart]), ..NONE };
    owner(Law::Reg8, bounds, |input, mut effects| {
        let is_published = |effect: &Effect<Drivers>| matches!(effect, Effect::Publish(_));
        if let Input::Asked { ask: DriversAsk::DriverReported(said), .. } = input
            && !effects.iter().any(is_published)
        {
            effects.push(Effect::Publish(DriversNews::Reported(said.report.clone())));
        }
        effects
    });
}

#[test]
fn an_owner_that_gives_a_driver_out_before_it_is_healthy_breaks_res_01() {
    let bounds = DriversBounds { begin: &[Order::Add, Order::Dispense], ..NONE };
    owner(Law::Res1, bounds, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::StartTimer(DriversTimer::Dispense(driver, id), _) = effect {
                let dispensed = DispensedDriver { driver: driver.clone(), generation: Generation::new(1) };
                *effect = Effect::Reply(*id, DriversAnswer::DispenseDriver(Ok(dispensed)));
            }
        }
        effects
    });
}
