//! A host program in about 30 lines: it runs one CSI plugin, prints what it can do, and calls it.
//!
//! Pass the plugin's command, for instance:
//! `cargo build --release && cargo run --example host -- target/release/callboard plugin hostpath --role node`

use std::process::Command;
use std::time::Duration;

use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, StopAllocation, TaskStarted};
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, Role, TaskName};
use callboard::host::Host;
use callboard::proto::csi::v1::NodeGetInfoRequest;

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
    let called = match host.leases().lease(&plugin_key, Duration::from_secs(30)).await {
        Ok(lease) => {
            println!("{} is healthy: {:#?}", lease.plugin(), lease.fingerprint());
            // Any call of CSI. It is bound to this generation, and a stop waits for it.
            let answer = lease.node().node_get_info(NodeGetInfoRequest {}).await;
            answer
                .map(|answer| println!("it knows this node as {}", answer.into_inner().node_id))
                .map_err(Into::into)
        }
        Err(error) => Err(error.into()),
    };

    host.allocations().ask(StopAllocation { allocation, even_if_used: false }).await??;
    plugin.kill()?;
    plugin.wait()?;
    for child in host.stop().await.children {
        println!("{}: {} in {:?}", child.name, child.ending, child.took);
    }
    called
}
