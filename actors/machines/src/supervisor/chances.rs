//! Random test of the pure machine: children start, fail, fall, hang and are requested in any order, and the guarantees of a
//! supervisor must hold (S1 to S3, I6).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::messages::{AwaitStarted, RestartChild, Shutdown, StopOutcome, SupervisorAnswer, SupervisorAsk};
use super::spec::{ChildSpec, Plan, Restart, Strategy, SupervisorSpec};
use super::state::{Call, FoundChild, Outcome, Supervisor, Timer};
use crate::kernel::{AskId, CallKey, Effect, Ending, Input, Machine, StepContext, StopMode};
use crate::vocabulary::{Backoff, Generation, Moment, RestartBudget, Timestamp};

/// The limit of events after a shutdown: every child needs a few.
const EVENTS_UNTIL_THE_END_MAX: usize = 100;

struct World {
    machine: Supervisor,
    specs: Vec<ChildSpec>,
    now: Duration,
    alive: BTreeMap<usize, Generation>,
    /// For each child that is being started, the key of its call.
    starting: BTreeMap<usize, CallKey>,
    calls: Vec<(CallKey, Call)>,
    timers: BTreeMap<Timer, Timestamp>,
    asked: u64,
    awaited: BTreeSet<AskId>,
    is_stopping: bool,
    ended: Option<Ending>,
    reports: usize,
}

impl World {
    fn new(strategy: Strategy, limit: u32, restarts: &[Restart]) -> Self {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(4),
            jitter_percent: 0,
            reset_after: Duration::from_secs(60),
        };
        let specs: Vec<ChildSpec> = restarts
            .iter()
            .enumerate()
            .map(|(place, restart)| {
                let spec = ChildSpec::new(format!("child {place}"), "actor");
                ChildSpec { restart: *restart, backoff, ..spec }
            })
            .collect();
        let budget = RestartBudget { limit, window: Duration::from_secs(30) };
        let spec = SupervisorSpec { strategy, budget, ..SupervisorSpec::default() };
        let plan = Plan { name: "root".into(), spec, children: specs.clone().into() };
        let mut world = Self {
            machine: Supervisor::restore(&plan, (), at(Duration::ZERO)),
            specs,
            now: Duration::ZERO,
            alive: BTreeMap::new(),
            starting: BTreeMap::new(),
            calls: Vec::new(),
            timers: BTreeMap::new(),
            asked: 0,
            awaited: BTreeSet::new(),
            is_stopping: false,
            ended: None,
            reports: 0,
        };
        world.step(&Input::Resumed);
        world
    }

    fn step(&mut self, input: &Input<Supervisor>) {
        let mut cx = StepContext::new(at(self.now));
        self.machine.step(input, &mut cx);
        for effect in cx.drain() {
            match effect {
                Effect::Persist(_, never) => match never {},
                Effect::Publish(_) => {}
                Effect::Reply(id, answer) => self.answered(id, &answer),
                Effect::Call { key, call, .. } => self.called(key, call),
                Effect::StartTimer(timer, when) => {
                    self.timers.insert(timer, when);
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(&timer);
                }
                Effect::Stop(ending) => self.ended = Some(ending),
            }
        }
    }

    fn answered(&mut self, id: AskId, answer: &SupervisorAnswer) {
        assert!(self.awaited.remove(&id), "each question is answered once");
        if let SupervisorAnswer::Shutdown(Ok(report)) = answer {
            self.reports += 1;
            let named: BTreeSet<&str> = report.children.iter().map(|child| child.name.as_str()).collect();
            let count = self.specs.len();
            assert_eq!((named.len(), report.children.len()), (count, count), "each child once: {report:?}");
        }
    }

    fn called(&mut self, key: CallKey, call: Call) {
        match call {
            Call::StartChild { child } => {
                assert!(!self.is_stopping, "nothing is started once it stops");
                assert!(!self.alive.contains_key(&child), "a second one would share the address");
                let is_stop = |(_, other): &(CallKey, Call)| matches!(other, Call::StopChild { child: also, .. } if *also == child);
                assert!(!self.calls.iter().any(is_stop), "it is being stopped");
                assert_eq!(self.starting.insert(child, key), None, "it is being started already");
            }
            Call::StopChild { child, .. } => {
                self.starting.remove(&child);
            }
            Call::FindChildren | Call::AwaitEnd { .. } | Call::DescribeChildren { .. } => {}
        }
        self.calls.push((key, call));
    }

    /// One random event, chosen by `chance`.
    fn go_on(&mut self, chance: u32) {
        let timers = usize::from(!self.timers.is_empty());
        let possible = self.calls.len() + timers;
        if possible == 0 {
            return;
        }
        let which = chance as usize % possible;
        if which < self.calls.len() {
            self.come_back(which, chance / 16);
        } else if let Some((timer, when)) =
            self.timers.iter().map(|(timer, when)| (*timer, *when)).min_by_key(|(_, when)| *when)
        {
            self.timers.remove(&timer);
            self.now = self.now.max(when.since_epoch());
            self.step(&Input::Elapsed(timer));
        }
    }

    fn come_back(&mut self, which: usize, chance: u32) {
        let (key, call) = self.calls.remove(which);
        let outcome = match call {
            Call::FindChildren => Outcome::Found(vec![FoundChild::Absent; self.specs.len()]),
            Call::StartChild { child } if self.starting.get(&child) != Some(&key) => {
                Outcome::Started { child, result: Err("the start was cancelled".into()) }
            }
            Call::StartChild { child } => {
                self.starting.remove(&child);
                if chance.is_multiple_of(10) {
                    Outcome::Started { child, result: Err("no luck".into()) }
                } else {
                    self.alive.insert(child, key.generation);
                    Outcome::Started { child, result: Ok(()) }
                }
            }
            Call::AwaitEnd { child } => {
                // A late watch of an earlier life may report its end at any time.
                if self.alive.get(&child) == Some(&key.generation) {
                    self.alive.remove(&child);
                }
                let ending = if chance.is_multiple_of(2) { Ending::Normal } else { Ending::Killed };
                Outcome::Ended { child, ending }
            }
            Call::StopChild { child, deadline, .. } => {
                let outcome = match (self.alive.remove(&child), chance % 2) {
                    (None, _) => StopOutcome::NotStarted,
                    (Some(_), 0) => StopOutcome::Stopped,
                    (Some(_), _) => StopOutcome::Killed { deadline },
                };
                self.now += Duration::from_millis(u64::from(chance % 5_000));
                Outcome::Stopped { child, outcome, below: vec![] }
            }
            Call::DescribeChildren { .. } => Outcome::Described { own: Default::default(), children: vec![] },
        };
        self.step(&Input::Returned { key, call, outcome: Ok(outcome) });
    }

    fn ask(&mut self, ask: SupervisorAsk) {
        self.asked += 1;
        let id = AskId::new(self.asked);
        self.awaited.insert(id);
        self.step(&Input::Asked { id, asked_at: Timestamp::from_epoch(self.now), ask });
    }

    /// Sends a random message to the machine now and then.
    fn interfere(&mut self, chance: u32) {
        match chance % 3 {
            0 => self.ask(SupervisorAsk::AwaitStarted(AwaitStarted)),
            1 => self.ask(SupervisorAsk::DescribeTree(super::DescribeTree)),
            _ => {
                let child = (chance / 3) as usize % self.specs.len();
                let name = self.specs[child].name.clone();
                self.ask(SupervisorAsk::RestartChild(RestartChild { name }));
            }
        }
    }

    /// Runs without further faults until only the watches of children are pending.
    fn calm_down(&mut self) {
        for _ in 0..1_000 {
            let busy = |(_, call): &(CallKey, Call)| !matches!(call, Call::AwaitEnd { .. });
            match self.calls.iter().position(busy) {
                Some(which) => self.come_back(which, 1),
                None if self.timers.is_empty() => return,
                None => self.go_on_to_the_next_timer(),
            }
            if self.ended.is_some() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn go_on_to_the_next_timer(&mut self) {
        let which = u32::try_from(self.calls.len()).expect("they are few");
        self.go_on(which);
    }
}

fn at(now: Duration) -> Moment {
    Moment { now: Timestamp::from_epoch(now), random: 0 }
}

fn strategies() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop_oneof![Just(Strategy::OneForOne), Just(Strategy::OneForAll), Just(Strategy::RestForOne)]
}

