//! Kills a host and its driver with SIGKILL at random moments, again and again on one data directory, while tasks run:
//! no process is left behind, no task runs twice, no event is lost or reported twice, and no foreign process is touched (PRC-01,
//! PRC-04, PRC-09, EVT-02, EVT-05).
//!
//! The host is a real `callboard run`, the driver a real `callboard plugin exec` that survives it. The tasks are this same
//! program: each holds a lock while it lives, to detect a second copy of itself, and records each of its starts. The events that the
//! host reports are compared with those that the driver has on disk.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard::actors::driver::Recent;
use callboard::actors::persister::{Options, Persister};
use callboard::actors::process::{FileId, Identity};
use callboard::actors::processes::{DurableRecords, ProcessesChange};
use callboard::actors::shell::{Database, Notices, Store, Ticket};
use callboard::actors::vocabulary::Timestamp;
use program::{Program, Stage, lives, until_true};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

/// The number of rounds; each kills something at a random moment.
const ROUNDS: u32 = 54;
/// Every how many rounds the test waits for everything before the kill.
const CALM_EVERY: u32 = 9;
/// In these rounds only the driver is killed, and the host restarts it after its pause.
const HOST_LIVES_ON: [u32; 2] = [17, 44];
/// Before these rounds the record of the driver's process is changed to point at a bystander.
const FORGED: [u32; 5] = [9, 18, 27, 36, 45];
/// More time than any step of this test takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

// === The tasks and the bystanders: this program again ===

const PLACE: &str = "CALLBOARD_TEST_PLACE";
const NAME: &str = "CALLBOARD_TEST_TASK";
const LIFE_MS: &str = "CALLBOARD_TEST_LIFE_MS";
const CODE: &str = "CALLBOARD_TEST_CODE";
/// The variable in the environment of everything that belongs to the test.
const MARK: &str = "CALLBOARD_TEST_MARK";

/// Not a test of its own: a task of the test below.
#[test]
fn a_task_of_the_workload() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let variable = |name| std::env::var(name).unwrap();
    let number = |name| variable(name).parse::<u64>().unwrap();
    let file = |end: &str| {
        let path = place.join(format!("{}.{end}", variable(NAME)));
        File::options().create(true).append(true).open(path).unwrap()
    };
    let lock = file("lock");
    let how = match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => "alone",
        Err(_) => "beside-another",
    };
    // In one write, so that a line is complete or absent.
    file("starts").write_all(format!("{} {how}\n", std::process::id()).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(number(LIFE_MS)));
    std::process::exit(i32::try_from(number(CODE)).unwrap());
}

/// Not a test of its own: an unrelated process that lives until its standard input ends.
#[test]
fn a_bystander() {
    if std::env::var_os("CALLBOARD_TEST_BYSTANDER").is_some() {
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }
}

struct Bystander(Child);

