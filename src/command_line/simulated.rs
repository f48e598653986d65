//! The trace of a simulation as a picture: the last of what happened, and what came of it.

use std::collections::{BTreeSet, VecDeque};

use crate::picture::{Arrow, Mark, Picture, Sign};

/// How many messages and signs are drawn at most.
const MARKS_MAX: usize = 100;
/// A span between two events that is worth being shown, in seconds.
const PAUSE_MIN: f64 = 1.0;

/// Who stands in a picture for everything that is outside of the actors.
const OUTSIDE: &str = "host";

/// What is kept of a trace to be drawn.
#[derive(Debug, Default)]
pub(super) struct Trace {
    marks: VecDeque<Mark>,
    /// When the last event happened, in seconds.
    at: Option<f64>,
    /// An event of which nothing may come, so that it is drawn with what comes of it or not at all.
    pending: Option<Mark>,
    /// Who fell, and has not been heard of since.
    lost: BTreeSet<String>,
    /// Whether no host runs; then nothing comes of what is said.
    is_down: bool,
}

impl Trace {
    /// Takes a line of the trace: an event, or, indented, what came of it.
    pub(super) fn line(&mut self, line: &str) {
        match line.strip_prefix("  ") {
            Some(came) => {
                if let Some(mark) = came.split_once(": ").and_then(|(actor, what)| outcome(actor, what)) {
                    if let Some(pending) = self.pending.take() {
                        self.put(pending);
                    }
                    self.put(mark);
                }
            }
            None => self.event(line),
        }
    }

    /// Takes an event of which it is not known what came of it.
    pub(super) fn event_alone(&mut self, line: &str) {
        self.event(line);
        if let Some(pending) = self.pending.take() {
            self.put(pending);
        }
    }

    fn event(&mut self, line: &str) {
        let (what, at) = line.split_once('#').unwrap_or((line, ""));
        if let Ok(at) = at.trim().parse::<f64>() {
            let span = self.at.map_or(0.0, |before| at - before);
            if span >= PAUSE_MIN {
                self.put(Mark::Pause(format!("{span:.1} s later")));
            }
            self.at = Some(at);
        }
        self.pending = None;
        let what = what.trim();
        self.is_down = what != "start" && (self.is_down || what.starts_with("kill-host"));
        if self.is_down && !what.starts_with("kill-host") {
            return;
        }
        match happened(what) {
            Drawn::Now(mark) => self.put(mark),
            Drawn::WithWhatComes(mark) => self.pending = Some(mark),
        }
    }

    fn put(&mut self, mark: Mark) {
        match &mark {
            Mark::Sign { actor, sign: Sign::Crash, .. } => {
                self.lost.insert(actor.clone());
            }
            Mark::Message { from: speaker, .. } | Mark::Sign { actor: speaker, .. } => {
                let speaker = speaker.clone();
                if self.lost.remove(&speaker) {
                    self.push(sign(&speaker, "lives again", Sign::Restart));
                }
            }
            Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Time(_)
            | Mark::Active { .. }
            | Mark::GateCloses { .. }
            | Mark::GateOpens { .. }
            | Mark::GatesFall { .. } => {}
        }
        self.push(mark);
    }

    fn push(&mut self, mark: Mark) {
        self.marks.push_back(mark);
        if self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }

    /// The picture, with this as its last words.
    pub(super) fn picture(self, title: String, end: &str) -> Picture {
        let end = Mark::Chapter(end.to_owned());
        Picture { title, marks: self.marks.into_iter().chain([end]).collect() }
    }
}

enum Drawn {
    Now(Mark),
    WithWhatComes(Mark),
}

fn message(from: &str, to: &str, text: &str, about: &str, arrow: Arrow) -> Mark {
    Mark::Message {
        from: from.to_owned(),
        to: to.to_owned(),
        text: text.to_owned(),
        about: about.to_owned(),
        arrow,
    }
}

