//! Tests the registry with random messages, crashes, failed writes, restarts of the actor and of the host, and passing time, against
//! a plain model.
//!
//! Messages are answered late and some never, so the model keeps every state that is consistent with the answers so far. After each
//! step every subscriber must have received a state that was on disk. Whenever all faults have ended, exactly one state must
//! remain, and disk, list, descriptions, waiters and every subscriber must agree on it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::{
    Active, Describe, Description, Entry, List, Register, RegistrationOf, RegistryOptions, WaitError,
    WaitForPlugin,
};
use callboard_actors::shell::{Address, AskError, Asking, Message, Running, Settings, StopMode, start};
use callboard_actors::vocabulary::{
    AllocationId, FailoverPolicy, PluginKey, RestartBudget, SocketPath, Timestamp,
};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use proptest::prelude::*;

use crate::faulty::{Disk, Outcome};
use crate::fragile::{Birth, Fragile, Handler};
use crate::model::{Answer, HELD_MAX, Held, Model, Said};
use crate::stage::{
    Living, allocation, deregister, handle_what_is_due, plugin, register, settle_down, story,
};
use crate::subscribers::{Listener, Memory};

const PLUGINS: [&str; 3] = ["csi-controller/zfs", "csi-node/zfs", "csi-node/nfs"];
const ALLOCATIONS: [&str; 4] = ["a", "b", "c", "d"];
const GRACE: Duration = Duration::from_secs(10);

/// One step of a story.
#[derive(Debug, Clone)]
enum Step {
    /// An allocation registers for these plugins with contents of this kind.
    Register(usize, Vec<usize>, usize),
    Deregister(usize, Vec<usize>),
    List,
    Describe(usize),
    RegistrationOf(usize, usize),
    Wait(usize, u64),
    Settle(usize, Outcome),
    FailNextWrite,
    FailNextLoad,
    /// The step after this number of steps crashes.
    Fuse(u32),
    Pass(u64),
    Subscribe(usize),
    Read(usize, usize),
    Leave,
    CalmDown,
    /// The actor is ended by force and started again, in the same run of the host.
    KillActor,
    /// The host is killed when this many of the waiting writes have reached the disk, and starts again.
    KillHost(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        5 => Just(Outcome::Written),
        1 => Just(Outcome::Failed),
        1 => Just(Outcome::FailedButWritten)
    ];
    let roles = || {
        prop_oneof![
            4 => (0..PLUGINS.len()).prop_map(|role| vec![role]),
            3 => Just(vec![0, 1]),
            1 => proptest::collection::vec(0..PLUGINS.len(), 0..3),
        ]
    };
    let who = || 0..ALLOCATIONS.len();
    let which = || 0..PLUGINS.len();
    prop_oneof![
        14 => (who(), roles(), 0..3_usize).prop_map(|(who, roles, kind)| Step::Register(who, roles, kind)),
        7 => (who(), roles()).prop_map(|(who, roles)| Step::Deregister(who, roles)),
        2 => Just(Step::List),
        3 => which().prop_map(Step::Describe),
        1 => (which(), who()).prop_map(|(which, who)| Step::RegistrationOf(which, who)),
        3 => (which(), 0..8_000_u64).prop_map(|(which, millis)| Step::Wait(which, millis)),
        9 => (1..5_usize, outcome).prop_map(|(count, outcome)| Step::Settle(count, outcome)),
        2 => Just(Step::FailNextWrite),
        1 => Just(Step::FailNextLoad),
        3 => (1..4_u32).prop_map(Step::Fuse),
        4 => (0..4_000_u64).prop_map(Step::Pass),
        2 => (2..8_usize).prop_map(Step::Subscribe),
        4 => (0..3_usize, 1..6_usize).prop_map(|(who, count)| Step::Read(who, count)),
        1 => Just(Step::Leave),
        3 => Just(Step::CalmDown),
        1 => Just(Step::KillActor),
        2 => (0..4_usize).prop_map(Step::KillHost),
    ]
}

type Heard = LocalBoxFuture<'static, Result<Answer, AskError>>;

/// A message in flight, and its outcome.
struct Question {
    said: Said,
    asking: Option<Heard>,
    answer: Option<Result<Answer, AskError>>,
}

