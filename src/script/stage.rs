//! The stage of one script: a runtime whose clock stands still unless the script lets time pass, the host that runs on it, its disk, and
//! its plugins.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::TaskKey;
use callboard_actors::driver::client::{ExecInput, NetworkIsolation, TaskHandle};
use callboard_actors::lease::Lease;
use callboard_actors::persister::{MemoryDisk, OpenError};
use callboard_actors::registry::Register;
use callboard_actors::shell::{AskError, Clock, Drills, FeedItem, Notice, Notices, Subscription};
use callboard_actors::vocabulary::{AllocationId, DriverName, SocketPath, Timestamp};
use futures_util::FutureExt;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::LocalSet;

use super::driver_world::DriverWorld;
use super::plugin::{Plugin, Serving};
use super::readers::Readers;
use super::record::Record;
use super::socket_names::SocketNames;
use super::storage::Storage;
use super::words::Mistake;
use crate::host::{Host, StartError};
use crate::launch::{AnyPart, Options, launch};
use crate::picture::{Arrow, Mark};
use crate::timeline::{Played, message};

/// The time that every clock of a script shows at the beginning.
const BEGINNING: Duration = Duration::from_secs(1_700_000_000);
/// The virtual time in which everything that can happen at once happens. No timer of an actor is as short.
const INSTANT: Duration = Duration::from_millis(1);
/// The displayed path of the script's own directory.
const DIRECTORY_SHOWN: &str = "/stage";

/// A run of the host: everything it has spawned ends when this is dropped.
struct Run {
    tasks: LocalSet,
    host: Host,
}

/// The requests without an answer so far, by number, each with whether the script has shown it as waiting.
type Waiting = Rc<RefCell<BTreeMap<u64, bool>>>;

/// A plugin in a script.
pub(super) struct Performer {
    pub(super) plugin: Plugin,
    pub(super) serving: Option<Serving>,
}

/// Everything that a verb can act on.
pub struct Stage {
    // The run is dropped before the runtime, and the directory last.
    run: Option<Run>,
    pub(super) performers: BTreeMap<AllocationId, Performer>,
    pub(super) storage: Storage,
    socket_names: SocketNames,
    pub(super) drivers: DriverWorld,
    pub(super) readers: Readers,
    pub(super) sockets: Rc<RefCell<BTreeMap<AllocationId, SocketPath>>>,
    pub(super) registered: BTreeMap<AllocationId, Register>,
    /// The handles of tasks, as a host program stores them.
    pub(super) handles: Rc<RefCell<BTreeMap<TaskKey, TaskHandle>>>,
    /// The data about networks, as a host program keeps it.
    pub(super) networks: Rc<RefCell<BTreeMap<(DriverName, AllocationId), NetworkIsolation>>>,
    /// The leases that the script holds, by the names in the script.
    pub(super) leases: Rc<RefCell<BTreeMap<String, Lease>>>,
    /// The commands with streamed input and output, by the names in the script.
    pub(super) sessions: BTreeMap<String, UnboundedSender<ExecInput>>,
    pub(super) drills: Drills,
    pub(super) record: Record,
    pub(super) disk: MemoryDisk,
    /// How many syncs of the disk the script has shown.
    pub(super) syncs_told: u64,
    pub(super) options: Options,
    notices: Option<Subscription<Notice, Vec<Notice>>>,
    line: String,
    /// Whether messages are sent without any processing in between.
    is_held: bool,
    asked: u64,
    waiting: Waiting,
    runtime: Runtime,
    directory: TempDir,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("runs", &self.run.is_some()).finish_non_exhaustive()
    }
}

