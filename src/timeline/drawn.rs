//! Draws lines as marks of a picture: of a running host from the admin socket, and of played hosts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use callboard_proto::admin::v1::{self as wire, Fate, Said};

use crate::picture::{Arrow, Mark, Picture, Sign};

/// The part of a column that can be gone. A driver has both: its actor, and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// An actor of the host.
    Actor,
    /// Something outside of the host: a process, the disk.
    World,
}

/// Draws lines, each below the earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Drawer {
    picture: Picture,
    /// What is gone at present.
    lost: BTreeSet<(String, Part)>,
    /// The gates of each actor.
    gates: BTreeMap<String, Gates>,
    /// The times of the first and the last line.
    between_unix_ms: Option<(u64, u64)>,
}

/// The gates of one actor.
#[derive(Debug, Default)]
struct Gates {
    /// The closed gates, oldest first.
    closed: VecDeque<Gate>,
    /// The gates that opened last.
    opened: VecDeque<Gate>,
}

#[derive(Debug, Clone, Copy)]
struct Gate {
    write: u64,
    /// The step with the write.
    step: u64,
    /// Its index among the marks.
    place: usize,
}

/// The shortest pause that gets a line of its own, in milliseconds.
const PAUSE_MIN_MS: u64 = 1_000;

impl Drawer {
    /// An empty picture with this title.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        let picture = Picture { title: title.into(), marks: Vec::new() };
        Self { picture, ..Self::default() }
    }

    /// The picture so far.
    pub(crate) const fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Removes the oldest marks, so that at most this many messages and signs are left.
    pub(crate) fn keep(&mut self, count: usize) {
        let is_statement = |mark: &&Mark| matches!(mark, Mark::Message { .. } | Mark::Sign { .. });
        let marks = &mut self.picture.marks;
        let last = marks.iter().rev().enumerate().filter(|(_, mark)| is_statement(mark)).nth(count);
        if let Some((place, _)) = last {
            let too_many = marks.len() - place;
            marks.drain(..too_many);
            self.gates.values_mut().for_each(|gates| gates.move_up(too_many));
        }
    }

    /// Adds a mark that does not affect which actors live.
    pub(super) fn put(&mut self, mark: Mark) {
        self.picture.marks.push(mark);
    }

    /// Adds a sign on a line.
    pub(super) fn sign(&mut self, actor: &str, text: String, sign: Sign) {
        self.put(Mark::Sign { actor: actor.to_owned(), text, about: String::new(), sign });
    }

    // === Lives ===

    /// Records that a part of a column is gone. False if that is already known.
    pub(super) fn lose(&mut self, column: &str, part: Part) -> bool {
        self.lost.insert((column.to_owned(), part))
    }

    /// Records that a part of a column has returned. False if it was not gone.
    pub(super) fn find(&mut self, column: &str, part: Part) -> bool {
        self.lost.remove(&(column.to_owned(), part))
    }

    /// Draws that a part lives again. Its line lives again, too, unless the other part is still gone.
    pub(super) fn restart(&mut self, column: &str, text: String) {
        let is_lost = [Part::Actor, Part::World].map(|part| self.lost.contains(&(column.to_owned(), part)));
        self.sign(column, text, if is_lost.contains(&true) { Sign::News } else { Sign::Restart });
    }

    // === Gates ===

    /// An actor writes, and its later output waits for that.
    pub(super) fn gate_closes(&mut self, actor: &str, write: u64, step: u64) {
        let gate = Gate { write, step, place: self.picture.marks.len() };
        self.gates.entry(actor.to_owned()).or_default().close(gate);
        self.put(Mark::GateCloses { actor: actor.to_owned(), write });
    }

    /// The writes of an actor are on disk up to this one.
    pub(super) fn gates_open(&mut self, actor: &str, through: u64) {
        self.gates.entry(actor.to_owned()).or_default().open(through);
        self.put(Mark::GateOpens { actor: actor.to_owned(), through });
    }

    /// The same in a run under virtual time, in which a write takes no time. The mark is drawn above the marks of other actors meanwhile,
    /// in any order, but not above marks of the actor itself, the host or the disk, or above the passage of time.
    pub(super) fn gates_open_at_once(&mut self, actor: &str, through: u64) {
        self.gates.entry(actor.to_owned()).or_default().open(through);
        let is_of_others = |mark: &&Mark| {
            matches!(mark, Mark::Message { .. } | Mark::Sign { .. })
                && !mark.actors().iter().any(|column| [actor, "host", "disk"].contains(column))
        };
        let marks = &mut self.picture.marks;
        let place = marks.len() - marks.iter().rev().take_while(is_of_others).count();
        marks.insert(place, Mark::GateOpens { actor: actor.to_owned(), through });
        self.gates.values_mut().for_each(|gates| gates.move_down(place));
    }

    /// The writes of an actor are lost.
    pub(super) fn gates_fall(&mut self, actor: &str) {
        self.gates.remove(actor);
        self.put(Mark::GatesFall { actor: actor.to_owned() });
    }

    /// The actors that wait for the disk.
    pub(super) fn waiting(&self) -> Vec<String> {
        let waits = self.gates.iter().filter(|(_, gates)| !gates.closed.is_empty());
        waits.map(|(actor, _)| actor.clone()).collect()
    }

    // === Lines ===

    /// Draws a line. An actor that is lost is shown as lost until it lives again.
    pub(crate) fn draw(&mut self, said: &Said) {
        let at = said.at_unix_ms;
        let (began, last) = self.between_unix_ms.unwrap_or((at, at));
        self.between_unix_ms = Some((began, at));
        let since = at.saturating_sub(last);
        if since >= PAUSE_MIN_MS {
            let text = format!("{}.{} s later", since / 1_000, since % 1_000 / 100);
            self.picture.marks.push(Mark::Pause(text));
        }
        if since > 0 {
            self.picture.marks.push(Mark::Time(Duration::from_millis(at.saturating_sub(began))));
        }
        if said.from == "timeline" {
            // Lines are missing here, possibly lines about gates.
            self.gates.clear();
        }
        if !self.draw_gate(said) {
            self.draw_words(said);
        }
    }

    /// Draws the content of a line.
    pub(super) fn draw_words(&mut self, said: &Said) {
        let (fate, of) = (said.fate(), &said.whose_fate);
        let breaks_off = fate == Fate::Lost && self.lose(of, Part::World);
        let mark = mark(said, breaks_off);
        // A message that an actor handled in a step is drawn above its write in that step, although it is reported only after the write.
        let is_told = matches!(mark, Mark::Message { .. }) && said.to == said.actor;
        let gates = self.gates.get(&said.to).filter(|_| is_told);
        match gates.and_then(|gates| gates.place_of(said.step)) {
            Some(place) => self.insert(place, mark),
            None => self.put(mark),
        }
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let (before, now) = (name(&said.active_before), name(&said.active_now));
        if before.is_some() || now.is_some() {
            self.put(Mark::Active { plugin: said.plugin.clone(), before, now });
        }
        if fate == Fate::Alive && self.find(of, Part::World) {
            self.restart(of, "lives again".to_owned());
        }
    }

    /// False if the line is not about a gate.
    fn draw_gate(&mut self, said: &Said) -> bool {
        match said.gate() {
            wire::Gate::Unspecified => return false,
            wire::Gate::Closes => self.gate_closes(&said.from, said.write, said.step),
            wire::Gate::Opens => self.gates_open(&said.to, said.write),
            wire::Gate::Falls => self.gates_fall(&said.to),
        }
        true
    }

    /// Draws a message to an actor above the gate that the actor then closed: it reports the message only when the gate is open.
    fn insert(&mut self, place: usize, mark: Mark) {
        self.picture.marks.insert(place, mark);
        self.gates.values_mut().for_each(|gates| gates.move_down(place));
    }
}