impl Bystander {
    /// Starts a bystander that leads a process group and has a name that is easily mistaken for the driver's.
    fn begin() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg0("callboard plugin exec").args(["--exact", "a_bystander"]).process_group(0);
        command.env("CALLBOARD_TEST_BYSTANDER", "yes").stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// The identity that a record of this process would have.
    fn identity(&self) -> Identity {
        use std::os::unix::fs::MetadataExt;
        let pid = self.0.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let started_ticks = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
        let program = fs::metadata(format!("/proc/{pid}/exe")).unwrap();
        Identity {
            pid,
            started_ticks: started_ticks.parse().unwrap(),
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned(),
            executable: Some(FileId { device: program.dev(), inode: program.ino() }),
        }
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// === The stage ===

/// The tasks: their names, how long each lives, and its exit code. A task that fails is started again.
const TASKS: [(&str, u64, u8); 5] = [
    ("steady-1", 600_000, 1),
    ("steady-2", 600_000, 1),
    ("failing", 150, 3),
    ("failing-slowly", 900, 4),
    ("brief", 400, 0),
];

struct Play {
    stage: Stage,
    mark: String,
}

impl Play {
    fn new(seed: u64) -> Self {
        let play = Self { stage: Stage::new(""), mark: format!("{seed:x}-{}", std::process::id()) };
        fs::create_dir(play.place()).unwrap();
        play.stage.configure(&play.configuration());
        play
    }

    fn configuration(&self) -> String {
        let mut text = format!(
            "[restart]\nattempts = 10000\nwindow = \"1m\"\ndelay = \"50ms\"\n\n\
             [[driver]]\nname = \"exec\"\nsurvives = true\nenv = {{ {MARK} = {:?} }}\n",
            self.mark
        );
        for (name, life_ms, code) in TASKS {
            text += &format!(
                "\n[[task]]\nname = {name:?}\ndriver = \"exec\"\n\
                 config = {{ command = {:?}, args = [\"--exact\", \"a_task_of_the_workload\"] }}\n\
                 env = {{ {MARK} = {:?}, {PLACE} = {:?}, {NAME} = {name:?}, {LIFE_MS} = \"{life_ms}\", {CODE} = \"{code}\" }}\n",
                std::env::current_exe().unwrap(),
                self.mark,
                self.place(),
            );
        }
        text
    }

    fn place(&self) -> PathBuf {
        self.stage.directory.path().join("place")
    }

    /// Every process of the test except the host: found by its mark, or, since supervisors of tasks have an empty environment, by the
    /// directory that they work for.
    fn processes(&self) -> BTreeMap<u32, String> {
        let (mark, directory) =
            (format!("{MARK}={}", self.mark), self.stage.data_dir().display().to_string());
        let mut found = BTreeMap::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let read = |name| fs::read(entry.path().join(name)).unwrap_or_default();
            let (environment, command) = (read("environ"), read("cmdline"));
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let is_marked = environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
            if (is_marked || command.contains(&directory)) && lives(u64::from(pid)) {
                found.insert(pid, command);
            }
        }
        found
    }

    fn drivers(&self) -> Vec<u32> {
        let is_driver = |command: &str| command.contains(" plugin exec ");
        self.processes().into_iter().filter(|(_, command)| is_driver(command)).map(|(pid, _)| pid).collect()
    }

    /// Kills the driver, if there is one. It is checked again after its pidfd is open, so that no other process is hit.
    fn kill_driver(&self) -> bool {
        let mut is_killed = false;
        for pid in self.drivers() {
            let number = Pid::from_raw(pid.cast_signed()).unwrap();
            let Ok(descriptor) = pidfd_open(number, PidfdFlags::empty()) else { continue };
            if self.drivers().contains(&pid) {
                is_killed |= pidfd_send_signal(&descriptor, Signal::KILL).is_ok();
            }
        }
        is_killed
    }

    /// Makes the record of the driver's process point at another process: the whole identity, or only the number. Returns whether there
    /// was a record.
    fn forge(&self, identity: Identity, whole: bool) -> bool {
        actix::System::new().block_on(async {
            let persister = Persister::open(Options::new(self.stage.data_dir())).await.unwrap();
            let mut records = DurableRecords::new(&Database::opened(persister.clone(), Notices::default()));
            let mut found = records.load().await.unwrap();
            found.retain(|record| record.identity.is_some());
            for record in &mut found {
                let real = record.identity.as_mut().unwrap();
                if whole { *real = identity.clone() } else { real.pid = identity.pid }
            }
            let is_forged = !found.is_empty();
            records.write(Ticket { epoch: 1, sequence: 1 }, ProcessesChange::Keep(found));
            persister.close().await.unwrap();
            is_forged
        })
    }

    /// Every start of a task, as its process.
    fn starts(&self, name: &str) -> Vec<u64> {
        let text = fs::read_to_string(self.place().join(format!("{name}.starts"))).unwrap_or_default();
        let start = |line: &str| {
            let (pid, how) = line.split_once(' ').unwrap();
            assert_eq!(how, "alone", "{name} was started while it ran");
            pid.parse().unwrap()
        };
        text.lines().map(start).collect()
    }

    /// The events of the driver as it has them on disk.
    fn journal(&self) -> Vec<Said> {
        let text = fs::read_to_string(self.stage.data_dir().join("drivers/exec/events")).unwrap();
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).map(Said::of).collect()
    }
}