fn restart_types() -> impl proptest::strategy::Strategy<Value = Vec<Restart>> {
    let one = prop_oneof![Just(Restart::Permanent), Just(Restart::Transient), Just(Restart::Temporary)];
    prop::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn whatever_happens_a_supervisor_that_is_left_alone_runs_what_it_should_s1(
        strategy in strategies(),
        limit in 0_u32..8,
        restarts in restart_types(),
        chances in prop::collection::vec(any::<u32>(), 0..80),
    ) {
        let mut world = World::new(strategy, limit, &restarts);
        for chance in chances {
            if world.ended.is_some() {
                break;
            }
            if chance % 16 == 0 { world.interfere(chance / 16) } else { world.go_on(chance / 16) }
        }
        if world.ended.is_none() {
            world.calm_down();
        }
        if world.ended.is_some() {
            prop_assert!(world.alive.is_empty(), "nothing outlives a supervisor that gave up");
        } else {
            for (place, restart) in restarts.iter().enumerate() {
                prop_assert!(world.alive.contains_key(&place) || *restart != Restart::Permanent);
            }
        }
        prop_assert!(world.awaited.is_empty(), "everyone has an answer");
    }

    #[test]
    fn whenever_a_supervisor_is_stopped_it_ends_soon_with_a_report_and_starts_nothing_s3(
        strategy in strategies(),
        restarts in restart_types(),
        chances in prop::collection::vec(any::<u32>(), 0..40),
        more in prop::collection::vec(any::<u32>(), EVENTS_UNTIL_THE_END_MAX),
    ) {
        let mut world = World::new(strategy, 100, &restarts);
        for chance in chances {
            if world.ended.is_some() {
                return Ok(());
            }
            if chance % 16 == 0 { world.interfere(chance / 16) } else { world.go_on(chance / 16) }
        }
        if world.ended.is_some() {
            return Ok(());
        }
        world.is_stopping = true;
        let mode = if restarts.len() % 2 == 0 { StopMode::Stop } else { StopMode::Detach };
        world.ask(SupervisorAsk::Shutdown(Shutdown { mode }));
        for chance in more {
            if world.ended.is_some() {
                break;
            }
            if chance % 16 == 0 { world.interfere(chance / 16) } else { world.go_on(chance / 16) }
        }
        prop_assert!(world.ended.is_some(), "{:?}", world.machine);
        prop_assert!(world.alive.is_empty());
        prop_assert_eq!(world.reports, 1);
        prop_assert!(world.awaited.is_empty(), "everyone has an answer");
    }
}
