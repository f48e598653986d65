//! Lines of the timeline as marks of a picture.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use callboard_proto::admin::v1::{Fate, Gate, Said};

use crate::picture::{Arrow, Mark, Picture, Sign};

/// Draws lines, one after the other, below those that were drawn before.
#[derive(Debug)]
pub(crate) struct Drawer {
    picture: Picture,
    /// Who is gone at the moment.
    lost: BTreeSet<String>,
    /// The gates of each actor.
    gates: BTreeMap<String, Gates>,
    /// When the last line was heard of.
    at_unix_ms: Option<u64>,
}

/// The gates of one actor, by their places among the marks.
#[derive(Debug, Default)]
struct Gates {
    /// The writes and the places of those that are closed, oldest first.
    closed: VecDeque<(u64, usize)>,
    /// The place of the first of those that opened last, and when they did.
    opened: Option<(usize, u64)>,
}

/// So long nothing is said before it is worth a line of its own, in milliseconds. What is told so long after a gate has opened
/// did not wait behind it.
const PAUSE_MIN_MS: u64 = 1_000;

impl Drawer {
    /// Nothing yet, under a title.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        let picture = Picture { title: title.into(), marks: Vec::new() };
        Self { picture, lost: BTreeSet::new(), gates: BTreeMap::new(), at_unix_ms: None }
    }

    /// What is drawn so far.
    pub(crate) const fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Forgets the oldest marks, so that no more than so many are left.
    pub(crate) fn keep(&mut self, count: usize) {
        let too_many = self.picture.marks.len().saturating_sub(count);
        self.picture.marks.drain(..too_many);
        self.gates.values_mut().for_each(|gates| gates.move_up(too_many));
    }

    /// Draws a line. Whoever is lost is drawn so until it lives again.
    pub(crate) fn draw(&mut self, said: &Said) {
        let since = said.at_unix_ms.saturating_sub(self.at_unix_ms.unwrap_or(said.at_unix_ms));
        self.at_unix_ms = Some(said.at_unix_ms);
        if since >= PAUSE_MIN_MS {
            let text = format!("{}.{} s later", since / 1_000, since % 1_000 / 100);
            self.picture.marks.push(Mark::Pause(text));
        }
        if said.from == "timeline" {
            // Lines are missing here, perhaps those of gates.
            self.gates.clear();
        }
        match gate(said) {
            Some(gate) => self.draw_gate(gate, said.at_unix_ms),
            None => self.draw_words(said),
        }
    }

    fn draw_words(&mut self, said: &Said) {
        if let Some(gates) = self.gates.get_mut(&said.from)
            && said.to != "everyone"
        {
            // What it hears from now on may be an answer to this.
            gates.opened = None;
        }
        let mark = mark(said);
        let opened = self.gates.get(&said.to).and_then(|gates| gates.opened);
        match opened {
            Some((place, at))
                if matches!(mark, Mark::Message { .. }) && said.at_unix_ms < at + PAUSE_MIN_MS =>
            {
                self.insert(place, mark);
            }
            Some(_) | None => self.picture.marks.push(mark),
        }
        let (fate, of) = (said.fate(), &said.whose_fate);
        if fate == Fate::Lost {
            self.lost.insert(of.clone());
        }
        if fate == Fate::Alive && self.lost.remove(of) {
            self.picture.marks.push(Mark::Sign {
                actor: of.clone(),
                text: "lives again".to_owned(),
                about: String::new(),
                sign: Sign::Restart,
            });
        }
    }

    fn draw_gate(&mut self, gate: Mark, at_unix_ms: u64) {
        let place = self.picture.marks.len();
        match &gate {
            Mark::GateCloses { actor, write } => {
                self.gates.entry(actor.clone()).or_default().close(*write, place);
            }
            Mark::GateOpens { actor, through } => {
                self.gates.entry(actor.clone()).or_default().open(*through, at_unix_ms);
            }
            Mark::GatesFall { actor } => {
                self.gates.remove(actor);
            }
            Mark::Chapter(_) | Mark::Pause(_) | Mark::Message { .. } | Mark::Sign { .. } => {}
        }
        self.picture.marks.push(gate);
    }

    /// Draws what was said to an actor above the gate that it closed over it: it tells of that only when the gate is open.
    fn insert(&mut self, place: usize, mark: Mark) {
        self.picture.marks.insert(place, mark);
        self.gates.values_mut().for_each(|gates| gates.move_down(place));
    }
}

impl Gates {
    fn close(&mut self, write: u64, place: usize) {
        if self.closed.back().is_some_and(|(last, _)| write <= *last) {
            // Another life of the actor, which counts from the beginning.
            self.closed.clear();
        }
        self.closed.push_back((write, place));
    }

    fn open(&mut self, through: u64, at_unix_ms: u64) {
        let count = self.closed.iter().take_while(|(write, _)| *write <= through).count();
        let first = self.closed.drain(..count).next();
        self.opened = first.map(|(_, place)| (place, at_unix_ms));
    }

    /// So many marks above all others are gone.
    fn move_up(&mut self, count: usize) {
        let moved = |place: usize| place.checked_sub(count);
        self.closed =
            self.closed.drain(..).filter_map(|(write, place)| Some((write, moved(place)?))).collect();
        self.opened = self.opened.and_then(|(place, at)| Some((moved(place)?, at)));
    }

