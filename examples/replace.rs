//! A host program that replaces a plugin by another version of it, behind a gate: the new one is started beside the old one, which stops
//! only when the new one has been healthy for a second. If that does not happen, the new one stops and the old one continues.
//!
//! Pass a data directory and the commands of both versions, with `--` between them, for instance:
//! `cargo build --release && cargo run --example replace -- /tmp/data target/release/callboard plugin hostpath --role node -- \
//! target/release/callboard plugin hostpath --role node --plugin-version 2`

use std::error::Error;
use std::process::{Child, Command};
use std::time::Duration;

use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, StopAllocation, TaskStarted};
use callboard::actors::instances::AwaitHealthy;
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, Role, TaskName};
use callboard::host::Host;

/// The timeout of the gate, and of the first start.
const WITHIN: Duration = Duration::from_secs(10);

/// A workload with a version of the plugin.
struct Workload {
    allocation: AllocationId,
    process: Child,
}

impl Workload {
    async fn start(host: &Host, name: &str, command: &[String]) -> Result<Self, Box<dyn Error>> {
        let [program, arguments @ ..] = command else { return Err("give a command".into()) };
        let (allocation, plugin) = (AllocationId::new(name)?, PluginName::new("example")?);
        let spec = AllocationSpec::new(allocation.clone(), TaskName::new("plugin")?, plugin, Role::Node);
        let context = host.allocations().ask(PrepareAllocation { spec }).await??;
        let process = Command::new(program).args(arguments).envs(&context.environment).spawn()?;
        host.allocations().ask(TaskStarted { allocation: allocation.clone() }).await??;
        Ok(Self { allocation, process })
    }

    /// The condition of the gate: it has been healthy for this long, as the active one or as a standby.
    fn is_healthy(&self, healthy_for: Duration) -> Result<AwaitHealthy, Box<dyn Error>> {
        let plugins = vec![PluginKey::new(PluginType::CsiNode, PluginName::new("example")?)];
        Ok(AwaitHealthy { allocation: self.allocation.clone(), plugins, healthy_for, within: WITHIN })
    }

    /// It is deregistered first, so that no more work is routed to it; then it is ended.
    async fn stop(self, host: &Host) -> Result<(), Box<dyn Error>> {
        let stop = StopAllocation { allocation: self.allocation.clone(), even_if_used: false };
        host.allocations().ask(stop).await??;
        Ok(())
    }
}

/// Its process ends with it, also after an error.
impl Drop for Workload {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_dir, commands @ ..] = &arguments[..] else { return Err("give a data directory".into()) };
    let commands: Vec<_> = commands.splitn(2, |argument| argument == "--").collect();
    let [old, new] = commands[..] else { return Err("give two commands with -- between them".into()) };

    let host = Host::builder(data_dir).start().await?;
    let old = Workload::start(&host, "old", old).await?;
    host.instances().ask(old.is_healthy(Duration::ZERO)?).await??;
    let new = Workload::start(&host, "new", new).await?;
    let (stays, leaves) = match host.instances().ask(new.is_healthy(Duration::from_secs(1))?).await? {
        Ok(()) => (new, old),
        Err(reason) => {
            println!("{reason}");
            (old, new)
        }
    };
    println!("{} stays and {} leaves", stays.allocation, leaves.allocation);
    leaves.stop(&host).await?;

    let plugin = PluginKey::new(PluginType::CsiNode, PluginName::new("example")?);
    let lease = host.leases().lease(&plugin, WITHIN).await?;
    println!(
        "{} of {} has version {}",
        lease.plugin(),
        lease.allocation(),
        lease.fingerprint().identity.version
    );
    drop(lease);
    stays.stop(&host).await?;
    host.stop().await;
    Ok(())
}
