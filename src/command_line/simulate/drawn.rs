//! Draws the end of a simulated run: the events, and the reactions of the actors.

use std::time::Duration;

use callboard_actors::shell::{Ending, JournalLine, Recorded};
use callboard_actors::vocabulary::Timestamp;
use callboard_simulation::{
    Answer, Behaviour, Conduct, DatabaseDoing, DriverDoing, Event, EventKind, FamilyDoing, Observed, Outcome,
    ProcessDoing, ProcessesDoing, Refusal, Reply, Watch, WorkloadDoing, WorkloadOrder, WorkloadsDoing,
};

use crate::picture::{Arrow, Mark, Picture, Sign};
use crate::timeline::{Played, answers, message, news_sentence};

/// The maximum number of messages and signs in the picture.
const STATEMENTS_MAX: usize = 100;
/// The shortest pause between two events that is shown.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The column of everything outside of the actors.
const OUTSIDE: &str = "host";

/// The drawing of a run so far.
#[derive(Debug, Default)]
pub(super) struct Run {
    drawn: Played,
    began: Option<Timestamp>,
    at: Option<Timestamp>,
    host: Host,
}

/// The state of the host as a receiver of messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Host {
    #[default]
    Up,
    /// It no longer accepts requests.
    Stops,
    Down,
}

