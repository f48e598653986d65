//! The picture of a played host, in a message script or a simulation: its journal as marks, beside the marks of the player.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use callboard_actors::shell::{Ending, JournalLine, Recorded};
use callboard_actors::vocabulary::Timestamp;

use super::drawn::{Drawer, Part};
use super::line::{Line, Participant};
use super::supervisor::ending as ending_text;
use super::teller::Teller;
use crate::picture::{Arrow, Mark, Sign};

/// The picture so far.
#[derive(Debug, Default)]
pub(crate) struct Played {
    teller: Teller,
    workloads: BTreeSet<String>,
    drawer: Drawer,
    /// The actors that have begun in this run of the host.
    begun: BTreeSet<String>,
    /// The active registration of each plugin.
    active: BTreeMap<String, String>,
    /// The last time in the picture, in milliseconds.
    at_millis: u128,
}

impl Played {
    /// All marks of the picture, with each text converted by `shown`.
    pub(crate) fn marks(&self, shown: impl Fn(&str) -> String) -> Vec<Mark> {
        self.drawer.picture().marks.iter().map(|mark| shown_as(mark, &shown)).collect()
    }

    /// Adds a mark that does not affect which actors live.
    pub(crate) fn put(&mut self, mark: Mark) {
        self.drawer.put(mark);
    }

    /// Removes the oldest marks, so that at most this many messages and signs are left.
    pub(crate) fn keep(&mut self, count: usize) {
        self.drawer.keep(count);
    }

    /// Sets the time since the beginning of the following marks.
    pub(crate) fn at(&mut self, at: Duration) {
        if at.as_millis() != self.at_millis {
            self.at_millis = at.as_millis();
            self.put(Mark::Time(at));
        }
    }

    /// From now on this allocation has a supervisor.
    pub(crate) fn add_workload(&mut self, allocation: &str) {
        self.workloads.insert(allocation.to_owned());
    }

    // === The host ===

    /// A host starts: none of its actors has begun yet, and its disk exists.
    pub(crate) fn host_starts(&mut self) {
        self.put(Mark::Chapter("the host starts".to_owned()));
        self.begun.clear();
        self.teller = Teller::default();
        self.lives("disk", "there again");
    }

    /// The host is killed, and with it the output that waited for the disk.
    pub(crate) fn host_is_killed(&mut self) {
        self.drawer.waiting().iter().for_each(|actor| self.drawer.gates_fall(actor));
        self.none_is_active();
        self.put(Mark::Chapter("the host is killed".to_owned()));
    }

    // === Outside of the host ===

    /// Records that this column outside of the host is gone.
    pub(crate) fn falls(&mut self, column: &str, text: &str) {
        self.drawer.lose(column, Part::World);
        self.drawer.sign(column, text.to_owned(), Sign::Crash);
    }

    /// Records that this column outside of the host exists, still or again.
    pub(crate) fn lives(&mut self, column: &str, text: &str) {
        if self.drawer.find(column, Part::World) {
            self.drawer.restart(column, text.to_owned());
        }
    }

    /// Records that this column outside of the host works correctly again.
    pub(crate) fn recovers(&mut self, column: &str, text: &str) {
        self.drawer.find(column, Part::World);
        self.drawer.restart(column, text.to_owned());
    }

    // === Actors ===

    /// Draws an action of an actor.
    pub(crate) fn note(&mut self, line: &JournalLine) {
        let JournalLine { actor, entry, .. } = line;
        let actor = &**actor;
        match entry {
            Recorded::Published { .. } | Recorded::Holds { .. } => {
                let lines = self.teller.tell(line);
                lines.into_iter().for_each(|line| self.line(line));
            }
            Recorded::Writing { step, write } => self.drawer.gate_closes(actor, *write, *step),
            Recorded::OnDisk { through } => self.drawer.gates_open_at_once(actor, *through),
            Recorded::WriteFailed { error } => {
                self.drawer.gates_fall(actor);
                let (column, about) = place(actor);
                self.drawer.sign(&column, format!("{about}not written: {error}"), Sign::Trouble);
            }
            Recorded::Crashed { message, .. } => self.actor_falls(actor, &format!("crashed: {message}")),
            Recorded::Built { is_rebuilt } => self.actor_lives(actor, *is_rebuilt),
            Recorded::LoadFailed { .. }
            | Recorded::Stepped { .. }
            | Recorded::Called { .. }
            | Recorded::Lagged { .. }
            | Recorded::Stale
            | Recorded::Ended { ending: Ending::Normal, .. } => {}
            Recorded::Ended { ending, .. } => {
                if self.drawer.waiting().iter().any(|waits| waits == actor) {
                    self.drawer.gates_fall(actor);
                }
                self.actor_falls(actor, &ending_text(ending));
            }
        }
    }

