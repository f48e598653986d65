//! The simulator: a seed comes to the same each time, no law is broken, and a broken registry is found out, its history made
//! short, and shown again.

use callboard_actors::simulation::{
    Fault, Faults, Law, PersisterFault, Simulation, Tampers, Unwatched, Watch, replay, simulate,
    simulate_tampered,
};

const SMALL: Simulation = Simulation {
    seed: 1,
    plugins: 4,
    allocations: 24,
    drivers: 3,
    processes: 3,
    has_database: false,
    messages: 6_000,
    faults: Faults::ALL,
};

/// The same, with its registrations in a real database.
const STORED: Simulation =
    Simulation { drivers: 0, processes: 0, has_database: true, messages: 3_000, ..SMALL };

/// Keeps the trace.
#[derive(Default)]
struct Trace(String);

impl Watch for Trace {
    fn wants_lines(&self) -> bool {
        true
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
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

#[test]
fn many_seeds_break_no_law_and_do_every_fault() {
    let mut done = [0; Fault::ALL.len()];
    for seed in 1..=20 {
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
fn a_persister_that_is_wrong_below_a_company_is_found_out_and_its_history_is_short_and_shows_it_again() {
    for (fault, law) in [
        (PersisterFault::AnswersBeforeTheSync, Law::P1),
        (PersisterFault::StaysBroken, Law::P3),
        (PersisterFault::TakesHalves, Law::P4),
    ] {
        let tampers = || Tampers { database: Some(fault), ..Tampers::default() };
        let simulation = Simulation { plugins: 2, allocations: 8, messages: 20_000, ..STORED };
        let found = simulate_tampered(&simulation, tampers(), &mut Unwatched)
            .expect_err("a broken persister was not found out");
        assert_eq!(found.violation.law, law, "{fault:?}: {found}");
        assert!(found.history.len() <= 12, "{fault:?}: {found}");
        assert_eq!(replay(&simulation, tampers(), &found.history).expect("it shows again").law, law);
        assert_eq!(
            replay(&simulation, Tampers::default(), &found.history),
            None,
            "the sound one breaks it too"
        );
    }
}

#[test]
fn a_registry_that_drops_updates_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let found = simulate_tampered(&SMALL, Tampers::drop_updates(), &mut Unwatched)
        .expect_err("a broken registry was not found out");
    assert_eq!(found.violation.law, Law::R3, "{found}");
    assert!(found.history.len() <= 6, "{found}");
    let again = replay(&SMALL, Tampers::drop_updates(), &found.history).expect("it shows again");
    assert_eq!(again.law, Law::R3);
    assert_eq!(replay(&SMALL, Tampers::default(), &found.history), None, "the sound registry breaks it too");
}

#[test]
fn a_registry_that_denies_whom_it_holds_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let tampers = Tampers::deny_registrations;
    let simulation = Simulation { messages: 40_000, ..SMALL };
    let found = simulate_tampered(&simulation, tampers(), &mut Unwatched)
        .expect_err("a broken registry was not found out");
    assert_eq!(found.violation.law, Law::R1, "{found}");
    assert!(found.history.len() <= 10, "{found}");
    assert_eq!(replay(&simulation, tampers(), &found.history).expect("it shows again").law, Law::R1);
    assert_eq!(
        replay(&simulation, Tampers::default(), &found.history),
        None,
        "the sound registry breaks it too"
    );
}

#[test]
fn an_eventor_that_hides_gaps_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let simulation = Simulation { messages: 50_000, processes: 0, ..SMALL };
    let found = simulate_tampered(&simulation, Tampers::hide_gaps(), &mut Unwatched)
        .expect_err("a broken eventor was not found out");
    assert_eq!(found.violation.law, Law::Evt2, "{found}");
    assert!(found.history.len() <= 60, "{found}");
    let again = replay(&simulation, Tampers::hide_gaps(), &found.history).expect("it shows again");
    assert_eq!(again.law, Law::Evt2);
    assert_eq!(
        replay(&simulation, Tampers::default(), &found.history),
        None,
        "the sound eventor breaks it too: {found}"
    );
}

#[test]
fn an_owner_that_starts_processes_unwritten_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let tampers = Tampers::launch_unwritten;
    let found = simulate_tampered(&SMALL, tampers(), &mut Unwatched).expect_err("it was not found out");
    assert_eq!(found.violation.law, Law::Prc9, "{found}");
    assert!(found.history.len() <= 6, "{found}");
    assert_eq!(replay(&SMALL, tampers(), &found.history).expect("it shows again").law, Law::Prc9);
    assert_eq!(replay(&SMALL, Tampers::default(), &found.history), None, "the sound owner breaks it too");
}

