//! Logs of tasks: throughput through pipe, rotation and disk, against `cat` into a file; the effect of a flooding task on
//! another task; and the memory for the logs of a thousand tasks.

mod support;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard_actors::logmon::{Collection, LogPaths, LogProgram, LogSpec, Logs, LogsOptions, Retention};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use support::Pace;
use support::disk::directory;
use support::figures::{Goal, Samples, judge};

/// The timeout for the end of a collection.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The pause between two lines of the task beside the flooding one.
const LINE_PAUSE: Duration = Duration::from_millis(5);

fn main() {
    support::run("Logs of tasks, beside `cat` into a file", async |pace| {
        let stage = Stage::new().await;
        throughput(&stage, pace).await;
        neighbour(&stage, pace).await;
        memory(&stage, pace).await;
        stage.logs.stop().await;
    });
}

struct Stage {
    directory: TempDir,
    logs: Logs,
}

impl Stage {
    async fn new() -> Self {
        let directory = directory();
        std::fs::create_dir_all(directory.path().join("allocs/logs")).expect("a directory can be made");
        let program = LogProgram::callboard(env!("CARGO_BIN_EXE_callboard"));
        let options = LogsOptions { directory: directory.path().join("logmon"), program };
        Self { logs: Logs::start(options).await.expect("they start"), directory }
    }

    fn place(&self) -> PathBuf {
        self.directory.path().join("allocs/logs")
    }

    async fn open(&self, key: &str) -> LogPaths {
        let spec = LogSpec {
            key: key.to_owned(),
            name: key.to_owned(),
            root: self.directory.path().join("allocs"),
            directory: PathBuf::from("logs"),
            collection: Collection::Keep(Retention::default()),
        };
        self.logs.open(spec).await.expect("they are opened")
    }

    async fn close(&self, key: &str) {
        assert_eq!(self.logs.close(key, TIMEOUT).await.expect("they are closed").lost, 0);
    }
}

fn source(directory: &Path, mebibytes: usize) -> PathBuf {
    let path = directory.join("source");
    let lines: Vec<u8> = (0..16_384).flat_map(|number| format!("{number:<62} \n").into_bytes()).collect();
    let mut file = File::create(&path).expect("a file can be made");
    (0..mebibytes).try_for_each(|_| file.write_all(&lines)).expect("the disk works");
    path
}

fn cat(source: &Path, target: &Path) -> Child {
    let target =
        OpenOptions::new().write(true).create(true).truncate(true).open(target).expect("it can be opened");
    Command::new("cat").arg(source).stdin(Stdio::null()).stdout(target).spawn().expect("it starts")
}

async fn wait(mut child: Child) {
    assert!(spawn_blocking(move || child.wait()).await.expect("no panic").expect("it ends").success());
}

async fn throughput(stage: &Stage, pace: Pace) {
    let mebibytes = pace.choose(1_024, 16);
    let source = source(stage.directory.path(), mebibytes);
    let (mut ours, mut plain) = (Samples::default(), Samples::default());
    for round in 0..pace.choose(7, 1) {
        let target = stage.directory.path().join("plain");
        let began = Instant::now();
        wait(cat(&source, &target)).await;
        plain.push(mebibytes as f64 / began.elapsed().as_secs_f64());
        std::fs::remove_file(&target).expect("it is there");
        let key = format!("flood-{round}");
        let paths = stage.open(&key).await;
        let began = Instant::now();
        wait(cat(&source, &paths.stdout)).await;
        // The last byte is in a file when this returns.
        stage.close(&key).await;
        ours.push(mebibytes as f64 / began.elapsed().as_secs_f64());
        for entry in std::fs::read_dir(stage.place()).expect("it is there").flatten() {
            std::fs::remove_file(entry.path()).expect("it can be removed");
        }
    }
    println!("cat into a file of {mebibytes} MiB: {} MiB/s", plain.spread(0));
    println!("cat into a pipe, to rotated files:  {} MiB/s", ours.spread(0));
    judge(pace, "throughput of a log beside cat into a file", ours.over(&plain).median(), Goal::AtLeast(0.5));
    std::fs::remove_file(source).expect("it is there");
}

/// The latency of lines from their task to their file, in milliseconds.
async fn delays(file: &Path, pipe: &Path, lines: usize) -> Samples {
    let (file, pipe) = (file.to_owned(), pipe.to_owned());
    let timed = move || {
        let mut pipe = OpenOptions::new().write(true).open(pipe).expect("it can be opened");
        let mut samples = Samples::default();
        for _ in 0..lines {
            let length = || std::fs::metadata(&file).map_or(0, |seen| seen.len());
            let (before, began) = (length(), Instant::now());
            pipe.write_all(b"a line of a task that does not flood\n").expect("it is read");
            while length() == before {
                assert!(began.elapsed() < TIMEOUT, "a line does not come");
                std::thread::yield_now();
            }
            samples.push(began.elapsed().as_secs_f64() * 1_000.0);
            std::thread::sleep(LINE_PAUSE);
        }
        samples
    };
    spawn_blocking(timed).await.expect("no panic")
}

async fn neighbour(stage: &Stage, pace: Pace) {
    let (mebibytes, lines) = (pace.choose(1_024, 16), pace.choose(150, 5));
    let source = source(stage.directory.path(), mebibytes);
    let paths = stage.open("quiet").await;
    let file = stage.place().join("quiet.stdout.0");
    let alone = delays(&file, &paths.stdout, lines).await;
    let target = stage.directory.path().join("plain");
    let plain_flood = cat(&source, &target);
    let beside_cat = delays(&file, &paths.stdout, lines).await;
    wait(plain_flood).await;
    let flooding = stage.open("flood").await;
    let flood = cat(&source, &flooding.stdout);
    let beside_flood = delays(&file, &paths.stdout, lines).await;
    wait(flood).await;
    stage.close("flood").await;
    stage.close("quiet").await;
    for (what, samples) in [
        ("alone", &alone),
        ("beside a cat of 1 GiB into a file", &beside_cat),
        ("beside a task that writes 1 GiB", &beside_flood),
    ] {
        println!(
            "a line from its task to its file, {what}: {:.2} ms, p95 {:.2} ms",
            samples.median(),
            samples.percentile(95.0)
        );
    }
    std::fs::remove_file(source).expect("it is there");
    std::fs::remove_file(target).expect("it is there");
}

async fn memory(stage: &Stage, pace: Pace) {
    let tasks = pace.choose(1_000, 20);
    let pid = stage.logs.view().borrow().pid.expect("it runs");
    println!("log writer with no task: {}", held(pid));
    let mut pipes = Vec::new();
    for number in 0..tasks {
        let paths = stage.open(&format!("task-{number}")).await;
        let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it can be opened");
        pipe.write_all(&[b'x'; 4_096]).expect("it is read");
        pipes.push(pipe);
    }
    println!("log writer with {tasks} tasks: {}", held(pid));
    let writing = spawn_blocking(move || {
        for _ in 0..16 {
            pipes.iter_mut().for_each(|pipe| pipe.write_all(&[b'x'; 65_536]).expect("it is read"));
        }
    });
    writing.await.expect("no panic");
    println!("log writer after {tasks} tasks wrote 1 MiB each: {}", held(pid));
    for number in 0..tasks {
        stage.close(&format!("task-{number}")).await;
    }
}

fn held(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux tells it");
        line.trim_start_matches(':').trim().to_owned()
    };
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    format!("{} resident, {} threads, {descriptors} descriptors", line("VmRSS"), line("Threads"))
}