    /// The host is gone, and no longer routes anything.
    fn none_is_active(&mut self) {
        for (plugin, former) in std::mem::take(&mut self.active) {
            self.put(Mark::Active { plugin, before: Some(former), now: None });
        }
    }

    fn actor_falls(&mut self, actor: &str, text: &str) {
        self.drawer.lose(actor, Part::Actor);
        let (column, about) = place(actor);
        // The line of another actor continues.
        let sign = if column == actor { Sign::Crash } else { Sign::Trouble };
        self.drawer.sign(&column, format!("{about}{text}"), sign);
    }

    fn actor_lives(&mut self, actor: &str, is_rebuilt: bool) {
        let was_lost = self.drawer.find(actor, Part::Actor);
        let is_first = self.begun.insert(actor.to_owned());
        // Actors with many instances come and go with their subjects.
        let is_single = !actor.contains(' ');
        let text = match is_rebuilt {
            true => "rebuilt",
            false if was_lost || (is_single && !is_first) => "started again",
            false => return,
        };
        let (column, about) = place(actor);
        self.drawer.restart(&column, format!("{about}{text}"));
    }

    // === Their lines ===

    fn line(&mut self, line: Line) {
        if let Participant::Allocation(allocation) = &line.from
            && line.to == Participant::Registry
            && !self.workloads.contains(allocation.as_str())
        {
            // The player itself has drawn it.
            return;
        }
        if let (Some(plugin), Some((_, now))) = (&line.plugin, &line.active) {
            match now {
                Some(now) => self.active.insert(plugin.to_string(), now.to_string()),
                None => self.active.remove(&plugin.to_string()),
            };
        }
        let line = Line { from: host_for(line.from), to: host_for(line.to), ..line };
        self.drawer.draw_words(&line.said(0, Timestamp::default()));
    }
}

/// A message without a subject.
pub(crate) fn message(from: &str, to: &str, text: &str, arrow: Arrow) -> Mark {
    let (from, to, text) = (from.to_owned(), to.to_owned(), text.to_owned());
    Mark::Message { from, to, text, about: String::new(), arrow }
}

/// The column of an actor, and the prefix that names the actor there: an instance is drawn with its owner, and an eventor with its driver.
fn place(actor: &str) -> (String, String) {
    match actor.split_once(' ') {
        Some(("instance", plugin)) => ("instances".to_owned(), format!("{plugin}: ")),
        Some(("eventor", driver)) => (format!("driver {driver}"), "eventor: ".to_owned()),
        Some(_) | None => (actor.to_owned(), String::new()),
    }
}

/// The player of a host represents everyone who sends messages to it from outside.
fn host_for(voice: Participant) -> Participant {
    match voice {
        Participant::Agent | Participant::You | Participant::Timeline => {
            Participant::Actor("host".to_owned())
        }
        voice @ (Participant::Allocation(_)
        | Participant::Process(_)
        | Participant::Registry
        | Participant::Instances
        | Participant::Inventory
        | Participant::Volumes
        | Participant::Plugin(_)
        | Participant::Drivers
        | Participant::Driver(_)
        | Participant::Tasks
        | Participant::Task(_)
        | Participant::Actor(_)
        | Participant::Everyone
        | Participant::Disk) => voice,
    }
}

