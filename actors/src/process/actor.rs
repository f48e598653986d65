//! The effect handler of a process actor.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use rustix::process::Signal;

use super::bound::Binder;
use super::control_group::ControlGroups;
use super::executable::{self, Opened, open_program};
use super::look;
use super::output::{self, Output, PendingHandshake, Reading};
use super::owned::{self, Owned};
use super::plugin_log::PluginLog;
use super::sockets;
use super::spawn::Spawn;
use super::watcher::Watcher;
use super::{
    Findings, Identity, LastWords, LaunchError, Process, ProcessCall, ProcessConfig, ProcessNews,
    ProcessOutcome, ProcessRecord, ProcessSpec, Reach, Seen, Verdict, Why, judge,
};
use crate::goplugin::{HandshakeScan, ScanLimits, diagnose};
use crate::shell::{self, Address, EffectHandler, NoStore, Running, Settings, Started};
use crate::vocabulary::{Backoff, RestartBudget};

/// The environment that all processes of a host share.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The owner of these processes: the same for every run on one data directory, and unique to it.
    pub owner: Arc<str>,
    /// The parent directory of the output directories, one per process.
    pub directory: PathBuf,
    /// The parent directory for sockets if their path would be too long there.
    pub short_directory: PathBuf,
    /// Binds processes to this host; without it none can be bound (PRC-04).
    pub binder: Option<Binder>,
    /// Creates control groups.
    pub control_groups: ControlGroups,
    /// Notifies readers when outputs grow.
    pub watcher: Rc<Watcher>,
    /// Logs the lines of plugins.
    pub plugin_log: PluginLog,
}

/// Starts the actor of a process at a vacant address. `told` receives its news, one by one and in order.
///
/// It is not rebuilt after a crash: its effects are on disk, so a new actor that is started from the record finds the
/// process again, or ends an unfinished launch (PRC-02).
pub fn start(
    address: &Address<Process>,
    config: ProcessConfig,
    surroundings: Surroundings,
    told: impl Fn(ProcessNews) + 'static,
    settings: Settings,
) -> Running {
    let span = settings.budget.window;
    let settings = Settings { budget: RestartBudget { limit: 0, window: span }, ..settings };
    let settings = Settings { rebuild_backoff: Backoff::default(), ..settings };
    let handler = Handler {
        record: Rc::new(config.record.clone()),
        spec: config.spec.clone(),
        surroundings: Rc::new(surroundings),
        told: Box::new(told),
        held: Rc::default(),
    };
    shell::start(address, config, handler, NoStore, settings)
}

struct Handler {
    record: Rc<ProcessRecord>,
    spec: Option<Arc<ProcessSpec>>,
    surroundings: Rc<Surroundings>,
    told: Box<dyn Fn(ProcessNews)>,
    held: Rc<RefCell<Held>>,
}

/// The runtime state of the process. It is taken out for long operations, and put back after them.
#[derive(Debug, Default)]
struct Held {
    owned: Option<Owned>,
    output: Option<Rc<Output>>,
    shaking: Option<PendingHandshake>,
    opened: Option<Opened>,
    /// The diagnosis of its file in case it does not become ready; empty once it has.
    diagnosis: Vec<String>,
    program: PathBuf,
}

impl EffectHandler<Process> for Handler {
    fn call(&mut self, call: ProcessCall) -> Started<ProcessOutcome> {
        let scene = self.scene();
        Started::Running(match call {
            ProcessCall::Spawn => {
                let spec = self.spec.clone();
                Box::pin(async move {
                    let spawned = scene.spawn(spec).await;
                    if spawned.is_err() {
                        scene.end_directory().await;
                    }
                    ProcessOutcome::Spawned(spawned)
                })
            }
            ProcessCall::Find => Box::pin(async move { ProcessOutcome::Found(scene.find().await) }),
            ProcessCall::Adopt => Box::pin(async move { ProcessOutcome::Adopted(scene.adopt().await) }),
            ProcessCall::EndLeft(proven) => Box::pin(scene.end_left(proven)),
            ProcessCall::AwaitHandshake => Box::pin(scene.shake()),
            ProcessCall::AwaitEnd => scene.await_end(),
            ProcessCall::AwaitReading => Box::pin(scene.await_reading()),
            ProcessCall::Terminate => scene.signal(|owned| owned.signal(Signal::TERM)),
            ProcessCall::Kill => scene.signal(Owned::kill),
            ProcessCall::Clear => Box::pin(scene.clear()),
            ProcessCall::LetGo => Box::pin(scene.let_go()),
        })
    }