#[test]
fn an_owner_that_launches_beside_what_is_left_is_found_out_and_its_history_is_short_and_shows_it_again() {
    let tampers = Tampers::launch_beside_what_is_left;
    let simulation = Simulation { messages: 50_000, ..SMALL };
    let found = simulate_tampered(&simulation, tampers(), &mut Unwatched).expect_err("it was not found out");
    assert_eq!(found.violation.law, Law::Prc3, "{found}");
    assert!(found.history.len() <= 20, "{found}");
    assert_eq!(replay(&simulation, tampers(), &found.history).expect("it shows again").law, Law::Prc3);
    assert_eq!(
        replay(&simulation, Tampers::default(), &found.history),
        None,
        "the sound owner breaks it too"
    );
}

#[test]
fn supervisors_that_spare_siblings_are_found_out_and_their_history_is_short_and_shows_it_again() {
    let tampers = Tampers::spare_siblings;
    let found = simulate_tampered(&SMALL, tampers(), &mut Unwatched)
        .expect_err("broken supervisors were not found out");
    assert_eq!(found.violation.law, Law::S1, "{found}");
    assert!(found.history.len() <= 30, "{found}");
    assert_eq!(replay(&SMALL, tampers(), &found.history).expect("it shows again").law, Law::S1);
    assert_eq!(replay(&SMALL, Tampers::default(), &found.history), None, "sound supervisors break it too");
}

#[test]
fn supervisors_of_allocations_that_say_no_goodbye_are_found_out_a4() {
    let tampers = Tampers::forget_goodbyes;
    let found = simulate_tampered(&SMALL, tampers(), &mut Unwatched)
        .expect_err("broken supervisors were not found out");
    assert_eq!(found.violation.law, Law::A4, "{found}");
    assert!(found.history.len() <= 30, "{found}");
    assert_eq!(replay(&SMALL, tampers(), &found.history).expect("it shows again").law, Law::A4);
    assert_eq!(replay(&SMALL, Tampers::default(), &found.history), None, "sound ones break it too");
}

/// Only the registry shows it, when all is calm.
#[test]
fn supervisors_of_monoliths_that_leave_one_half_registered_are_found_out_a4() {
    let (tampers, mut seeds) = (Tampers::forget_halves, 1..=8);
    let simulation = |seed| Simulation { seed, allocations: 96, ..SMALL };
    let found = seeds.find_map(|seed| {
        Some((seed, simulate_tampered(&simulation(seed), tampers(), &mut Unwatched).err()?))
    });
    let (seed, found) = found.expect("broken supervisors were not found out");
    assert_eq!(found.violation.law, Law::A4, "{found}");
    assert!(found.history.len() <= 40, "{found}");
    assert_eq!(replay(&simulation(seed), tampers(), &found.history).expect("it shows again").law, Law::A4);
    assert_eq!(
        replay(&simulation(seed), Tampers::default(), &found.history),
        None,
        "sound ones break it too"
    );
}

#[test]
fn faults_are_named_and_what_is_none_is_refused_with_a_list() {
    assert_eq!("all".parse(), Ok(Faults::ALL));
    assert_eq!("none".parse(), Ok(Faults::NONE));
    assert!("slow, kill-host".parse::<Faults>().is_ok());
    let error = "slow,earthquake".parse::<Faults>().expect_err("no fault");
    assert!(error.to_string().contains("\"earthquake\" is no fault; name some of slow"), "{error}");
}
