//! The messages and notifications of an instance.

use std::sync::Arc;

use crate::conversation;
use crate::lease::RetireCause;
use crate::vocabulary::{
    AllocationId, Attempt, CsiFingerprint, Fitness, Generation, Health, PluginKey, SocketPath, Timestamp,
};

/// The state of one plugin's instance, published as a notification whenever it changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceReport {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// Its socket.
    pub socket: SocketPath,
    /// The generation of its registration, which is also the generation of the connection.
    pub generation: Generation,
    /// Its health; the same value decides about routing (I2, HLT-03).
    pub health: Health,
    /// When its health changed to this kind. Another reason for being unhealthy does not reset it.
    pub since: Timestamp,
    /// Whether work may be routed to it: fitness tolerates failures for longer than health does (R1b). A change of fitness alone is not
    /// published to subscribers of the instances.
    pub fitness: Fitness,
    /// Its last fingerprint; kept while it is unhealthy.
    pub fingerprint: Option<Arc<CsiFingerprint>>,
    /// Anomalies that do not prevent it from serving, such as other capabilities under the same version (C032).
    pub remarks: Vec<String>,
}

/// Requests a check of the plugin now instead of in its next round. Answered at the end of that check, or of the check in
/// progress; an instance that retires answers at once.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LookNow;

/// Ends the instance gracefully: no new call starts, the call in flight ends or is cancelled, the connection is closed.
/// Answered with the last report, which has the health `Gone`.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retire {
    /// The reason.
    pub cause: RetireCause,
}

/// Notifies an instance that a connection has ended: the plugin closed it, or its process is gone. From any sender but the connection
/// itself it has no effect.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectionEnded {
    /// The number of the connection, counted from the first dial of the instance.
    pub connection: Attempt,
    /// The reason why the plugin was cut off, if it was.
    pub cut_off: Option<String>,
}

conversation! {
    /// The messages of an instance.
    #[derive(Clone, Hash)]
    pub enum InstanceAsk -> #[derive(Hash)] InstanceAnswer {
        LookNow => InstanceReport,
        Retire => InstanceReport,
        ConnectionEnded => (),
    }
}
