//! Tests what only embedders can request of a task so far, through the typed client, of a real `raw_exec` under a host: signals, usage,
//! commands beside the task with and without a terminal, and the handle that is given back after the driver's death.

use std::path::Path;
use std::time::Duration;

use callboard::actors::driver::DriverHealth;
use callboard::actors::driver::client::{
    DriverClient, ExecInput, ExecOutput, ExecSession, LinuxResources, Resources, StartOutcome, TaskConfig,
    TaskEnd, TaskHandle, TaskId, TaskState,
};
use callboard::actors::drivers::Wanted;
use callboard::actors::hclspec::{Config, schema_from_wire};
use callboard::actors::process::IgnoredSignals;
use callboard::actors::vocabulary::TaskName;
use callboard::host::Host;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::drivers::{DriverStage, add, driver_name, until_driver};
use crate::support::go::DRIVERS;
use crate::support::{LONG, Watch, id};

const ALLOCATION: &str = "11111111-2222-3333-4444-555555555555";

async fn dispense(host: &Host) -> DriverClient {
    host.leases().driver(&driver_name("raw_exec"), Wanted::Healthy, LONG).await.unwrap()
}

/// A task that runs a script in `/bin/sh`, with the fields that an embedder sets.
async fn task(client: &DriverClient, place: &Path, script: &str) -> TaskConfig {
    let allocation = place.join("alloc").join(ALLOCATION);
    let (shared, own) = (allocation.join("alloc"), allocation.join("web"));
    for made in [shared.join("logs"), own.join("local"), own.join("secrets")] {
        std::fs::create_dir_all(made).unwrap();
    }
    let schema = schema_from_wire(&client.task_config_schema(LONG).await.unwrap()).unwrap();
    let written = Config::from_hcl(&format!("command = \"/bin/sh\"\nargs = [\"-c\", {script:?}]"))
        .expect("well formed");
    let task = TaskId::new(format!("{ALLOCATION}/web/00000001")).unwrap();
    let driver_config = schema.decode(&written).expect("it fits").to_msgpack();
    let mut config = TaskConfig::new(task, id(ALLOCATION), TaskName::new("web").unwrap(), driver_config);
    let environment = [
        ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("NOMAD_ALLOC_ID", ALLOCATION.to_owned()),
        ("NOMAD_TASK_NAME", "web".to_owned()),
        ("NOMAD_PARENT_CGROUP", "nomad.slice".to_owned()),
        ("STAGE", place.display().to_string()),
    ];
    config.environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
    let linux = LinuxResources {
        cpu_shares: 100,
        memory_limit_bytes: 300 << 20,
        percent_ticks: 0.05,
        ..Default::default()
    };
    config.resources =
        Some(Resources { cpu_shares: 100, memory_mib: 300, linux: Some(linux), ..Default::default() });
    // A plain file is sufficient if it exists already (T064).
    config.stdout_path = shared.join("logs/out");
    config.stderr_path = shared.join("logs/err");
    for path in [&config.stdout_path, &config.stderr_path] {
        std::fs::write(path, "").unwrap();
    }
    config.allocation_dir = allocation;
    config
}

async fn start(client: &DriverClient, config: &TaskConfig) -> TaskHandle {
    match client.start_task(config, LONG).await.unwrap() {
        StartOutcome::Started { handle, .. } => handle,
        refused => panic!("{refused:?}"),
    }
}

/// The whole output of a command, and its end.
async fn listen(mut session: ExecSession) -> (String, TaskEnd) {
    let mut heard = Vec::new();
    while let Some(output) = tokio::time::timeout(LONG, session.next()).await.expect("in time") {
        match output.expect("the conversation goes on") {
            ExecOutput::Stdout(bytes) | ExecOutput::Stderr(bytes) => heard.extend(bytes),
            ExecOutput::StdoutClosed | ExecOutput::StderrClosed => {}
            ExecOutput::Exited(exit) => return (String::from_utf8(heard).expect("text"), exit.end),
        }
    }
    panic!("it ended without a result: {}", String::from_utf8_lossy(&heard));
}

fn words(script: &str) -> [String; 3] {
    ["/bin/sh", "-c", script].map(str::to_owned)
}