/// How an event is drawn.
enum Shown {
    /// The host program sends it to an actor.
    Said(&'static str),
    /// It happens to this column.
    Befalls(String, Sign),
    /// It is a break in the run of the host.
    Chapter(&'static str),
    /// The process of a driver ends.
    ProcessEnds(String),
    /// A driver reports an event of a task.
    Event(String),
    /// Its consequences are drawn by their actors: a crash when it occurs and through its handling, and what arrives or is due. The actions
    /// of volumes are not traced.
    Not,
}

impl Run {
    /// Draws an event, and its consequences.
    pub(super) fn happened(&mut self, event: &Event, came: &[Observed]) {
        let began = *self.began.get_or_insert(event.at);
        let span = self.at.replace(event.at).map_or(Duration::ZERO, |at| event.at.since(at));
        if span >= PAUSE_MIN {
            self.drawn.put(Mark::Pause(format!("{:.1} s later", span.as_secs_f64())));
        }
        self.drawn.at(event.at.since(began));
        self.event(event.what);
        self.came(came);
    }

    fn came(&mut self, came: &[Observed]) {
        for came in came {
            match came {
                Observed::Noted { actor, entry } => self.noted(actor, entry),
                Observed::Left { actor, answer: Some(answer), .. } => self.answered(actor, answer),
                Observed::Left { answer: None, .. } => {}
            }
        }
        self.drawn.keep(STATEMENTS_MAX);
    }

    fn event(&mut self, what: EventKind) {
        if self.host == Host::Down && what != EventKind::Start {
            return;
        }
        let text = what.to_string();
        match shown(what) {
            Shown::Not => {}
            Shown::Said(whom) if self.host == Host::Up => {
                self.drawn.put(message(OUTSIDE, whom, &text, Arrow::Said));
            }
            Shown::Said(_) => {}
            Shown::Befalls(column, kind) => self.drawn.put(sign(&column, text, kind)),
            Shown::ProcessEnds(column) => self.drawn.falls(&column, "its process ends"),
            Shown::Event(column) => self.drawn.put(message(&column, "drivers", &text, Arrow::Said)),
            Shown::Chapter(text) => self.drawn.put(Mark::Chapter(text.to_owned())),
        }
        match what {
            EventKind::KillHost(..) | EventKind::Database(DatabaseDoing::Kill { .. }) => {
                self.drawn.host_is_killed();
                self.host = Host::Down;
            }
            EventKind::Stop | EventKind::Detach => self.host = Host::Stops,
            EventKind::Start => {
                self.drawn.host_starts();
                self.host = Host::Up;
            }
            EventKind::Workload(who, WorkloadDoing::Order(WorkloadOrder::Prepare)) => {
                self.drawn.add_workload(&format!("a{who}"));
            }
            _ => {}
        }
    }

    fn noted(&mut self, actor: &str, entry: &Recorded) {
        let published = match entry {
            Recorded::Published { news, .. } => Some(news),
            // The supervisors of a tree share one column.
            Recorded::Built { is_rebuilt: false } if actor == "supervisor" => return,
            _ => None,
        };
        if let Some(news) = published.filter(|_| ["processes", "supervisor"].contains(&actor)) {
            if let Some(text) = news_sentence(&**news) {
                self.drawn.put(sign(actor, text, Sign::News));
            }
            return;
        }
        let (actor_name, entry) = (actor.into(), entry.clone());
        let has_ended = matches!(entry, Recorded::Ended { ending: Ending::Normal, .. });
        self.drawn.note(&JournalLine {
            number: 0,
            at: self.at.unwrap_or_default(),
            kind: "",
            actor: actor_name,
            entry,
        });
        if has_ended && actor == "registry" {
            self.host = Host::Down;
            self.drawn.put(Mark::Chapter("the host has stopped".to_owned()));
        }
    }

    fn answered(&mut self, actor: &str, given: &Answer) {
        let text = match given {
            Answer::Given(given) => answers::answer(&**given),
            Answer::Refused(Refusal::Crashed) => Some("refused: it crashed".to_owned()),
            Answer::Refused(Refusal::NotDurable) => Some("refused: it is not on disk".to_owned()),
            Answer::Refused(Refusal::NotWritten) => Some("refused: it is never on disk".to_owned()),
            Answer::Refused(Refusal::NotBegun) => {
                Some("refused: the disk is sick, nothing was begun".to_owned())
            }
        };
        if let Some(text) = text {
            let first = text.lines().next().unwrap_or_default();
            self.drawn.put(message(actor, OUTSIDE, first, Arrow::Answered));
        }
    }

    /// The picture, with this closing text.
    pub(super) fn picture(mut self, title: String, end: &str) -> Picture {
        self.drawn.put(Mark::Chapter(end.to_owned()));
        Picture { title, marks: self.drawn.marks(str::to_owned) }
    }
}

impl Watch for Run {
    fn happened(&mut self, event: &Event, came: &[Observed]) {
        Self::happened(self, event, came);
    }

    fn calmed(&mut self, came: &[Observed]) {
        self.drawn.put(Mark::Chapter("from here on nothing goes wrong".to_owned()));
        self.came(came);
    }
}

fn sign(actor: &str, text: String, sign: Sign) -> Mark {
    Mark::Sign { actor: actor.to_owned(), text, about: String::new(), sign }
}

fn trouble(column: impl Into<String>) -> Shown {
    Shown::Befalls(column.into(), Sign::Trouble)
}

fn shown(what: EventKind) -> Shown {
    match what {
        EventKind::Register(..) | EventKind::Deregister(_) | EventKind::Ask(_) => Shown::Said("registry"),
        EventKind::Dispense(_) | EventKind::Check(_) | EventKind::AwaitRetired(_) => Shown::Said("instances"),
        EventKind::TakeInventory => Shown::Said("inventory"),
        EventKind::Settle(_, Outcome::Failed | Outcome::FailedButWritten)
        | EventKind::DiskFull
        | EventKind::Disk(Some(_))
        | EventKind::Load(false) => trouble("disk"),
        EventKind::Checked(_) => Shown::Befalls("registry".to_owned(), Sign::News),
        EventKind::Answer(_, behaviour) if behaviour != Behaviour::Well => trouble("instances"),
        EventKind::Driver(number, doing) => of_driver(number, doing),
        EventKind::Workload(who, doing) => of_workload(who, doing),
        EventKind::Workloads(WorkloadsDoing::Fall) => trouble("allocations"),
        EventKind::Processes(doing) => of_processes(doing),
        EventKind::Database(DatabaseDoing::Commit(_, Some(_)) | DatabaseDoing::Load(Some(_))) => {
            trouble("disk")
        }
        EventKind::Family(_, doing) => of_supervisor(doing),
        EventKind::Detach => Shown::Chapter("the host is told to detach"),
        EventKind::Stop => Shown::Chapter("the host is told to stop"),
        EventKind::Settle(_, Outcome::Written)
        | EventKind::Load(true)
        | EventKind::Disk(None)
        | EventKind::DiskLate
        | EventKind::Wake
        | EventKind::Feed
        | EventKind::InventoryFeed
        | EventKind::Report(_)
        | EventKind::Endings
        | EventKind::Answer(..)
        | EventKind::RegistryTimers
        | EventKind::InstancesTimers
        | EventKind::InstanceTimers(_)
        | EventKind::InventoryTimers
        | EventKind::CrashRegistry
        | EventKind::CrashInstances
        | EventKind::CrashInstance(_)
        | EventKind::CrashInventory
        | EventKind::Fall(_)
        | EventKind::KillHost(..)
        | EventKind::Workloads(WorkloadsDoing::Endings | WorkloadsDoing::Due | WorkloadsDoing::Crash)
        | EventKind::Database(
            DatabaseDoing::Commit(_, None)
            | DatabaseDoing::Tell
            | DatabaseDoing::Load(None)
            | DatabaseDoing::Kill { .. },
        )
        | EventKind::DriversEndings
        | EventKind::DriversTimers
        | EventKind::CrashDrivers
        | EventKind::Volume(..)
        | EventKind::Start => Shown::Not,
    }
}

fn of_driver(number: u32, doing: DriverDoing) -> Shown {
    let column = format!("driver d{number}");
    match doing {
        DriverDoing::Order(_) | DriverDoing::Task(..) => Shown::Said("drivers"),
        DriverDoing::Answer(conduct) | DriverDoing::Hear(conduct) if conduct != Conduct::Well => {
            trouble(column)
        }
        DriverDoing::Exit => Shown::ProcessEnds(column),
        DriverDoing::Event(_) => Shown::Event(column),
        DriverDoing::Answer(_)
        | DriverDoing::Hear(_)
        | DriverDoing::Mail
        | DriverDoing::EventorMail
        | DriverDoing::HearEnd
        | DriverDoing::Read
        | DriverDoing::Timers
        | DriverDoing::EventorTimers
        | DriverDoing::Crash
        | DriverDoing::CrashEventor
        | DriverDoing::Fall
        | DriverDoing::FallEventor => Shown::Not,
    }
}

fn of_workload(who: u32, doing: WorkloadDoing) -> Shown {
    match doing {
        WorkloadDoing::Order(_) => Shown::Said("allocations"),
        WorkloadDoing::Meet(_, reply) if reply != Reply::Good => trouble(format!("allocation a{who}")),
        WorkloadDoing::Die => trouble(format!("process a{who}")),
        WorkloadDoing::Meet(..)
        | WorkloadDoing::Deliver
        | WorkloadDoing::Due
        | WorkloadDoing::Answer
        | WorkloadDoing::News
        | WorkloadDoing::Crash
        | WorkloadDoing::Fall => Shown::Not,
    }
}

fn of_processes(doing: ProcessesDoing) -> Shown {
    match doing {
        ProcessesDoing::Process(number, doing) => match doing {
            ProcessDoing::Launch(_) | ProcessDoing::End | ProcessDoing::Recall | ProcessDoing::AwaitEnd => {
                Shown::Said("processes")
            }
            ProcessDoing::Fail | ProcessDoing::Exit | ProcessDoing::Fall => {
                trouble(format!("process w{number}"))
            }
            ProcessDoing::Act | ProcessDoing::Mail => Shown::Not,
        },
        ProcessesDoing::Sweep(false) => trouble("processes"),
        ProcessesDoing::Settle(_, Outcome::Failed | Outcome::FailedButWritten)
        | ProcessesDoing::Load(false) => trouble("disk"),
        ProcessesDoing::Settle(_, Outcome::Written)
        | ProcessesDoing::Load(true)
        | ProcessesDoing::Sweep(true)
        | ProcessesDoing::Endings
        | ProcessesDoing::Timers
        | ProcessesDoing::Crash => Shown::Not,
    }
}

fn of_supervisor(doing: FamilyDoing) -> Shown {
    match doing {
        FamilyDoing::Restart(_) | FamilyDoing::Await | FamilyDoing::Describe => Shown::Said("supervisor"),
        FamilyDoing::End(..) => trouble("supervisor"),
        FamilyDoing::Return(_, Reply::Bad | Reply::Odd) => trouble("supervisor"),
        // A call that hangs becomes visible when it times out.
        FamilyDoing::Return(_, Reply::Good | Reply::Late)
        | FamilyDoing::Begin
        | FamilyDoing::Make(_)
        | FamilyDoing::Timers
        | FamilyDoing::Crash => Shown::Not,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::processes::ProcessesNews;
    use callboard_actors::registry::{Registered, RegistryAnswer};
    use callboard_simulation::{
        Order, Question, Simulation, Tampers, Unwatched, replay_watched, simulate_tampered,
    };

    use super::*;

    fn at(seconds: u64, what: EventKind) -> Event {
        Event { at: Timestamp::from_epoch(Duration::from_secs(seconds)), what }
    }

    fn noted(actor: &str, entry: Recorded) -> Observed {
        Observed::Noted { actor: actor.to_owned(), entry }
    }

    /// The columns of the drawing, with the texts.
    fn short(run: Run) -> Vec<String> {
        let one = |mark: &Mark| match mark {
            Mark::Message { from, to, text, .. } => Some(format!("{from} → {to}: {text}")),
            Mark::Sign { actor, text, sign, .. } => Some(format!("{actor} {sign:?}: {text}")),
            Mark::Chapter(text) | Mark::Pause(text) => Some(text.clone()),
            Mark::GateCloses { actor, write } => Some(format!("{actor} closes {write}")),
            Mark::GateOpens { actor, through } => Some(format!("{actor} opens {through}")),
            Mark::GatesFall { actor } => Some(format!("{actor} falls")),
            Mark::Time(_) | Mark::Active { .. } => None,
        };
        run.picture(String::new(), "the end").marks.iter().filter_map(one).collect()
    }

    #[test]
    fn a_question_is_drawn_with_its_answer_and_what_the_disk_has_to_do_with_it() {
        let given = Answer::Given(std::rc::Rc::new(RegistryAnswer::Register(Ok(Registered::New))));
        let answer = |answer| Observed::Left { actor: "registry".to_owned(), code: String::new(), answer };
        let mut run = Run::default();
        let writes = noted("registry", Recorded::Writing { step: 1, write: 1 });
        run.happened(&at(7, EventKind::Register(1, 0)), &[answer(None), writes]);
        let is_there = noted("registry", Recorded::OnDisk { through: 1 });
        run.happened(&at(9, EventKind::Settle(1, Outcome::Written)), &[is_there, answer(Some(given))]);
        let refused = answer(Some(Answer::Refused(Refusal::Crashed)));
        let crashed = noted("registry", Recorded::Crashed { message: "a drill".into() });
        run.happened(&at(9, EventKind::Ask(Question::List)), &[crashed, refused]);
        let expected = [
            "host → registry: register a1",
            "registry closes 1",
            "2.0 s later",
            "registry opens 1",
            "registry → host: new",
            "host → registry: list",
            "registry Crash: crashed: a drill",
            "registry → host: refused: it crashed",
            "the end",
        ];
        assert_eq!(short(run), expected);
    }

    #[test]
    fn what_befalls_a_driver_an_allocation_a_process_or_the_disk_stands_in_its_column() {
        let mut run = Run::default();
        for what in [
            EventKind::Driver(0, DriverDoing::Order(Order::Add)),
            EventKind::Driver(0, DriverDoing::Answer(Conduct::Well)),
            EventKind::Driver(0, DriverDoing::Answer(Conduct::Refuses)),
            EventKind::Driver(0, DriverDoing::Event(1)),
            EventKind::Driver(0, DriverDoing::Exit),
            EventKind::Workload(3, WorkloadDoing::Order(WorkloadOrder::Prepare)),
            EventKind::Workload(3, WorkloadDoing::Die),
            EventKind::Processes(ProcessesDoing::Process(1, ProcessDoing::Fail)),
            EventKind::Family(2, FamilyDoing::Describe),
            EventKind::Load(false),
            EventKind::CrashRegistry,
        ] {
            run.happened(&at(1, what), &[]);
        }
        let settled = Recorded::Published { step: 1, number: 1, news: Arc::new(ProcessesNews::Settled) };
        run.happened(&at(1, EventKind::Feed), &[noted("processes", settled)]);
        let expected = [
            "host → drivers: add-driver d0",
            "driver d0 Trouble: answer d0 refuses",
            "driver d0 → drivers: event d0 t1 main happened",
            "driver d0 Crash: its process ends",
            "host → allocations: prepare a3",
            "process a3 Trouble: kill a3",
            "process w1 Trouble: process w1 fail",
            "host → supervisor: tree s2",
            "disk Trouble: load-fails",
            "processes News: all processes of earlier runs are settled",
            "the end",
        ];
        assert_eq!(short(run), expected);
    }

    #[test]
    fn nothing_is_said_to_a_host_that_stops_or_is_killed() {
        let mut run = Run::default();
        for what in [
            EventKind::Stop,
            EventKind::Ask(Question::List),
            EventKind::DiskFull,
            EventKind::KillHost(1, 0),
            EventKind::DiskFull,
            EventKind::Start,
            EventKind::Ask(Question::List),
        ] {
            run.happened(&at(1, what), &[]);
        }
        let ended = Recorded::Ended { ending: Ending::Normal, is_waiting: false };
        run.happened(&at(1, EventKind::Detach), &[noted("registry", ended)]);
        run.happened(&at(1, EventKind::DiskFull), &[]);
        let expected = [
            "the host is told to stop",
            "disk Trouble: refuse-next-write",
            "the host is killed",
            "the host starts",
            "host → registry: list",
            "the host is told to detach",
            "the host has stopped",
            "the end",
        ];
        assert_eq!(short(run), expected);
    }

    #[test]
    fn of_a_long_run_the_last_hundred_messages_and_signs_are_drawn() {
        let mut run = Run::default();
        (0..1_000).for_each(|who| run.happened(&at(1, EventKind::Register(who, 0)), &[]));
        let told = short(run);
        assert_eq!((told.len(), &*told[0]), (STATEMENTS_MAX + 1, "host → registry: register a900"));
    }

    #[test]
    fn a_history_that_breaks_a_law_is_drawn_with_what_came_of_it() {
        let drawn = |seed| {
            let simulation = Simulation { seed, messages: 20_000, ..Simulation::SMALL };
            let tampers = Tampers::drop_updates;
            let found =
                simulate_tampered(&simulation, tampers(), &mut Unwatched).expect_err("it was not found out");
            let mut run = Run::default();
            replay_watched(&simulation, tampers(), &found.history, &mut run);
            short(run)
        };
        let is_message =
            |line: &String| line.starts_with("host → registry: register") || line.ends_with(" later");
        let calm = |told: &[String]| told.iter().position(|line| line == "from here on nothing goes wrong");
        let histories = (1..=20).map(drawn).filter_map(|told| Some((calm(&told)?, told)));
        // With some seeds only supervised allocations are left, which register by themselves.
        let of_registrations = |(calm, told): &(usize, Vec<String>)| told[..*calm].iter().all(is_message);
        let (calm, told) = histories.into_iter().find(of_registrations).expect("one of them");
        assert!(told[calm..].iter().any(|line| line == "registry closes 1"), "{told:?}");
    }
}
