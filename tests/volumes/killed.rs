//! Kills plugin and host with SIGKILL at random moments, one or both of them, while volumes are created, claimed, written, released and
//! deleted, again and again on one data directory, by several hosts side by side, each with its own. Every claim stays claimed and mounted,
//! every release is undone, no written line is lost, and nothing is left in the end (V1, V4, V5, V6, V7, V14).

mod books;
mod life;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use self::books::{Books, Workloads};
use crate::namespace::in_namespace;
use crate::node::{contents, nothing_is_left, plugin};
use crate::support::{LONG, Stage};

/// The number of rounds of an ordinary run, of all hosts together. A round lasts up to two seconds, and is mostly waiting.
const ROUNDS: u32 = 100;
/// The number of hosts that work side by side.
const HOSTS: u32 = 4;
const VOLUMES: [&str; 2] = ["data", "logs"];
const ALLOCATIONS: [&str; 3] = ["a", "b", "c"];

const DIRECTORY: &str = "CALLBOARD_TEST_VOLUMES";
const LIVING: &str = "CALLBOARD_TEST_LIVING";
const LIFE: &str = "CALLBOARD_TEST_LIFE";

/// Each volume with each of its short-lived allocations.
fn pairs() -> impl Iterator<Item = (&'static str, String)> {
    VOLUMES.into_iter().flat_map(|volume| ALLOCATIONS.map(|one| (volume, format!("{volume}-{one}"))))
}

/// The allocation that keeps a volume throughout the test.
fn keeper_of(volume: &str) -> String {
    format!("{volume}-keeper")
}

/// The number of lines of this text, if they are the numbers from one on.
fn every_number(text: &str) -> Option<u64> {
    let are_numbers = text.lines().zip(1..).all(|(line, number): (_, u64)| line == number.to_string());
    (are_numbers && (text.is_empty() || text.ends_with('\n'))).then(|| text.lines().count() as u64)
}

/// The minimum number of rounds: that of an ordinary run, or the number in `CALLBOARD_ROUNDS`.
fn rounds() -> u32 {
    std::env::var("CALLBOARD_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Plugin,
    Host,
}

const ORDERS: [&[Victim]; 4] =
    [&[Victim::Host], &[Victim::Plugin], &[Victim::Plugin, Victim::Host], &[Victim::Host, Victim::Plugin]];

/// The plugin, which survives a kill of the host.
struct Serving(Child);

impl Serving {
    fn begin(stage: &Stage, endpoint: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        command.args(["plugin", "hostpath"]).args(plugin(stage, "plugin").arguments.iter());
        command.env("CSI_ENDPOINT", endpoint).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One life of the host.
struct Life {
    process: Child,
    lines: Receiver<String>,
}

impl Life {
    fn begin(directory: &Path, number: u32, living: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed::life::a_host_that_works_until_it_is_killed", "--nocapture"]);
        command.env(DIRECTORY, directory).env(LIFE, number.to_string()).env(LIVING, living);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            // The test may have failed already.
            stdout.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        Self { process, lines }
    }

    /// Reads its reports until a line begins with this word.
    fn until(&self, word: &str, books: &mut Books) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG).unwrap_or_else(|_| panic!("{word} never comes"));
            books.hear(&line);
            if line.starts_with(word) {
                return line;
            }
        }
    }

    /// Sends it an event of its plugin.
    fn tell(&mut self, word: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{word}").unwrap();
    }

    /// Lets it work until it has reported this many lines, or for this time.
    fn work(&mut self, lines: usize, at_most: Duration, books: &mut Books) {
        let until = Instant::now() + at_most;
        for _ in 0..lines {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else { break };
            books.hear(&line);
        }
        assert_eq!(self.process.try_wait().unwrap(), None, "it has ended by itself");
    }

    /// Kills it, and reads its remaining reports.
    fn kill(mut self, books: &mut Books) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.iter().for_each(|line| books.hear(&line));
    }
}

/// The host, the plugin, and their history.
struct Play {
    stage: Stage,
    random: fastrand::Rng,
    books: Books,
    workloads: Workloads,
    life: Option<Life>,
    lives: u32,
    serving: Option<Serving>,
    endpoint: String,
}

impl Play {
    fn new(seed: u64) -> Self {
        Self {
            stage: Stage::new(),
            random: fastrand::Rng::with_seed(seed),
            books: Books::default(),
            workloads: Workloads::default(),
            life: None,
            lives: 0,
            serving: None,
            endpoint: String::new(),
        }
    }

    fn directory(&self) -> PathBuf {
        self.stage.data_dir().parent().unwrap().to_owned()
    }

