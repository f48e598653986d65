//! Start of a task through a real `raw_exec` under our host, against a host on the official Go packages.
//!
//! Both do what a node agent does for one task: directories, two log pipes with a reader each, `StartTask` with both halves of
//! the resources, and the driver's answer with the handle. Each has a driver process of its own, and they start in turn. Needs
//! Go and the modules of `tests/interop/go`; reports if they are missing.

#[path = "../tests/support/go.rs"]
mod go;
mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use callboard_actors::driver::client::{
    DriverClient, LinuxResources, Resources, StartOutcome, TaskConfig, TaskId,
};
use callboard_actors::drivers::Wanted;
use callboard_actors::hclspec::{Config, Schema, schema_from_wire};
use callboard_actors::vocabulary::{AllocationId, TaskName};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use go::{DRIVERS, STARTS};
use support::Pace;
use support::disk::directory;
use support::drivers::{DriversFeed, TIMEOUT, add, driver, host, millis, name};
use support::figures::{Goal, Samples, judge};

fn main() {
    support::run("start of a task through raw_exec, ms", measure);
}

async fn measure(pace: Pace) {
    let programs = DRIVERS.directory().and_then(|drivers| Ok((drivers, STARTS.directory()?)));
    let (drivers, starts) = match programs {
        Ok((drivers, starts)) => (drivers.join("drivers"), starts.join("starts")),
        Err(why) => return println!("SKIPPED: nothing is measured, since {why}"),
    };
    let place = directory();
    let mut theirs = GoHost::begin(&starts, &drivers, &place.path().join("theirs"));
    let host = host(place.path()).await;
    let mut feed = DriversFeed::of(host.drivers());
    let mut spec = driver(place.path(), "raw_exec", drivers, &["raw_exec"]);
    // By the driver's schema, as msgpack: a map of one entry.
    spec.config = b"\x81\xa7enabled\xc3".to_vec();
    add(host.drivers(), spec).await;
    feed.healthy().await;
    let client =
        host.leases().driver(&name("raw_exec"), Wanted::Healthy, TIMEOUT).await.expect("it is healthy");
    let schema = client.task_config_schema(TIMEOUT).await.expect("it answers");
    let schema = schema_from_wire(&schema).expect("a good schema");

    let (mut bare, mut ours) = (Samples::default(), Samples::default());
    for round in 0..pace.choose(60, 2) {
        bare.push(theirs.start());
        ours.push(millis(start(&client, &schema, &place.path().join("ours"), round).await));
    }
    let ratio = ours.over(&bare);
    println!("Go host | ours | times Go host");
    println!("{} | {} | {}", bare.spread(1), ours.spread(1), ratio.spread(2));
    judge(pace, "start through raw_exec, times its Go host", ratio.median(), Goal::AtMost(1.2));
    host.stop().await;
}

/// A host on the official packages, which starts a task on request.
struct GoHost {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl GoHost {
    fn begin(program: &Path, drivers: &Path, place: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg(drivers).arg(place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let orders = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, orders, answers }
    }

    fn start(&mut self) -> f64 {
        self.orders.write_all(b"\n").expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        line.trim().parse().expect("it says a number, and else on standard error what went wrong")
    }
}

impl Drop for GoHost {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn start(client: &DriverClient, schema: &Schema, place: &Path, round: usize) -> Duration {
    let id = format!("{round:08}-0000-0000-0000-000000000001");
    let task = TaskId::new(format!("{id}/web/00000001")).expect("an id");
    let begun = Instant::now();
    let config = prepare(schema, &place.join(&id), &id, task.clone());
    let outcome = client.start_task(&config, TIMEOUT).await.expect("it answers");
    let took = begun.elapsed();
    assert!(matches!(outcome, StartOutcome::Started { .. }), "{outcome:?}");
    client.stop_task(&task, Duration::from_secs(5), "SIGKILL", TIMEOUT).await.expect("it ends");
    client.destroy_task(&task, true, TIMEOUT).await.expect("it has ended");
    took
}

fn prepare(schema: &Schema, allocation: &Path, id: &str, task: TaskId) -> TaskConfig {
    let (shared, own) = (allocation.join("alloc"), allocation.join("web"));
    for made in [shared.join("logs"), own.join("local"), own.join("secrets")] {
        std::fs::create_dir_all(made).expect("it can be made");
    }
    let written = Config::from_hcl("command = \"/bin/sleep\"\nargs = [\"1000\"]").expect("well formed");
    let driver_config = schema.decode(&written).expect("it fits").to_msgpack();
    let allocation_id = AllocationId::new(id).expect("an id");
    let mut config =
        TaskConfig::new(task, allocation_id, TaskName::new("web").expect("a name"), driver_config);
    let path = |path: PathBuf| path.display().to_string();
    let environment = [
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("NOMAD_ALLOC_ID", id.to_owned()),
        ("NOMAD_TASK_NAME", "web".to_owned()),
        ("NOMAD_PARENT_CGROUP", "nomad.slice".to_owned()),
        ("NOMAD_ALLOC_DIR", path(shared.clone())),
        ("NOMAD_TASK_DIR", path(own.join("local"))),
        ("NOMAD_SECRETS_DIR", path(own.join("secrets"))),
    ];
    config.environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
    let linux = LinuxResources {
        cpu_shares: 100,
        memory_limit_bytes: 300 << 20,
        percent_ticks: 0.05,
        ..LinuxResources::default()
    };
    let resources =
        Resources { cpu_shares: 100, memory_mib: 300, linux: Some(linux), ..Resources::default() };
    config.resources = Some(resources);
    config.allocation_dir = allocation.to_owned();
    config.stdout_path = pipe(shared.join("logs/.web.stdout.fifo"));
    config.stderr_path = pipe(shared.join("logs/.web.stderr.fifo"));
    config
}

/// Creates a FIFO, with a thread that reads it to its end.
fn pipe(path: PathBuf) -> PathBuf {
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it is new");
    let opened = path.clone();
    std::thread::spawn(move || {
        let reader = std::fs::File::open(opened);
        reader.and_then(|mut reader| std::io::copy(&mut reader, &mut std::io::sink()))
    });
    path
}
