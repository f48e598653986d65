//! A host program that sets limits: how many registrations and drivers there may be, how long a call may take, how many are in
//! flight, and how many restarts are too many. Then it exceeds one of them.
//!
//! Each limit has a default, and is an option of the actor that enforces it. Run it with `cargo run --example limits`.

use std::sync::Arc;
use std::time::Duration;

use callboard::actors::driver::DriverLimits;
use callboard::actors::drivers::DriversOptions;
use callboard::actors::instance::InstanceLimits;
use callboard::actors::instances::InstancesOptions;
use callboard::actors::registry::{Register, RegistryOptions};
use callboard::actors::vocabulary::{
    AllocationId, PluginKey, PluginName, PluginType, RestartBudget, SocketPath,
};
use callboard::host::Host;

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let instance = InstanceLimits {
        call_deadline: Duration::from_secs(5), // of a probe
        failures_until_unhealthy: 2,           // probes in a row
        calls_max: 64,                         // over the leases of one plugin, at once
        ..InstanceLimits::default()
    };
    let driver = DriverLimits { drain_deadline: Duration::from_secs(2), ..DriverLimits::default() };
    let host = Host::builder(directory.path().join("data"))
        .registry(RegistryOptions { registrations_max: 1, ..RegistryOptions::default() })
        .instances(InstancesOptions { limits: instance, ..InstancesOptions::default() })
        .drivers(DriversOptions { limits: driver, drivers_max: 8, ..DriversOptions::default() })
        // More than three crashes of an actor within ten minutes end the host.
        .restart_budget(RestartBudget { limit: 3, window: Duration::from_secs(600) })
        .start()
        .await?;

    for name in ["zfs", "nfs"] {
        let register = Register {
            plugins: vec![PluginKey::new(PluginType::CsiNode, PluginName::new(name)?)],
            allocation: AllocationId::new(name)?,
            socket: SocketPath::new(format!("/run/example/{name}.sock"))?,
            provider: None,
            version: None,
            options: Arc::default(),
            policy: None,
        };
        match host.registry().ask(register).await? {
            Ok(registered) => println!("{name}: {registered:?}"),
            Err(refused) => println!("{name}: {refused}"),
        }
    }
    host.stop().await;
    Ok(())
}
