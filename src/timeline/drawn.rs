//! Lines of the timeline as marks of a picture.

use std::collections::{BTreeMap, BTreeSet};

use callboard_proto::admin::v1::{Fate, Gate, Said};

use crate::picture::{Arrow, Mark, Sign};

/// Draws lines, one after the other, below those that were drawn before.
#[derive(Debug, Default)]
pub(crate) struct Drawer {
    marks: Vec<Mark>,
    /// Who is gone at the moment.
    lost: BTreeSet<String>,
    /// Where the first of the latest gates of each actor closed, and whether all of them are open again.
    gates: BTreeMap<String, (usize, bool)>,
    /// When the last line was heard of.
    at_unix_ms: Option<u64>,
}

/// So long nothing is said before it is worth a line of its own, in milliseconds.
const PAUSE_MIN_MS: u64 = 1_000;

impl Drawer {
    /// What is drawn so far.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Forgets the oldest marks, so that no more than so many are left.
    pub(crate) fn keep(&mut self, count: usize) {
        let too_many = self.marks.len().saturating_sub(count);
        self.marks.drain(..too_many);
        self.gates.retain(|_, (place, _)| *place >= too_many);
        self.gates.values_mut().for_each(|(place, _)| *place -= too_many);
    }

    /// Draws a line. Whoever is lost is drawn so until it lives again.
    pub(crate) fn draw(&mut self, said: &Said) {
        let since = said.at_unix_ms.saturating_sub(self.at_unix_ms.unwrap_or(said.at_unix_ms));
        self.at_unix_ms = Some(said.at_unix_ms);
        if since >= PAUSE_MIN_MS {
            self.marks.push(Mark::Pause(format!("{}.{} s later", since / 1_000, since % 1_000 / 100)));
            // What is said now was not said before that.
            self.gates.retain(|_, (_, is_open)| !*is_open);
        }
        if let Some(gate) = gate(said) {
            return self.draw_gate(gate);
        }
        let mark = mark(said);
        match self.gates.get(&said.to) {
            Some((place, true)) if matches!(mark, Mark::Message { .. }) => self.insert(*place, mark),
            Some(_) | None => self.marks.push(mark),
        }
        let (fate, of) = (said.fate(), &said.whose_fate);
        if fate == Fate::Lost {
            self.lost.insert(of.clone());
        }
        if fate == Fate::Alive && self.lost.remove(of) {
            self.marks.push(Mark::Sign {
                actor: of.clone(),
                text: "lives again".to_owned(),
                about: String::new(),
                sign: Sign::Restart,
            });
        }
    }

    fn draw_gate(&mut self, gate: Mark) {
        match &gate {
            Mark::GateCloses { actor, .. } if !matches!(self.gates.get(actor), Some((_, false))) => {
                self.gates.insert(actor.clone(), (self.marks.len(), false));
            }
            Mark::GateOpens { actor, through } => {
                let behind = self.marks.iter().rev().find_map(|mark| match mark {
                    Mark::GateCloses { actor: other, write } if other == actor => Some(*write),
                    _ => None,
                });
                if let Some((_, is_open)) = self.gates.get_mut(actor) {
                    *is_open = behind.is_none_or(|last| last <= *through);
                }
            }
            Mark::GatesFall { actor } => {
                self.gates.remove(actor);
            }
            Mark::GateCloses { .. }
            | Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Message { .. }
            | Mark::Sign { .. } => {}
        }
        self.marks.push(gate);
    }

    /// Draws what was said to an actor above the gate that it closed over it: it tells of that only when the gate is open.
    fn insert(&mut self, place: usize, mark: Mark) {
        self.marks.insert(place, mark);
        self.gates.values_mut().filter(|(other, _)| *other >= place).for_each(|(other, _)| *other += 1);
    }
}