impl Stage {
    /// An empty stage. Its host will have these parts of a host program.
    pub(super) fn open(parts: Vec<AnyPart>) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
        // Socket paths must be short, and the usual directory for temporary files may be long.
        let directory =
            tempfile::Builder::new().prefix("cb").tempdir_in("/tmp").or_else(|_| tempfile::tempdir())?;
        std::fs::create_dir(directory.path().join("sockets"))?;
        std::fs::create_dir(directory.path().join("run"))?;
        let socket_names = SocketNames::below(&directory.path().join("sockets"))?;
        let beginning = Timestamp::from_epoch(BEGINNING);
        let (record, clock) =
            runtime.block_on(async { (Record::begin(beginning), Clock::starting_at(beginning)) });
        let disk = MemoryDisk::default();
        let drivers = DriverWorld::new(directory.path().join("sockets"));
        let (drills, storage) = (Drills::default(), Storage::default());
        let options = Options {
            runtime_dir: Some(directory.path().join("run")),
            clock: Some(clock),
            seed: Some(7),
            disk: Some(disk.clone()),
            journal: record.journal(),
            drills: Some(drills.clone()),
            process_owners: Some(drivers.owners()),
            mounts: Some(Arc::new(storage.mounts().clone())),
            parts,
            ..Options::new(directory.path().join("data"))
        };
        Ok(Self {
            run: None,
            performers: BTreeMap::new(),
            storage,
            socket_names,
            drivers,
            readers: Readers::default(),
            sockets: Rc::default(),
            registered: BTreeMap::new(),
            handles: Rc::default(),
            networks: Rc::default(),
            leases: Rc::default(),
            sessions: BTreeMap::new(),
            drills,
            record,
            disk,
            syncs_told: 0,
            options,
            notices: None,
            line: String::new(),
            is_held: false,
            asked: 0,
            waiting: Waiting::default(),
            runtime,
            directory,
        })
    }

    // === The host ===

    /// The running host.
    ///
    /// # Errors
    /// When no host runs.
    pub fn host(&self) -> Result<Host, Mistake> {
        let run = self.run.as_ref().ok_or_else(|| Mistake::new("no host runs; say `host start` before"))?;
        Ok(run.host.clone())
    }

    /// Starts a host on the data directory of the script, as a new process would.
    pub(super) fn start_host(&mut self) -> String {
        self.run = None;
        self.record.in_picture(Played::host_starts);
        let tasks = LocalSet::new();
        let notices = Notices::default();
        // Notices during its start are shown as well.
        self.notices = Some(notices.subscribe());
        let options = Options { notices, ..self.options.clone() };
        match self.runtime.block_on(tasks.run_until(launch(options))) {
            Ok(host) => {
                let run = host.run_number();
                self.run = Some(Run { tasks, host });
                format!("run {run} has started")
            }
            Err(error) => format!("the host did not start: {error}"),
        }
    }

    /// Whether a host runs that has not ended.
    pub(super) fn database_is_open(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.host.ended().now_or_never().is_none())
    }

    /// Tries to start a second host on the data directory of the running host, and reports the result.
    pub(super) fn start_beside(&mut self) -> Result<String, Mistake> {
        if !self.database_is_open() {
            return Err(Mistake::new(
                "no host runs beside which another could start; say `host start` before",
            ));
        }
        let options = Options { notices: Notices::default(), ..self.options.clone() };
        Ok(match self.run(launch(options)) {
            Ok(second) => format!("run {} has started beside the first", second.run_number()),
            Err(StartError::Database(OpenError::Locked { holder, .. }))
                if holder.pid == Some(std::process::id()) =>
            {
                "the host did not start: the first one uses this data directory".to_owned()
            }
            Err(error) => format!("the host did not start: {error}"),
        })
    }

    /// Ends the host as SIGKILL would: nothing of it runs afterwards, and nothing was shut down in order. Plugins continue.
    pub(super) fn kill_host(&mut self) -> Result<(), Mistake> {
        self.host()?;
        self.run = None;
        self.readers = Readers::default();
        self.sessions.clear();
        for number in std::mem::take(&mut *self.waiting.borrow_mut()).into_keys() {
            self.record.answer(format!("[{number}] will never be answered"));
        }
        // The operations of its last commit end before another process may open the database.
        self.settle();
        self.record.in_picture(Played::host_is_killed);
        Ok(())
    }

    // === Playing ===

    /// The runtime, to be entered while a line is played, so that all code sees the script's clock.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Begins a line of the script.
    pub(super) fn begin_line(&mut self, line: String) {
        self.line = line;
    }

    /// Suspends the processing of the following messages, or resumes it.
    pub(super) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Checks that processing is not suspended.
    pub(super) fn check_not_held(&self) -> Result<(), Mistake> {
        if self.is_held {
            Err(Mistake::new("nothing happens after `together`; say `go` before"))
        } else {
            Ok(())
        }
    }

    /// Runs a future to its end, among the tasks of the host if there is one. The script's time passes if the future waits.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        match &self.run {
            Some(run) => self.runtime.block_on(run.tasks.run_until(future)),
            None => self.runtime.block_on(future),
        }
    }

    /// Sends a request whose answer may arrive later: the answer is shown when it arrives, with a number if that is not at once.
    ///
    /// `of` is the receiver, for pictures: `registry`, `allocation red`.
    pub fn ask<T, F>(&mut self, of: &str, question: F, tell: impl FnOnce(T) -> String + 'static)
    where
        F: Future<Output = Result<T, AskError>> + 'static,
    {
        self.asked += 1;
        let (number, of) = (self.asked, of.to_owned());
        self.waiting.borrow_mut().insert(number, false);
        self.record.draw(message("host", &of, &self.line, Arrow::Said));
        let (record, waiting) = (self.record.clone(), Rc::clone(&self.waiting));
        let task = async move {
            let text = match question.await {
                Ok(answer) => tell(answer),
                Err(error) => error.to_string(),
            };
            let is_told = waiting.borrow_mut().remove(&number).unwrap_or_default();
            record.draw(message(&of, "host", text.lines().next().unwrap_or_default(), Arrow::Answered));
            record.answer(if is_told { format!("[{number}] {text}") } else { text });
        };
        match &self.run {
            Some(run) => drop(run.tasks.spawn_local(task)),
            None => self.runtime.block_on(task),
        }
    }

    /// Lets the script's time pass.
    pub fn pass(&self, span: Duration) {
        self.record.draw(Mark::Pause(format!("{span:?} later")));
        self.run(tokio::time::sleep(span));
    }

    /// How long the script has been played, in virtual time.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.record.elapsed()
    }

    /// Lets everything happen that can happen now.
    pub fn settle(&self) {
        self.run(tokio::time::sleep(INSTANT));
    }

    /// Records a line of news, under the name of its source: `registry`, `instances`, `inventory`, `allocations`, `host` or `notices`.
    pub fn say(&self, voice: &str, text: &str) {
        self.record.say(voice, text);
    }

    /// Ends a line of the script, and returns all its responses.
    pub(super) fn end_line(&mut self, time: Option<Duration>) -> String {
        if self.is_held {
            return self.handed_in("is in the mailbox").join("\n");
        }
        self.settle();
        self.hear_notices();
        let mut lines = self.handed_in("has no answer yet");
        for (at, text) in self.record.take(time.is_some()) {
            let text = self.masked(&text);
            match time {
                Some(began) => {
                    lines.push(format!("{:+.1}s {text}", at.saturating_sub(began).as_secs_f64()));
                }
                None => lines.push(text),
            }
        }
        lines.join("\n")
    }

    /// The waiting requests that the script has not shown yet.
    fn handed_in(&self, what: &str) -> Vec<String> {
        let mut waiting = self.waiting.borrow_mut();
        let untold = waiting.iter_mut().filter(|(_, is_told)| !**is_told);
        let told = untold.map(|(number, is_told)| {
            *is_told = true;
            format!("[{number}] {what}")
        });
        told.collect()
    }

    fn hear_notices(&mut self) {
        let Some(notices) = &mut self.notices else { return };
        while let Some(item) = notices.try_next() {
            if let FeedItem::Change { news, .. } = item {
                match news {
                    // The journal has reported these.
                    Notice::Crashed { .. } | Notice::WriteFailed { .. } => {}
                    Notice::LoadFailed { .. }
                    | Notice::DeadLetter { .. }
                    | Notice::Lagged { .. }
                    | Notice::Quarantined { .. } => self.record.say("notices", &news.to_string()),
                }
            }
        }
    }

    // === Directories ===

    /// The directory of this script alone. In shown texts it is called `/stage`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The socket of an allocation: the path that the host assigned if the allocation was prepared, else a path of the script.
    pub(super) fn socket_of(&self, allocation: &AllocationId) -> PathBuf {
        match self.sockets.borrow().get(allocation) {
            Some(socket) => socket.as_path().to_owned(),
            None => self.socket_names.path_of(allocation),
        }
    }

    /// The shown form of a line, without the parts that differ between runs.
    pub(super) fn masked(&self, text: &str) -> String {
        match self.directory.path().to_str() {
            Some(directory) => text.replace(directory, DIRECTORY_SHOWN),
            None => text.to_owned(),
        }
    }

    /// All marks that were drawn.
    pub(super) fn marks(&self) -> Vec<Mark> {
        self.record.marks(|text| self.masked(text))
    }
}

impl Drop for Stage {
    /// Enters the runtime, since dropped values may need it.
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        self.run = None;
        self.performers.clear();
    }
}