    /// There is one mark more at this place.
    fn move_down(&mut self, at: usize) {
        let places = self.closed.iter_mut().map(|(_, place)| place);
        let places = places.chain(self.opened.as_mut().map(|(place, _)| place));
        places.filter(|place| **place >= at).for_each(|place| *place += 1);
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
        let mut drawer = Drawer::new("");
        lines.into_iter().for_each(|line| drawer.draw(line));
        drawer.picture.marks
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
            closes("registry", 9),
            opens("registry", 7),
            said("a", "registry", "Register a"),
            said("registry", "everyone", "active: a"),
            opens("registry", 9),
            said("b", "registry", "Register b"),
            said("registry", "everyone", "active: b"),
            said("c", "registry", "Register c"),
            opens("tasks", 1),
            said("you", "tasks", "run"),
            closes("registry", 10),
            opens("registry", 10),
            said("a", "registry", "Deregister a"),
        ];
        let expected = [
            "zero",
            "Register a",
            "registry closes 7",
            "run",
            "tasks closes 1",
            "Register b",
            "Register c",
            "registry closes 8",
            "registry closes 9",
            "registry opens 7",
            "active: a",
            "registry opens 9",
            "active: b",
            "tasks opens 1",
            "Deregister a",
            "registry closes 10",
            "registry opens 10",
        ];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn an_answer_stays_below_its_question_though_a_gate_opened_before() {
        let lines = [
            closes("tasks", 1),
            opens("tasks", 1),
            said("tasks", "everyone", "news"),
            said("tasks", "driver a", "recover web"),
            said("driver a", "tasks", "web runs"),
        ];
        assert_eq!(
            short(&drawn(&lines)),
            ["tasks closes 1", "tasks opens 1", "news", "recover web", "web runs"]
        );
    }

    #[test]
    fn what_is_said_after_a_write_has_failed_stays_below_it_shell_2() {
        let lines = [
            closes("registry", 7),
            falls("registry"),
            opens("registry", 7),
            said("a", "registry", "Register a"),
        ];
        let expected = ["registry closes 7", "registry falls", "registry opens 7", "Register a"];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn nothing_is_drawn_above_a_gap_or_a_former_life_of_its_actor() {
        let gap = said("timeline", "you", "3 lines are missing");
        let lines = [closes("registry", 7), gap, opens("registry", 8), said("a", "registry", "Register a")];
        let expected = ["registry closes 7", "3 lines are missing", "registry opens 8", "Register a"];
        assert_eq!(short(&drawn(&lines)), expected);
        let lines = [
            closes("registry", 7),
            closes("registry", 1),
            opens("registry", 1),
            said("a", "registry", "Register a"),
        ];
        let expected = ["registry closes 7", "Register a", "registry closes 1", "registry opens 1"];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn what_is_said_much_later_is_not_drawn_above_an_open_gate() {
        let at = |at_unix_ms, said: Said| Said { at_unix_ms, ..said };
        let drawn = |lines: &[Said]| short(&drawn(lines));
        let (closed, opened) = (at(1, closes("registry", 7)), at(2, opens("registry", 7)));
        let later = at(1_500, said("a", "registry", "Register a"));
        let expected = ["registry closes 7", "registry opens 7", "1.4 s later", "Register a"];
        assert_eq!(drawn(&[closed.clone(), opened.clone(), later.clone()]), expected);
        let meanwhile = [at(700, said("a", "registry", "soon")), at(900, said("a", "b", "something else"))];
        let just = at(2 + PAUSE_MIN_MS, said("a", "registry", "Register a"));
        let expected = ["soon", "registry closes 7", "registry opens 7", "something else", "Register a"];
        let lines = [&[closed.clone(), opened][..], &meanwhile, &[just]].concat();
        assert_eq!(drawn(&lines), expected, "a second after the gate opened");
        let expected = ["Register a", "registry closes 7", "1.4 s later", "registry opens 7"];
        assert_eq!(drawn(&[closed, at(1_500, opens("registry", 7)), later]), expected);
    }

    #[test]
    fn of_a_long_run_the_end_is_kept_and_everything_stands_in_its_place_there() {
        let mut drawer = Drawer::new("a run");
        let told = |drawer: &Drawer| short(&drawer.picture().marks);
        for line in [said("a", "b", "one"), closes("tasks", 1), closes("registry", 7), opens("registry", 7)] {
            drawer.draw(&line);
        }
        drawer.keep(4);
        assert_eq!(told(&drawer), ["one", "tasks closes 1", "registry closes 7", "registry opens 7"]);
        drawer.keep(3);
        drawer.draw(&said("a", "registry", "Register a"));
        let expected = ["tasks closes 1", "Register a", "registry closes 7", "registry opens 7"];
        assert_eq!(told(&drawer), expected);
        drawer.keep(1);
        drawer.draw(&opens("tasks", 1));
        drawer.draw(&said("b", "registry", "Register b"));
        drawer.draw(&said("you", "tasks", "run"));
        assert_eq!(told(&drawer), ["registry opens 7", "tasks opens 1", "Register b", "run"]);
        assert_eq!(drawer.picture().title, "a run");
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
