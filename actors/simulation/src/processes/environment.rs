//! The surroundings of the owner of the processes: processes, and the actors that start, watch and end them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use callboard_actors::process::{
    EndedBy, Exit, Identity, LaunchError, Lifetime, Over, ProcessConfig, ProcessEnding, ProcessName,
    ProcessNews, ProcessRecord, ProcessTag, Why,
};
use callboard_actors::processes::ChildEnded;
use callboard_actors::shell::{Ending, StopMode};
use callboard_actors::vocabulary::Attempt;

use super::super::law::Law;
use super::super::law_checker::Verdict;

/// A running process.
#[derive(Debug, Clone, Hash)]
struct Running {
    name: ProcessName,
    lifetime: Lifetime,
}

/// The state of an actor of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// It has done nothing yet.
    Begun,
    /// Its process runs and is not ready.
    Spawned,
    /// Its process is ready.
    Watching,
    /// It has sent its last report, or has crashed.
    Over,
}

/// The actor of one process.
#[derive(Debug, Clone, Hash)]
struct Actor {
    config: ProcessConfig,
    at: At,
    is_to_end: bool,
    stop: Option<StopMode>,
    ending: Ending,
    /// Its reports in flight.
    said: VecDeque<ProcessNews>,
}

/// All running processes, and all actors.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Environment {
    running: BTreeMap<ProcessTag, Running>,
    actors: BTreeMap<Attempt, Actor>,
    /// The actors for which something has changed.
    changed: Vec<Attempt>,
    /// Whether the host detaches and leaves in place what outlives it.
    pub(super) is_let_go: bool,
    pub(super) verdict: Verdict,
}

impl Environment {
    /// An earlier run of the host left a process.
    pub(super) fn leave(&mut self, record: &ProcessRecord) {
        let running = Running { name: record.name.clone(), lifetime: record.lifetime };
        self.running.insert(record.tag, running);
    }

    // === Orders ===

    pub(super) fn start(&mut self, life: Attempt, config: ProcessConfig) {
        let name = &config.record.name;
        if self.actors.values().any(|actor| actor.is_of(name) && actor.at != At::Over) {
            self.verdict
                .violation(Law::Prc4, || format!("a second actor of {name} is started beside the first"));
        }
        let actor = Actor {
            config,
            at: At::Begun,
            is_to_end: false,
            stop: None,
            ending: Ending::Normal,
            said: VecDeque::new(),
        };
        self.actors.insert(life, actor);
        self.changed.push(life);
    }

    pub(super) fn end(&mut self, life: Attempt) {
        if let Some(actor) = self.actors.get_mut(&life) {
            actor.is_to_end = true;
        }
        self.changed.push(life);
    }

    pub(super) fn stop(&mut self, life: Attempt, mode: StopMode) {
        if let Some(actor) = self.actors.get_mut(&life) {
            actor.stop = Some(mode);
        }
        self.changed.push(life);
    }

    /// The actors are gone. An unfinished launch is undone, and a ready process continues. Their reports in flight still arrive.
    pub(super) fn release(&mut self) {
        for actor in self.actors.values_mut() {
            if std::mem::replace(&mut actor.at, At::Over) == At::Spawned {
                self.running.remove(&actor.config.record.tag);
            }
        }
        self.actors.retain(|_, actor| !actor.said.is_empty());
    }

    /// Processes without a record are ended.
    pub(super) fn sweep(&mut self, known: &[ProcessTag]) {
        self.running.retain(|tag, _| known.contains(tag));
    }

    /// The host is killed: processes bound to it end with it, and all others continue.
    pub(super) fn next_run(&mut self) {
        self.actors.clear();
        self.changed.clear();
        self.is_let_go = false;
        self.running.retain(|_, process| process.lifetime == Lifetime::Surviving);
    }

    // === Events ===

