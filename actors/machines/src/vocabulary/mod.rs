//! The domain terms of Callboard as types.
//!
//! All other modules import from here, and this module imports none of ours. The types are plain data with their own checks: a
//! value that exists is well formed (R9), so no actor checks a name or a path twice.
//!
//! They are neither wire types nor rows: conversions live at the edges, in `csi` and in the `rows` of each actor that stores.

mod allowance;
mod backoff;
mod endpoint;
mod failover;
mod fingerprint;
mod fitness;
mod health;
mod hex;
mod names;
mod number;
mod plugin;
mod probing;
mod recent;
mod registration;
pub mod text;
mod time;
mod waited;

pub use allowance::{Allowance, Rate};
pub use backoff::{Backoff, BackoffState, RestartBudget, RestartHistory};
pub use endpoint::{MalformedEndpoint, SOCKET_PATH_BYTES_MAX, SocketPath};
pub use failover::{FailoverPolicy, MalformedPolicy};
pub use fingerprint::{
    ControllerCapability, CsiFingerprint, Expansion, GroupControllerCapability, Identity, NodeCapability,
    NodeInfo, PluginCapability, Topology,
};
pub use fitness::Fitness;
pub use health::Health;
pub use hex::hex;
pub use names::{
    AllocationId, DriverName, MalformedName, NAME_BYTES_MAX, PluginName, TaskName, VolumeName,
    VolumeNamespace,
};
pub use number::{Attempt, Generation, RegistrationNumber, RunNumber};
pub use plugin::{Family, PluginKey, PluginType, Role, UnknownPluginType};
pub use probing::{ListenerRule, Probing, Probings};
pub use recent::{Folded, RECENT_ENTRIES, Recent};
pub use registration::Registration;
pub use time::{Moment, Timestamp, milliseconds};
pub use waited::told_wait;
