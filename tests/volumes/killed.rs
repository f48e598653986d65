//! A host process is killed with SIGKILL at random moments while it claims and releases, again and again on one data directory. What was
//! claimed stays claimed and mounted, what was released is undone, and nothing is left in the end (V1, V5, V14).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use callboard::actors::allocations::{AdoptAllocation, PrepareAllocation, TaskStarted};
use callboard::actors::mounts::{MountId, mounts_of_this_process};
use callboard::actors::volumes::{ConfirmClaims, ListVolumes};
use callboard::host::Host;
use futures_util::future::join_all;

use crate::namespace::{block_on, in_namespace};
use crate::node::{claim, contents, create, delete, key, nothing_is_left, plugin, refined, release};
use crate::support::{self, LONG, PAUSE, Stage, id};

/// How often the host is killed.
const KILLED: u32 = 12;
const VOLUMES: [&str; 2] = ["data", "logs"];
const ALLOCATIONS: [&str; 3] = ["a", "b", "c"];

const DIRECTORY: &str = "CALLBOARD_TEST_VOLUMES";
const LIVING: &str = "CALLBOARD_TEST_LIVING";
const LIFE: &str = "CALLBOARD_TEST_LIFE";

// === The host that is killed ===

/// Not a story of its own: one life of the host in the next one, in a process that is killed. In life 0 it ends in order.
#[test]
fn a_host_that_claims_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let life: u32 = std::env::var(LIFE).unwrap().parse().unwrap();
    let living = std::env::var(LIVING).unwrap();
    let living: Vec<&str> = living.split_whitespace().collect();
    block_on(async {
        let builder = Host::builder(directory.join("data")).runtime_dir(&directory);
        let builder = builder.instances(support::instances()).allocation(support::allocation());
        let host = refined(builder.registry(support::registry())).start_on_own_thread().await.unwrap();
        take_plugin(&host, life).await;
        for volume in VOLUMES.into_iter().filter(|_| life == 1) {
            create(&host, volume).await;
        }
        let confirmed = ConfirmClaims {
            living: living.iter().map(|allocation| id(allocation)).collect(),
            unclear: [].into(),
        };
        host.volumes().ask(confirmed).await.unwrap();
        say("ready");
        if life > 0 {
            join_all(pairs().map(|pair| claim_and_release(&host, pair, &living))).await;
        }
        while host.volumes().ask(ListVolumes).await.unwrap().iter().any(|volume| volume.status.is_some()) {
            tokio::time::sleep(PAUSE).await;
        }
        for volume in VOLUMES {
            delete(&host, &key(volume)).await;
        }
        let report = host.stop().await;
        assert_eq!(report.not_in_order().count(), 0, "{report:?}");
        say("done");
    });
}

/// Its plugin is started by the test in the first life, and goes on when the host is killed.
async fn take_plugin(host: &Host, life: u32) {
    let stage = Stage::new();
    let spec = plugin(&stage, "plugin").spec.clone();
    let allocation = spec.allocation.clone();
    let context = match life {
        1 => host.allocations().ask(PrepareAllocation { spec }).await.unwrap().unwrap(),
        _ => host.allocations().ask(AdoptAllocation { spec }).await.unwrap().unwrap(),
    };
    say(&format!("endpoint {}", context.environment["CSI_ENDPOINT"]));
    host.allocations().ask(TaskStarted { allocation }).await.unwrap().unwrap();
}

/// Each volume with each of its allocations.
fn pairs() -> impl Iterator<Item = (&'static str, String)> {
    VOLUMES.into_iter().flat_map(|volume| ALLOCATIONS.map(|one| (volume, format!("{volume}-{one}"))))
}

async fn claim_and_release(host: &Host, (volume, allocation): (&str, String), living: &[&str]) {
    let mut is_kept = living.contains(&&*allocation);
    let volume_key = key(volume);
    loop {
        say(&format!("claiming {allocation}"));
        let claimed = match claim(host, &volume_key, &allocation, false).await {
            Ok(claimed) => claimed,
            // What it held in an earlier life is being undone.
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let file = claimed.path.join(&allocation);
        // What was written before the host was killed is there.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        say(&format!("claimed {allocation} {is_kept} {} {text}", claimed.path.display()));
        is_kept = false;
        // Once: a host that is killed while it writes leaves an empty file.
        if text.is_empty() {
            std::fs::write(&file, &allocation).unwrap();
        }
        say(&format!("written {allocation}"));
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..40))).await;
        say(&format!("releasing {allocation}"));
        release(host, &volume_key, &allocation).await;
        say(&format!("released {allocation}"));
    }
}