/// A caller that waits for a plugin.
struct Waiter {
    plugin: PluginKey,
    until: Timestamp,
    asking: Asking<Fragile, WaitForPlugin>,
}

/// A story in progress.
struct Told {
    registry: Address<Fragile>,
    running: Running,
    birth: Birth,
    settings: Settings,
    living: Living,
    answers: Vec<AllocationId>,
    disk: Disk,
    memory: Memory,
    /// Reads everything from the first moment of each life.
    witness: Listener,
    listeners: Vec<Listener>,
    questions: Vec<Question>,
    waiters: Vec<Waiter>,
    /// All states that are consistent with the answers so far.
    states: Vec<Model>,
}

fn begin(told: &(Address<Fragile>, Birth, Living, Disk, Settings)) -> Running {
    let (registry, birth, living, disk, settings) = told;
    start(registry, birth.clone(), Handler(living.clone()), disk.clone(), settings.clone())
}

impl Told {
    fn begin(answering: &[bool; 4]) -> Self {
        let living = Living::default();
        let answers: Vec<&str> =
            ALLOCATIONS.into_iter().zip(answering).filter(|(_, yes)| **yes).map(|(id, _)| id).collect();
        answers.iter().for_each(|id| living.answers(id));
        let options = RegistryOptions {
            restore_grace: GRACE,
            registrations_max: HELD_MAX,
            waiting_max: 3,
            checks_max: 2,
            check_deadline: Duration::from_secs(1),
            // No actor checks plugins here, so none proves to be fit.
            policy: FailoverPolicy::Newest,
            ..RegistryOptions::default()
        };
        let birth = Birth { options, fuse: Rc::new(Cell::new(0)) };
        let budget = RestartBudget { limit: 10_000, window: Duration::from_secs(60) };
        let settings = Settings { seed: Some(7), budget, ..Settings::default() };
        let parts = (Address::vacant("registry", 6), birth, living, Disk::new(), settings);
        let running = begin(&parts);
        let witness = Listener::to(&parts.0, usize::MAX);
        let (registry, birth, living, disk, settings) = parts;
        Self {
            registry,
            running,
            birth,
            settings,
            living,
            answers: answers.into_iter().map(allocation).collect(),
            disk,
            memory: Memory::default(),
            witness,
            listeners: vec![],
            questions: vec![],
            waiters: vec![],
            states: vec![Model::default()],
        }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Register(who, roles, kind) => {
                let plugins: Vec<&str> = roles.iter().map(|role| PLUGINS[*role]).collect();
                self.say(Said::Register(kind_of(register(ALLOCATIONS[*who], &plugins), *kind)));
            }
            Step::Deregister(who, roles) => {
                let plugins: Vec<&str> = roles.iter().map(|role| PLUGINS[*role]).collect();
                self.say(Said::Deregister(deregister(ALLOCATIONS[*who], &plugins)));
            }
            Step::List => self.say(Said::List),
            Step::Describe(which) => self.say(Said::Describe(plugin(PLUGINS[*which]))),
            Step::RegistrationOf(which, who) => {
                self.say(Said::RegistrationOf(plugin(PLUGINS[*which]), allocation(ALLOCATIONS[*who])));
            }
            Step::Wait(which, millis) => self.wait(plugin(PLUGINS[*which]), Duration::from_millis(*millis)),
            Step::Settle(count, outcome) => {
                self.disk.settle(*count, *outcome);
            }
            Step::FailNextWrite => self.disk.fail_next_at_once(),
            Step::FailNextLoad => self.disk.fail_next_load(),
            Step::Fuse(steps) => self.birth.fuse.set(*steps),
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            Step::Subscribe(capacity) => self.listeners.push(Listener::to(&self.registry, *capacity)),
            Step::Read(who, count) => {
                if let Some(listener) = self.listeners.get_mut(*who) {
                    listener.read(*count, &mut self.memory);
                }
            }
            Step::Leave => self.listeners.truncate(self.listeners.len().saturating_sub(1)),
            Step::CalmDown => self.calm_down().await,
            Step::KillActor => self.kill(None).await,
            Step::KillHost(reached) => self.kill(Some(*reached)).await,
        }
    }

    fn say(&mut self, said: Said) {
        let registry = &self.registry;
        let asking = match said.clone() {
            Said::Register(message) => heard(registry.ask(message), Answer::Register),
            Said::Deregister(message) => heard(registry.ask(message), Answer::Deregister),
            Said::List => heard(registry.ask(List), |list| Answer::List(held(&list))),
            Said::Describe(plugin) => {
                heard(registry.ask(Describe { plugin }), |description| described(&description))
            }
            Said::RegistrationOf(plugin, allocation) => {
                let asking = registry.ask(RegistrationOf { plugin, allocation });
                heard(asking, |entry| Answer::RegistrationOf(entry.as_ref().map(Held::from)))
            }
        };
        self.questions.push(Question { said, asking: Some(asking), answer: None });
    }

    fn wait(&mut self, plugin: PluginKey, within: Duration) {
        let until = self.settings.clock.now() + within;
        let asking = self.registry.ask(WaitForPlugin { plugin: plugin.clone(), within });
        self.waiters.push(Waiter { plugin, until, asking });
    }

    /// Reads all messages, and compares them with the disk.
    fn check(&mut self) {
        self.witness.read(usize::MAX, &mut self.memory);
        self.witness.check_active();
        let view = self.witness.view();
        if let Some(view) = view {
            assert!(
                self.disk.is_behind() || self.disk.has_held(|rows, run| view.is_of(rows, run)),
                "told, but never handed to the disk: {view:?}"
            );
        }
        for question in &mut self.questions {
            if let Some(answer) = question.asking.as_mut().and_then(|asking| asking.now_or_never()) {
                question.asking = None;
                question.answer = Some(answer);
            }
        }
        let now = self.settings.clock.now();
        let memory = &self.memory;
        self.waiters.retain_mut(|waiter| {
            let Some(answer) = (&mut waiter.asking).now_or_never() else { return true };
            check_waited(waiter, answer, now, memory);
            false
        });
    }

    // === The possible states of the model ===

    /// Applies the messages since the last call, in the order in which they were sent. Returns whether writes were lost.
    fn replay(&mut self) -> bool {
        let has_lost = self.disk.has_lost();
        let mut story = Vec::new();
        for Question { said, answer, .. } in std::mem::take(&mut self.questions) {
            let answer = answer.expect("everyone has been answered");
            story.push(format!("{said:?} -> {answer:?}"));
            let before = self.whatever_may_have_happened();
            self.states = vec![];
            for state in before {
                let mut after = state.clone();
                let expected = after.hear(&said);
                let (is_left_out, is_taken) = match &answer {
                    // Only a registration is promised: the other answers reported what was in memory, and that may be lost.
                    Ok(answer @ Answer::Register(Ok(_))) => (false, *answer == expected),
                    Ok(answer) => (has_lost, *answer == expected),
                    Err(AskError::Busy { .. } | AskError::Crashed { .. }) => (true, false),
                    // The message may take effect once the disk is sound, or had an effect before the refused write.
                    Err(
                        AskError::NotDurable { .. }
                        | AskError::NotRunning { .. }
                        | AskError::NotWritten { .. },
                    ) => (true, true),
                };
                let possible = is_left_out.then_some(state).into_iter().chain(is_taken.then_some(after));
                possible.for_each(|state| note(&mut self.states, state));
            }
            assert!(!self.states.is_empty(), "no history explains\n{}", story.join("\n"));
        }
        self.states = self.whatever_may_have_happened();
        has_lost
    }

    /// The possible states after a crash when writes were lost: a proof is not a promise, and is searched again.
    fn without_proofs(&self) -> Vec<Model> {
        let mut all = self.states.clone();
        let mut next = 0;
        while let Some(state) = all.get(next) {
            for outcome in state.what_may_be_forgotten(&self.answers) {
                note(&mut all, outcome);
            }
            next += 1;
        }
        all
    }

    /// The states, and all results of identity checks and of the end of the grace period.
    fn whatever_may_have_happened(&self) -> Vec<Model> {
        let is_grace_over = self.disk.run_age() >= GRACE;
        let mut all = self.states.clone();
        let mut next = 0;
        while let Some(state) = all.get(next) {
            for outcome in state.what_may_happen(&self.answers, is_grace_over) {
                note(&mut all, outcome);
            }
            next += 1;
        }
        all
    }

    /// Of all possible states only that of the disk can be true.
    fn believe_the_disk(&mut self) {
        let (rows, run) = self.disk.rows();
        let on_disk = Model::of(&rows, run);
        assert!(self.states.contains(&on_disk), "{on_disk:#?} is on disk and none of {:#?}", self.states);
        self.states = vec![on_disk];
    }

    // === The end of faults and of lives ===

    /// All faults end for a while: every caller gets an answer, and all agree.
    async fn calm_down(&mut self) {
        self.birth.fuse.set(0);
        for _ in 0..25 {
            self.disk.calm();
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.check();
        }
        self.replay();
        // Time passes while all listeners catch up. Then it stands still until everything is compared.
        while self.catch_up().await {}
        self.check();
        self.states = self.whatever_may_have_happened();
        self.believe_the_disk();
        self.compare().await;
        self.disk.trouble();
    }

    /// Lets every listener read everything that is queued. False if nothing was queued.
    async fn catch_up(&mut self) -> bool {
        handle_what_is_due().await;
        let mut has_come = false;
        for listener in &mut self.listeners {
            has_come |= listener.catch_up(&mut self.memory).await;
        }
        has_come
    }

    /// Checks that list, descriptions, waiters and every listener agree with the one remaining state.
    async fn compare(&mut self) {
        let model = self.states[0].clone();
        let now = self.settings.clock.now();
        let listed = self.registry.ask(List).await.expect("it runs");
        assert_eq!(held(&listed), model.held, "the list says what is on disk");
        for key in PLUGINS.map(plugin) {
            let description = self.registry.ask(Describe { plugin: key.clone() }).await.expect("it runs");
            self.memory.note(description.active.as_ref());
            let active = description.active.clone();
            assert_eq!(described(&description), model.clone().hear(&Said::Describe(key.clone())));
            for listener in self.listeners.iter().chain([&self.witness]) {
                listener.check_active();
                assert_eq!(listener.active(&key), active.as_ref(), "a subscriber knows who is active");
                assert_eq!(listener.entries(), listed, "a subscriber knows the list");
            }
            let is_awaited = self.waiters.iter().any(|waiter| waiter.plugin == key);
            assert!(!is_awaited || active.is_none(), "R7: a caller still waits for {key}");
        }
        let is_overdue = |waiter: &Waiter| waiter.until + Duration::from_millis(5) < now;
        assert!(!self.waiters.iter().any(is_overdue), "R7: a caller has waited too long");
        assert_eq!(self.settings.clock.now(), now, "no time has passed");
    }

    /// Ends the actor by force. If `reached` is given, also the host, after this many of the waiting writes have reached the disk.
    async fn kill(&mut self, reached: Option<usize>) {
        self.running.kill();
        self.running.ended().await;
        self.check();
        assert_eq!(self.registry.vitals().mailbox_depth, 0, "a place in the mailbox is lost");
        assert!(self.waiters.is_empty(), "a caller waits for an actor that has ended");
        if let Some(reached) = reached {
            self.disk.lose_all_but(reached);
        }
        self.disk.forget_what_was_lost();
        if self.replay() {
            self.states = self.without_proofs();
        }
        if let Some(reached) = reached {
            // No confirmation outlives its run, whether or not it was on disk.
            self.states.iter_mut().for_each(Model::begin_run);
            self.disk.begin_run(reached);
            self.believe_the_disk();
        }
        let parts = (
            self.registry.clone(),
            self.birth.clone(),
            self.living.clone(),
            self.disk.clone(),
            self.settings.clone(),
        );
        self.running = begin(&parts);
        self.listeners.clear();
        self.witness = Listener::to(&self.registry, usize::MAX);
        settle_down().await;
        if reached.is_none() {
            self.believe_the_disk();
        }
    }

    async fn end(&mut self) {
        self.calm_down().await;
        self.disk.calm();
        tokio::time::sleep(2 * GRACE).await;
        self.calm_down().await;
        assert!(self.states[0].held.iter().all(|held| held.is_confirmed), "R8: the grace is over");
        self.running.request_stop(StopMode::Stop);
        self.running.ended().await;
        self.check();
        assert!(self.waiters.is_empty());
        assert_eq!(self.registry.vitals().mailbox_depth, 0);
    }
}