fn sign(actor: &str, text: &str, sign: Sign) -> Mark {
    Mark::Sign { actor: actor.to_owned(), text: text.to_owned(), about: String::new(), sign }
}

/// How an event is drawn. One that this picture has no form for stands as a sign, in its own words.
fn happened(what: &str) -> Drawn {
    let mut words = what.split(' ');
    let (verb, rest) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>());
    let first = rest.first().copied().unwrap_or_default();
    let whom = column(first);
    let asked = |whom: &str| Drawn::Now(message(OUTSIDE, whom, what, "", Arrow::Said));
    let happens = |actor: &str, kind| Drawn::Now(sign(actor, what, kind));
    match verb {
        "register" | "deregister" | "describe" | "registration" | "list" | "wait" => asked("registry"),
        "dispense" | "check" | "await-retired" => asked("instances"),
        "inventory" => asked("inventory"),
        "prepare" | "started" | "exited" => asked("allocations"),
        "stop" if !first.is_empty() => asked("allocations"),
        "add-driver" | "remove-driver" | "restart-driver" | "dispense-driver" | "announce-task"
        | "watch-task" | "forget-task" => asked("drivers"),
        "read" => asked(&whom),
        "tree" | "restart" | "await-started" => asked("supervisor"),
        "settle" | "commit" if rest.len() == 1 => {
            let text = format!("on disk: {first}");
            Drawn::Now(message("disk", "registry", &text, "", Arrow::Answered))
        }
        "load" if rest.is_empty() => Drawn::WithWhatComes(sign("registry", "read from disk", Sign::Restart)),
        "commit" | "load" => happens("disk", Sign::Trouble),
        "tell-registry" => {
            Drawn::WithWhatComes(message("disk", "registry", "how a commit ended", "", Arrow::Said))
        }
        "write-fails" | "write-fails-but-is-there" | "disk-full" | "load-fails" => {
            happens("disk", Sign::Trouble)
        }
        "proven" | "not-proven" => happens("registry", Sign::News),
        "deliver" => delivered(what, &rest),
        "answer" | "stream" | "event" if whom != "supervisor" => spoken(verb, &whom, &rest),
        "due" | "crash" | "fall" | "kill" | "end" => befell(verb, &rest),
        "wake" => Drawn::WithWhatComes(sign("registry", "its pause is over", Sign::News)),
        "processes" => Drawn::WithWhatComes(sign("processes", &rest.join(" "), Sign::News)),
        "process" => of_process(first, rest.get(1).copied().unwrap_or_default()),
        "kill-host" => Drawn::Now(Mark::Chapter(format!("the host is killed: {}", rest.join(" ")))),
        "meet" => Drawn::WithWhatComes(sign(&whom, "a call comes back", Sign::News)),
        "stop" => Drawn::Now(Mark::Chapter("the host is told to stop".to_owned())),
        "detach" => Drawn::Now(Mark::Chapter("the host is told to detach".to_owned())),
        "start" if first.is_empty() => Drawn::Now(Mark::Chapter("a host starts".to_owned())),
        _ if whom.contains(' ') => happens(&whom, Sign::News),
        _ if whom == "supervisor" => Drawn::WithWhatComes(sign(&whom, what, Sign::News)),
        _ => happens(OUTSIDE, Sign::News),
    }
}

/// How it is drawn that something arrives which one actor has told another.
fn delivered(what: &str, words: &[&str]) -> Drawn {
    let whose = column(words.get(1).copied().unwrap_or_default());
    let told =
        |from: &str, to: &str, text: &str| Drawn::WithWhatComes(message(from, to, text, "", Arrow::Said));
    let noticed = |actor: &str, text: &str| Drawn::WithWhatComes(sign(actor, text, Sign::News));
    match words.first().copied().unwrap_or_default() {
        "registry-news" => told("registry", "instances", "news"),
        "instances-news" => told("instances", "inventory", "news"),
        "report" if whose.starts_with("plugin ") => told(&whose, "instances", "report"),
        "report" => told(&whose, "drivers", "report"),
        "eventor-news" => told(&whose, "drivers", "news of its eventor"),
        "supervisor-news" => told(&whose, "allocations", "news"),
        "supervisor-answer" => told(&whose, "allocations", "answer"),
        "answer" => noticed(&whose, "an answer arrives"),
        "allocations-endings" => noticed("allocations", what),
        "end" | "drivers-endings" => noticed("drivers", what),
        _ => noticed("instances", what),
    }
}

