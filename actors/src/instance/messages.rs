//! What can be said to an instance, and what it says.

use std::sync::Arc;

use super::state::Instance;
use crate::conversation;
use crate::vocabulary::{AllocationId, CsiFingerprint, Generation, Health, PluginKey, SocketPath, Timestamp};

/// What is known of one plugin's instance. It is also the instance's news: one is told whenever it differs from the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceReport {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Who serves it.
    pub allocation: AllocationId,
    /// Where.
    pub socket: SocketPath,
    /// Which generation this is.
    pub generation: Generation,
    /// Its health: what is shown here is what routes (I2, HLT-03).
    pub health: Health,
    /// Since when it has been healthy, unhealthy and so on; another reason for being unhealthy does not begin anew.
    pub since: Timestamp,
    /// What it last reported of itself; kept while it is unhealthy.
    pub fingerprint: Option<Arc<CsiFingerprint>>,
    /// Oddities that do not keep it from serving, such as capabilities that differ between instances of one version (C032).
    pub remarks: Vec<String>,
}

/// Asks for a look at the plugin now instead of at its next round. Answered when that look, or the one under way, is over;
/// at once by an instance that retires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookNow;

/// Ends the instance in order: no new call starts, the call in flight ends or is given up, the connection is closed.
/// Answered with the last report, whose health is `Gone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retire;

conversation! {
    /// What is said to an instance.
    #[derive(Clone)]
    pub enum InstanceAsk -> InstanceAnswer for Instance {
        LookNow => InstanceReport,
        Retire => InstanceReport,
    }
}
