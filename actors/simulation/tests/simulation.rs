//! The simulator: each seed gives one run, no law is broken, and a broken registry is detected, with a short history that reproduces it.
//! short, and shown again.

use std::time::Duration;

use callboard_actors::persister::Reached;
use callboard_actors::vocabulary::Timestamp;
use callboard_simulation::{
    Counterexample, DatabaseDoing, Event, EventKind, Fault, Faults, Law, Observed, PersisterFault, Question,
    Simulation, Tampers, Unwatched, Watch, replay, simulate, simulate_tampered,
};

const SMALL: Simulation = Simulation::SMALL;

/// The same, with its registrations in a real database.
const STORED: Simulation =
    Simulation { drivers: 0, processes: 0, volumes: 0, has_database: true, messages: 3_000, ..SMALL };

/// Records the trace.
#[derive(Default)]
struct Trace(String);

impl Watch for Trace {
    fn wants_trace(&self) -> bool {
        true
    }

    fn happened(&mut self, event: &Event, came: &[Observed]) {
        let lines = came.iter().filter_map(Observed::line).map(|line| format!("  {line}\n"));
        self.0.push_str(&format!("{event}\n{}", lines.collect::<String>()));
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_to_the_byte() {
    let simulation = Simulation { messages: 3_000, ..SMALL };
    let [first, second, other] = [1, 1, 2].map(|seed| {
        let mut trace = Trace::default();
        simulate(&Simulation { seed, ..simulation }, &mut trace).unwrap_or_else(|found| panic!("{found}"));
        trace.0
    });
    assert!(first.lines().count() > 2_000, "the trace is short:\n{first}");
    assert_eq!(first, second);
    assert_ne!(first, other);
}

/// An allocation without a declared provider has reported a wrong name and served; a standby with the right name, which was well by
/// itself, counts as faulty beside it.
#[test]
fn a_standby_with_another_name_than_what_served_need_not_be_warm_r1d_c031() {
    let simulation = Simulation {
        seed: 74,
        plugins: 20,
        allocations: 200,
        drivers: 4,
        processes: 4,
        volumes: 4,
        messages: 10_000,
        ..SMALL
    };
    simulate(&simulation, &mut Unwatched).unwrap_or_else(|found| panic!("{found}"));
}

#[test]
fn many_seeds_break_no_law_and_do_every_fault() {
    let mut done = [0; Fault::ALL.len()];
    for seed in 1..=200 {
        // Each kind of disk fault occurs twice in this many seeds, at random.
        if seed > 20 && done.iter().all(|count| *count > 0) {
            break;
        }
        let summary = simulate(&Simulation { seed, ..SMALL }, &mut Unwatched)
            .unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        assert!(summary.messages >= SMALL.messages);
        done.iter_mut().zip(summary.faults).for_each(|(sum, more)| *sum += more);
    }
    for (fault, count) in Fault::ALL.iter().zip(done) {
        assert!(count > 0, "{fault} was never done");
    }
}

#[test]
fn registrations_in_a_real_database_break_no_law_and_the_same_seed_gives_the_same_trace() {
    for seed in 1..=2 {
        let [first, second] = [(); 2].map(|()| {
            let mut trace = Trace::default();
            simulate(&Simulation { seed, ..STORED }, &mut trace)
                .unwrap_or_else(|found| panic!("seed {seed}: {found}"));
            trace.0
        });
        assert!(first.contains("\ncommit ") && first.contains("database: Word"), "nothing was committed");
        assert!(first == second, "seed {seed} gives another trace");
    }
}

#[test]
fn a_host_that_is_killed_or_told_to_stop_before_it_has_read_anything_has_had_its_run_p4() {
    let killed = DatabaseDoing::Kill { committing: 0, of_processes: 0, change: 3, reached: Reached::Nothing };
    let read = EventKind::Database(DatabaseDoing::Load(None));
    for end in [EventKind::Database(killed), EventKind::Stop] {
        let at = Timestamp::from_epoch(Duration::from_secs(1_000_000));
        let history = [end, EventKind::Start, read, end, read, EventKind::Start, read];
        let history = history.map(|what| Event { at, what });
        assert_eq!(replay(&STORED, Tampers::default(), &history), None, "{end:?}");
    }
}

#[test]
fn a_persister_that_is_wrong_below_others_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let simulation = Simulation { plugins: 2, allocations: 8, messages: 20_000, ..STORED };
    // The search detects a persister that takes halves of a commit: here a kill seldom falls between two rows.
    for (fault, law) in
        [(PersisterFault::AnswersBeforeTheSync, Law::P1), (PersisterFault::StaysBroken, Law::P3)]
    {
        let tampers = || Tampers { database: Some(fault), ..Tampers::default() };
        finds_out(&simulation, tampers, law, 12);
    }
}

#[test]
fn a_registry_that_drops_updates_is_found_out_and_its_history_is_short_and_shows_it_again() {
    finds_out(&SMALL, Tampers::drop_updates, Law::R3, 8);
}

#[test]
fn a_registry_that_denies_whom_it_holds_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let simulation = Simulation { seed: 2, messages: 40_000, ..SMALL };
    let at_once =
        [Question::Describe(0), Question::RegistrationOf(0, 0), Question::List, Question::DescribeAll];
    for question in at_once {
        finds_out(&simulation, || Tampers::deny(question), Law::R1, 10);
    }
    // The caller receives this answer in the step of another message.
    finds_out(&simulation, || Tampers::deny(Question::Wait(0, 0)), Law::Shell7, 10);
}

