//! A host program whose plugin outlives it: the first run prepares an allocation and starts its plugin, every further run adopts it.
//! `stop` as the last argument stops it.
//!
//! Pass a data directory and the plugin's command, for instance:
//! `cargo build --release && cargo run --example adopt -- /tmp/data target/release/callboard plugin hostpath --role node`
//!
//! A host program must remember which workload serves which allocation; here that is a process id in a file. A process id is not
//! a proof, since it may belong to another process by now: `Host::processes` keeps processes that it proves and adopts itself.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use callboard::actors::allocations::{
    AdoptAllocation, AllocationSpec, PrepareAllocation, StopAllocation, TaskStarted,
};
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, Role, TaskName};
use callboard::host::Host;

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let stops = arguments.pop_if(|last| last == "stop").is_some();
    let [data_dir, program, command @ ..] = &arguments[..] else {
        return Err(
            "give a data directory and the command of a CSI plugin that serves at $CSI_ENDPOINT".into()
        );
    };
    let pid_file = PathBuf::from(data_dir).join("plugin.pid");
    let left =
        fs::read_to_string(&pid_file).ok().filter(|pid| PathBuf::from(format!("/proc/{pid}")).exists());
    let host = Host::builder(data_dir).start().await?;

    let began = Instant::now();
    let (allocation, name) = (AllocationId::new("a1")?, PluginName::new("example")?);
    let spec = AllocationSpec::new(allocation.clone(), TaskName::new("plugin")?, name.clone(), Role::Node);
    let pid = match left {
        // It runs: its socket stays in place, and the process may keep listening there.
        Some(pid) => {
            host.allocations().ask(AdoptAllocation { spec }).await??;
            pid
        }
        None => {
            let context = host.allocations().ask(PrepareAllocation { spec }).await??;
            let mut plugin = Command::new(program);
            // In a group of its own, with no output that ends with this program.
            plugin.args(command).envs(&context.environment).process_group(0);
            plugin.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            plugin.spawn()?.id().to_string()
        }
    };
    fs::write(&pid_file, &pid)?;
    host.allocations().ask(TaskStarted { allocation: allocation.clone() }).await??;
    let lease =
        host.leases().lease(&PluginKey::new(PluginType::CsiNode, name), Duration::from_secs(30)).await?;
    println!("process {pid} is healthy as {} after {:?}", lease.plugin(), began.elapsed());
    drop(lease);

    if stops {
        // Deregistered first, then ended.
        host.allocations().ask(StopAllocation { allocation, even_if_used: false }).await??;
        Command::new("kill").arg(&pid).status()?;
        fs::remove_file(&pid_file)?;
        host.stop().await;
    } else {
        // Registrations stay, for the next run.
        host.detach().await;
    }
    Ok(())
}
