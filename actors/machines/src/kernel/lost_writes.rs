//! Tests writes that are lost and handed over again, with others between them that need no disk.

use std::time::Duration;

use super::*;
use crate::vocabulary::{Backoff, Moment, RestartBudget, Timestamp};

/// Writes on request, and makes a call that waits for the write.
#[derive(Debug)]
struct Writer;

impl Machine for Writer {
    const KIND: &'static str = "writer";
    type Config = ();
    type Image = ();
    type Ask = &'static str;
    type Answer = ();
    type Call = &'static str;
    type Outcome = ();
    type Timer = Never;
    type Change = &'static str;
    type News = Never;
    type View = ();

    fn restore((): &(), (): (), _: Moment) -> Self {
        Self
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        if let Input::Asked { id, ask, .. } = input {
            cx.persist(ask);
            cx.call(CallKey::default(), Duration::from_secs(1), ask);
            cx.reply(*id, ());
        }
    }

    fn reads_ahead() -> bool {
        true
    }

    fn view(&self) {}
}

#[derive(Debug, Clone)]
struct Plain;

impl Terms<Writer> for Plain {
    type Asker = ();
    type Reader = ();
    type Answer = ();
    type View = ();
}

/// A store that keeps at once what begins with "memory", refuses what is "too large", and keeps the rest later.
#[derive(Default)]
struct Paper {
    calls: Vec<&'static str>,
    loads: usize,
    handed: Vec<(Ticket, &'static str)>,
    refused: Vec<String>,
}

impl Port<Writer, Plain> for Paper {
    fn now(&mut self) -> Timestamp {
        Timestamp::default()
    }

    fn random(&mut self) -> u64 {
        0
    }

    fn write(&mut self, ticket: Ticket, change: &'static str) -> Written {
        if change == "too large" {
            return Written::Failed("it is too large".to_owned());
        }
        self.handed.push((ticket, change));
        if change.starts_with("memory") { Written::Now } else { Written::Later }
    }

    fn load(&mut self) {
        self.loads += 1;
    }

    fn pause(&mut self, _: Duration) {}

    fn send(&mut self, outgoing: Outgoing<Writer, Plain>, _: u64) {
        if let Outgoing::Call { call, .. } = outgoing {
            self.calls.push(call);
        }
    }

    fn refuse(&mut self, (): (), refusal: Refusal<'_>) {
        self.refused.push(format!("{refusal:?}"));
    }

    fn due(&mut self, _: bool) -> Vec<u64> {
        Vec::new()
    }

    fn abandon_calls(&mut self) {}

    fn note(&mut self, _: JournalEntry<'_, Writer>) {}

    fn end(&mut self, _: Ending) {}
}

/// A machine that has just been built.
fn begun() -> (Kernel<Writer, Plain>, Paper) {
    let limits = Limits {
        budget: RestartBudget::default(),
        rebuild_backoff: Backoff::default(),
        calls_running_max: 8,
        calls_waiting_max: 8,
    };
    let (mut kernel, mut paper) = (Kernel::new((), limits, 0), Paper::default());
    kernel.begin(&mut paper);
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    (kernel, paper)
}

/// Two changes that need the disk are lost; the second of three that come after that needs none.
fn lost() -> (Kernel<Writer, Plain>, Paper) {
    let (mut kernel, mut paper) = begun();
    kernel.handle(Event::Asked { ask: "first", asker: () }, &mut paper);
    let (Ticket { epoch, sequence: through }, _) = paper.handed.pop().expect("it was handed over");
    kernel.handle(Event::Settled { epoch, through, outcome: Err("the disk is full".to_owned()) }, &mut paper);
    for ask in ["second", "memory", "third"] {
        kernel.handle(Event::Asked { ask, asker: () }, &mut paper);
    }
    assert!(paper.handed.is_empty() && paper.calls.is_empty(), "they come behind what was lost");
    kernel.handle(Event::Woken, &mut paper);
    (kernel, paper)
}

#[test]
fn a_change_that_needs_no_disk_says_nothing_of_those_before_it_shell_1() {
    let (mut kernel, mut paper) = lost();
    let handed: Vec<_> = paper.handed.iter().map(|(_, change)| *change).collect();
    assert_eq!(handed, ["first", "second", "memory", "third"], "in their order");
    assert_eq!(paper.calls, [""; 0], "none of them is on disk");
    let at =
        |change| paper.handed.iter().find(|(_, handed)| *handed == change).expect("it was handed over").0;
    let (first, second, third) = (at("first"), at("second"), at("third"));
    let mut calls = Vec::new();
    for Ticket { epoch, sequence: through } in [first, second, third] {
        kernel.handle(Event::Settled { epoch, through, outcome: Ok(()) }, &mut paper);
        calls.push(std::mem::take(&mut paper.calls));
    }
    assert_eq!(calls, [vec!["first"], vec!["second", "memory"], vec!["third"]], "each behind its own");
}

#[test]
fn a_caller_hears_whether_a_write_is_lost_and_handed_over_again_or_never_written() {
    let (mut kernel, mut paper) = begun();
    kernel.handle(Event::Asked { ask: "first", asker: () }, &mut paper);
    kernel.handle(Event::Asked { ask: "too large", asker: () }, &mut paper);
    assert_eq!(paper.refused, [r#"NotWritten("it is too large")"#]);
    let (Ticket { epoch, sequence: through }, _) = paper.handed.pop().expect("it was handed over");
    kernel.handle(Event::Settled { epoch, through, outcome: Err("the disk is full".to_owned()) }, &mut paper);
    assert_eq!(paper.refused[1..], [r#"NotDurable("the disk is full")"#]);
    kernel.handle(Event::Woken, &mut paper);
    let handed: Vec<_> = paper.handed.iter().map(|(_, change)| *change).collect();
    assert_eq!(handed, ["first"], "only what was lost is handed over again");
}

#[test]
fn an_actor_that_crashes_on_a_sick_disk_is_built_again_at_once_and_keeps_its_order_shell_1a() {
    let (mut kernel, mut paper) = begun();
    kernel.handle(Event::Asked { ask: "first", asker: () }, &mut paper);
    kernel.handle(Event::Crash("a drill"), &mut paper);
    assert_eq!(paper.loads, 1, "the disk is expected to answer soon");
    kernel.handle(Event::Disk(Some("it hangs".to_owned())), &mut paper);
    assert_eq!(paper.loads, 2, "what it has not taken is read as if it were there");
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    kernel.handle(Event::Asked { ask: "second", asker: () }, &mut paper);
    kernel.handle(Event::Crash("a drill"), &mut paper);
    assert_eq!(paper.loads, 3, "the disk is known to be sick");

    // All of it is lost before it is read, as when the database ends: it is read only after it was handed over again.
    let Ticket { epoch, sequence: through } = paper.handed.last().expect("it was handed over").0;
    kernel.handle(Event::Settled { epoch, through, outcome: Err("the end".to_owned()) }, &mut paper);
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    assert!(kernel.machine().is_none(), "what was read may be without what was lost");
    paper.handed.clear();
    kernel.handle(Event::Woken, &mut paper);
    let handed: Vec<_> = paper.handed.iter().map(|(_, change)| *change).collect();
    assert_eq!((handed.as_slice(), paper.loads), (&["first", "second"][..], 4));
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    assert!(kernel.machine().is_some() && kernel.is_waiting());
}