/// How it is drawn that a plugin or a driver says something.
fn spoken(verb: &str, who: &str, words: &[&str]) -> Drawn {
    let to = if who.starts_with("plugin ") { "instances" } else { "drivers" };
    let how = words.get(1).copied().unwrap_or_default();
    let (text, arrow) = match verb {
        "answer" if how == "well" => ("answers".to_owned(), Arrow::Answered),
        "answer" => (how.to_owned(), Arrow::Answered),
        verb => (format!("{verb}: {}", words.get(1..).unwrap_or_default().join(" ")), Arrow::Said),
    };
    Drawn::Now(message(who, to, &text, "", arrow))
}

/// How it is drawn that an actor's time is up, or that it crashes or falls. An instance is drawn with its plugin, an eventor and
/// the actor of a driver with their driver.
fn befell(verb: &str, words: &[&str]) -> Drawn {
    let (is_eventor, name) = match words {
        ["eventor", name, ..] => (true, *name),
        [name, ..] => (false, *name),
        [] => (false, ""),
    };
    let whom = column(name);
    let whose = match whom.split(' ').next() {
        _ if is_eventor => "its eventor",
        Some("plugin") => "its instance",
        Some("driver") => "its actor",
        Some(_) | None => "it",
    };
    // The line of a driver goes on without its eventor.
    let falls = if is_eventor { Sign::Trouble } else { Sign::Crash };
    match verb {
        "due" if is_eventor => Drawn::WithWhatComes(sign(&whom, "the time of its eventor is up", Sign::News)),
        "due" => Drawn::WithWhatComes(sign(&whom, "its time is up", Sign::News)),
        "crash" => Drawn::Now(sign(&whom, &format!("{whose} crashes next"), falls)),
        // What is killed of a driver is its process, and its actor goes on.
        "kill" if whom.starts_with("driver ") => Drawn::Now(sign(&whom, "its process exits", Sign::Trouble)),
        "end" => Drawn::Now(sign(&whom, &format!("{whose} ends"), falls)),
        _ => Drawn::Now(sign(&whom, &format!("{whose} falls"), falls)),
    }
}

/// How something is drawn that happens to a process, to its actor, or is said of it.
fn of_process(name: &str, what: &str) -> Drawn {
    let whom = column(name);
    match what {
        "launch" | "end" | "recall" | "await-end" => {
            let text = format!("{what} {name}");
            Drawn::Now(message(OUTSIDE, "processes", &text, "", Arrow::Said))
        }
        "report" => Drawn::WithWhatComes(message(&whom, "processes", "report", "", Arrow::Said)),
        "act" => Drawn::Now(sign(&whom, "goes on", Sign::News)),
        "fall" => Drawn::Now(sign(&whom, "its actor falls", Sign::Crash)),
        other => Drawn::Now(sign(&whom, other, Sign::Trouble)),
    }
}