impl Gates {
    fn close(&mut self, gate: Gate) {
        if self.closed.back().is_some_and(|last| gate.write <= last.write) {
            // Another incarnation of the actor, which counts from the beginning.
            *self = Self::default();
        }
        self.closed.push_back(gate);
    }

    fn open(&mut self, through: u64) {
        let count = self.closed.iter().take_while(|gate| gate.write <= through).count();
        self.opened = self.closed.drain(..count).collect();
    }

    /// The index of the first gate that a step closed.
    fn place_of(&self, step: u64) -> Option<usize> {
        let mut gates = self.opened.iter().chain(&self.closed);
        gates.find(|gate| gate.step == step).map(|gate| gate.place)
    }

    /// This many marks at the top are removed.
    fn move_up(&mut self, count: usize) {
        for gates in [&mut self.closed, &mut self.opened] {
            let moved = |gate: Gate| Some(Gate { place: gate.place.checked_sub(count)?, ..gate });
            *gates = gates.drain(..).filter_map(moved).collect();
        }
    }

    /// A mark is inserted at this index.
    fn move_down(&mut self, at: usize) {
        let gates = self.closed.iter_mut().chain(&mut self.opened);
        gates.filter(|gate| gate.place >= at).for_each(|gate| gate.place += 1);
    }
}