fn note(states: &mut Vec<Model>, state: Model) {
    if !states.contains(&state) {
        states.push(state);
    }
}

fn heard<Q: Message<Fragile>>(
    asking: Asking<Fragile, Q>,
    answer: impl FnOnce(Q::Reply) -> Answer + 'static,
) -> Heard {
    async move { asking.await.map(answer) }.boxed_local()
}

fn held(entries: &[Entry]) -> Vec<Held> {
    entries.iter().map(Held::from).collect()
}

fn described(description: &Description) -> Answer {
    Answer::Describe {
        active: description.active.as_ref().map(|active| Arc::clone(&active.registration)),
        standby: description.standby.iter().map(|standby| Held::from(&standby.entry)).collect(),
        provisional: held(&description.provisional),
    }
}

/// The same registration in one of three variants: as it is, at another socket, or by a plugin that does not report its name.
fn kind_of(message: Register, kind: usize) -> Register {
    match kind {
        0 => message,
        1 => Register { socket: SocketPath::new("/run/elsewhere.sock").expect("a path"), ..message },
        _ => Register { provider: None, version: Some(Arc::from("2.0")), ..message },
    }
}

fn check_waited(
    waiter: &Waiter,
    answer: Result<Result<Active, WaitError>, AskError>,
    now: Timestamp,
    memory: &Memory,
) {
    match answer {
        Ok(Ok(active)) => {
            assert_eq!(active.registration.plugin, waiter.plugin);
            assert!(memory.knows(&active), "{active:?} was never told");
        }
        Ok(Err(WaitError::TooMany { waiting })) => assert_eq!(waiting, 3),
        Ok(Err(error)) => assert!(now >= waiter.until, "{error} before its time"),
        // The caller was refused or the actor ended, or the write behind the answer failed.
        Err(_) => {}
    }
}