    fn round(&mut self) {
        self.begin();
        self.work(60, Duration::from_secs(2));
        let order = ORDERS[self.random.usize(..ORDERS.len())];
        for victim in order {
            match victim {
                Victim::Plugin => self.serving = None,
                Victim::Host => {
                    let life = self.life.take().expect("it lives");
                    life.kill(&mut self.books);
                    self.books.note_mounts();
                }
            }
            // Or both are killed at once.
            if self.random.bool() {
                self.work(20, Duration::from_millis(200));
            }
        }
        self.books.check_files();
        self.workloads.go_on(&self.books);
    }

    /// Starts the killed processes.
    fn begin(&mut self) {
        if self.life.is_some() {
            self.begin_plugin_under_its_host();
            return;
        }
        let is_early = self.lives > 0 && self.random.bool();
        if is_early {
            self.serve();
        }
        self.lives += 1;
        let life = Life::begin(&self.directory(), self.lives, &self.books.living());
        let line = life.until("endpoint ", &mut self.books);
        self.endpoint = line.strip_prefix("endpoint ").unwrap().to_owned();
        self.serve();
        // Some hosts are killed while they start.
        if self.lives == 1 || self.random.bool() {
            life.until("ready", &mut self.books);
        }
        self.life = Some(life);
    }

    fn serve(&mut self) {
        self.serving.get_or_insert_with(|| Serving::begin(&self.stage, &self.endpoint));
    }

    /// The host is notified of the end and the start of the plugin's task, or the plugin is restarted within the task without notification.
    fn begin_plugin_under_its_host(&mut self) {
        let is_told = self.random.bool();
        if let Some(life) = self.life.as_mut().filter(|_| is_told) {
            life.tell("exited");
            life.tell("prepare");
            life.until("prepared", &mut self.books);
        }
        self.serve();
        if let Some(life) = self.life.as_mut().filter(|_| is_told) {
            life.tell("started");
        }
    }

    /// The living processes continue for a while.
    fn work(&mut self, lines: usize, at_most: Duration) {
        if let Some(life) = &mut self.life {
            life.work(self.random.usize(..lines), at_most, &mut self.books);
        }
        self.workloads.go_on(&self.books);
        // The pause ends somewhere between two lines.
        std::thread::sleep(Duration::from_micros(self.random.u64(..10_000)));
    }

    /// The last life, which undoes everything.
    fn end(mut self) {
        // Everything works again, and every volume is claimed.
        self.begin();
        let life = self.life.take().expect("it lives");
        while VOLUMES.iter().any(|volume| self.books.path_of_keeper(volume).is_none()) {
            life.until("claimed", &mut self.books);
        }
        life.until("deleted scratch", &mut self.books);
        self.workloads.go_on(&self.books);
        life.kill(&mut self.books);
        self.books.note_mounts();
        self.books.check_files();
        let lines = std::mem::take(&mut self.workloads).end();
        let mut last = Life::begin(&self.directory(), 0, "");
        last.until("done", &mut self.books);
        assert!(last.process.wait().unwrap().success());
        nothing_is_left(&self.stage);
        assert_eq!(contents(&self.stage), 0);
        for kind in ["volumes", "snapshots"] {
            let left = fs::read_dir(self.stage.path("volumes").join(kind)).map_or(0, Iterator::count);
            assert_eq!(left, 0, "{kind} are left");
        }
        eprintln!(
            "{} hosts; {} claims, {} releases, {} volumes deleted; {lines} lines of workloads that never stopped",
            self.lives + 1,
            self.books.times("claimed"),
            self.books.times("released"),
            self.books.times("deleted"),
        );
    }
}

#[test]
fn plugin_and_host_are_killed_again_and_again_and_no_claim_and_no_line_is_lost_v1_v4_v5_v7_v14_res_04_res_05()
{
    let name = "killed::plugin_and_host_are_killed_again_and_again_and_no_claim_and_no_line_is_lost_v1_v4_v5_v7_v14_res_04_res_05";
    in_namespace(name, async |_| {
        let (seed, rounds) = (fastrand::u64(..), rounds());
        eprintln!("seed {seed}, {rounds} rounds; CALLBOARD_ROUNDS sets how many");
        std::thread::scope(|scope| {
            for host in 0..HOSTS {
                scope.spawn(move || {
                    let mut play = Play::new(seed.wrapping_add(host.into()));
                    (0..rounds.div_ceil(HOSTS)).for_each(|_| play.round());
                    play.end();
                });
            }
        });
    });
}
