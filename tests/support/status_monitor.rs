//! Monitors the status that a running host reports of its plugins: requests it all the time, and before and after each answer checks
//! which plugin processes really exist. A claim that contradicts both checks is untrue if it is still made after its bound.

#![allow(dead_code, reason = "each test program uses another part of this")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{CALLBOARD, TIMEOUT, left, until_true};

/// How long a host may still report an outdated state of a process: that a killed process lives, or that an allocation serves that another
/// has replaced. The kernel reports a death at once; the identity of a new process takes a check of several calls.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// The minimum number of answers: a machine that hardly runs gives few in a long time, and time alone proves nothing about the host.
const ANSWERS: u32 = 5;
/// How long two rows may contradict each other: the parts of one answer are requested one after the other, so a change may happen between
/// them. The next answer must have it in both.
const NOT_AGAIN: Duration = Duration::ZERO;
/// The pause between two answers.
const PAUSE: Duration = Duration::from_millis(30);
/// The default name of the reference plugin.
const PROVIDER: &str = "hostpath.callboard.example";

/// How long a hung plugin may be reported as well.
#[derive(Clone, Copy)]
pub(crate) struct HangBounds {
    /// As healthy: one round, and one check that fails.
    pub(crate) healthy: Duration,
    /// As fit to take over: until its failures are no longer tolerated.
    pub(crate) ready: Duration,
}

/// A process of the reference plugin, and its identity by its arguments.
#[derive(Debug)]
pub(crate) struct PluginProcess {
    pub(crate) pid: u64,
    is_stopped: bool,
    name: String,
    version: Option<String>,
    node_id: Option<String>,
}

impl PluginProcess {
    /// An impostor cannot serve, nor can a plugin that does not know its node.
    fn can_serve(&self) -> bool {
        self.name == PROVIDER && self.node_id.as_deref() != Some("")
    }

    /// The allocation of the socket in its arguments, below this data directory, and its identity. `None` for any other process.
    fn read(pid: u64, state: char, data_dir: &Path) -> Option<(String, Self)> {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let arguments: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let has = |place: usize, word: &str| arguments.get(place).is_some_and(|argument| *argument == *word);
        if !(has(1, "plugin") && has(2, "hostpath")) {
            return None;
        }
        let value = |option: &str| {
            let place = arguments.iter().position(|argument| argument == option)?;
            Some(arguments.get(place + 1)?.clone().into_owned())
        };
        let endpoint = value("--endpoint")?;
        let below = data_dir.join("csi/plugins").display().to_string() + "/";
        let allocation = endpoint.split_once(&below)?.1.split('/').next()?.to_owned();
        let name = value("--name").unwrap_or_else(|| PROVIDER.to_owned());
        let (version, node_id) = (value("--plugin-version"), value("--node-id"));
        Some((allocation, Self { pid, is_stopped: state == 'T', name, version, node_id }))
    }
}

/// The processes that one check has found.
pub(crate) struct Ground {
    living: BTreeSet<u64>,
    /// By allocation.
    plugins: BTreeMap<String, PluginProcess>,
}

impl Ground {
    pub(crate) fn look(data_dir: &Path) -> Self {
        let mut ground = Self { living: BTreeSet::new(), plugins: BTreeMap::new() };
        for pid in left::processes(|_| true) {
            let Some(state) = state(pid).filter(|state| !"ZX".contains(*state)) else { continue };
            ground.living.insert(pid);
            ground.plugins.extend(PluginProcess::read(pid, state, data_dir));
        }
        ground
    }

    pub(crate) fn plugin(&self, allocation: &str) -> Option<&PluginProcess> {
        self.plugins.get(allocation)
    }

    fn of<'g>(&'g self, names: &'g BTreeSet<&str>) -> impl Iterator<Item = &'g PluginProcess> {
        names.iter().filter_map(|name| self.plugin(name))
    }
}

/// The state of a process, as a letter.
fn state(pid: u64) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Claims that contradict the processes, each with its bound: how long it may still be made.
type Untrue = BTreeMap<String, Duration>;

/// Compares one status with one check of the processes.
struct Comparison<'c> {
    status: &'c Value,
    ground: &'c Ground,
    bounds: HangBounds,
    untrue: Untrue,
}

impl<'c> Comparison<'c> {
    fn of(status: &'c Value, ground: &'c Ground, bounds: HangBounds) -> Untrue {
        let mut comparison = Self { status, ground, bounds, untrue: Untrue::new() };
        for row in list(status, "plugins") {
            comparison.plugin(row);
        }
        for row in list(status, "allocations") {
            comparison.allocation(row);
        }
        comparison.untrue
    }

