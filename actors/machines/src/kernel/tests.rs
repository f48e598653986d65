//! The limit of calls, which no simulation sets; everything else of the kernel is searched and simulated.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::vocabulary::{Backoff, RestartBudget, Timestamp};

/// Makes as many calls as it is asked for, and one more for each that comes back, until it has made all that it may.
#[derive(Debug)]
struct Caller {
    made: u8,
    most: u8,
}

impl Caller {
    fn call(&mut self, effects: &mut Effects<Self>) {
        if self.made < self.most {
            effects.call(CallKey::default(), Duration::from_secs(1), self.made);
            self.made += 1;
        }
    }
}

impl Machine for Caller {
    const KIND: &'static str = "caller";
    type Config = u8;
    type Image = ();
    type Ask = u8;
    type Answer = ();
    type Call = u8;
    type Outcome = ();
    type Timer = Never;
    type Change = Never;
    type News = String;
    type View = ();

    fn restore(most: &u8, (): (), _: crate::vocabulary::Moment) -> Self {
        Self { made: 0, most: *most }
    }

    fn step(&mut self, _: crate::vocabulary::Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Asked { id, ask, .. } => {
                (0..*ask).for_each(|_| self.call(effects));
                effects.reply(*id, ());
            }
            Input::Returned { call, outcome: Ok(()), .. } => {
                effects.publish(format!("{call} came back"));
                self.call(effects);
            }
            Input::Returned { call, outcome: Err(lost), .. } => {
                effects.publish(format!("{call} lost: {lost}"))
            }
            Input::StopRequested(_) => {
                self.call(effects);
                effects.stop();
            }
            Input::Resumed | Input::Elapsed(_) => {}
        }
    }

    fn view(&self) {}
}

#[derive(Debug, Clone)]
struct Plain;

impl Terms<Caller> for Plain {
    type Asker = ();
    type Reader = ();
    type Answer = ();
    type View = ();
}

/// Writes down what leaves.
#[derive(Default)]
struct Paper {
    lines: Vec<String>,
    lost: VecDeque<(u64, CallLost)>,
}

impl Port<Caller, Plain> for Paper {
    fn now(&mut self) -> Timestamp {
        Timestamp::default()
    }

    fn random(&mut self) -> u64 {
        0
    }

    fn write(&mut self, _: Ticket, change: Never) -> Written {
        match change {}
    }

    fn load(&mut self) {}

    fn pause(&mut self, _: Duration) {}

    fn send(&mut self, outgoing: Outgoing<Caller, Plain>, _: u64) {
        match outgoing {
            Outgoing::Call { number, call, .. } => self.lines.push(format!("call {call} as {number}")),
            Outgoing::Lost { number, lost } => self.lost.push_back((number, lost)),
            Outgoing::News { news, .. } => self.lines.push(news),
            Outgoing::Answer { .. }
            | Outgoing::Attach { .. }
            | Outgoing::Snapshot { .. }
            | Outgoing::Described { .. } => {}
        }
    }

    fn refuse(&mut self, (): (), _: Refusal<'_>) {}

    fn due(&mut self, _: bool) -> Vec<u64> {
        Vec::new()
    }

    fn abandon_calls(&mut self) {
        self.lines.push("all are given up".to_owned());
    }

    fn note(&mut self, _: JournalEntry<'_, Caller>) {}

    fn end(&mut self, ending: Ending) {
        self.lines.push(format!("{ending:?}"));
    }
}

/// One call at a time, and one that waits.
fn kernel(most: u8) -> (Kernel<Caller, Plain>, Paper) {
    let limits = Limits {
        budget: RestartBudget::default(),
        rebuild_backoff: Backoff {
            first: Duration::from_millis(10),
            longest: Duration::from_secs(1),
            jitter_percent: 0,
            reset_after: Duration::from_secs(5),
        },
        calls_running_max: 1,
        calls_waiting_max: 1,
    };
    let (mut kernel, mut paper) = (Kernel::new(most, limits, 0), Paper::default());
    kernel.begin(&mut paper);
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    (kernel, paper)
}

fn returned(number: u64) -> Event<Caller, Plain> {
    Event::Returned { number, outcome: Ok(()) }
}

#[test]
fn so_many_calls_run_so_many_wait_and_one_more_is_lost_as_busy_shell_6() {
    let (mut kernel, mut paper) = kernel(3);
    kernel.handle(Event::Asked { ask: 3, asker: () }, &mut paper);
    assert_eq!(paper.lines, ["call 0 as 1"]);
    let (number, lost) = paper.lost.pop_front().expect("the third has no place");
    assert_eq!(lost, CallLost::Busy(1));
    kernel.handle(Event::Returned { number, outcome: Err(lost) }, &mut paper);
    kernel.handle(returned(1), &mut paper);
    assert_eq!(
        paper.lines[1..],
        ["2 lost: 1 calls wait already; this one was not made", "0 came back", "call 1 as 3"]
    );
    assert_eq!(kernel.calls().map(|(number, call)| (number, *call)).collect::<Vec<_>>(), [(3, 1)]);
}

#[test]
fn a_call_that_follows_one_that_came_back_has_the_place_of_the_one_that_waited_shell_6() {
    let (mut kernel, mut paper) = kernel(3);
    kernel.handle(Event::Asked { ask: 2, asker: () }, &mut paper);
    kernel.handle(returned(1), &mut paper);
    assert_eq!(paper.lost.len(), 0, "a place had become free");
    kernel.handle(returned(2), &mut paper);
    assert_eq!(paper.lines, ["call 0 as 1", "0 came back", "call 1 as 2", "1 came back", "call 2 as 3"]);
}

#[test]
fn a_crash_gives_up_what_runs_and_what_waits_and_nothing_of_it_has_an_effect_shell_3() {
    let (mut kernel, mut paper) = kernel(2);
    kernel.handle(Event::Asked { ask: 2, asker: () }, &mut paper);
    kernel.handle(Event::Crash("a drill"), &mut paper);
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    kernel.handle(returned(1), &mut paper);
    assert_eq!(paper.lines, ["call 0 as 1", "all are given up"]);
}

#[test]
fn a_call_in_front_of_the_end_leaves_before_it_and_is_given_up_with_it() {
    let (mut kernel, mut paper) = kernel(1);
    kernel.handle(Event::StopRequested(StopMode::Stop), &mut paper);
    assert_eq!(paper.lines, ["call 0 as 1", "all are given up", "Normal"]);
    kernel.handle(returned(1), &mut paper);
    assert!(kernel.has_ended() && paper.lines.len() == 3);
}