impl Drop for Play {
    /// Kills everything that is left, also after a failure.
    fn drop(&mut self) {
        for pid in self.processes().keys() {
            let descriptor = Pid::from_raw(pid.cast_signed()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
            if let Some(Ok(descriptor)) = descriptor {
                let _ = pidfd_send_signal(&descriptor, Signal::KILL);
            }
        }
    }
}

/// One event as the driver stores it.
#[derive(Debug)]
struct Said {
    sequence: u64,
    id: String,
    name: String,
    kind: String,
    message: String,
}

impl Said {
    fn of(line: Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            sequence: line["sequence"].as_u64().unwrap(),
            id: text(&line["task_id"]),
            name: text(&line["task_name"]),
            kind: text(&line["annotations"]["kind"]),
            message: text(&line["message"]),
        }
    }

    /// The process of the task, from the text that reports a start or a recovery.
    fn pid(&self) -> Option<u64> {
        self.message.rsplit_once(", process ")?.1.parse().ok()
    }
}

fn task<'v>(status: &'v Value, name: &str) -> &'v Value {
    status["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name).unwrap_or(&Value::Null)
}

/// Whether everything is in its final state, as when no process is killed.
fn is_well(status: &Value) -> bool {
    let driver = &status["drivers"][0];
    let steady = ["steady-1", "steady-2"].iter().all(|name| task(status, name)["state"] == "running");
    driver["health"] == "healthy" && steady && task(status, "brief")["state"] == "ended"
}

// === Invariants ===

/// No event is lost or doubled: the host received for each task exactly what the driver has on disk, without a gap.
fn compare_events(play: &Play, host: &Program<'_>) {
    let has_heard_all = |status: &Value| {
        let journal = play.journal();
        TASKS.iter().all(|(name, ..)| {
            let count = journal.iter().filter(|said| said.name == *name).count();
            task(status, name)["events_told"].as_u64().unwrap() >= count as u64
        })
    };
    let status = host.until("every event at its task", has_heard_all);
    let journal = play.journal();
    for (place, said) in journal.iter().enumerate() {
        assert_eq!(said.sequence, place as u64 + 1, "the numbers of one stream have no gap: {said:?}");
    }
    for (name, ..) in TASKS {
        let task = task(&status, name);
        let mut expected = Recent::default();
        let of_task: Vec<_> = journal.iter().filter(|said| said.name == name).collect();
        of_task.iter().for_each(|said| expected.add(Timestamp::default(), &said.message));
        let expected: Vec<_> = expected.entries().iter().map(|one| (one.text.clone(), one.count)).collect();
        let told = task["events"].as_array().unwrap().iter();
        let told: Vec<_> = told
            .map(|event| (event["text"].as_str().unwrap().to_owned(), event["count"].as_u64().unwrap()))
            .collect();
        assert_eq!(told, expected, "the events of {name}");
        let counts = (task["events_told"].as_u64().unwrap(), task["events_missed"].as_u64().unwrap());
        assert_eq!(counts, (of_task.len() as u64, 0), "{name}: told and missed");
    }
}

/// No run was started twice, and none ended twice. Returns the number of starts.
fn compare_starts(play: &Play) -> usize {
    let journal = play.journal();
    let mut count = 0;
    for (name, ..) in TASKS {
        let mut pids: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for said in journal.iter().filter(|said| said.name == name) {
            pids.entry(&said.id).or_default().extend(said.pid());
        }
        for (id, pids) in &pids {
            assert_eq!(pids.len(), 1, "one run is one process: {id} was {pids:?}");
            let told = |kind: &str| journal.iter().filter(|said| said.id == *id && said.kind == kind).count();
            assert!(told("started") <= 1 && told("exited") <= 1, "{id} was told twice: {journal:#?}");
        }
        let mut runs: Vec<u64> = pids.values().flatten().copied().collect();
        let starts = play.starts(name);
        for start in &starts {
            let place = runs.iter().position(|pid| pid == start);
            let place =
                place.unwrap_or_else(|| panic!("{name} was started as {start}, and that was not intended"));
            runs.swap_remove(place);
        }
        count += starts.len();
    }
    let brief = journal.iter().filter(|said| said.name == "brief" && said.message == "exited with code 0");
    assert_eq!(brief.count(), 1, "what succeeded is not done again (EVT-05)");
    count
}