    fn claim(&mut self, what: String, bound: Duration) {
        self.untrue.insert(what, bound);
    }

    fn plugin(&mut self, row: &Value) {
        let (health, active) = (&row["health"], row["active"].as_str());
        let what = format!("{} is {health} by {active:?}", row["name"]);
        if *health == "healthy" {
            match active {
                Some(allocation) => self.serves(&what, row, allocation),
                None => self.claim(what.clone(), NOT_AGAIN),
            }
        }
        if let Some(allocation) = active {
            let own = list(self.status, "allocations").find(|one| one["name"] == allocation);
            let own = own.map_or(&Value::Null, |one| &one["health"]);
            if (*own == "healthy") != (*health == "healthy") {
                self.claim(format!("{what}, and that allocation is {own}"), NOT_AGAIN);
            }
        }
        self.count(row);
        for registration in list(row, "registrations") {
            self.registration(row, registration);
        }
    }

    /// The allocation is claimed to be healthy: it must have a process that runs.
    fn runs(&mut self, what: &str, allocation: &str, hang: Duration) -> Option<&'c PluginProcess> {
        let process = self.ground.plugin(allocation);
        match process {
            None => self.claim(format!("{what}, which has no process"), SOON),
            Some(process) if process.is_stopped => self.claim(format!("{what}, which hangs"), hang),
            Some(process) if !process.can_serve() => {
                self.claim(format!("{what}, which is no such plugin"), SOON);
            }
            Some(_) => {}
        }
        process
    }

    /// The process of the active allocation must match the row.
    fn serves(&mut self, what: &str, row: &Value, allocation: &str) {
        let Some(process) = self.runs(what, allocation, self.bounds.healthy) else { return };
        let told = (&row["provider"], &row["version"], &row["node_id"]);
        let (name, version, node_id) = (&process.name, &process.version, &process.node_id);
        if told != (&json!(name), &json!(version), &json!(node_id)) {
            let told = format!("{what} as {told:?}, and its process is {name} {version:?} {node_id:?}");
            self.claim(told, SOON);
        }
    }

    /// No more can be healthy than exist.
    fn count(&mut self, row: &Value) {
        let of_it = list(self.status, "allocations").filter(|one| one["plugin"] == row["name"]);
        let names: BTreeSet<_> = of_it.filter_map(|one| one["name"].as_str()).collect();
        let healthy = row["healthy"].as_u64().expect("a number");
        let count = |is_it: fn(&PluginProcess) -> bool| {
            let count = self.ground.of(&names).filter(|process| is_it(process)).count();
            u64::try_from(count).expect("few")
        };
        let (living, running) = (count(|_| true), count(|process| !process.is_stopped));
        if healthy > living {
            self.claim(format!("{healthy} are healthy, and {living} live"), SOON);
        }
        if healthy > running {
            self.claim(format!("{healthy} are healthy, and {running} do not hang"), self.bounds.healthy);
        }
    }

    /// A ready standby must exist, and the active registration must be the allocation of the row.
    fn registration(&mut self, row: &Value, registration: &Value) {
        let name = registration["allocation"].as_str().expect("a name");
        let (standing, version) = (&registration["standing"], &registration["version"]);
        if *standing == "active" && row["active"] != name {
            self.claim(format!("{name} is registered as active, and {} is active", row["active"]), NOT_AGAIN);
        }
        if *standing == "standby" && registration["ready"] == true {
            let what = format!("standby {name} lacks nothing as {version}");
            let process = self.runs(&what, name, self.bounds.ready);
            if let Some(process) = process.filter(|process| json!(process.version) != *version) {
                self.claim(format!("{what}, and its process is {:?}", process.version), SOON);
            }
        }
    }

    fn allocation(&mut self, row: &Value) {
        let name = row["name"].as_str().expect("a name");
        let what = format!("allocation {name} is {} and {}", row["task"], row["health"]);
        if row["health"] == "healthy" {
            self.runs(&what, name, self.bounds.healthy);
        }
        if row["pid"].as_u64().is_some_and(|pid| !self.ground.living.contains(&pid)) {
            self.claim(format!("{what}, and its process is dead"), SOON);
        }
        let is_down = ["stopped", "waiting", "failed"].iter().any(|down| row["task"] == *down);
        if is_down && self.ground.plugin(name).is_some() {
            self.claim(format!("{what}, and its process lives"), SOON);
        }
    }
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().expect("a list").iter()
}