    fn published(&mut self, news: &ProcessNews) {
        (self.told)(news.clone());
    }
}

impl Handler {
    fn scene(&self) -> Scene {
        Scene {
            record: Rc::clone(&self.record),
            surroundings: Rc::clone(&self.surroundings),
            held: Rc::clone(&self.held),
        }
    }
}

struct Scene {
    record: Rc<ProcessRecord>,
    surroundings: Rc<Surroundings>,
    held: Rc<RefCell<Held>>,
}

impl Scene {
    /// Signals the process itself at once, if it exists; the returned future signals the rest of its group.
    fn signal<S>(&self, signal: impl FnOnce(&Owned) -> S) -> LocalBoxFuture<'static, ProcessOutcome>
    where
        S: Future<Output = ()> + 'static,
    {
        let signalled = self.held.borrow().owned.as_ref().map(signal);
        Box::pin(async move {
            if let Some(signalled) = signalled {
                signalled.await;
            }
            ProcessOutcome::Done
        })
    }

    fn directory(&self) -> PathBuf {
        self.surroundings.directory.join(self.record.name.as_str())
    }

    /// Removes all files of a process without kept output, and those of any process that are outside of the data directory.
    async fn end_directory(&self) {
        let has_no_output = self.record.output_kept_bytes == 0;
        let place = self.sockets();
        if (has_no_output || !place.starts_with(&self.surroundings.directory))
            && let Err(error) = self.surroundings.retire_sockets(place).await
        {
            tracing::warn!(process = %self.record.name, %error, "cannot remove the socket directory of a process");
        }
        if has_no_output {
            if let Err(error) = executable::remove_copies(&self.directory()) {
                tracing::warn!(process = %self.record.name, %error, "cannot remove the copy of a process's program");
            }
            output::end(&self.directory());
        }
    }

    /// The directory of its sockets, and of the sockets of its descendants.
    fn sockets(&self) -> PathBuf {
        self.surroundings.places().of(&self.record.name)
    }

    /// Creates the directory of its sockets, for a plugin if its handshake terms name none.
    fn begin_sockets(&self, spec: &ProcessSpec) -> std::io::Result<Option<PathBuf>> {
        if spec.handshake.as_ref().is_none_or(|terms| terms.socket_dir.is_some()) {
            return Ok(None);
        }
        sockets::begin(&self.surroundings.places(), &self.record.name).map(Some)
    }