/// The column of whom a trace calls by this name: a plugin has it with its instance, and a supervisor with all others.
fn column(name: &str) -> String {
    let is_numbered = |letter: char| {
        let number = name.strip_prefix(letter).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    match name {
        _ if name.contains('/') => format!("plugin {name}"),
        _ if is_numbered('a') => format!("allocation {name}"),
        _ if is_numbered('d') => format!("driver {name}"),
        _ if is_numbered('w') => format!("process {name}"),
        _ if is_numbered('s') => "supervisor".to_owned(),
        name => name.to_owned(),
    }
}

/// How something is drawn that came of an event; nothing of what an actor only does within itself.
fn outcome(actor: &str, what: &str) -> Option<Mark> {
    let actor = &column(actor);
    let answered = |text: &str| Some(message(actor, OUTSIDE, text, &about(what), Arrow::Answered));
    let inner = |text: &str| text.split_once(", ").map(|(_, rest)| rest.trim_end_matches(')').to_owned());
    if actor.starts_with("allocation ") && !what.starts_with("News(") || what.starts_with("Answer(Some(0)") {
        // What it answers is drawn when its owner hears it, and what its owner hears is answered to nobody.
        return None;
    }
    if actor == "allocations" && what.starts_with("Call {") {
        return ordered(what);
    }
    if let Some(rest) = what.strip_prefix("Answer(") {
        return answered(&plain(&inner(rest)?));
    }
    if let Some(rest) = what.strip_prefix("answer Some(") {
        // Children tell their supervisors, who answer nothing.
        return if rest.contains("(())") { None } else { answered(&plain(rest.trim_end_matches(')'))) };
    }
    if let Some(rest) = what.strip_prefix("Refused(") {
        return answered(&format!("refused: {}", plain(&inner(rest)?)));
    }
    let news = match what.strip_prefix("News(") {
        Some(rest) => rest.split_once(", ").map(|(_, news)| news),
        None => {
            what.strip_prefix("Change {").and_then(|rest| rest.split_once("news: ")).map(|(_, news)| news)
        }
    };
    let text = match news {
        Some(news) => told(news),
        None if what.starts_with("Snapshot") => "snapshot".to_owned(),
        None => return None,
    };
    Some(Mark::Sign { actor: actor.to_owned(), text, about: about(what), sign: Sign::News })
}

/// What the owner of the allocations tells a supervisor.
fn ordered(call: &str) -> Option<Mark> {
    let allocation = between(call, "allocation: \"", "\"")?;
    let order = between(call, "order: ", " }").map(plain);
    let ends = || between(call, "mode: ", " }").map(plain);
    let starts = || call.contains("call: Start {").then(|| "starts".to_owned());
    let text = order.or_else(ends).or_else(starts)?;
    Some(message("allocations", &column(allocation), &text, "", Arrow::Said))
}

/// News in a few words: what they are, of which allocation, and how it is.
fn told(news: &str) -> String {
    let allocation = |text: &str| between(text, "allocation: \"", "\"").map(str::to_owned);
    if let Some((before, after)) =
        news.strip_prefix("ActiveChanged").and_then(|rest| rest.split_once(", to: "))
    {
        let name = |text: &str| allocation(text).unwrap_or_else(|| "nobody".to_owned());
        return format!("active: {} → {}", name(before), name(after));
    }
    let kind: String = news.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    let health = between(news, "health: ", ",").map(|health| health.split(' ').next().unwrap_or(health));
    let reason = between(news, "reason: \"", "\"").map(|reason| format!(": {reason}"));
    let parts = [allocation(news), health.map(str::to_lowercase)];
    let parts: Vec<String> = std::iter::once(lower(&kind)).chain(parts.into_iter().flatten()).collect();
    format!("{}{}", parts.join(" "), reason.unwrap_or_default())
}

/// The plugin that something is about, with its generation.
fn about(what: &str) -> String {
    let Some((kind, rest)) = what.split_once("plugin_type: Csi").and_then(|(_, rest)| rest.split_once(','))
    else {
        return String::new();
    };
    let name = between(rest, "name: \"", "\"").unwrap_or_default();
    let generation = what.rsplit("Generation(").next().filter(|_| what.contains("Generation("));
    let generation = generation.and_then(|rest| rest.split(')').next());
    let generation = generation.map(|number| format!(" @{number}")).unwrap_or_default();
    format!("csi-{}/{name}{generation}", kind.to_lowercase())
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after).map_or(rest, |(found, _)| found))
}

