//! Probe settings for the plugin of an allocation, where they differ from those of the host.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::AllocationId;

/// The processes that may listen at the socket of an allocation whose process is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ListenerRule {
    /// That process, or a process that is proven to belong to it.
    #[default]
    Own,
    /// Any process: a process started by a container runtime or systemd has no evidence of where it belongs.
    Any,
}

impl fmt::Display for ListenerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Any => "any",
        })
    }
}

/// How the plugin of an allocation is probed. `None`: as everywhere on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Probing {
    /// How often it is probed while it is healthy.
    pub interval: Option<Duration>,
    /// The timeout of each call.
    pub call_deadline: Option<Duration>,
    /// How many consecutive rounds must fail before it is unhealthy.
    pub failures_until_unhealthy: Option<u32>,
    /// How long its offer is kept after it has left.
    pub restart_grace: Option<Duration>,
    /// Whether an answer with a harmless deviation from the specification is refused instead of accepted with a remark (C030, C147).
    pub strict: Option<bool>,
    /// The processes that may listen at its socket.
    pub listener: ListenerRule,
}

/// How the plugins of these allocations are probed.
pub type Probings = Arc<BTreeMap<AllocationId, Probing>>;