    /// Spawns the process. In every case a spawned process has an owner: first this function, then `held` (PRC-02).
    async fn spawn(&self, spec: Option<Arc<ProcessSpec>>) -> Result<Identity, LaunchError> {
        let name = &self.record.name;
        let failed = |attempted: &str, message: String| LaunchError::System {
            name: name.clone(),
            attempted: attempted.to_owned(),
            message,
        };
        let spec = spec.ok_or_else(|| failed("find what to start", "there is no spec".to_owned()))?;
        let (executable, directory) = (spec.executable.clone(), self.directory());
        let opened = actix_rt::task::spawn_blocking(move || open_program(&executable, &directory)).await;
        let opened = opened
            .map_err(|error| failed("check the program", error.to_string()))?
            .map_err(|source| LaunchError::Executable { name: name.clone(), source })?;
        self.held.borrow_mut().diagnosis = opened.diagnosis();
        self.held.borrow_mut().program = spec.executable.place();
        let files = output::begin(&self.directory(), spec.handshake.is_some());
        let files = files.map_err(|error| failed("open the output files", error.to_string()))?;
        let sockets = self.begin_sockets(&spec);
        let sockets =
            sockets.map_err(|error| failed("make the directory of its sockets", error.to_string()))?;
        let scan = spec.handshake.clone().map(|terms| HandshakeScan::new(terms, ScanLimits::default()));
        let reading = self.read(scan).map_err(|error| failed("read the output", error.to_string()))?;
        let Surroundings { owner, binder, control_groups, .. } = &*self.surroundings;
        let tag = self.record.tag;
        let group = (spec.reach == Reach::Everything).then(|| control_groups.group(tag)).flatten();
        let spawn = Spawn {
            name,
            tag,
            owner,
            spec: &spec,
            binder: binder.as_ref(),
            group: group.as_ref(),
            sockets: sockets.as_deref(),
            output: files,
        };
        let place = spec.executable.place();
        let mut owned = spawn.spawn(&opened).map_err(|error| error.explained(&diagnose(&place, [])))?;
        owned.contain(group);
        // From here on every return ends the process, since dropping it kills it.
        opened.check_unchanged().map_err(|source| LaunchError::Executable { name: name.clone(), source })?;
        let identity =
            owned.identify(false).map_err(|error| failed("identify the process", error.to_string()))?;
        if spec.handshake.is_none() {
            owned.leave_on_loss();
        }
        let (output, shaking) = reading;
        let mut held = self.held.borrow_mut();
        (held.owned, held.output, held.shaking) = (Some(owned), Some(Rc::new(output)), shaking);
        held.opened = spec.handshake.is_some().then_some(opened);
        Ok(identity)
    }

    fn read(&self, scan: Option<HandshakeScan>) -> std::io::Result<(Output, Option<PendingHandshake>)> {
        let Surroundings { watcher, plugin_log, .. } = &*self.surroundings;
        let reading = Reading {
            name: &self.record.name,
            directory: &self.directory(),
            positions: self.record.positions,
            kept: self.record.output_kept_bytes,
            watcher,
            plugin_log,
        };
        Output::open(&reading, scan)
    }

    /// Continues to read where an earlier owner stopped. A read error does not affect the process (LOG-04).
    fn read_on(&self) -> Option<Rc<Output>> {
        let read = self.read(None).inspect_err(|error| {
            tracing::warn!(process = %self.record.name, error = %error, "cannot continue to read the output of a process");
        });
        read.ok().map(|(output, _)| Rc::new(output))
    }

    async fn shake(self) -> ProcessOutcome {
        let shaking = self.held.borrow_mut().shaking.take();
        let shaken = match shaking {
            Some(shaking) => shaking.await,
            None => return std::future::pending().await,
        };
        let Ok(shaken) = shaken else {
            // The reader is dropped with the process; its end is reported separately.
            return std::future::pending().await;
        };
        let mut held = self.held.borrow_mut();
        let opened = held.opened.take();
        let unchanged = opened.map_or(Ok(()), |opened| opened.check_unchanged());
        let identity = held.owned.as_ref().and_then(|owned| owned.identify(true).ok());
        let shaken = match (shaken, unchanged) {
            (_, Err(error)) => Err(Why::Program(error)),
            (Err(error), Ok(())) => Err(Why::Handshake(error)),
            (Ok(handshake), Ok(())) => {
                sockets::placed(handshake, &self.surroundings.places(), &self.record.name)
                    .map_err(Why::Handshake)
            }
        };
        if shaken.is_ok()
            && let Some(owned) = &mut held.owned
        {
            owned.leave_on_loss();
            held.diagnosis.clear();
        }
        ProcessOutcome::Shaken(shaken, identity)
    }

    // === Leftovers of an earlier run ===

    async fn find(&self) -> Result<Findings, String> {
        let (tag, identity) = (self.record.tag, self.record.identity.as_ref());
        let (owner, directory) = (Arc::clone(&self.surroundings.owner), self.directory());
        let recorded = identity.cloned();
        let found = look::beside(move || look::find(&owner, tag, recorded.as_ref(), &directory)).await;
        let found = found.map_err(|error| error.to_string());
        let is_child = identity
            .and_then(|identity| Owned::candidate(identity.pid, tag, self.record.reach))
            .is_some_and(|candidate| candidate.is_child());
        found.map(|findings| Findings { is_child, ..findings })
    }

