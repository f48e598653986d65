//! Writes a history that breaks a law as a message script.

use std::time::Duration;

use callboard_simulation::{Counterexample, Event, ScriptText, Simulation};

use crate::script::{Played, Player, ScriptError};

/// The maximum number of lines that mean nothing to the actors of production.
const MEANINGLESS_MAX: usize = 1_000;

/// Writes a history as a script. The script is played once, and a line that means nothing to the actors of production, such as the end of a
/// stream without a reader, becomes a comment. The law is written below its lines, so that the script fails until it is reviewed.
pub(super) fn write(simulation: &Simulation, command: &str, found: &Counterexample<Event>) -> String {
    let mut lines = lines_of(simulation, found);
    for _ in 0..MEANINGLESS_MAX {
        match play(&lines.join("\n")) {
            Err(ScriptError::Mistake { line, .. }) => {
                let Some(said) = said_in(&mut lines, line) else { break };
                *said = format!("# it means nothing here: {said}");
            }
            Ok(_) | Err(_) => break,
        }
    }
    let law = found.violation.law;
    let mut text = format!("# {command}\n");
    for line in found.violation.to_string().lines() {
        text.push_str(&format!("# {}\n", line.trim()));
    }
    text.push_str(HEAD);
    text.push_str(&lines.join("\n"));
    text.push_str(&format!("\n---\n{} must hold: {}\n", law.id(), law.sentence()));
    text
}

const HEAD: &str = "#
# This says to a host what the simulation said. Played by `callboard script`, it shows beside the law what the actors of production
# make of it: if that breaks the law, write down what should have come, and keep it as a story. What only happened in the simulation
# stands in comments; the command in the first line repeats all of it.

";

/// The line of this number, if it is a statement.
fn said_in(lines: &mut [String], number: u32) -> Option<&mut String> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    lines.get_mut(place).filter(|line| !line.starts_with('#'))
}

fn play(lines: &str) -> Result<Played, ScriptError> {
    let text = format!("{lines}\n---\n");
    Player::new().play(&text)
}

fn lines_of(simulation: &Simulation, found: &Counterexample<Event>) -> Vec<String> {
    let script = simulation.to_script(&found.history);
    let mut lines = script.before;
    let mut said_at = None;
    for (event, text) in script.events {
        match text {
            ScriptText::Automatic => {}
            ScriptText::NoVerb => lines.push(format!("# only in the simulation: {}", event.what)),
            ScriptText::Lines(said) => {
                let passed = said_at.map_or(Duration::ZERO, |at| event.at.since(at));
                if passed >= Duration::from_millis(2) {
                    lines.push(format!("pass {}ms", passed.as_millis()));
                }
                said_at = Some(event.at);
                lines.extend(said);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use callboard_simulation::{Tampers, Unwatched, simulate_tampered};

    use super::*;

    const SMALL: Simulation = Simulation { messages: 20_000, ..Simulation::SMALL };

    /// The scripts of the found histories. A rare fault shows in only some of them.
    fn scripts_of(tampers: &Tampers) -> impl Iterator<Item = String> {
        (1..=20).filter_map(|seed| {
            let simulation = Simulation { seed, ..SMALL };
            let found = simulate_tampered(&simulation, tampers.clone(), &mut Unwatched).err()?;
            Some(write(&simulation, &format!("callboard simulate --seed {seed}"), &found))
        })
    }

    fn outcome(script: &str) -> String {
        let played = Player::new().play(script).unwrap_or_else(|error| panic!("{error} in\n{script}"));
        assert_ne!(played.text, script, "a script of a broken law must fail:\n{script}");
        played.text
    }

    #[test]
    fn a_history_that_loses_an_update_becomes_a_script_that_shows_what_should_have_been_told_r3() {
        // What a supervised allocation registers by itself depends on the timing, so another run of the script may update nothing.
        let is_said = |script: &String| script.contains("\nregister ");
        let script = scripts_of(&Tampers::drop_updates()).find(is_said).expect("it was not found out");
        let (command, law) = script.split_once('\n').expect("it has lines");
        assert!(command.starts_with("# callboard simulate --seed "), "{script}");
        assert!(law.starts_with("# R3 is broken"), "{script}");
        assert!(script.contains("\n---\nR3 must hold: "), "{script}");
        let played = outcome(&script);
        assert!(played.contains(" updated its registration as "), "{played}");
    }

    #[test]
    fn a_history_that_hides_a_gap_becomes_a_script_in_which_its_handler_has_the_events_evt_02() {
        let script = scripts_of(&Tampers::hide_gaps()).next().expect("it was not found out");
        assert!(script.contains("\nadd-driver d") && script.contains("\nevent d"), "{script}");
        let played = outcome(&script);
        assert!(played.contains("happened"), "{played}");
    }
}
