//! Simulates the tasks of `callboard run` in worlds of their own, with the same seed.

use callboard_simulation::Counterexample;

use super::{SimulateArgs, SimulateError, Watcher};
use crate::output::complain;
use callboard_simulation::tasks::{TasksEvent, Walk, Walked, walk};

/// How many messages of a run correspond to one step of the tasks.
const MESSAGES_FOR_A_STEP: u64 = 100;

/// Runs the steps of the tasks under a seed, and adds them to the earlier ones. False if a law was broken.
pub(super) fn walk_all(
    args: &SimulateArgs,
    seed: u64,
    before: &mut Walked,
    watcher: &mut Watcher,
) -> Result<bool, SimulateError> {
    let steps = args.task_steps.unwrap_or(args.messages / MESSAGES_FOR_A_STEP);
    let chosen = Walk { seed, steps, faults: args.faults };
    match walk(&chosen, &mut |line| watcher.write(line)) {
        Ok(walked) => {
            before.steps += walked.steps;
            before.worlds += walked.worlds;
            before.faults += walked.faults;
            Ok(true)
        }
        Err(found) => {
            let finished = watcher.finish();
            complain(&format!("callboard: seed {seed}: {}", found.violation));
            let command =
                format!("callboard simulate --seed {seed} --task-steps {steps} --faults {}", args.faults);
            complain(&format!("callboard: {command} breaks it again"));
            write_history(args, &command, &found)?;
            finished.map(|()| false)
        }
    }
}

/// Writes the history that breaks a law. Scripts cannot express its events, so it is written as a comment.
fn write_history(
    args: &SimulateArgs,
    command: &str,
    found: &Counterexample<TasksEvent>,
) -> Result<(), SimulateError> {
    let path = &args.script;
    let lines = found.to_string();
    let lines = lines.lines().map(|line| format!("# {line}\n"));
    let text: String = std::iter::once(format!("# {command}\n")).chain(lines).collect();
    std::fs::write(path, text).map_err(|source| SimulateError::Script { path: path.clone(), source })?;
    complain(&format!(
        "callboard: {} events of its tasks that show it are written to {}",
        found.history.len(),
        path.display()
    ));
    Ok(())
}