    /// Opens a file descriptor first and checks the identity again after that: from then on PID reuse is impossible.
    async fn adopt(&self) -> Result<bool, String> {
        let record = &self.record;
        let identity = record.identity.as_ref().ok_or("nothing is recorded of it")?;
        let mut owned = Owned::candidate(identity.pid, record.tag, record.reach).ok_or("it has ended")?;
        let findings = self.find().await?;
        match judge(record.tag, identity, &findings) {
            Verdict::Proven => {}
            Verdict::Ended => return Err("it has ended".to_owned()),
            Verdict::NotProven(reason) => return Err(reason),
        }
        owned.contain(self.surroundings.control_groups.existing(record.tag));
        let mut held = self.held.borrow_mut();
        (held.owned, held.output) = (Some(owned), self.read_on());
        Ok(findings.at_pid.is_some_and(|seen| !seen.is_zombie))
    }

    async fn end_left(self, proven: Vec<Seen>) -> ProcessOutcome {
        let ProcessRecord { tag, reach, identity, .. } = &*self.record;
        let group = identity.as_ref().map(|identity| identity.pid);
        let contained = self.surroundings.control_groups.existing(*tag);
        let left = owned::end_left(&proven, (*tag, &self.surroundings.owner), group, *reach, contained).await;
        if left > 0 {
            return ProcessOutcome::Left(left);
        }
        sockets::collect(&self.sockets());
        self.held.borrow_mut().output = self.read_on();
        let words = self.last_words().await;
        self.end_directory().await;
        ProcessOutcome::Cleared(Box::new(words))
    }

    // === Its end ===

    fn await_end(&self) -> LocalBoxFuture<'static, ProcessOutcome> {
        let ended = self.held.borrow().owned.as_ref().map(Owned::ended);
        match ended {
            Some(ended) => Box::pin(async move { ProcessOutcome::Ended(ended.await) }),
            None => Box::pin(std::future::pending()),
        }
    }

    async fn await_reading(self) -> ProcessOutcome {
        let output = self.held.borrow().output.clone();
        match output {
            Some(output) => {
                let (positions, dropped) = output.advanced().await;
                ProcessOutcome::Reading(positions, dropped)
            }
            None => std::future::pending().await,
        }
    }

    async fn clear(self) -> ProcessOutcome {
        let owned = self.held.borrow_mut().owned.take();
        if let Some(mut owned) = owned {
            let left = owned.clear().await;
            if left > 0 {
                self.held.borrow_mut().owned = Some(owned);
                return ProcessOutcome::Left(left);
            }
        }
        sockets::collect(&self.sockets());
        let words = self.last_words().await;
        self.end_directory().await;
        ProcessOutcome::Cleared(Box::new(words))
    }

    async fn let_go(self) -> ProcessOutcome {
        let output = self.held.borrow_mut().output.take();
        if let Some(owned) = &mut self.held.borrow_mut().owned {
            owned.leave_on_loss();
        }
        let Some(output) = output else { return ProcessOutcome::LetGo(self.record.positions) };
        output.close().await;
        ProcessOutcome::LetGo(output.positions())
    }

    async fn last_words(&self) -> LastWords {
        let output = self.held.borrow_mut().output.take();
        let mut diagnosis = std::mem::take(&mut self.held.borrow_mut().diagnosis);
        let Some(read) = output else { return LastWords { diagnosis, ..LastWords::default() } };
        read.close().await;
        let (output, errors) = read.last_lines();
        if !diagnosis.is_empty() {
            diagnosis.splice(..0, output::without_room(&self.directory()));
            let printed = output.iter().chain(&errors).map(String::as_str);
            let found = diagnose(&self.held.borrow().program, printed);
            diagnosis.extend(found.findings.iter().map(ToString::to_string));
        }
        LastWords { output, errors, panic: read.trace(), diagnosis }
    }
}
