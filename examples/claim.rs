//! A host program that gives a workload a volume: it starts a CSI plugin, creates the volume, claims it for the workload, runs the
//! workload with it, and reports the end of the workload. Then the volume is released on this node, and can be used elsewhere.
//!
//! Pass a data directory, the command of the workload, which may use `$VOLUME`, and the plugin's command. The plugin mounts, which
//! requires root, at least in a namespace:
//! `cargo build --release && unshare --user --map-root-user --mount cargo run --example claim -- /tmp/data 'date >> $VOLUME/log; cat $VOLUME/log'
//! target/release/callboard plugin hostpath --node-id node-1 --volumes /tmp/volumes`
//!
//! The volume stays when the program ends, and the next run finds the data of this one. `delete` as the workload deletes it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, StopAllocation, TaskStarted};
use callboard::actors::csi::{AccessMode, AccessType, CapacityRange, MountVolume, VolumeCapability};
use callboard::actors::vocabulary::{AllocationId, PluginName, Role, TaskName, VolumeName, VolumeNamespace};
use callboard::actors::volume::{Claimed, NewVolume, ObservedEnd, Usage, VolumeKey};
use callboard::actors::volumes::{AllocationEnded, Claim, ConfirmClaims, CreateVolume, DeleteVolume};
use callboard::host::Host;

/// The timeout of each answer. After it, the requested operation continues.
const WITHIN: Duration = Duration::from_secs(30);
/// The pause before a retry.
const PAUSE: Duration = Duration::from_millis(200);

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_dir, workload, program, command @ ..] = &arguments[..] else {
        return Err("give a data directory, a workload, and the command of a CSI plugin".into());
    };
    let note = PathBuf::from(format!("{data_dir}.workload"));
    check_ended(&note)?;
    let host = Host::builder(data_dir).start().await?;
    // No workload is left: claims of an earlier run that were not released are undone.
    host.volumes().ask(ConfirmClaims { living: [].into(), unclear: [].into() }).await?;

    let (allocation, name) = (AllocationId::new("plugin")?, PluginName::new("example")?);
    let spec =
        AllocationSpec::new(allocation.clone(), TaskName::new("plugin")?, name.clone(), Role::Monolith);
    let context = host.allocations().ask(PrepareAllocation { spec }).await??;
    let mut plugin = Command::new(program).args(command).envs(&context.environment).spawn()?;

    let volume = VolumeKey { namespace: VolumeNamespace::new("default")?, name: VolumeName::new("data")? };
    let outcome = async {
        host.allocations().ask(TaskStarted { allocation: allocation.clone() }).await??;
        match &**workload {
            "delete" => delete(&host, volume).await,
            workload => run(&host, volume, name, (workload, &note)).await,
        }
    };
    let outcome = outcome.await;

    let stopped = host.allocations().ask(StopAllocation { allocation, even_if_used: false }).await;
    plugin.kill()?;
    plugin.wait()?;
    host.stop().await;
    outcome?;
    stopped??;
    Ok(())
}

/// Refuses to begin while the workload of an earlier run lives, which may have been killed before it could end it: its volume would be
/// unmounted under it. A host program with workloads that leave processes behind must check for those as well.
fn check_ended(note: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let pid = fs::read_to_string(note).unwrap_or_default();
    match !pid.is_empty() && Path::new("/proc").join(&pid).exists() {
        true => Err(format!("the workload of an earlier run lives, as process {pid}; end it first").into()),
        false => Ok(()),
    }
}

async fn run(
    host: &Host,
    volume: VolumeKey,
    plugin: PluginName,
    (workload, note): (&str, &Path),
) -> Result<(), Box<dyn std::error::Error>> {
    let capability = VolumeCapability {
        access_type: AccessType::Mount(MountVolume::default()),
        access_mode: AccessMode::SingleNodeWriter,
    };
    let new = NewVolume {
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        capabilities: vec![capability.clone()],
        ..NewVolume::default()
    };
    // Idempotent: the answer is the existing volume if there is one.
    let create = CreateVolume { volume: volume.clone(), plugin, new, within: WITHIN };
    let created = host.volumes().ask(create).await??.volume;
    println!("{volume} is {} with {} bytes", created.volume_id, created.capacity_bytes);

    let allocation = AllocationId::new("workload")?;
    let usage = Usage { capability, read_only: false };
    let claim = Claim { volume, allocation: allocation.clone(), usage, within: WITHIN };
    let claimed = claimed(host, &claim).await?;
    println!("claimed, at {}", claimed.path.display());

    // The workload begins only after its id is written down, and not at all if this program ends before.
    let mut process = Command::new("sh");
    process.args(["-c", "read begin && exec sh -c \"$0\" < /dev/null", workload]);
    let mut process = process.env("VOLUME", &claimed.path).stdin(Stdio::piped()).spawn()?;
    fs::write(note, process.id().to_string())?;
    process.stdin.take().ok_or("it has an input")?.write_all(b"begin\n")?;
    println!("the workload has ended: {}", process.wait()?);

    // Its volumes may be unmounted only after it has ended, not when it is asked to end.
    let ended = AllocationEnded { allocation, observed: ObservedEnd::Exited, within: WITHIN };
    for released in host.volumes().ask(ended).await? {
        released.result?;
        println!("{} is released", released.volume);
    }
    fs::remove_file(note)?;
    Ok(())
}

/// Claims a volume. While the claim of an earlier run is being undone, the answer is a transient error, and the claim is retried.
async fn claimed(host: &Host, claim: &Claim) -> Result<Claimed, Box<dyn std::error::Error>> {
    let until = Instant::now() + WITHIN;
    loop {
        match host.volumes().ask(claim.clone()).await? {
            Err(error) if error.is_transient() && Instant::now() < until => tokio::time::sleep(PAUSE).await,
            claimed => return Ok(claimed?),
        }
    }
}

async fn delete(host: &Host, volume: VolumeKey) -> Result<(), Box<dyn std::error::Error>> {
    let deleted = host.volumes().ask(DeleteVolume { volume, within: WITHIN }).await??;
    println!("deleted: {}", deleted.did_exist);
    Ok(())
}