/// The mark for a line about no gate.
fn mark(said: &Said) -> Mark {
    let sign = |actor: &str, sign| Mark::Sign {
        actor: actor.to_owned(),
        text: said.message.clone(),
        about: about(said),
        sign,
    };
    match said.fate() {
        // Who is lost says nothing any more: others have noticed it.
        Fate::Lost => sign(&said.whose_fate, Sign::Crash),
        Fate::Troubled => sign(&said.whose_fate, Sign::Trouble),
        Fate::Unspecified | Fate::Alive if said.from == "timeline" => Mark::Chapter(said.message.clone()),
        Fate::Unspecified | Fate::Alive if said.to == "everyone" => sign(&said.from, Sign::News),
        Fate::Unspecified | Fate::Alive => Mark::Message {
            from: said.from.clone(),
            to: said.to.clone(),
            text: said.message.clone(),
            about: about(said),
            arrow: Arrow::Said,
        },
    }
}

/// The mark for a line about a gate.
fn gate(said: &Said) -> Option<Mark> {
    match said.gate() {
        Gate::Unspecified => None,
        Gate::Closes => Some(Mark::GateCloses { actor: said.from.clone(), write: said.write }),
        Gate::Opens => Some(Mark::GateOpens { actor: said.to.clone(), through: said.write }),
        Gate::Falls => Some(Mark::GatesFall { actor: said.to.clone() }),
    }
}

