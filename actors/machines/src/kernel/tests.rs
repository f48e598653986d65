//! Tests the limit of calls, which no simulation sets, and the requests to end of one machine; everything else of the kernel is
//! searched and simulated.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::vocabulary::{Backoff, RestartBudget, Timestamp};

/// Makes as many calls as requested, and one more for each that returns, until it has reached its limit.
#[derive(Debug)]
struct Caller {
    made: u8,
    most: u8,
}

impl Caller {
    fn call(&mut self, cx: &mut StepContext<Self>) {
        if self.made < self.most {
            cx.call(CallKey::default(), Duration::from_secs(1), self.made);
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

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { id, ask, .. } => {
                (0..*ask).for_each(|_| self.call(cx));
                cx.reply(*id, ());
            }
            Input::Returned { call, outcome: Ok(()), .. } => {
                cx.publish(format!("{call} came back"));
                self.call(cx);
            }
            Input::Returned { call, outcome: Err(lost), .. } => cx.publish(format!("{call} lost: {lost}")),
            Input::StopRequested(_) => {
                self.call(cx);
                cx.stop();
            }
            Input::Resumed | Input::Elapsed(_) => {}
        }
    }

    fn view(&self) {}
}

/// Records the requests to end. A stop takes it long; after a detach it has nothing to do when it was rebuilt, and ends.
#[derive(Debug)]
struct Leaver {
    is_built_again: bool,
}

impl Machine for Leaver {
    const KIND: &'static str = "leaver";
    type Config = ();
    type Image = ();
    type Ask = u8;
    type Answer = ();
    type Call = u8;
    type Outcome = ();
    type Timer = Never;
    type Change = Never;
    type News = String;
    type View = ();

    fn restore((): &(), (): (), moment: crate::vocabulary::Moment) -> Self {
        Self { is_built_again: moment.random > 1 }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { ask, .. } => cx.publish(format!("asked {ask}")),
            Input::StopRequested(mode) => {
                cx.publish(format!("{mode:?}"));
                if self.is_built_again && *mode == StopMode::Detach {
                    cx.stop();
                }
            }
            Input::Resumed | Input::Elapsed(_) | Input::Returned { .. } => {}
        }
    }

    fn view(&self) {}
}

#[derive(Debug, Clone)]
struct Plain;

impl<M: Machine<Answer = (), View = ()>> Terms<M> for Plain {
    type Asker = ();
    type Reader = ();
    type Answer = ();
    type View = ();
}

/// Records the output.
#[derive(Default)]
struct Paper {
    lines: Vec<String>,
    lost: VecDeque<(u64, CallLost)>,
    loads: u64,
}

impl<M> Port<M, Plain> for Paper
where
    M: Machine<Answer = (), Call = u8, Change = Never, News = String, View = ()>,
{
    fn now(&mut self) -> Timestamp {
        Timestamp::default()
    }

    fn random(&mut self) -> u64 {
        self.loads
    }

    fn write(&mut self, _: Ticket, change: Never) -> Written {
        match change {}
    }

    fn load(&mut self) {
        self.loads += 1;
    }

    fn pause(&mut self, _: Duration) {}

    fn send(&mut self, outgoing: Outgoing<M, Plain>, _: u64) {
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

    fn note(&mut self, _: JournalEntry<'_, M>) {}

    fn end(&mut self, ending: Ending) {
        self.lines.push(format!("{ending:?}"));
    }
}

/// One call at a time, and one queued call.
fn limits() -> Limits {
    Limits {
        budget: RestartBudget::default(),
        rebuild_backoff: Backoff {
            first: Duration::from_millis(10),
            longest: Duration::from_secs(1),
            jitter_percent: 0,
            reset_after: Duration::from_secs(5),
        },
        calls_running_max: 1,
        calls_waiting_max: 1,
    }
}

fn kernel(most: u8) -> (Kernel<Caller, Plain>, Paper) {
    let (mut kernel, mut paper) = (Kernel::new(most, limits(), 0), Paper::default());
    Kernel::begin(&mut kernel, &mut paper);
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
        ["2 lost: 1 calls already wait; this call was not made", "0 came back", "call 1 as 3"]
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

/// The inputs of a machine that has crashed after these requests, with more requests during its rebuild.
fn told_again(before: &[StopMode], meanwhile: &[StopMode]) -> Vec<String> {
    let mut paper = Paper::default();
    let mut kernel: Kernel<Leaver, Plain> = Kernel::new((), limits(), 0);
    kernel.begin(&mut paper);
    kernel.handle(Event::Loaded(Ok(())), &mut paper);
    let mut told = |modes: &[StopMode], first: u8, paper: &mut Paper| {
        for (number, mode) in (first..).zip(modes) {
            kernel.handle(Event::StopRequested(*mode), paper);
            kernel.handle(Event::Asked { ask: number, asker: () }, paper);
        }
        if first == 0 {
            kernel.handle(Event::Crash("a drill"), paper);
        } else {
            paper.lines.clear();
            kernel.handle(Event::Loaded(Ok(())), paper);
        }
    };
    told(before, 0, &mut paper);
    told(meanwhile, 100, &mut paper);
    paper.lines
}

#[test]
fn a_detach_behind_a_stop_is_heard_as_a_stop_s3() {
    use StopMode::{Detach, Stop};
    for (orders, heard) in [([Stop, Detach], ["Stop", "Stop"]), ([Detach, Stop], ["Detach", "Stop"])] {
        let mut paper = Paper::default();
        let mut kernel: Kernel<Leaver, Plain> = Kernel::new((), limits(), 0);
        kernel.begin(&mut paper);
        kernel.handle(Event::Loaded(Ok(())), &mut paper);
        orders.into_iter().for_each(|mode| kernel.handle(Event::StopRequested(mode), &mut paper));
        assert_eq!(paper.lines, heard, "{orders:?}");
    }
}

#[test]
fn after_a_crash_the_orders_to_end_are_one_and_a_detach_never_weakens_a_stop_s3() {
    use StopMode::{Detach, Stop};
    assert_eq!(told_again(&[Detach, Detach], &[]), ["Detach", "all are given up", "Normal"]);
    // It is sent in the place of the first request: later questions are then asked of a machine that ends.
    for orders in [[Detach, Stop], [Stop, Detach], [Stop, Stop]] {
        assert_eq!(told_again(&orders, &[]), ["Stop", "asked 0", "asked 1"], "{orders:?}");
    }
}

#[test]
fn a_stop_that_comes_while_a_machine_is_built_again_counts_before_a_detach_can_end_it_s3() {
    use StopMode::{Detach, Stop};
    for orders in [[Detach, Stop], [Stop, Detach]] {
        assert_eq!(told_again(&[], &orders), ["Stop", "asked 100", "asked 101"], "{orders:?}");
        let [first, second] = orders;
        assert_eq!(told_again(&[first], &[second]), ["Stop", "asked 0", "asked 100"], "{orders:?}");
    }
}
