//! The calls that the plugin can answer.

use std::fmt;

use clap::ValueEnum;

/// A call of CSI, by its name in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
#[value(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "each has the name that the specification describes")]
pub enum Call {
    GetPluginInfo,
    GetPluginCapabilities,
    Probe,
    CreateVolume,
    DeleteVolume,
    ControllerPublishVolume,
    ControllerUnpublishVolume,
    ValidateVolumeCapabilities,
    ListVolumes,
    GetCapacity,
    ControllerGetCapabilities,
    CreateSnapshot,
    DeleteSnapshot,
    ListSnapshots,
    GetSnapshot,
    ControllerExpandVolume,
    ControllerGetVolume,
    ControllerModifyVolume,
    GroupControllerGetCapabilities,
    CreateVolumeGroupSnapshot,
    DeleteVolumeGroupSnapshot,
    GetVolumeGroupSnapshot,
    NodeStageVolume,
    NodeUnstageVolume,
    NodePublishVolume,
    NodeUnpublishVolume,
    NodeGetVolumeStats,
    NodeExpandVolume,
    NodeGetCapabilities,
    NodeGetInfo,
}

impl Call {
    /// The call of this name.
    ///
    /// # Errors
    /// When there is none; says which there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let names = || Self::value_variants().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Self::from_str(name, false).map_err(|_| format!("expected one of {}", names()))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
