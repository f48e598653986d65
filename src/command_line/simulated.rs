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
    let asked = |whom| Drawn::Now(message(OUTSIDE, whom, what, "", Arrow::Said));
    let told = |from: &str, to, text| Drawn::WithWhatComes(message(from, to, text, "", Arrow::Said));
    let happens = |actor: &str, kind| Drawn::Now(sign(actor, what, kind));
    let is_plugin = first.contains('/');
    match verb {
        "register" | "deregister" | "describe" | "list" | "wait" => asked("registry"),
        "dispense" | "check" | "await-retired" => asked("instances"),
        "inventory" => asked("inventory"),
        "settle" | "commit" if rest.len() == 1 => {
            let text = format!("on disk: {first}");
            Drawn::Now(message("disk", "registry", &text, "", Arrow::Answered))
        }
        "load" if rest.is_empty() => Drawn::WithWhatComes(sign("registry", "read from disk", Sign::Restart)),
        "commit" | "load" => happens("disk", Sign::Trouble),
        "tell-registry" => told("disk", "registry", "how a commit ended"),
        "write-fails" | "write-fails-but-is-there" | "disk-full" | "load-fails" => {
            happens("disk", Sign::Trouble)
        }
        "proven" | "not-proven" => happens("registry", Sign::News),
        "deliver" => match first {
            "registry-news" => told("registry", "instances", "news"),
            "instances-news" => told("instances", "inventory", "news"),
            "report" if rest.get(1).is_some_and(|who| who.contains('/')) => {
                told(&plugin(rest.get(1).copied().unwrap_or_default()), "instances", "report")
            }
            "answer" => {
                let whom = rest.get(1).copied().unwrap_or_default();
                Drawn::WithWhatComes(sign(whom, "an answer arrives", Sign::News))
            }
            "endings" => Drawn::WithWhatComes(sign("instances", what, Sign::News)),
            "supervisor-answer" | "supervisor-news" => {
                let text = first.trim_start_matches("supervisor-");
                told(rest.get(1).copied().unwrap_or_default(), "allocations", text)
            }
            "allocations-endings" => Drawn::WithWhatComes(sign("allocations", what, Sign::News)),
            // Of drivers.
            _ => Drawn::WithWhatComes(sign("drivers", what, Sign::News)),
        },
        "answer" if is_plugin => {
            let text = match rest.get(1).copied().unwrap_or_default() {
                "well" => "answers",
                other => other,
            };
            Drawn::Now(message(&plugin(first), "instances", text, "", Arrow::Answered))
        }
        "due" => {
            let actor = if is_plugin { plugin(first) } else { first.to_owned() };
            Drawn::WithWhatComes(sign(&actor, "its time is up", Sign::News))
        }
        "wake" => Drawn::WithWhatComes(sign("registry", "its pause is over", Sign::News)),
        "processes" => Drawn::WithWhatComes(sign("processes", &rest.join(" "), Sign::News)),
        "process" => of_process(first, rest.get(1).copied().unwrap_or_default()),
        "kill" if is_plugin => Drawn::Now(sign(&plugin(first), "its instance falls", Sign::Crash)),
        "crash" if is_plugin => Drawn::Now(sign(&plugin(first), "its instance crashes next", Sign::Crash)),
        "crash" => Drawn::Now(sign(first, "its next step crashes", Sign::Crash)),
        "kill-host" => Drawn::Now(Mark::Chapter(format!("the host is killed: {}", rest.join(" ")))),
        "prepare" | "started" | "exited" => asked("allocations"),
        "stop" if !first.is_empty() => asked("allocations"),
        "end" if first == "allocations" => happens(first, Sign::Crash),
        "meet" => Drawn::WithWhatComes(sign(first, "a call comes back", Sign::News)),
        "stop" => Drawn::Now(Mark::Chapter("the host is told to stop".to_owned())),
        "start" if first.is_empty() => Drawn::Now(Mark::Chapter("a host starts".to_owned())),
        _ => happens(OUTSIDE, Sign::News),
    }
}

/// How something is drawn that happens to a process, to its actor, or is said of it.
fn of_process(name: &str, what: &str) -> Drawn {
    match what {
        "launch" | "end" | "recall" | "await-end" => {
            let text = format!("{what} {name}");
            Drawn::Now(message(OUTSIDE, "processes", &text, "", Arrow::Said))
        }
        "report" => Drawn::WithWhatComes(message(name, "processes", "report", "", Arrow::Said)),
        "act" => Drawn::Now(sign(name, "goes on", Sign::News)),
        "fall" => Drawn::Now(sign(name, "its actor falls", Sign::Crash)),
        other => Drawn::Now(sign(name, other, Sign::Trouble)),
    }
}

/// The column of a plugin and its instance.
fn plugin(name: &str) -> String {
    format!("plugin {name}")
}

/// How something is drawn that came of an event; nothing of what an actor only does within itself.
fn outcome(actor: &str, what: &str) -> Option<Mark> {
    let answered = |text: &str| Some(message(actor, OUTSIDE, text, &about(what), Arrow::Answered));
    let inner = |text: &str| text.split_once(", ").map(|(_, rest)| rest.trim_end_matches(')').to_owned());
    if is_supervised(actor) && !what.starts_with("News(") || what.starts_with("Answer(Some(0)") {
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

/// Whether this is an allocation with a supervisor, which has no other name.
fn is_supervised(actor: &str) -> bool {
    let number = actor.strip_prefix('a').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit())
}

/// What the owner of the allocations tells a supervisor.
fn ordered(call: &str) -> Option<Mark> {
    let allocation = between(call, "allocation: \"", "\"")?;
    let order = between(call, "order: ", " }").map(plain);
    let ends = || between(call, "mode: ", " }").map(plain);
    let starts = || call.contains("call: Start {").then(|| "starts".to_owned());
    let text = order.or_else(ends).or_else(starts)?;
    Some(message("allocations", allocation, &text, "", Arrow::Said))
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
            "load Full after=3  # 1.0",
            "deliver report d0  # 1.1",
            "  drivers: News(1, Gone)",
        ];
        let marks = drawn(&lines);
        assert_eq!(marks[0], sign(OUTSIDE, "start s0", Sign::News));
        assert_eq!(marks[1], sign("disk", "load Full after=3", Sign::Trouble));
        assert_eq!(marks[2], sign("drivers", "deliver report d0", Sign::News));
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
                said("allocations", "a2", "prepare"),
                said("a2", "allocations", "answer"),
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
        assert_eq!(marks[0], sign("registry", "its next step crashes", Sign::Crash));
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