async fn tell(answering: [bool; 4], steps: &[Step]) {
    let mut told = Told::begin(&answering);
    for step in steps {
        told.take(step).await;
        told.check();
        settle_down().await;
        told.check();
    }
    told.end().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_registry_is_what_a_plain_list_would_be(
        answering in any::<[bool; 4]>(),
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        story(|| async { tell(answering, &steps).await });
    }
}

#[test]
fn what_a_disk_took_and_called_lost_is_there_once_when_the_host_is_killed_while_it_is_written_again_p3() {
    let steps = [
        Step::Register(1, vec![0, 1], 0),
        Step::Deregister(1, vec![0]),
        Step::Register(1, vec![0], 0),
        Step::Settle(3, Outcome::FailedButWritten),
        Step::Pass(10),
        Step::KillHost(1),
    ];
    story(|| async { tell([false; 4], &steps).await });
}

#[test]
fn a_confirmation_that_no_write_has_settled_promises_nothing_beyond_its_run_r8() {
    let steps = [
        Step::Register(3, vec![0, 1], 0),
        Step::KillHost(1),
        Step::Register(0, vec![0], 0),
        Step::List,
        Step::Settle(1, Outcome::Written),
        Step::Pass(0),
        Step::Register(3, vec![0], 0),
        Step::KillHost(0),
    ];
    story(|| async { tell([false, false, false, true], &steps).await });
}

#[test]
fn a_proof_that_was_lost_is_looked_for_again_by_the_next_life_r8() {
    let steps = [
        Step::Register(2, vec![0, 1], 1),
        Step::KillHost(1),
        Step::Pass(3),
        Step::Register(2, vec![0], 1),
        Step::Settle(1, Outcome::Failed),
        Step::KillActor,
    ];
    story(|| async { tell([false, false, true, false], &steps).await });
}

#[test]
fn a_number_that_was_told_and_whose_row_is_gone_before_it_is_written_is_not_given_again_r2() {
    let steps = [
        Step::Register(0, vec![1], 2),
        Step::Register(3, vec![0], 0),
        Step::Settle(1, Outcome::Failed),
        Step::Register(0, vec![1], 0),
        Step::Deregister(0, vec![1]),
        Step::Fuse(1),
        Step::Register(0, vec![0], 0),
        Step::Register(3, vec![0], 1),
        Step::Register(0, vec![0], 0),
    ];
    story(|| async { tell([false; 4], &steps).await });
}