/// A claim that every check since this time has contradicted.
struct Standing {
    since: Instant,
    answers: u32,
}

/// The observations of a monitor.
pub(crate) struct Judge {
    bounds: HangBounds,
    /// The claims that are untrue now, but still within their bounds.
    standing: BTreeMap<String, Standing>,
    /// The claims that were made beyond their bounds, each with its answer.
    pub(crate) found: BTreeMap<String, Value>,
    answers: u32,
}

impl Judge {
    pub(crate) fn new(bounds: HangBounds) -> Self {
        Self { bounds, standing: BTreeMap::new(), found: BTreeMap::new(), answers: 0 }
    }

    /// Judges an answer that was requested at this time, between two checks.
    pub(crate) fn judge(&mut self, status: &Value, asked: Instant, looks: [&Ground; 2]) {
        self.answers += 1;
        let [before, after] = looks.map(|ground| Comparison::of(status, ground, self.bounds));
        self.standing.retain(|claim, _| before.contains_key(claim) && after.contains_key(claim));
        for (claim, bound) in before.into_iter().filter(|(claim, _)| after.contains_key(claim)) {
            let first = Standing { since: asked, answers: 0 };
            let standing = self.standing.entry(claim.clone()).or_insert(first);
            standing.answers += 1;
            let answers = if bound == NOT_AGAIN { 1 } else { ANSWERS };
            if asked.duration_since(standing.since) > bound && standing.answers > answers {
                self.found.entry(claim).or_insert_with_key(|claim| {
                    eprintln!("UNTRUE for more than {bound:?}: {claim}");
                    status.clone()
                });
            }
        }
    }

    /// Whether it has seen enough, and no claim is left that may still prove untrue.
    fn is_done(&self) -> bool {
        !self.found.is_empty() || (self.standing.is_empty() && self.answers > ANSWERS)
    }

    /// A host that does not run claims nothing.
    fn silence(&mut self) {
        self.standing.clear();
    }
}

/// A thread that requests the status all the time until it is ended.
pub(crate) struct StatusMonitor {
    is_over: Arc<AtomicBool>,
    /// The number of answers that left no open claim.
    settled: Arc<AtomicU64>,
    thread: Option<JoinHandle<Judge>>,
}

impl StatusMonitor {
    /// Monitors every host that runs on this data directory.
    pub(crate) fn of(data_dir: PathBuf, bounds: HangBounds) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let settled = Arc::new(AtomicU64::new(0));
        let (ends, settles) = (Arc::clone(&is_over), Arc::clone(&settled));
        let thread = std::thread::spawn(move || {
            let mut judge = Judge::new(bounds);
            loop {
                let answers = look(&data_dir, &mut judge);
                let is_done = judge.is_done() || !answers;
                if is_done {
                    settles.fetch_add(1, Ordering::SeqCst);
                }
                if is_done && ends.load(Ordering::SeqCst) {
                    return judge;
                }
                std::thread::sleep(PAUSE);
            }
        });
        Self { is_over, settled, thread: Some(thread) }
    }

    /// Waits until no claim is left that may still prove untrue: an earlier end of the test would hide it.
    pub(crate) fn settle(&self) {
        // One answer may have been requested already.
        let enough = self.settled.load(Ordering::SeqCst) + 2;
        until_true("all that is said is so, or found out", TIMEOUT, || {
            self.settled.load(Ordering::SeqCst) >= enough
        });
    }

    /// Ends the monitor, while the host still answers.
    ///
    /// # Panics
    /// If it has seen an untrue claim, or too few answers.
    pub(crate) fn end(mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let judge = self.thread.take().expect("it runs").join().expect("it only looks");
        assert!(judge.answers > ANSWERS, "it has seen too little: {} answers", judge.answers);
        assert!(judge.found.is_empty(), "untrue: {:#?}", judge.found);
    }
}

impl Drop for StatusMonitor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Judges one answer between two checks. Returns whether there was an answer.
fn look(data_dir: &Path, judge: &mut Judge) -> bool {
    let before = Ground::look(data_dir);
    let asked = Instant::now();
    let mut command = Command::new(CALLBOARD);
    command.args(["status", "--json", "--data-dir"]).arg(data_dir).stdin(Stdio::null());
    let answer = command.output().expect("it runs");
    let status = serde_json::from_slice(&answer.stdout);
    match &status {
        Ok(status) => judge.judge(status, asked, [&before, &Ground::look(data_dir)]),
        Err(_) => judge.silence(),
    }
    status.is_ok()
}
