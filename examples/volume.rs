//! A host program that calls a CSI plugin itself: it starts the plugin, and creates, validates, lists and deletes a volume with the
//! typed client.
//!
//! Pass a data directory and the plugin's command, for instance:
//! `cargo build --release && cargo run --example volume -- /tmp/data target/release/callboard plugin hostpath --volumes /tmp/volumes`
//!
//! Nothing is mounted, so it needs no special permission. A host that gives volumes to workloads also calls the node service, over a lease
//! of the plugin as node.

use std::process::Command;
use std::time::Duration;

use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, StopAllocation, TaskStarted};
use callboard::actors::csi::{
    AccessMode, AccessType, CapacityRange, Client, CreateVolumeRequest, DeleteVolumeRequest, FailedCall,
    ListVolumesRequest, MountVolume, Secrets, ValidateVolumeCapabilitiesRequest, Volume, VolumeCapability,
};
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, Role, TaskName};
use callboard::host::Host;

/// The deadline of a call. After it, the plugin may continue with the call.
const DEADLINE: Duration = Duration::from_secs(10);

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_dir, program, command @ ..] = &arguments[..] else {
        return Err(
            "give a data directory and the command of a CSI plugin that serves at $CSI_ENDPOINT".into()
        );
    };
    let host = Host::builder(data_dir).start().await?;
    let (allocation, name) = (AllocationId::new("a1")?, PluginName::new("example")?);
    let task = TaskName::new("plugin")?;
    let spec = AllocationSpec::new(allocation.clone(), task, name.clone(), Role::Monolith);
    let context = host.allocations().ask(PrepareAllocation { spec }).await??;
    let mut plugin = Command::new(program).args(command).envs(&context.environment).spawn()?;
    host.allocations().ask(TaskStarted { allocation: allocation.clone() }).await??;

    let controller = PluginKey::new(PluginType::CsiController, name);
    let client = host.leases().csi(&controller, Duration::from_secs(30)).await?;
    let outcome = use_volume(&client).await;
    drop(client);

    host.allocations().ask(StopAllocation { allocation, even_if_used: false }).await??;
    plugin.kill()?;
    plugin.wait()?;
    host.stop().await;
    outcome
}

async fn use_volume(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    let usage = VolumeCapability {
        access_type: AccessType::Mount(MountVolume::default()),
        access_mode: AccessMode::SingleNodeWriter,
    };
    let request = CreateVolumeRequest {
        name: "example-volume".to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        volume_capabilities: vec![usage.clone()],
        ..CreateVolumeRequest::default()
    };
    let volume = create(client, &request).await?;
    println!("created {} with {} bytes", volume.volume_id, volume.capacity_bytes);

    let question = ValidateVolumeCapabilitiesRequest {
        volume_id: volume.volume_id.clone(),
        volume_context: volume.volume_context.clone(),
        volume_capabilities: vec![usage],
        parameters: request.parameters.clone(),
        secrets: Secrets::none(),
        mutable_parameters: request.mutable_parameters.clone(),
    };
    let answer = client.validate_volume_capabilities(&question, DEADLINE).await?;
    println!("not confirmed: {:?}", answer.unconfirmed(&question));

    let page = client.list_volumes(&ListVolumesRequest::default(), DEADLINE).await?;
    println!("{} volume(s) in the list", page.entries.len());

    let deletion = DeleteVolumeRequest { volume_id: volume.volume_id, secrets: Secrets::none() };
    client.delete_volume(&deletion, DEADLINE).await?;
    println!("deleted");
    Ok(())
}

/// Repeats the same call while a retry may help: calls of CSI are idempotent.
async fn create(client: &Client, request: &CreateVolumeRequest) -> Result<Volume, FailedCall> {
    let mut pause = Duration::from_millis(100);
    loop {
        match client.create_volume(request, DEADLINE).await {
            // A new lease would be needed for `Reaction::NewLease`; here the plugin is started once.
            Err(failed) if failed.is_transient() && pause < Duration::from_secs(5) => {
                println!("{failed}: {:?}", failed.outcome());
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
}
