//! A lease, and its clients.

use std::fmt;

use callboard_proto::csi::v1::controller_client::ControllerClient;
use callboard_proto::csi::v1::group_controller_client::GroupControllerClient;
use callboard_proto::csi::v1::identity_client::IdentityClient;
use callboard_proto::csi::v1::node_client::NodeClient;
use callboard_proto::csi::v1::snapshot_metadata_client::SnapshotMetadataClient;

use super::channel::LeasedChannel;
use super::connections::Leased;
use crate::sync::Arc;
use crate::vocabulary::{AllocationId, CsiFingerprint, Generation, PluginKey};

/// The permission to call one generation of a plugin, over the connection of its instance. Dropping it returns the lease; calls in flight,
/// and channels and clients made from it, still count until they end.
///
/// It never reconnects: after its connection has ended every call fails with [`LeaseError::Ended`](super::LeaseError::Ended). It can be
/// used from any thread and any runtime.
pub struct Lease {
    token: Arc<Token>,
    fingerprint: Arc<CsiFingerprint>,
}

/// Counts a lease while it, or a channel made from it, exists.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) leased: Arc<Leased>,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.leased.gate.give_back();
    }
}

impl Lease {
    /// A lease that has been counted.
    pub(super) fn new(leased: Arc<Leased>, fingerprint: Arc<CsiFingerprint>) -> Self {
        Self { token: Arc::new(Token { leased }), fingerprint }
    }

    /// The plugin.
    #[must_use]
    pub fn plugin(&self) -> &PluginKey {
        &self.token.leased.plugin
    }

    /// The allocation that serves it.
    #[must_use]
    pub fn allocation(&self) -> &AllocationId {
        &self.token.leased.allocation
    }

    /// The generation that it is bound to.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.token.leased.generation
    }

    /// The fingerprint of this generation: its identity and capabilities.
    #[must_use]
    pub fn fingerprint(&self) -> &Arc<CsiFingerprint> {
        &self.fingerprint
    }

    /// The channel, for any generated client.
    #[must_use]
    pub fn channel(&self) -> LeasedChannel {
        LeasedChannel::new(Arc::clone(&self.token))
    }

    /// A client of the identity service. Answers are limited in size (C011), as those of all clients here.
    #[must_use]
    pub fn identity(&self) -> IdentityClient<LeasedChannel> {
        IdentityClient::new(self.channel()).max_decoding_message_size(self.token.leased.answer_bytes_max)
    }

    /// A client of the controller service.
    #[must_use]
    pub fn controller(&self) -> ControllerClient<LeasedChannel> {
        ControllerClient::new(self.channel()).max_decoding_message_size(self.token.leased.answer_bytes_max)
    }

    /// A client of the group controller service.
    #[must_use]
    pub fn group_controller(&self) -> GroupControllerClient<LeasedChannel> {
        GroupControllerClient::new(self.channel())
            .max_decoding_message_size(self.token.leased.answer_bytes_max)
    }

    /// A client of the snapshot metadata service.
    #[must_use]
    pub fn snapshot_metadata(&self) -> SnapshotMetadataClient<LeasedChannel> {
        SnapshotMetadataClient::new(self.channel())
            .max_decoding_message_size(self.token.leased.answer_bytes_max)
    }

    /// A client of the node service.
    #[must_use]
    pub fn node(&self) -> NodeClient<LeasedChannel> {
        NodeClient::new(self.channel()).max_decoding_message_size(self.token.leased.answer_bytes_max)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Leased { plugin, allocation, generation, .. } = &*self.token.leased;
        f.debug_struct("Lease")
            .field("plugin", plugin)
            .field("allocation", allocation)
            .field("generation", generation)
            .finish_non_exhaustive()
    }
}