/// The same mark, with each text converted by `shown`.
fn shown_as(mark: &Mark, shown: impl Fn(&str) -> String) -> Mark {
    let mut mark = mark.clone();
    match &mut mark {
        Mark::Chapter(text) | Mark::Pause(text) | Mark::Message { text, .. } | Mark::Sign { text, .. } => {
            *text = shown(text)
        }
        Mark::GateCloses { .. }
        | Mark::GateOpens { .. }
        | Mark::GatesFall { .. }
        | Mark::Time(_)
        | Mark::Active { .. } => {}
    }
    mark
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::registry::{Entry, RegistryView, Standing};
    use callboard_actors::vocabulary::{
        AllocationId, DriverName, Generation, PluginKey, PluginName, PluginType, Registration,
        RegistrationNumber, SocketPath,
    };
    use callboard_proto::admin::v1::Fate;

    use super::*;

    fn entry(actor: &str, entry: Recorded) -> JournalLine {
        JournalLine { number: 1, at: Timestamp::default(), kind: "", actor: actor.into(), entry }
    }

    fn built(actor: &str) -> JournalLine {
        entry(actor, Recorded::Built { is_rebuilt: false })
    }

    fn rebuilt(actor: &str) -> JournalLine {
        entry(actor, Recorded::Built { is_rebuilt: true })
    }

    fn ended(actor: &str) -> JournalLine {
        let ending = Ending::BudgetSpent(String::new());
        entry(actor, Recorded::Ended { ending, is_waiting: false })
    }

    fn crashed(actor: &str) -> JournalLine {
        entry(actor, Recorded::Crashed { message: "drill".into() })
    }

    /// The drawn signs and ends of gates, in a short form.
    fn short(drawn: &Played) -> Vec<String> {
        let one = |mark: &Mark| match mark {
            Mark::Sign { actor, text, sign, .. } => Some(format!("{actor} {sign:?}: {text}")),
            Mark::GatesFall { actor } => Some(format!("{actor} falls")),
            Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Time(_)
            | Mark::Active { .. }
            | Mark::Message { .. }
            | Mark::GateCloses { .. }
            | Mark::GateOpens { .. } => None,
        };
        drawn.drawer.picture().marks.iter().filter_map(one).collect()
    }

    /// The marks of these entries in a run of the host.
    fn drawn(entries: &[JournalLine]) -> Vec<String> {
        let mut drawn = Played::default();
        drawn.host_starts();
        entries.iter().for_each(|entry| drawn.note(entry));
        short(&drawn)
    }

    #[test]
    fn who_begins_is_no_sign_and_who_begins_again_is_one() {
        let told = drawn(&[built("registry"), ended("registry"), built("registry"), built("registry")]);
        assert_eq!(
            told,
            [
                "registry Crash: it crashed too often: ",
                "registry Restart: started again",
                "registry Restart: started again"
            ]
        );
        let told = drawn(&[built("allocation red"), built("allocation red")]);
        assert_eq!(told, Vec::<String>::new(), "a workload that comes again is none that was lost");
        let told = drawn(&[ended("allocation red"), built("allocation red"), rebuilt("allocation red")]);
        assert_eq!(told[1..], ["allocation red Restart: started again", "allocation red Restart: rebuilt"]);
    }

    #[test]
    fn an_instance_or_an_eventor_that_falls_does_not_break_the_line_of_another() {
        let told = drawn(&[crashed("instance csi-node/zfs"), rebuilt("instance csi-node/zfs")]);
        let expected =
            ["instances Trouble: csi-node/zfs: crashed: drill", "instances Restart: csi-node/zfs: rebuilt"];
        assert_eq!(told, expected);
        let told = drawn(&[ended("eventor exec"), built("eventor exec")]);
        let expected = [
            "driver exec Trouble: eventor: it crashed too often: ",
            "driver exec Restart: eventor: started again",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_driver_lives_again_when_both_its_process_and_its_actor_do() {
        let mut drawn = Played::default();
        drawn.falls("driver exec", "killed");
        [crashed("driver exec"), rebuilt("driver exec")].iter().for_each(|entry| drawn.note(entry));
        drawn.lives("driver exec", "lives again");
        drawn.lives("driver exec", "lives again");
        let expected = [
            "driver exec Crash: killed",
            "driver exec Crash: crashed: drill",
            "driver exec News: rebuilt",
            "driver exec Restart: lives again",
        ];
        assert_eq!(short(&drawn), expected);
    }

    #[test]
    fn who_fell_in_one_run_of_the_host_lives_again_in_the_next() {
        let mut drawn = Played::default();
        drawn.host_starts();
        let first = [built("registry"), built("inventory"), ended("registry")];
        first.iter().for_each(|entry| drawn.note(entry));
        drawn.falls("disk", "power-cut");
        drawn.host_starts();
        [built("registry"), built("inventory")].iter().for_each(|entry| drawn.note(entry));
        let expected =
            ["disk Crash: power-cut", "disk Restart: there again", "registry Restart: started again"];
        assert_eq!(short(&drawn)[1..], expected);
    }

    #[test]
    fn gates_fall_with_the_messages_that_wait_behind_them() {
        let mut drawn = Played::default();
        let writes = |actor, write| entry(actor, Recorded::Writing { step: 1, write });
        let on_disk = |actor, through| entry(actor, Recorded::OnDisk { through });
        let entries = [
            writes("registry", 1),
            writes("drivers", 1),
            writes("drivers", 2),
            writes("processes", 1),
            on_disk("registry", 1),
            on_disk("drivers", 1),
            ended("processes"),
        ];
        entries.iter().for_each(|entry| drawn.note(entry));
        assert_eq!(short(&drawn), ["processes falls", "processes Crash: it crashed too often: "]);
        drawn.host_is_killed();
        assert_eq!(short(&drawn)[2..], ["drivers falls"]);
    }

    fn plugin() -> PluginKey {
        PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap())
    }

    /// All messages and signs that are drawn for these lines.
    fn said(drawn: &mut Played, lines: impl IntoIterator<Item = Line>) -> Vec<String> {
        let before = drawn.drawer.picture().marks.len();
        lines.into_iter().for_each(|line| drawn.line(line));
        let one = |mark: &Mark| match mark {
            Mark::Message { from, to, text, about, .. } => format!("{from} → {to}: {text} ({about})"),
            Mark::Sign { actor, text, about, sign } => format!("{actor} {sign:?}: {text} ({about})"),
            other => format!("{other:?}"),
        };
        drawn.drawer.picture().marks[before..].iter().map(one).collect()
    }

    #[test]
    fn what_a_workload_says_is_drawn_and_what_the_script_has_said_is_not_drawn_twice() {
        let mut drawn = Played::default();
        let red = AllocationId::new("red").unwrap();
        let registers = || Line::new(Participant::Allocation(red.clone()), Participant::Registry, "Register");
        let asks = Line::new(Participant::Allocation(red.clone()), Participant::Agent, "restart");
        assert_eq!(said(&mut drawn, [registers()]), [""; 0]);
        assert_eq!(said(&mut drawn, [asks]), ["allocation red → host: restart ()"]);
        drawn.add_workload(red.as_str());
        assert_eq!(said(&mut drawn, [registers()]), ["allocation red → registry: Register ()"]);
    }

    #[test]
    fn what_a_host_found_on_disk_is_drawn_when_its_registry_begins() {
        let registration = Registration {
            policy: None,
            plugin: plugin(),
            allocation: AllocationId::new("red").unwrap(),
            socket: SocketPath::new("/run/red.sock").unwrap(),
            provider: None,
            version: None,
            options: Arc::default(),
        };
        let restored = Entry {
            number: RegistrationNumber::new(1),
            generation: Generation::new(2),
            registration: registration.into(),
            standing: Standing::Provisional,
            since: Timestamp::default(),
        };
        let mut drawn = Played::default();
        let view = Arc::new(RegistryView { entries: vec![restored], active: vec![] });
        drawn.note(&entry("registry", Recorded::Holds { number: 0, view }));
        let [Mark::Message { from, to, about, .. }] = &drawn.drawer.picture().marks[..] else {
            panic!("{drawn:?}")
        };
        assert_eq!([from, to, about], ["disk", "registry", "csi-node/zfs"]);
    }

    #[test]
    fn a_line_says_what_it_is_about_and_what_everyone_hears_is_a_sign() {
        let mut drawn = Played::default();
        let line = |to: Participant| Line::new(Participant::Registry, to, "so");
        let (zfs, third) = (Some(plugin()), Some(Generation::new(3)));
        let told = said(
            &mut drawn,
            [
                Line { plugin: zfs.clone(), generation: third, ..line(Participant::Instances) },
                Line { plugin: zfs, ..line(Participant::You) },
                Line { generation: third, ..line(Participant::Everyone) },
                Line::new(Participant::Timeline, Participant::Disk, "so"),
            ],
        );
        let expected = [
            "registry → instances: so (csi-node/zfs @3)",
            "registry → host: so (csi-node/zfs)",
            "registry News: so (@3)",
            "host → disk: so ()",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn who_is_told_to_be_lost_breaks_off_once_and_lives_again_when_that_is_told() {
        let mut drawn = Played::default();
        let exec = Participant::Driver(DriverName::new("exec").unwrap());
        let told = |fate| Line {
            fate: Some((exec.clone(), fate)),
            ..Line::new(Participant::Drivers, Participant::Everyone, "exec")
        };
        let lines = [Fate::Alive, Fate::Lost, Fate::Lost, Fate::Alive, Fate::Alive].map(told);
        let expected = [
            "drivers News: exec ()",
            "driver exec Crash: exec ()",
            "drivers News: exec ()",
            "drivers News: exec ()",
            "driver exec Restart: lives again ()",
            "drivers News: exec ()",
        ];
        assert_eq!(said(&mut drawn, lines), expected);
    }

    #[test]
    fn every_text_is_shown_as_it_is_to_be() {
        let mut drawn = Played::default();
        drawn.put(Mark::Chapter("/tmp/x: begins".to_owned()));
        drawn.put(Mark::Pause("/tmp/x: a second".to_owned()));
        drawn.put(message("host", "registry", "/tmp/x: Register", Arrow::Said));
        drawn.falls("disk", "/tmp/x: full");
        drawn.put(Mark::GateOpens { actor: "registry".to_owned(), through: 1 });
        let marks = drawn.marks(|text| text.replace("/tmp/x", "/stage"));
        let expected = [
            Mark::Chapter("/stage: begins".to_owned()),
            Mark::Pause("/stage: a second".to_owned()),
            message("host", "registry", "/stage: Register", Arrow::Said),
            Mark::Sign {
                actor: "disk".to_owned(),
                text: "/stage: full".to_owned(),
                about: String::new(),
                sign: Sign::Crash,
            },
            Mark::GateOpens { actor: "registry".to_owned(), through: 1 },
        ];
        assert_eq!(marks, expected);
    }
}
