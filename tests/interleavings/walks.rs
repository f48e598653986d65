//! Checks the same by random walks, for longer histories than a search can cover: `CALLBOARD_WALK_STEPS` sets the number of steps.

use callboard::simulation::Faults;
use callboard_simulation::tasks::{Walk, walk};

/// The number of steps of an ordinary run.
const STEPS: u64 = 20_000;

#[test]
fn whatever_happens_by_chance_no_task_runs_twice_and_none_is_lost() {
    let steps = std::env::var("CALLBOARD_WALK_STEPS").ok().map_or(STEPS, |steps| steps.parse().unwrap());
    let chosen = Walk { seed: 1, steps, faults: Faults::ALL };
    match walk(&chosen, &mut |_| {}) {
        Ok(walked) => println!("{walked:?}"),
        Err(found) => panic!("{found}"),
    }
}

#[test]
fn the_same_seed_takes_the_same_walk_and_without_faults_nothing_goes_wrong() {
    let lines = |seed, faults| {
        let mut lines = Vec::new();
        let walked = walk(&Walk { seed, steps: 1_000, faults }, &mut |line| lines.push(line.to_owned()));
        assert!(walked.is_ok(), "{}", walked.unwrap_err());
        lines
    };
    let first = lines(7, Faults::ALL);
    assert!(first == lines(7, Faults::ALL) && first != lines(8, Faults::ALL));
    let is_fault = |line: &String| line.contains("kill") || line.contains("fail") || line.contains("crash");
    assert!(first.iter().any(is_fault) && !lines(7, Faults::NONE).iter().any(is_fault));
}