/// The plugin that a line is about, with its generation.
fn about(said: &Said) -> String {
    let generation = match said.generation {
        0 => String::new(),
        generation => format!("@{generation}"),
    };
    [said.plugin.clone(), generation]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(from: &str, to: &str, message: &str) -> Said {
        Said { from: from.to_owned(), to: to.to_owned(), message: message.to_owned(), ..Default::default() }
    }

    /// The marks for these lines.
    fn drawn<'a>(lines: impl IntoIterator<Item = &'a Said>) -> Vec<Mark> {
        let mut drawer = Drawer::default();
        lines.into_iter().for_each(|line| drawer.draw(line));
        drawer.marks
    }

    #[test]
    fn what_is_said_to_one_is_an_arrow_and_what_is_said_to_everyone_is_a_sign() {
        let plugin = "csi-node/zfs".to_owned();
        let news = Said {
            plugin: plugin.clone(),
            generation: 2,
            ..said("registry", "everyone", "active: nobody → a")
        };
        let told = Said { plugin, ..said("registry", "instances", "it is active") };
        let marks = drawn([&news, &told]);
        assert!(
            matches!(&marks[0], Mark::Sign { about, sign: Sign::News, .. } if about == "csi-node/zfs @2"),
            "{marks:?}"
        );
        assert!(
            matches!(&marks[1], Mark::Message { to, about, .. } if to == "instances" && about == "csi-node/zfs"),
            "{marks:?}"
        );
    }

    fn closes(actor: &str, write: u64) -> Said {
        Said { gate: Gate::Closes.into(), write, ..said(actor, "disk", "write") }
    }

    fn opens(actor: &str, write: u64) -> Said {
        Said { gate: Gate::Opens.into(), write, ..said("disk", actor, "on disk") }
    }

    fn falls(actor: &str) -> Said {
        Said { gate: Gate::Falls.into(), ..said("disk", actor, "not written") }
    }

    /// What was drawn, in short.
    fn short(marks: &[Mark]) -> Vec<String> {
        let one = |mark: &Mark| match mark {
            Mark::Message { text, .. }
            | Mark::Sign { text, .. }
            | Mark::Chapter(text)
            | Mark::Pause(text) => text.clone(),
            Mark::GateCloses { actor, write } => format!("{actor} closes {write}"),
            Mark::GateOpens { actor, through } => format!("{actor} opens {through}"),
            Mark::GatesFall { actor } => format!("{actor} falls"),
        };
        marks.iter().map(one).collect()
    }

    #[test]
    fn what_was_said_to_an_actor_is_drawn_above_the_gate_that_it_closed_over_it_shell_1() {
        let lines = [
            said("a", "registry", "zero"),
            closes("registry", 7),
            closes("tasks", 1),
            closes("registry", 8),
            opens("registry", 7),
            said("b", "registry", "early"),
            opens("registry", 8),
            said("a", "registry", "Register a"),
            said("registry", "everyone", "active: a"),
            opens("tasks", 1),
            said("b", "registry", "Register b"),
            said("you", "tasks", "run"),
            closes("registry", 9),
            opens("registry", 9),
            said("a", "registry", "Deregister a"),
        ];
        let expected = [
            "zero",
            "Register a",
            "Register b",
            "registry closes 7",
            "run",
            "tasks closes 1",
            "registry closes 8",
            "registry opens 7",
            "early",
            "registry opens 8",
            "active: a",
            "tasks opens 1",
            "Deregister a",
            "registry closes 9",
            "registry opens 9",
        ];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn what_is_said_after_a_write_has_failed_stays_below_it_shell_2() {
        let lines = [closes("registry", 7), falls("registry"), said("a", "registry", "Register a")];
        assert_eq!(short(&drawn(&lines)), ["registry closes 7", "registry falls", "Register a"]);
    }

    #[test]
    fn what_is_said_much_later_is_not_drawn_above_an_open_gate() {
        let later = Said { at_unix_ms: 1_500, ..said("a", "registry", "Register a") };
        let is_open = [closes("registry", 7), opens("registry", 7), later.clone()];
        let expected = ["registry closes 7", "registry opens 7", "1.5 s later", "Register a"];
        assert_eq!(short(&drawn(&is_open)), expected);
        let is_slow = [closes("registry", 7), Said { at_unix_ms: 1_500, ..opens("registry", 7) }, later];
        let expected = ["Register a", "registry closes 7", "1.5 s later", "registry opens 7"];
        assert_eq!(short(&drawn(&is_slow)), expected);
    }

    #[test]
    fn of_a_long_run_the_end_is_kept_and_everything_stands_in_its_place_there() {
        let mut drawer = Drawer::default();
        for line in [said("a", "b", "one"), closes("registry", 7), opens("registry", 7)] {
            drawer.draw(&line);
        }
        drawer.keep(3);
        assert_eq!(short(drawer.marks()), ["one", "registry closes 7", "registry opens 7"]);
        drawer.keep(2);
        drawer.draw(&said("a", "registry", "Register a"));
        assert_eq!(short(drawer.marks()), ["Register a", "registry closes 7", "registry opens 7"]);
        drawer.keep(1);
        drawer.draw(&said("b", "registry", "Register b"));
        assert_eq!(short(drawer.marks()), ["registry opens 7", "Register b"]);
    }

    #[test]
    fn time_that_passes_and_what_the_timeline_says_of_itself_go_over_the_whole_width() {
        let at = |at_unix_ms, said: Said| Said { at_unix_ms, ..said };
        let marks = drawn(&[
            at(5_000, said("timeline", "you", "this is what is said from now on")),
            at(5_900, said("agent", "registry", "one")),
            Said { fate: Fate::Troubled.into(), ..at(5_900, said("registry", "everyone", "two")) },
            at(8_150, said("agent", "registry", "three")),
        ]);
        assert_eq!(short(&marks), ["this is what is said from now on", "one", "two", "2.2 s later", "three"]);
        assert!(matches!(&marks[0], Mark::Chapter(_)), "{marks:?}");
        assert!(matches!(&marks[2], Mark::Sign { sign: Sign::Trouble, .. }), "{marks:?}");
        assert!(matches!(&marks[3], Mark::Pause(_)), "{marks:?}");
    }

    #[test]
    fn who_is_lost_is_drawn_so_until_it_lives_again() {
        let of =
            |fate: Fate, said: Said| Said { whose_fate: "driver exec".to_owned(), fate: fate.into(), ..said };
        let run = of(Fate::Alive, said("drivers", "driver exec", "run as process 7"));
        let lost = of(Fate::Lost, said("drivers", "everyone", "exec is lost: signal 9"));
        let marks = drawn([&run, &lost, &run, &run]);
        let kinds: Vec<_> = marks.iter().map(|mark| matches!(mark, Mark::Message { .. })).collect();
        assert_eq!(kinds, [true, false, true, false, true]);
        assert!(
            matches!(&marks[1], Mark::Sign { actor, sign: Sign::Crash, .. } if actor == "driver exec"),
            "{marks:?}"
        );
        assert!(matches!(&marks[3], Mark::Sign { sign: Sign::Restart, .. }), "{marks:?}");
    }
}