/// What is written as code in words: `NotServed { plugin: ... }` becomes `not served`.
fn plain(code: &str) -> String {
    let head = code.split(['{', '[']).next().unwrap_or(code);
    let words = head.split(['(', ')']).map(str::trim).filter(|word| !word.is_empty() && *word != "Ok");
    words.map(lower).collect::<Vec<_>>().join(": ")
}

/// `ActiveChanged` becomes `active changed`.
fn lower(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: &[&str]) -> Vec<Mark> {
        let mut trace = Trace::default();
        lines.iter().for_each(|line| trace.line(line));
        trace.picture(String::new(), "the end").marks
    }

    #[test]
    fn a_supervisor_that_starts_is_no_host_and_a_read_that_fails_is_trouble() {
        let lines = [
            "start s0  # 1.0",
            "  supervisor: News(1, ChildStarted { name: \"c0\" })",
            "load Full after=3  # 1.0",
        ];
        let marks = drawn(&lines);
        assert_eq!(marks[0], sign("supervisor", "start s0", Sign::News));
        assert_eq!(marks[1], sign("supervisor", "child started", Sign::News));
        assert_eq!(marks[2], sign("disk", "load Full after=3", Sign::Trouble));
    }

    /// The columns of what is drawn, with the texts.
    fn short(marks: &[Mark]) -> Vec<String> {
        let one = |mark: &Mark| match mark {
            Mark::Message { from, to, text, .. } => Some(format!("{from} → {to}: {text}")),
            Mark::Sign { actor, text, sign, .. } => Some(format!("{actor} {sign:?}: {text}")),
            Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Time(_)
            | Mark::Active { .. }
            | Mark::GateCloses { .. }
            | Mark::GateOpens { .. }
            | Mark::GatesFall { .. } => None,
        };
        marks.iter().filter_map(one).collect()
    }

    #[test]
    fn what_a_driver_does_stands_in_its_own_column() {
        let marks = drawn(&[
            "add-driver d0",
            "answer d0 well",
            "answer d0 refuses",
            "stream d0 well",
            "event d0 t1 main happened",
            "read d0",
            "deliver report d0",
            "  drivers: Answer(Some(0), DriverReported(()))",
            "deliver eventor-news d0",
            "  drivers: News(1, Left)",
            "kill d0",
            "fall eventor d0",
            "fall d0",
            "crash d0",
            "due d0",
        ]);
        let expected = [
            "host → drivers: add-driver d0",
            "driver d0 → drivers: answers",
            "driver d0 → drivers: refuses",
            "driver d0 → drivers: stream: well",
            "driver d0 → drivers: event: t1 main happened",
            "host → driver d0: read d0",
            "driver d0 → drivers: news of its eventor",
            "drivers News: left",
            "driver d0 Trouble: its process exits",
            "driver d0 Trouble: its eventor falls",
            "driver d0 Crash: its actor falls",
            "driver d0 Crash: its actor crashes next",
        ];
        assert_eq!(short(&marks), expected);
    }

    #[test]
    fn what_allocations_processes_and_supervisors_do_stands_in_their_columns() {
        let marks = drawn(&[
            "prepare a1",
            "  a1: Answer(Some(7), MakeReady(Ok(TaskContext { })))",
            "deliver supervisor-news a1",
            "  allocations: Answer(Some(0), AllocationReported(()))",
            "deliver supervisor-answer a1",
            "  allocations: Answer(Some(4), TaskStarted(Ok(())))",
            "meet a1 call=0 good",
            "  a1: News(2, Gone)",
            "kill a1",
            "tree s4",
            "process w1 act",
            "kill csi-node/p1",
            "due csi-node/p1",
            "  instances: News(3, Settled)",
        ]);
        let expected = [
            "host → allocations: prepare a1",
            "allocation a1 → allocations: answer",
            "allocations → host: task started",
            "allocation a1 News: a call comes back",
            "allocation a1 News: gone",
            "allocation a1 Crash: it falls",
            "host → supervisor: tree s4",
            "process w1 News: goes on",
            "plugin csi-node/p1 Crash: its instance falls",
            "plugin csi-node/p1 Restart: lives again",
            "plugin csi-node/p1 News: its time is up",
            "instances News: settled",
        ];
        assert_eq!(short(&marks), expected);
    }

    #[test]
    fn a_takeover_is_drawn_with_who_who_to_and_the_generation() {
        let marks = drawn(&[
            "register a1                  # 1000000.043930",
            "settle 1                     # 1000002.046914",
            "  registry: Answer(Some(4), Register(Ok(New)))",
            "  registry: News(2, ActiveChanged { plugin: PluginKey { plugin_type: CsiNode, name: \"p1\" }, from: None, to: Some(Active { generation: Generation(2), registration: Registration { allocation: \"a1\" } }) })",
        ]);
        let about = String::new();
        assert_eq!(
            marks,
            [
                message("host", "registry", "register a1", "", Arrow::Said),
                Mark::Pause("2.0 s later".to_owned()),
                message("disk", "registry", "on disk: 1", "", Arrow::Answered),
                Mark::Message {
                    from: "registry".to_owned(),
                    to: "host".to_owned(),
                    text: "register: new".to_owned(),
                    about,
                    arrow: Arrow::Answered
                },
                Mark::Sign {
                    actor: "registry".to_owned(),
                    text: "active: nobody → a1".to_owned(),
                    about: "csi-node/p1 @2".to_owned(),
                    sign: Sign::News
                },
                Mark::Chapter("the end".to_owned()),
            ]
        );
    }

    #[test]
    fn what_the_owner_of_the_allocations_passes_on_goes_to_their_supervisors_and_comes_back() {
        let marks = drawn(&[
            "prepare a2                   # 1.0",
            "  allocations: Call { number: 4, deadline: 11s, call: Tell { allocation: \"a2\", life: 1, ask: AskId(1), order: Prepare } }",
            "  a2: Answer(Some(4), MakeReady(Ok(TaskContext { environment: {} })))",
            "deliver supervisor-news a2   # 1.1",
            "  allocations: Answer(Some(0), AllocationReported(()))",
            "deliver supervisor-answer a2 # 1.2",
            "  allocations: Answer(Some(1), PrepareAllocation(Ok(TaskContext { environment: {} })))",
        ]);
        let said = |from, to, text| message(from, to, text, "", Arrow::Said);
        assert_eq!(
            marks[..4],
            [
                said(OUTSIDE, "allocations", "prepare a2"),
                said("allocations", "allocation a2", "prepare"),
                said("allocation a2", "allocations", "answer"),
                message("allocations", OUTSIDE, "prepare allocation: task context", "", Arrow::Answered),
            ]
        );
    }

    #[test]
    fn what_nothing_came_of_is_left_out_and_crashes_and_kills_are_not() {
        let marks = drawn(&[
            "deliver registry-news        # 1.000000",
            "due csi-node/p1              # 1.000001",
            "  instances: answer Some(InstanceReported(()))",
            "crash registry               # 1.000002",
            "kill-host written=1          # 1.000003",
            "register a1                  # 1.000003",
            "start                        # 1.000004",
        ]);
        assert_eq!(marks[0], sign("registry", "it crashes next", Sign::Crash));
        assert_eq!(marks[1], Mark::Chapter("the host is killed: written=1".to_owned()));
        assert_eq!(marks.len(), 4, "{marks:?}");
    }

    #[test]
    fn of_a_long_run_the_last_hundred_are_drawn() {
        let lines: Vec<String> = (0..1_000).map(|number| format!("register a{number}  # 1.0")).collect();
        let marks = drawn(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(marks.len(), MARKS_MAX + 1);
        assert!(matches!(&marks[0], Mark::Message { text, .. } if text == "register a900"));
    }
}