async fn commands_beside_it(client: &DriverClient, task: &TaskId) {
    let outcome = client.exec_task(task, &words("echo here; exit 3"), LONG, LONG).await.unwrap();
    assert_eq!(
        (String::from_utf8_lossy(&outcome.stdout).trim(), &outcome.exit.end),
        ("here", &TaskEnd::Exited(3))
    );

    let session = client.exec_task_streaming(task, &words("read line; echo said $line; exit 4"), false);
    session.give(ExecInput::Stdin(b"good evening\n".to_vec())).await.unwrap();
    session.give(ExecInput::CloseStdin).await.unwrap();
    assert_eq!(listen(session).await, ("said good evening\n".to_owned(), TaskEnd::Exited(4)));

    let script =
        "test -t 0 || exit 9; until [ \"$(stty size)\" = '33 111' ]; do sleep 0.05; done; echo seen; exit 5";
    let session = client.exec_task_streaming(task, &words(script), true);
    session.give(ExecInput::Resize { height: 33, width: 111 }).await.unwrap();
    let (heard, end) = listen(session).await;
    assert!(heard.contains("seen") && end == TaskEnd::Exited(5), "{heard:?} {end:?}");
}

/// Waits until a file has exactly this text.
async fn until_written(path: &Path, text: &str) {
    let is_there = || async { std::fs::read_to_string(path).unwrap_or_default() == text };
    crate::support::until(&format!("{text:?} in {}", path.display()), is_there).await;
}

#[actix::test]
async fn a_task_of_raw_exec_is_signalled_measured_spoken_to_recovered_and_stopped_d103_d107_t145_t147_t150() {
    let Some(programs) = DRIVERS.or_say("a real raw_exec under the typed client") else { return };
    let stage = DriverStage::new();
    let host = stage.host().await;
    // The tests may run under `nohup`; there is no process between this host and its driver that would restore SIGHUP.
    IgnoredSignals::now().catch().unwrap();
    let mut watch = Watch::on(host.drivers());
    let mut spec = stage.driver("raw_exec", programs.join("drivers"), &["raw_exec"]);
    // A configuration by its schema, as msgpack: a map of one entry.
    spec.config = b"\x81\xa7enabled\xc3".to_vec();
    add(&host, &spec).await;
    let report = until_driver(&mut watch, "raw_exec", DriverHealth::Healthy).await;
    let client = dispense(&host).await;
    let script = "trap 'echo hup' HUP; trap 'echo int; exit 6' INT; echo began; while :; do sleep 0.05; done";
    let config = task(&client, &stage.path(""), script).await;
    let handle = start(&client, &config).await;
    until_written(&config.stdout_path, "began\n").await;

    client.signal_task(&config.id, "SIGHUP", LONG).await.unwrap();
    until_written(&config.stdout_path, "began\nhup\n").await;
    let mut figures = client.task_stats(&config.id, Duration::from_millis(100));
    let measured = tokio::time::timeout(LONG, async {
        loop {
            let stats = figures.next().await.expect("a stream").expect("figures");
            if stats.total.memory.rss.is_some_and(|rss| rss > 0) {
                return stats;
            }
        }
    });
    assert!(!measured.await.expect("in time").by_pid.is_empty(), "each process is measured");
    commands_beside_it(&client, &config.id).await;

    // Its driver is killed: the next driver finds the executor at the same place, by the handle.
    kill_process(Pid::from_raw(report.pid.expect("it runs").cast_signed()).unwrap(), Signal::KILL).unwrap();
    let again = until_driver(&mut watch, "raw_exec", DriverHealth::Healthy).await;
    assert_ne!(again.pid, report.pid);
    let client = dispense(&host).await;
    client.recover_task(&handle, LONG).await.expect("the executor's socket is where it was (T030, TH030)");
    assert_eq!(client.inspect_task(&config.id, LONG).await.unwrap().state, TaskState::Running);
    client.signal_task(&config.id, "SIGHUP", LONG).await.unwrap();
    until_written(&config.stdout_path, "began\nhup\nhup\n").await;

    // An empty name means SIGINT (T145). Its executor ends with it: only a caller that waits already receives its exit.
    let stop = client.stop_task(&config.id, Duration::from_secs(5), "", LONG);
    let (waited, stopped) = tokio::join!(client.wait_task(&config.id, LONG), stop);
    stopped.unwrap();
    assert_eq!(waited.unwrap().end, TaskEnd::Exited(6));
    client.destroy_task(&config.id, false, LONG).await.unwrap();
    host.stop().await;
    assert_eq!(stage.living(), [], "nothing of it runs");
}