    /// The running processes.
    pub(super) fn running(&self) -> impl Iterator<Item = ProcessTag> + '_ {
        self.running.keys().copied()
    }

    /// The process running under a name.
    pub(super) fn tag_of(&self, name: &ProcessName) -> Option<ProcessTag> {
        self.running.iter().find(|(_, process)| process.name == *name).map(|(tag, _)| *tag)
    }

    /// The running processes, with the lifetime of each.
    pub(super) fn lifetimes(&self) -> impl Iterator<Item = (ProcessTag, Lifetime)> + '_ {
        self.running.iter().map(|(tag, process)| (*tag, process.lifetime))
    }

    pub(super) fn runs(&self, tag: ProcessTag) -> bool {
        self.running.contains_key(&tag)
    }

    /// A process ends by itself.
    pub(super) fn exit(&mut self, tag: ProcessTag) {
        self.running.remove(&tag);
        let watching = self.actors.iter().filter(|(_, actor)| actor.config.record.tag == tag);
        self.changed.extend(watching.map(|(life, _)| *life));
    }

    /// The actors that have work.
    pub(super) fn busy(&self) -> impl Iterator<Item = Attempt> + '_ {
        self.actors.iter().filter(|(_, actor)| self.is_busy(actor)).map(|(life, _)| *life)
    }

    fn is_busy(&self, actor: &Actor) -> bool {
        match actor.at {
            At::Begun | At::Spawned => true,
            At::Watching => actor.is_to_end || actor.stop.is_some() || !self.runs(actor.config.record.tag),
            At::Over => false,
        }
    }

    /// The actors whose launch can fail.
    pub(super) fn launching(&self) -> impl Iterator<Item = Attempt> + '_ {
        let is_launching =
            |actor: &Actor| actor.config.spec.is_some() && matches!(actor.at, At::Begun | At::Spawned);
        self.actors.iter().filter(move |(_, actor)| is_launching(actor)).map(|(life, _)| *life)
    }

    /// The actors that could crash.
    pub(super) fn standing(&self) -> impl Iterator<Item = Attempt> + '_ {
        self.actors.iter().filter(|(_, actor)| actor.at != At::Over).map(|(life, _)| *life)
    }

    /// An actor crashes without a last report. Its launch is undone; a ready process is not affected.
    pub(super) fn fall(&mut self, life: Attempt) {
        let Some(actor) = self.actors.get_mut(&life) else { return };
        actor.ending = Ending::Panicked("a drill".to_owned());
        if std::mem::replace(&mut actor.at, At::Over) == At::Spawned {
            self.running.remove(&actor.config.record.tag);
        }
        self.changed.push(life);
    }

    /// An actor takes one step, which fails if it `fails`. Returns the launch that began with it.
    pub(super) fn act(&mut self, life: Attempt, fails: bool) -> Option<ProcessTag> {
        let mut actor = self.actors.remove(&life)?;
        let before = actor.at;
        match before {
            At::Begun if actor.config.spec.is_some() => self.spawn(&mut actor, fails),
            At::Begun => self.look(&mut actor),
            At::Spawned => self.get_ready(&mut actor, fails),
            At::Watching => self.watch(&mut actor),
            At::Over => {}
        }
        let born = (before == At::Begun && actor.at == At::Spawned).then_some(actor.config.record.tag);
        self.actors.insert(life, actor);
        self.changed.push(life);
        born
    }

    fn spawn(&mut self, actor: &mut Actor, fails: bool) {
        let record = &actor.config.record;
        let name = record.name.clone();
        if actor.is_to_end || actor.stop.is_some() {
            return actor.over(Over::NotStarted(LaunchError::Stopped { name }));
        }
        if fails {
            let reason = "it cannot be started".to_owned();
            return actor.over(Over::NotStarted(LaunchError::Failed { name, reason }));
        }
        if self.running.values().any(|process| process.name == name) {
            self.verdict
                .violation(Law::Prc3, || format!("a second process of {name} is started beside the first"));
        }
        self.running.insert(record.tag, Running { name, lifetime: record.lifetime });
        actor.said.push_back(ProcessNews::Spawned(identity()));
        actor.at = At::Spawned;
    }

    /// It looks for a process that an earlier owner left.
    fn look(&mut self, actor: &mut Actor) {
        let record = &actor.config.record;
        if actor.stop == Some(StopMode::Detach) && record.lifetime == Lifetime::Surviving {
            return actor.over(Over::Unsettled);
        }
        if self.runs(record.tag) && record.is_ready {
            let handshake = record.handshake.clone();
            actor.said.push_back(ProcessNews::Ready { identity: identity(), handshake, is_adopted: true });
            actor.at = At::Watching;
            return;
        }
        let why = if self.running.remove(&record.tag).is_some() {
            Why::Left("it was never ready".to_owned())
        } else {
            Why::NotProven("nothing of it runs".to_owned())
        };
        actor.ended(why);
    }

    fn get_ready(&mut self, actor: &mut Actor, fails: bool) {
        let tag = actor.config.record.tag;
        if !self.runs(tag) {
            return actor.ended(Why::Itself);
        }
        if actor.is_to_end || actor.stop.is_some() || fails {
            self.running.remove(&tag);
            return actor.ended(if fails { Why::TimedOut(Duration::from_secs(60)) } else { Why::Asked });
        }
        actor.said.push_back(ProcessNews::Ready { identity: identity(), handshake: None, is_adopted: false });
        actor.at = At::Watching;
    }

    fn watch(&mut self, actor: &mut Actor) {
        let record = &actor.config.record;
        if !self.runs(record.tag) {
            return actor.ended(Why::Itself);
        }
        let is_left = actor.stop == Some(StopMode::Detach) && record.lifetime == Lifetime::Surviving;
        if is_left && !actor.is_to_end {
            return actor.over(Over::Detached(record.positions));
        }
        if self.is_let_go && record.lifetime == Lifetime::Surviving && !actor.is_to_end {
            let name = &record.name;
            self.verdict.violation(Law::S3, || format!("the host lets go of {name}, and it is ended"));
        }
        self.running.remove(&record.tag);
        actor.said.push_back(ProcessNews::Stopping);
        actor.ended(Why::Asked);
    }

    // === Reports ===

    /// The actors with a report in flight.
    pub(super) fn speaking(&self) -> impl Iterator<Item = Attempt> + '_ {
        self.actors.iter().filter(|(_, actor)| !actor.said.is_empty()).map(|(life, _)| *life)
    }

    /// The next report of an actor arrives.
    pub(super) fn take_word(&mut self, life: Attempt) -> Option<(ProcessName, ProcessNews)> {
        let actor = self.actors.get_mut(&life)?;
        let news = actor.said.pop_front()?;
        self.changed.push(life);
        Some((actor.config.record.name.clone(), news))
    }

    /// The processes for which something has changed since the last call: whether an actor of each has work, and
    /// whether a report of it is in flight.
    pub(super) fn take_changed(&mut self) -> Vec<(ProcessName, bool, bool)> {
        let changed = std::mem::take(&mut self.changed);
        let names = changed.iter().filter_map(|life| Some(&self.actors.get(life)?.config.record.name));
        let state = |name: &ProcessName| {
            let is_busy = self.actor_of(name, self.busy()).is_some();
            (name.clone(), is_busy, self.actor_of(name, self.speaking()).is_some())
        };
        names.map(state).collect()
    }

    /// The actor under a name for which this holds.
    pub(super) fn actor_of(
        &self,
        name: &ProcessName,
        mut among: impl Iterator<Item = Attempt>,
    ) -> Option<Attempt> {
        among.find(|life| self.actors.get(life).is_some_and(|actor| actor.is_of(name)))
    }

    /// Whether an actor has ended whose last report has arrived.
    pub(super) fn has_endings(&self) -> bool {
        self.actors.values().any(Actor::is_gone)
    }

    pub(super) fn take_endings(&mut self) -> Vec<ChildEnded> {
        let gone = self.actors.iter().filter(|(_, actor)| actor.is_gone());
        let ended = gone.map(|(life, actor)| ChildEnded {
            name: actor.config.record.name.clone(),
            life: *life,
            ending: actor.ending.clone(),
        });
        let ended = ended.collect();
        self.actors.retain(|_, actor| !actor.is_gone());
        ended
    }
}

impl Actor {
    fn is_of(&self, name: &ProcessName) -> bool {
        self.config.record.name == *name
    }

    fn is_gone(&self) -> bool {
        self.at == At::Over && self.said.is_empty()
    }

    fn over(&mut self, over: Over) {
        self.said.push_back(ProcessNews::Over(Box::new(over)));
        self.at = At::Over;
    }

    fn ended(&mut self, why: Why) {
        let record = &self.config.record;
        let ending = ProcessEnding {
            name: record.name.clone(),
            tag: record.tag,
            pid: Some(identity().pid),
            exit: Exit::Code(0),
            by: if why == Why::Asked { EndedBy::Request } else { EndedBy::Itself },
            uptime: Duration::ZERO,
            last_output: Vec::new(),
            last_errors: Vec::new(),
            panic: None,
        };
        self.over(Over::Ended { ending, why, diagnosis: Vec::new() });
    }
}

pub(super) fn identity() -> Identity {
    Identity { pid: 10, started_ticks: 100, boot_id: "boot".to_owned(), executable: None }
}