/// The mark for a message of an actor, or for its end.
fn mark(said: &Said, breaks_off: bool) -> Mark {
    let sign = |actor: &str, sign| Mark::Sign {
        actor: actor.to_owned(),
        text: said.message.clone(),
        about: about(said),
        sign,
    };
    match said.fate() {
        // A lost actor sends nothing: others have noticed its loss.
        Fate::Lost if breaks_off => sign(&said.whose_fate, Sign::Crash),
        Fate::Troubled => sign(&said.whose_fate, Sign::Trouble),
        Fate::Unspecified | Fate::Alive | Fate::Lost if said.from == "timeline" => {
            Mark::Chapter(said.message.clone())
        }
        Fate::Unspecified | Fate::Alive | Fate::Lost if said.to == "everyone" => sign(&said.from, Sign::News),
        Fate::Unspecified | Fate::Alive | Fate::Lost => Mark::Message {
            from: said.from.clone(),
            to: said.to.clone(),
            text: said.message.clone(),
            about: about(said),
            arrow: Arrow::Said,
        },
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

    /// The marks for these lines, without their times.
    fn drawn<'a>(lines: impl IntoIterator<Item = &'a Said>) -> Vec<Mark> {
        let mut drawer = Drawer::new("");
        lines.into_iter().for_each(|line| drawer.draw(line));
        drawer.picture.marks.retain(|mark| !matches!(mark, Mark::Time(_)));
        drawer.picture.marks
    }

    #[test]
    fn who_is_active_and_when_it_happened_is_in_the_picture() {
        let at = |at_unix_ms, said: Said| Said { at_unix_ms, ..said };
        let mut drawer = Drawer::new("");
        drawer.draw(&at(1_000, said("a", "b", "one")));
        drawer.draw(&at(1_000, said("a", "b", "two")));
        let plugin = "csi-node/zfs".to_owned();
        let active = Said { plugin, active_now: "allocation a".to_owned(), ..said("b", "everyone", "three") };
        drawer.draw(&at(1_042, active));
        let [_, _, Mark::Time(time), _, Mark::Active { plugin, before: None, now }] =
            &drawer.picture().marks[..]
        else {
            panic!("{drawer:?}")
        };
        assert_eq!((*time, &**plugin), (Duration::from_millis(42), "csi-node/zfs"));
        assert_eq!(now.as_deref(), Some("allocation a"));
    }

    #[test]
    fn what_is_said_to_one_is_an_arrow_and_what_is_said_to_everyone_is_a_sign() {
        let plugin = "csi-node/zfs".to_owned();
        let news = Said {
            plugin: plugin.clone(),
            generation: 2,
            ..said("registry", "everyone", "active: none → a")
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

    /// A gate that this step closes: here each step writes once, under its own number.
    fn closes(actor: &str, write: u64) -> Said {
        of_step(write, Said { gate: wire::Gate::Closes.into(), write, ..said(actor, "disk", "write") })
    }

    fn of_step(step: u64, said: Said) -> Said {
        let actor = if said.to == "disk" { &said.from } else { &said.to };
        Said { actor: actor.clone(), step, ..said }
    }

    fn opens(actor: &str, write: u64) -> Said {
        Said { gate: wire::Gate::Opens.into(), write, ..said("disk", actor, "on disk") }
    }

    fn falls(actor: &str) -> Said {
        Said { gate: wire::Gate::Falls.into(), ..said("disk", actor, "not written") }
    }

    /// The marks in a short form.
    fn short(marks: &[Mark]) -> Vec<String> {
        let one = |mark: &Mark| match mark {
            Mark::Message { text, .. }
            | Mark::Sign { text, .. }
            | Mark::Chapter(text)
            | Mark::Pause(text) => text.clone(),
            Mark::GateCloses { actor, write } => format!("{actor} closes {write}"),
            Mark::GateOpens { actor, through } => format!("{actor} opens {through}"),
            Mark::GatesFall { actor } => format!("{actor} falls"),
            Mark::Time(at) => format!("at {at:?}"),
            Mark::Active { plugin, .. } => format!("active of {plugin}"),
        };
        marks.iter().map(one).collect()
    }

    #[test]
    fn what_was_said_to_an_actor_is_drawn_above_the_gate_that_it_closed_over_it_shell_1() {
        let lines = [
            of_step(6, said("a", "registry", "zero")),
            closes("registry", 7),
            closes("tasks", 1),
            closes("registry", 8),
            closes("registry", 9),
            opens("registry", 7),
            of_step(7, said("a", "registry", "Register a")),
            of_step(7, said("a", "registry", "and b")),
            said("registry", "everyone", "active: a"),
            opens("registry", 9),
            of_step(8, said("c", "registry", "Register c")),
            of_step(9, said("d", "registry", "Register d")),
            opens("tasks", 1),
            of_step(1, said("you", "tasks", "run")),
            closes("registry", 10),
            opens("registry", 10),
            of_step(11, said("a", "registry", "Deregister a")),
        ];
        let expected = [
            "zero",
            "Register a",
            "and b",
            "registry closes 7",
            "run",
            "tasks closes 1",
            "Register c",
            "registry closes 8",
            "Register d",
            "registry closes 9",
            "registry opens 7",
            "active: a",
            "registry opens 9",
            "tasks opens 1",
            "registry closes 10",
            "registry opens 10",
            "Deregister a",
        ];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn what_follows_from_another_step_stays_where_it_was_said() {
        let of = |actor: &str, step, said: Said| Said { actor: actor.to_owned(), step, ..said };
        let lines = [
            closes("tasks", 1),
            opens("tasks", 1),
            of("tasks", 1, said("tasks", "everyone", "news")),
            of("tasks", 1, said("tasks", "driver a", "recover web")),
            of("tasks", 2, said("driver a", "tasks", "web runs")),
            of("drivers", 1, said("driver a", "tasks", "of another actor")),
        ];
        let expected =
            ["tasks closes 1", "tasks opens 1", "news", "recover web", "web runs", "of another actor"];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn what_is_said_after_a_write_has_failed_stays_below_it_shell_2() {
        let lines = [
            closes("registry", 7),
            falls("registry"),
            opens("registry", 7),
            of_step(7, said("a", "registry", "Register a")),
        ];
        let expected = ["registry closes 7", "registry falls", "registry opens 7", "Register a"];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn nothing_is_drawn_above_a_gap_or_a_former_life_of_its_actor() {
        let gap = said("timeline", "you", "3 lines are missing");
        let register = |step| of_step(step, said("a", "registry", "Register a"));
        let lines = [closes("registry", 7), gap, opens("registry", 8), register(7)];
        let expected = ["registry closes 7", "3 lines are missing", "registry opens 8", "Register a"];
        assert_eq!(short(&drawn(&lines)), expected);
        let lines = [
            closes("registry", 6),
            closes("registry", 7),
            opens("registry", 6),
            closes("registry", 1),
            opens("registry", 1),
            register(7),
            register(6),
            register(1),
        ];
        let expected = [
            "registry closes 6",
            "registry closes 7",
            "registry opens 6",
            "Register a",
            "registry closes 1",
            "registry opens 1",
            "Register a",
            "Register a",
        ];
        assert_eq!(short(&drawn(&lines)), expected);
    }

    #[test]
    fn of_a_long_run_the_end_is_kept_and_everything_stands_in_its_place_there() {
        let mut drawer = Drawer::new("a run");
        let told = |drawer: &Drawer| short(&drawer.picture().marks);
        let lines = [said("a", "b", "one"), said("a", "b", "two"), closes("tasks", 1), closes("registry", 7)];
        lines.iter().chain([&opens("registry", 7)]).for_each(|line| drawer.draw(line));
        drawer.keep(2);
        assert_eq!(told(&drawer), ["one", "two", "tasks closes 1", "registry closes 7", "registry opens 7"]);
        drawer.keep(1);
        drawer.draw(&of_step(7, said("a", "registry", "Register a")));
        let expected = ["two", "tasks closes 1", "Register a", "registry closes 7", "registry opens 7"];
        assert_eq!(told(&drawer), expected);
        drawer.keep(0);
        drawer.draw(&opens("tasks", 1));
        drawer.draw(&of_step(7, said("b", "registry", "Register b")));
        drawer.draw(&of_step(1, said("you", "tasks", "run")));
        let expected = ["Register b", "registry closes 7", "registry opens 7", "tasks opens 1", "run"];
        assert_eq!(told(&drawer), expected);
        assert_eq!(drawer.picture().title, "a run");
    }

    #[test]
    fn time_that_passes_and_what_the_timeline_says_of_itself_go_over_the_whole_width() {
        let at = |at_unix_ms, said: Said| Said { at_unix_ms, ..said };
        let marks = drawn(&[
            at(5_000, said("timeline", "you", "messages from now on")),
            at(5_900, said("agent", "registry", "one")),
            Said { fate: Fate::Troubled.into(), ..at(5_900, said("registry", "everyone", "two")) },
            at(8_150, said("agent", "registry", "three")),
        ]);
        assert_eq!(short(&marks), ["messages from now on", "one", "two", "2.2 s later", "three"]);
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
