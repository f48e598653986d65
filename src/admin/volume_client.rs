//! Requests of a client about volumes and their plugins.

use callboard_proto::admin::v1 as wire;

use super::client::{AdminClient, as_long_as_it_takes};
use super::error::AdminError;

impl AdminClient {
    /// Creates a volume and waits until it exists, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not created, or not created yet.
    pub async fn create_volume(
        &mut self,
        request: wire::CreateVolumeRequest,
    ) -> Result<wire::CreateVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.create_volume(request)).await;
        self.answered(answer)
    }

    /// Deletes a volume and waits until that is confirmed, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not deleted, or not deleted yet.
    pub async fn delete_volume(
        &mut self,
        request: wire::DeleteVolumeRequest,
    ) -> Result<wire::DeleteVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.delete_volume(request)).await;
        self.answered(answer)
    }

    /// Makes the host forget a volume, which stays as it is at its plugin.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not forgotten.
    pub async fn forget_volume(&mut self, name: &str) -> Result<wire::ForgetVolumeResponse, AdminError> {
        let request = wire::ForgetVolumeRequest { name: name.to_owned() };
        let answer = as_long_as_it_takes(self.client.forget_volume(request)).await;
        self.answered(answer)
    }

    /// Expands a volume and waits until that is confirmed, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not expanded, or not expanded yet.
    pub async fn expand_volume(
        &mut self,
        request: wire::ExpandVolumeRequest,
    ) -> Result<wire::ExpandVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.expand_volume(request)).await;
        self.answered(answer)
    }

    /// Reads the usage of a volume, and its condition.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when they are not known now.
    pub async fn volume_stats(
        &mut self,
        request: wire::GetVolumeStatsRequest,
    ) -> Result<wire::GetVolumeStatsResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.get_volume_stats(request)).await;
        self.answered(answer)
    }

    /// Takes a snapshot of a volume and waits until it is ready, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not taken, or not taken yet.
    pub async fn create_snapshot(
        &mut self,
        request: wire::CreateSnapshotRequest,
    ) -> Result<wire::CreateSnapshotResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.create_snapshot(request)).await;
        self.answered(answer)
    }

    /// Deletes a snapshot and waits until that is confirmed, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not deleted, or not deleted yet.
    pub async fn delete_snapshot(
        &mut self,
        request: wire::DeleteSnapshotRequest,
    ) -> Result<wire::DeleteSnapshotResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.delete_snapshot(request)).await;
        self.answered(answer)
    }

    /// Takes snapshots of several volumes at once and waits until all are ready, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when they are not taken, or not taken yet.
    pub async fn create_group_snapshot(
        &mut self,
        request: wire::CreateGroupSnapshotRequest,
    ) -> Result<wire::CreateGroupSnapshotResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.create_group_snapshot(request)).await;
        self.answered(answer)
    }

    /// Deletes a group of snapshots and waits until that is confirmed, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not deleted, or not deleted yet.
    pub async fn delete_group_snapshot(
        &mut self,
        request: wire::DeleteGroupSnapshotRequest,
    ) -> Result<wire::DeleteGroupSnapshotResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.delete_group_snapshot(request)).await;
        self.answered(answer)
    }

    /// Describes a group of snapshots.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the plugin does not describe it now.
    pub async fn get_group_snapshot(
        &mut self,
        request: wire::GetGroupSnapshotRequest,
    ) -> Result<wire::GetGroupSnapshotResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.get_group_snapshot(request)).await;
        self.answered(answer)
    }

    /// Lists a page of the snapshots that a plugin has.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the plugin does not list them now.
    pub async fn list_snapshots(
        &mut self,
        request: wire::ListSnapshotsRequest,
    ) -> Result<wire::ListSnapshotsResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.list_snapshots(request)).await;
        self.answered(answer)
    }

    /// Lists a page of the volumes that a plugin has.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the plugin does not list them now.
    pub async fn list_plugin_volumes(
        &mut self,
        request: wire::ListPluginVolumesRequest,
    ) -> Result<wire::ListPluginVolumesResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.list_plugin_volumes(request)).await;
        self.answered(answer)
    }

    /// Reads the free capacity of a plugin for new volumes.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the plugin does not report it now.
    pub async fn get_plugin_capacity(
        &mut self,
        request: wire::GetPluginCapacityRequest,
    ) -> Result<wire::GetPluginCapacityResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.get_plugin_capacity(request)).await;
        self.answered(answer)
    }

    /// Asks whether a volume can be used in this way.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the plugin does not report it now.
    pub async fn validate_volume(
        &mut self,
        request: wire::ValidateVolumeRequest,
    ) -> Result<wire::ValidateVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.validate_volume(request)).await;
        self.answered(answer)
    }

    /// Changes parameters of a volume and waits until that is confirmed, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when they are not changed, or not changed yet.
    pub async fn modify_volume(
        &mut self,
        request: wire::ModifyVolumeRequest,
    ) -> Result<wire::ModifyVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.modify_volume(request)).await;
        self.answered(answer)
    }

    /// Claims a volume and waits until its mount is proven, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not claimed, or not ready yet.
    pub async fn claim_volume(
        &mut self,
        request: wire::ClaimVolumeRequest,
    ) -> Result<wire::ClaimVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.claim_volume(request)).await;
        self.answered(answer)
    }

    /// Releases a claim of an allocation whose processes have ended, and waits until that is confirmed, up to the timeout in the request.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when it is not released, or not released yet.
    pub async fn release_volume(
        &mut self,
        request: wire::ReleaseVolumeRequest,
    ) -> Result<wire::ReleaseVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.release_volume(request)).await;
        self.answered(answer)
    }

    /// Forgets what is released and not confirmed down.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when nothing is forgotten.
    pub async fn force_release_volume(
        &mut self,
        request: wire::ForceReleaseVolumeRequest,
    ) -> Result<wire::ForceReleaseVolumeResponse, AdminError> {
        let answer = as_long_as_it_takes(self.client.force_release_volume(request)).await;
        self.answered(answer)
    }
}
