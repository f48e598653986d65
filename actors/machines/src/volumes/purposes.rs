//! The messages that are sent to volumes, and the recipients of the answers.

use crate::kernel::AskId;
use crate::vocabulary::{PluginName, Timestamp};
use crate::volume::{VolumeAsk, VolumeKey};

/// The message type in which an order arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OrderKind {
    Expand,
    TakeSnapshot,
    DeleteSnapshot,
    Modify,
    TakeGroup,
    DeleteGroup,
}

/// The message type in which a question arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReadKind {
    Stats,
    Snapshots,
    Volumes,
    Capacity,
    Validate,
    Group,
}

/// A question that its plugin has not answered yet.
#[derive(Debug, Clone, Hash)]
pub(super) struct Reading {
    pub(super) id: AskId,
    pub(super) kind: ReadKind,
    pub(super) plugin: PluginName,
}

/// The recipient of the answer of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// For the caller of a creation.
    Create(AskId),
    /// For the caller of a deletion.
    Delete(AskId),
    /// For the caller of an order.
    Order(AskId, OrderKind),
    /// For the caller of a claim.
    Claim(AskId),
    /// For the caller of a release.
    Release(AskId),
    /// For the caller of a forced release, which follows.
    Prepare(AskId),
    /// For the caller of a forced release.
    Force(AskId),
    /// It is a part of the answer to the end of an allocation.
    Ended(AskId),
    /// It is a part of the answer to a confirmation of claims.
    Confirmed(AskId),
    /// It decides whether the actor of the volume is still needed.
    Check,
    /// It is ignored.
    Note,
}

/// A message for one volume.
#[derive(Debug, Clone, Hash)]
pub(super) struct Request {
    pub(super) purpose: Purpose,
    /// The end of the timeout of its caller.
    pub(super) until: Timestamp,
    pub(super) ask: VolumeAsk,
}

/// A message that a volume has not answered yet.
#[derive(Debug, Clone, Hash)]
pub(super) struct InFlight {
    pub(super) volume: VolumeKey,
    pub(super) request: Request,
    /// Whether it is a claim of an allocation that was not known to claim the volume.
    pub(super) is_first_claim: bool,
}