/// Says a line to the test, in one piece, as soon as it is true.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

// === The test ===

/// An allocation, as far as the host has told.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Whether its processes live: it may have claimed, and has not said that it releases.
    lives: bool,
    is_written: bool,
    /// Where it found its volume, and the mount there when the host was killed.
    found: Option<(PathBuf, Option<MountId>)>,
}

#[derive(Debug, Default)]
struct Books(BTreeMap<String, Known>);

impl Books {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [verb, allocation, rest @ ..] = words.as_slice() else { return };
        let known = self.0.entry((*allocation).to_owned()).or_default();
        match (*verb, rest) {
            ("claiming", []) => known.lives = true,
            ("claimed", [is_kept, path, text]) => {
                if known.is_written {
                    assert_eq!(text, allocation, "what was written is there");
                }
                let path = PathBuf::from(path);
                if let Some((before, Some(mount))) = known.found.take().filter(|_| *is_kept == "true") {
                    assert_eq!(before, path, "its path stays");
                    assert_eq!(mount_at(&path), Some(mount), "its mount stays");
                }
                known.found = Some((path, None));
            }
            ("written", []) => known.is_written = true,
            ("releasing", []) => known.lives = false,
            ("released", []) => known.found = None,
            _ => {}
        }
    }

    /// The host was killed.
    fn note_mounts(&mut self) {
        for known in self.0.values_mut() {
            known.found = known.found.take().filter(|_| known.lives).map(|(path, _)| {
                let mount = mount_at(&path);
                assert!(mount.is_some(), "{} is claimed, and not mounted", path.display());
                (path, mount)
            });
        }
    }

    fn living(&self) -> String {
        let living = self.0.iter().filter(|(_, known)| known.lives).map(|(id, _)| id.as_str());
        living.collect::<Vec<_>>().join(" ")
    }
}

fn mount_at(path: &Path) -> Option<MountId> {
    mounts_of_this_process().expect("it can be read").mounted_at(path).map(|mount| mount.id)
}

/// The plugin, which goes on while hosts come and go.
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
        // It may have ended.
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
        command.args(["--exact", "killed::a_host_that_claims_until_it_is_killed", "--nocapture"]);
        command.env(DIRECTORY, directory).env(LIFE, number.to_string()).env(LIVING, living);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            // The test may have failed already.
            stdout.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        Self { process, lines }
    }

    /// Hears what it says until a line begins so.
    fn until(&self, word: &str, books: &mut Books) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG).unwrap_or_else(|_| panic!("{word} never comes"));
            books.hear(&line);
            if line.starts_with(word) {
                return line;
            }
        }
    }

    /// Lets it work for so long, kills it, and hears the rest.
    fn kill(mut self, after: Duration, books: &mut Books) {
        let until = Instant::now() + after;
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            books.hear(&line);
        }
        assert_eq!(self.process.try_wait().unwrap(), None, "it has ended by itself");
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.iter().for_each(|line| books.hear(&line));
    }
}

#[test]
fn a_host_that_is_killed_again_and_again_keeps_every_claim_and_leaves_nothing_v1_v5_v14_res_04() {
    let name =
        "killed::a_host_that_is_killed_again_and_again_keeps_every_claim_and_leaves_nothing_v1_v5_v14_res_04";
    in_namespace(name, async |_| {
        let seed = fastrand::u64(..);
        eprintln!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let stage = Stage::new();
        let directory = stage.data_dir().parent().unwrap().to_owned();
        let mut books = Books::default();
        let mut serving = None;
        for number in 1..=KILLED {
            let life = Life::begin(&directory, number, &books.living());
            let line = life.until("endpoint ", &mut books);
            let endpoint = line.strip_prefix("endpoint ").unwrap();
            serving.get_or_insert_with(|| Serving::begin(&stage, endpoint));
            // Some are killed while they start.
            if number == 1 || random.bool() {
                life.until("ready", &mut books);
            }
            life.kill(Duration::from_millis(random.u64(..400)), &mut books);
            books.note_mounts();
        }
        let mut last = Life::begin(&directory, 0, "");
        last.until("done", &mut books);
        assert!(last.process.wait().unwrap().success());
        nothing_is_left(&stage);
        assert_eq!(contents(&stage), 0);
    });
}
