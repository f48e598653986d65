//! Callboard is the plugin supervisor that a node agent embeds. It manages the lifecycle of CSI plugins and of task drivers. It registers
//! storage plugins, watches their health, fails over between them, and gives workloads their volumes. It launches drivers, reattaches to
//! them and delivers the events of their tasks. It stops all of them in order. What it acknowledged survives a crash of its host.
//!
//! A host program that runs a CSI plugin and calls it:
//!
//! ```no_run
//! use std::process::Command;
//! use std::time::Duration;
//!
//! use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, TaskStarted};
//! use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, Role, TaskName};
//! use callboard::host::Host;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Host::builder("/var/lib/agent/plugins").start_on_own_thread().await?;
//!     let (allocation, zfs) = (AllocationId::new("a1")?, PluginName::new("zfs")?);
//!     let spec = AllocationSpec::new(allocation.clone(), TaskName::new("plugin")?, zfs.clone(), Role::Node);
//!     let context = host.allocations().ask(PrepareAllocation { spec }).await??;
//!     let mut process = Command::new("zfs-csi-plugin").envs(&context.environment).spawn()?;
//!     host.allocations().ask(TaskStarted { allocation }).await??;
//!
//!     // Callboard registers the plugin as soon as it is ready. The client is bound to this connection to it.
//!     let client = host.leases().csi(&PluginKey::new(PluginType::CsiNode, zfs), Duration::from_secs(30)).await?;
//!     println!("zfs knows this node as {}", client.node_get_info(Duration::from_secs(10)).await?.node_id);
//!
//!     host.stop().await.children.iter().for_each(|child| println!("{}: {}", child.name, child.ending));
//!     process.kill()?;
//!     Ok(())
//! }
//! ```
//!
//! And a task driver, whose process Callboard launches, or reattaches to if an earlier run of the host launched it:
//!
//! ```no_run
//! # use std::time::Duration;
//! use callboard::actors::driver::DriverSpec;
//! use callboard::actors::drivers::{AddDriver, Wanted};
//! use callboard::actors::goplugin::HandshakeTerms;
//! use callboard::actors::process::{Executable, Lifetime, ProcessSpec};
//! use callboard::actors::vocabulary::DriverName;
//! # async fn add(host: callboard::host::Host) -> Result<(), Box<dyn std::error::Error>> {
//!
//! let podman = DriverName::new("podman")?;
//! let process = ProcessSpec {
//!     lifetime: Lifetime::Surviving,
//!     handshake: Some(HandshakeTerms::nomad(None)),
//!     ..ProcessSpec::new(Executable::at("/opt/nomad/data/plugins/nomad-driver-podman"))
//! };
//! host.drivers().ask(AddDriver { spec: DriverSpec::new(podman.clone(), process) }).await??;
//! let client = host.leases().driver(&podman, Wanted::Healthy, Duration::from_secs(30)).await?;
//! let schema = client.task_config_schema(Duration::from_secs(10)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to continue
//!
//! - [`host`]: the structure of a host, how to start, configure and stop it; [parts](host::Part) are actors of the host program that it
//!   supervises beside its own.
//! - [`actors`]: a module for each actor, with all its messages. Most host programs need few of them:
//!   [`allocations`](actors::allocations) for the workloads of CSI plugins, [`drivers`](actors::drivers) for task drivers,
//!   [`inventory`](actors::inventory) for what the node offers, [`registry`](actors::registry) and [`instances`](actors::instances)
//!   for which plugin is active and healthy.
//! - [`host::Leases`]: calls to plugins and drivers. [`actors::csi::Client`] makes all calls of CSI, and
//!   [`actors::driver::client::DriverClient`] those of a driver.
//! - [`actors::shell`]: addresses, subscriptions, and how a machine of the host program becomes an actor.
//! - [`actors::vocabulary`]: names, keys and the other types of the domain.
//! - [`process`]: child processes of a host program, stopped in order and always reaped.
//! - `plugin` (feature `plugin`): write a task driver in Rust.
//! - `script` and `picture` (feature `cli`): message scripts, which run a host in virtual time, and pictures of runs.
//!
//! The directory `examples` contains whole host programs, and a table in the README lists what each of them shows. The feature `cli`, the
//! default, also contains the program `callboard`; a host program leaves it out by `default-features = false`.

pub use callboard_actors as actors;
pub use callboard_proto as proto;
#[cfg(feature = "cli")]
pub use callboard_simulation as simulation;

/// Threads, their shared data, and their time. Models of threads compile the files that use this module with other types of these names.
mod sync {
    pub(crate) use std::sync::*;
    pub(crate) use std::thread;
    pub(crate) use std::time::Instant;
}

pub mod host;
mod launch;

#[cfg(feature = "cli")]
pub mod config;

pub mod process;

#[cfg(feature = "cli")]
pub mod agent;

#[cfg(feature = "cli")]
pub mod volumes;

#[cfg(feature = "cli")]
pub mod tasks;
#[cfg(feature = "cli")]
pub mod usage;

#[cfg(feature = "cli")]
mod timeline;

#[cfg(feature = "cli")]
pub mod picture;
#[cfg(feature = "cli")]
pub mod script;

#[cfg(feature = "cli")]
pub mod admin;

#[cfg(feature = "cli")]
mod demo;

#[cfg(feature = "cli")]
pub mod command_line;
pub mod duration;
#[cfg(feature = "cli")]
pub mod examiner;
#[cfg(feature = "cli")]
pub mod exec;
#[cfg(feature = "cli")]
pub mod hostpath;
#[cfg(feature = "cli")]
mod logging;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "plugin")]
pub mod plugin;

#[cfg(all(feature = "cli", any(test, fuzzing)))]
pub mod fuzzing;

/// The code of the README compiles.
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../README.md")]
mod readme {}