// === The story ===

/// PRC-01, PRC-04, PRC-09, EVT-02, EVT-05.
#[test]
fn tasks_go_on_while_host_and_driver_are_killed_at_random_moments_prc_04_prc_09_evt_02_evt_05() {
    let seed =
        std::env::var("CALLBOARD_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CALLBOARD_SEED={seed} repeats this");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bystanders = [Bystander::begin(), Bystander::begin()];
    let play = Play::new(seed);
    let began = Instant::now();
    let first = play.stage.run();
    first.until("a first calm", is_well);
    first.kill();
    let usual = began.elapsed().min(Duration::from_secs(2));
    let (mut drivers_killed, mut forged) = (0, 0);
    for round in 0..ROUNDS {
        if FORGED.contains(&round) {
            let identity = bystanders[1].identity();
            forged += u32::from(play.forge(identity, random.bool()));
        }
        let host = if round % CALM_EVERY == CALM_EVERY - 1 {
            let host = play.stage.run();
            host.until("a calm", is_well);
            host
        } else {
            play.stage.begin()
        };
        std::thread::sleep(usual.mul_f64(random.f64()));
        if HOST_LIVES_ON.contains(&round) {
            let before = play.drivers();
            drivers_killed += u32::from(play.kill_driver());
            until_true("another driver", LONG, || play.drivers().iter().any(|pid| !before.contains(pid)));
            host.until("a calm after the driver was killed", is_well);
        }
        let pause = Duration::from_micros(random.u64(..300_000));
        match random.u8(..4) {
            0 => host.kill(),
            1 => {
                host.kill();
                drivers_killed += u32::from(play.kill_driver());
            }
            2 => {
                drivers_killed += u32::from(play.kill_driver());
                std::thread::sleep(pause);
                host.kill();
            }
            _ => {
                drivers_killed += u32::from(play.kill_driver());
                host.kill();
            }
        }
        for bystander in &mut bystanders {
            assert!(!bystander.has_ended(), "a bystander has ended in round {round} (PRC-01)");
        }
        TASKS.iter().for_each(|(name, ..)| drop(play.starts(name)));
    }
    end(&play);
    for bystander in &mut bystanders {
        assert!(!bystander.has_ended(), "a bystander has ended (PRC-01)");
    }
    let (starts, events) = (compare_starts(&play), play.journal().len());
    println!(
        "{ROUNDS} hosts and {drivers_killed} drivers killed, {forged} records forged; {starts} starts of tasks, {events} \
         events; {:.1} s",
        began.elapsed().as_secs_f64()
    );
    assert!(drivers_killed >= ROUNDS / 4 && forged > 0, "{drivers_killed} {forged}");
}

/// The last host finds everything again and stops it in order; nothing is left.
fn end(play: &Play) {
    let host = play.stage.run();
    host.until("the last calm", is_well);
    for (name, ..) in TASKS {
        // A task that has ended by itself, or waits to be started again, need not be stopped.
        let stopped = host.ask(&["stop", name]);
        if !stopped.status.success() {
            let (_, said) = program::refusal(&stopped);
            assert!(said.contains("does not run"), "{said}");
        }
    }
    compare_events(play, &host);
    host.json(&["shutdown"]);
    let (status, _) = host.ended();
    assert!(status.success(), "{status}");
    until_true("nothing left", LONG, || {
        let left = play.processes();
        left.is_empty() || {
            println!("still there: {left:?}");
            false
        }
    });
    let sockets = sockets(&play.stage.data_dir());
    assert!(sockets.is_empty(), "left behind: {sockets:?}");
}

fn sockets(directory: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(sockets(&entry.path()));
        } else if kind.is_socket() {
            found.push(entry.path());
        }
    }
    found
}