#[test]
fn an_eventor_that_hides_gaps_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let simulation = Simulation { messages: 50_000, processes: 0, volumes: 0, ..SMALL };
    finds_out(&simulation, Tampers::hide_gaps, Law::Evt2, 60);
}

#[test]
fn an_owner_that_starts_processes_unwritten_is_found_out_and_its_history_is_short_and_shows_it_again() {
    finds_out(&SMALL, Tampers::launch_unwritten, Law::Prc9, 6);
}

#[test]
fn an_owner_that_launches_beside_what_is_left_is_found_out_and_its_history_is_short_and_shows_it_again() {
    finds_out(&Simulation { messages: 50_000, ..SMALL }, Tampers::launch_beside_what_is_left, Law::Prc3, 20);
}

#[test]
fn volumes_that_write_no_intents_are_found_out_and_their_history_is_short_and_shows_it_again_v5() {
    finds_out(&SMALL, Tampers::write_no_intents, Law::V5, 20);
}

#[test]
fn supervisors_that_spare_siblings_are_found_out_and_their_history_is_short_and_shows_it_again() {
    finds_out(&SMALL, Tampers::spare_siblings, Law::S1, 30);
}

/// A host that is requested to stop waits forever, and no short history can show that.
#[test]
fn a_registry_that_never_ends_is_found_out_when_no_actor_takes_a_step_any_more_shell_7() {
    let simulation = Simulation { messages: 400_000, faults: "shutdown".parse().unwrap(), ..SMALL };
    let found = simulate_tampered(&simulation, Tampers::never_end(), &mut Unwatched);
    let violation = found.expect_err("it was not found out").violation;
    assert_eq!(violation.law, Law::Shell7, "{violation}");
    assert!(
        violation.to_string().contains("no actor takes a step any more, and the host is StoppingRegistry"),
        "{violation}"
    );
}

#[test]
fn supervisors_of_allocations_that_do_not_deregister_are_found_out_a4() {
    finds_out(&SMALL, Tampers::forget_deregistrations, Law::A4, 30);
}

/// Only the registry shows it, at rest.
#[test]
fn supervisors_of_monoliths_that_leave_one_half_registered_are_found_out_a4() {
    let simulation = |seed| Simulation { seed, allocations: 96, ..SMALL };
    let found_of =
        |seed| simulate_tampered(&simulation(seed), Tampers::forget_halves(), &mut Unwatched).err();
    let found = (1..=8).find_map(|seed| Some((seed, found_of(seed)?)));
    let (seed, found) = found.expect("broken supervisors were not found out");
    shows(&found, &simulation(seed), Tampers::forget_halves, Law::A4, 40);
}

/// Only supervised allocations and the registry, with machines that crash again and again.
fn of_crashes() -> Simulation {
    let faults = "crash".parse().expect("it is a fault");
    Simulation { drivers: 0, processes: 0, volumes: 0, messages: 20_000, faults, ..SMALL }
}

#[test]
fn an_owner_that_bears_supervisors_without_what_their_tasks_do_is_found_out_a5() {
    finds_out(&of_crashes(), Tampers::forget_tasks, Law::A5, 20);
}

/// Only at rest it shows that a supervisor was not replaced.
#[test]
fn an_owner_that_misses_the_ends_of_supervisors_is_found_out_a5() {
    finds_out(&of_crashes(), Tampers::miss_endings, Law::A5, 20);
}

/// Machines with this fault are detected.
fn finds_out(simulation: &Simulation, tampers: impl Fn() -> Tampers, law: Law, events_max: usize) {
    let found =
        simulate_tampered(simulation, tampers(), &mut Unwatched).expect_err("they were not found out");
    shows(&found, simulation, tampers, law, events_max);
}

/// They are detected under this law, with at most this many events left in their history; the history reproduces the fault, and correct
/// machines replay it without a violation.
fn shows(
    found: &Counterexample<Event>,
    simulation: &Simulation,
    tampers: impl Fn() -> Tampers,
    law: Law,
    events_max: usize,
) {
    assert_eq!(found.violation.law, law, "{found}");
    assert!(found.history.len() <= events_max, "{found}");
    let again = replay(simulation, tampers(), &found.history).expect("it shows again");
    assert_eq!(again.law, law, "{found}");
    let sound = replay(simulation, Tampers::default(), &found.history);
    assert_eq!(sound, None, "sound machines break it too: {found}");
}

#[test]
fn faults_are_named_and_what_is_none_is_refused_with_a_list() {
    assert_eq!("all".parse(), Ok(Faults::ALL));
    assert_eq!("none".parse(), Ok(Faults::NONE));
    assert!("slow, kill-host".parse::<Faults>().is_ok());
    let error = "slow,earthquake".parse::<Faults>().expect_err("no fault");
    assert!(error.to_string().contains("\"earthquake\" is no fault; name some of slow"), "{error}");
}
