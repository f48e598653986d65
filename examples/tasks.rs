//! A host program that runs one task through a driver, and receives all its events.
//!
//! Pass the task's configuration in HCL, and the command of a driver plugin, for instance:
//! `cargo build --release && cargo run --example tasks -- 'command = "/bin/date"' $PWD/target/release/callboard plugin exec --name example`

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use callboard::actors::driver::client::{StartOutcome, TaskConfig, TaskExit, TaskId};
use callboard::actors::driver::{DriverSpec, TaskEventItem, TaskKey};
use callboard::actors::drivers::{AddDriver, ListDrivers, RegisterTaskHandler, Wanted};
use callboard::actors::goplugin::HandshakeTerms;
use callboard::actors::hclspec::{Config, schema_from_wire};
use callboard::actors::process::{Executable, Lifetime, ProcessSpec};
use callboard::actors::task_config::{CpuAsk, ResourceAsk, TaskConfigBuilder, TaskNode};
use callboard::actors::vocabulary::{AllocationId, DriverName, TaskName};
use callboard::host::Host;

const TIMEOUT: Duration = Duration::from_secs(30);

#[actix::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(task), Some(program)) = (words.next(), words.next()) else {
        eprintln!("give what to run, in HCL, and the command of a driver plugin");
        return ExitCode::from(2);
    };
    match run_task(&task, &program, words.collect()).await {
        Ok(exit) => println!("it ended: {:?}", exit.end),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Starts a host, adds a driver, and runs a task until it ends.
async fn run_task(task: &str, program: &str, arguments: Vec<String>) -> Result<TaskExit, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let host = Host::builder(directory.path().join("host")).start().await?;

    // The process that serves the driver. A surviving process is reattached by the next run of the host.
    let process = ProcessSpec {
        arguments,
        lifetime: Lifetime::Surviving,
        handshake: Some(HandshakeTerms::nomad(None)),
        ..ProcessSpec::new(Executable::at(program))
    };
    let name = DriverName::new("example")?;
    // `None` accepts any name that the driver reports; by default it must report the name given above.
    let spec = DriverSpec { said_name: None, ..DriverSpec::new(name.clone(), process) };
    host.drivers().ask(AddDriver { spec }).await??;

    // The event handler is registered before the task starts, and stays registered when the driver restarts.
    let key = TaskKey::new(AllocationId::new("a1")?, TaskName::new("main")?);
    let (sink, mut events) = host.task_journals().open(64, None);
    let handler = RegisterTaskHandler { driver: name.clone(), task: key.clone(), sink };
    host.drivers().ask(handler).await??;
    let reader = actix_rt::spawn(async move {
        while let Some(item) = events.next().await {
            match item {
                TaskEventItem::Event { event, .. } => println!("event: {}", event.message),
                TaskEventItem::Gap { missed, reason } => println!("a gap: {missed:?} missed, {reason:?}"),
            }
        }
    });

    // A lease of one generation of the driver, with a deadline for each call.
    let driver = host.leases().driver(&name, Wanted::Healthy, TIMEOUT).await?;
    let schema = schema_from_wire(&driver.task_config_schema(TIMEOUT).await?)?;
    let config = schema.decode(&Config::from_hcl(task)?)?.to_msgpack();
    let id = TaskId::new("a1/main/1")?;
    let output = directory.path().join("output");
    let task = TaskConfig {
        allocation_dir: directory.path().join("a1"),
        stdout_path: output.clone(),
        stderr_path: output.clone(),
        ..TaskConfig::new(id.clone(), key.allocation, key.task, config)
    };

    // Fields that third-party drivers need are filled in, and checked against the capabilities that this driver reported.
    let reports = host.drivers().ask(ListDrivers).await?;
    let report = reports.into_iter().find(|report| report.name == name);
    let capabilities =
        report.and_then(|report| report.capabilities).ok_or("it has not told what it can do")?;
    let ask = ResourceAsk { cpu: CpuAsk::Mhz(50), memory_mib: 64, ..ResourceAsk::default() };
    let task =
        TaskConfigBuilder::new(task, &TaskNode::of_this_machine(), &capabilities).resources(ask).build()?;
    match driver.start_task(&task, TIMEOUT).await? {
        // A host that wants to recover the task stores the handle first.
        StartOutcome::Started { handle, .. } => println!("started {}", handle.task_id()),
        StartOutcome::Retry { reason } | StartOutcome::Fatal { reason } => return Err(reason.into()),
    }
    let exit = driver.wait_task(&id, Duration::from_secs(600)).await?;
    driver.destroy_task(&id, false, TIMEOUT).await?;
    print!("{}", std::fs::read_to_string(output).unwrap_or_default());
    // The last events may still be in flight. A host that continues would unsubscribe with `ForgetTaskHandler`.
    let _ = tokio::time::timeout(Duration::from_secs(1), reader).await;
    for child in host.stop().await.children {
        println!("{}: {} in {:?}", child.name, child.ending, child.took);
    }
    Ok(exit)
}
