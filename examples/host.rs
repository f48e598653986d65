//! A host program in about 30 lines: it runs one CSI plugin and prints what the node offers.
//!
//! Pass the plugin's command, for instance:
//! `cargo build --release && cargo run --example host -- target/release/callboard plugin hostpath --role node`

use std::process::Command;
use std::time::Duration;

use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, StopAllocation, TaskStarted};
use callboard::actors::instances::Dispense;
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, Role, TaskName};
use callboard::host::Host;

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = std::env::args().skip(1);
    let program = command.next().ok_or("give the command of a CSI plugin that serves at $CSI_ENDPOINT")?;
    let data_dir = tempfile::tempdir()?;
    let host = Host::builder(data_dir.path()).start().await?;

    let (allocation, name) = (AllocationId::new("a1")?, PluginName::new("example")?);
    let spec = AllocationSpec::new(allocation.clone(), TaskName::new("plugin")?, name.clone(), Role::Node);
    let context = host.allocations().ask(PrepareAllocation { spec }).await??;
    let mut plugin = Command::new(program).args(command).envs(&context.environment).spawn()?;
    host.allocations().ask(TaskStarted { allocation: allocation.clone() }).await??;

    let plugin_key = PluginKey::new(PluginType::CsiNode, name);
    let dispensed =
        host.instances().ask(Dispense { plugin: plugin_key, within: Duration::from_secs(30) }).await?;
    match &dispensed {
        Ok(plugin) => println!("{} serves at {}: {:#?}", plugin.plugin, plugin.socket, plugin.fingerprint),
        Err(error) => println!("it cannot be had: {error}"),
    }

    host.allocations().ask(StopAllocation { allocation }).await??;
    plugin.kill()?;
    plugin.wait()?;
    for child in host.stop().await.children {
        println!("{}: {} in {:?}", child.name, child.ending, child.took);
    }
    dispensed.map(drop).map_err(Into::into)
}
