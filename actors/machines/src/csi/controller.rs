//! Requests to the controller about one volume, and their answers.

use std::collections::BTreeMap;
use std::slice;

use super::call::Call;
use super::request::Request;
use super::rules::{self, inconsistent};
use super::secrets::Secrets;
use super::volume::{
    CapacityRange, Context, Volume, VolumeCapability, VolumeStatus, check_capabilities, check_mode,
    check_secrets, supported, withheld,
};
use crate::rpc::Fault;
use crate::vocabulary::{ControllerCapability, CsiFingerprint};

/// Whether the controller of a plugin has a capability.
pub(crate) fn can(plugin: &CsiFingerprint, capability: ControllerCapability) -> bool {
    plugin.controller.as_ref().is_some_and(|offered| offered.contains(&capability))
}

/// Checks that the controller knows the modes of all capabilities (C154).
pub(super) fn check_modes(capabilities: &[VolumeCapability], plugin: &CsiFingerprint) -> Result<(), Fault> {
    let knows_alpha = can(plugin, ControllerCapability::SingleNodeMultiWriter);
    capabilities.iter().try_for_each(|capability| check_mode(capability.access_mode, knows_alpha))
}

/// Checks that mutable parameters are set only for a controller that modifies volumes (C056).
pub(super) fn check_mutable(
    parameters: &BTreeMap<String, String>,
    plugin: &CsiFingerprint,
) -> Result<(), Fault> {
    let needed = ControllerCapability::ModifyVolume;
    let is_supported = parameters.is_empty() || can(plugin, needed);
    supported("C056", "mutable_parameters", needed.as_str(), is_supported)
}

/// Makes a volume available on a node. Answered with the publish context (C074).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerPublishVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// The node, by the id that `NodeGetInfo` gave there (C071).
    pub node_id: String,
    /// How it is to be used.
    pub volume_capability: VolumeCapability,
    /// Whether the node may only read. Needs `PUBLISH_READONLY` (C072).
    pub readonly: bool,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// The context of the volume (C073).
    pub volume_context: Context,
}

impl Request for ControllerPublishVolumeRequest {
    type Answer = Context;
    const CALL: Call = Call::ControllerPublishVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, slice::from_ref(&self.volume_capability))
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::filled("C006", "node_id", &self.node_id, rules::NODE_ID_BYTES_MAX)?;
        self.volume_capability.check()?;
        check_secrets(&self.secrets)?;
        rules::map("volume_context", &self.volume_context)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        let needed = ControllerCapability::PublishReadonly;
        supported("C072", "readonly", needed.as_str(), !self.readonly || can(plugin, needed))?;
        check_modes(slice::from_ref(&self.volume_capability), plugin)
    }

    fn check_answer(&self, publish_context: &Context) -> Result<(), Fault> {
        rules::map("publish_context", publish_context)
    }
}

/// The nodes from which a volume is unpublished.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnpublishFrom {
    /// The node with this id.
    Node(String),
    /// Every node. It takes the volume from workloads elsewhere, too (C080).
    AllNodes,
}

/// The inverse of [`ControllerPublishVolumeRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerUnpublishVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// The nodes from which it is unpublished.
    pub from: UnpublishFrom,
    /// Secrets for this call; the same as for the publish (C081).
    pub secrets: Secrets,
}

impl Request for ControllerUnpublishVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::ControllerUnpublishVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        if let UnpublishFrom::Node(node_id) = &self.from {
            rules::filled("C006", "node_id", node_id, rules::NODE_ID_BYTES_MAX)?;
        }
        check_secrets(&self.secrets)
    }
}

/// Asks whether an existing volume can be used in these ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateVolumeCapabilitiesRequest {
    /// The volume.
    pub volume_id: String,
    /// Its context.
    pub volume_context: Context,
    /// How it is to be used; at least one (C009).
    pub volume_capabilities: Vec<VolumeCapability>,
    /// The parameters that it was created with.
    pub parameters: BTreeMap<String, String>,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// The mutable parameters that it was created with (C056).
    pub mutable_parameters: BTreeMap<String, String>,
}

/// The confirmed part of a [`ValidateVolumeCapabilitiesRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmed {
    /// The context.
    pub volume_context: Context,
    /// The ways in which it can be used.
    pub volume_capabilities: Vec<VolumeCapability>,
    /// The parameters.
    pub parameters: BTreeMap<String, String>,
    /// The mutable parameters.
    pub mutable_parameters: BTreeMap<String, String>,
}

/// The answer to a [`ValidateVolumeCapabilitiesRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidateVolumeCapabilitiesResponse {
    /// The confirmed part; `None` if nothing is confirmed.
    pub confirmed: Option<Confirmed>,
    /// The reason, if not confirmed. Text of the plugin: show it by [`crate::vocabulary::text::quoted`].
    pub message: String,
}

impl ValidateVolumeCapabilitiesResponse {
    /// The fields of the request that are not confirmed as requested; empty if all are (C090). A field that an older plugin does
    /// not know is missing in its answer, and so not confirmed.
    #[must_use]
    pub fn unconfirmed(&self, request: &ValidateVolumeCapabilitiesRequest) -> Vec<&'static str> {
        let nothing = Confirmed::default();
        let confirmed = self.confirmed.as_ref().unwrap_or(&nothing);
        let all = request.volume_capabilities.iter().all(|one| confirmed.volume_capabilities.contains(one));
        let fields = [
            ("volume_capabilities", all),
            ("volume_context", confirmed.volume_context == request.volume_context),
            ("parameters", confirmed.parameters == request.parameters),
            ("mutable_parameters", confirmed.mutable_parameters == request.mutable_parameters),
        ];
        fields.into_iter().filter(|(_, is_confirmed)| !is_confirmed).map(|(field, _)| field).collect()
    }
}

impl Request for ValidateVolumeCapabilitiesRequest {
    type Answer = ValidateVolumeCapabilitiesResponse;
    const CALL: Call = Call::ValidateVolumeCapabilities;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &self.volume_capabilities)
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::map("volume_context", &self.volume_context)?;
        check_capabilities(&self.volume_capabilities)?;
        rules::map("parameters", &self.parameters)?;
        check_secrets(&self.secrets)?;
        rules::map("mutable_parameters", &self.mutable_parameters)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        check_mutable(&self.mutable_parameters, plugin)?;
        check_modes(&self.volume_capabilities, plugin)
    }
}

/// Makes a volume larger at its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerExpandVolumeRequest {
    /// The requested size.
    pub volume_id: String,
    /// How large it is to be.
    pub capacity_range: CapacityRange,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// How it is used: as it was published (C112).
    pub volume_capability: Option<VolumeCapability>,
}

/// The answer to a [`ControllerExpandVolumeRequest`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControllerExpandVolumeResponse {
    /// Its size now, in bytes.
    pub capacity_bytes: u64,
    /// Whether `NodeExpandVolume` has to follow (C111).
    pub node_expansion_required: bool,
}

impl Request for ControllerExpandVolumeRequest {
    type Answer = ControllerExpandVolumeResponse;
    const CALL: Call = Call::ControllerExpandVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, self.volume_capability.as_slice())
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        self.capacity_range.check()?;
        check_secrets(&self.secrets)?;
        self.volume_capability.as_ref().map_or(Ok(()), VolumeCapability::check)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        check_modes(self.volume_capability.as_slice(), plugin)
    }

    fn check_answer(&self, answer: &ControllerExpandVolumeResponse) -> Result<(), Fault> {
        self.capacity_range.check_size(answer.capacity_bytes)
    }
}

/// Changes parameters of a volume. `INVALID_ARGUMENT` means that none was changed (C096).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerModifyVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// The parameters to change, and no others (C096).
    pub mutable_parameters: BTreeMap<String, String>,
}

impl Request for ControllerModifyVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::ControllerModifyVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        check_secrets(&self.secrets)?;
        rules::some("C009", "mutable_parameters", self.mutable_parameters.len())?;
        rules::map("mutable_parameters", &self.mutable_parameters)
    }
}

/// Describes one volume; alpha.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerGetVolumeRequest {
    /// The volume.
    pub volume_id: String,
}

/// The answer to a [`ControllerGetVolumeRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControllerGetVolumeResponse {
    /// The volume.
    pub volume: Volume,
    /// Where it is published, and its condition; `None` if the plugin does not report it.
    pub status: Option<VolumeStatus>,
}

impl Request for ControllerGetVolumeRequest {
    type Answer = ControllerGetVolumeResponse;
    const CALL: Call = Call::ControllerGetVolume;

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)
    }

    fn check_answer(&self, answer: &ControllerGetVolumeResponse) -> Result<(), Fault> {
        answer.volume.check()?;
        if answer.volume.volume_id != self.volume_id {
            return Err(inconsistent("C059", "volume_id", "is not the one that was asked for"));
        }
        answer.status.as_ref().map_or(Ok(()), VolumeStatus::check)
    }
}

#[cfg(test)]
mod tests {
    use super::super::creation::CreateVolumeRequest;
    use super::super::fixtures::{create, fingerprint, map, mount};
    use super::super::volume::{AccessMode, TopologyRequirement, VolumeContentSource};
    use super::*;
    use crate::vocabulary::PluginCapability;

    fn without(removed: ControllerCapability) -> CsiFingerprint {
        let mut plugin = fingerprint();
        plugin.controller.as_mut().expect("it is a controller").retain(|capability| *capability != removed);
        plugin
    }

    fn rule(request: &impl Request, plugin: &CsiFingerprint) -> &'static str {
        request.validate(plugin).expect_err("a rule is broken").fault.rule
    }

    /// Holds C006.
    #[test]
    fn what_a_controller_cannot_do_is_not_asked_of_it_c053_c056_c057_c072_c154() {
        let source = |source| CreateVolumeRequest { volume_content_source: Some(source), ..create() };
        let clone = source(VolumeContentSource::Volume("v".to_owned()));
        assert_eq!(rule(&clone, &without(ControllerCapability::CloneVolume)), "C057");
        assert_eq!(clone.validate(&fingerprint()), Ok(()));
        let restored = source(VolumeContentSource::Snapshot("s".to_owned()));
        assert_eq!(rule(&restored, &without(ControllerCapability::CreateDeleteSnapshot)), "C057");
        let mutable = CreateVolumeRequest { mutable_parameters: map(&[("iops", "9")]), ..create() };
        assert_eq!(rule(&mutable, &without(ControllerCapability::ModifyVolume)), "C056");
        let mut alpha = create();
        alpha.volume_capabilities[0].access_mode = AccessMode::SingleNodeMultiWriter;
        assert_eq!(rule(&alpha, &without(ControllerCapability::SingleNodeMultiWriter)), "C154");
        let place = TopologyRequirement { requisite: vec![map(&[("zone", "a")])], preferred: Vec::new() };
        let placed = CreateVolumeRequest { accessibility_requirements: Some(place), ..create() };
        assert_eq!(placed.validate(&fingerprint()), Ok(()));
        let mut flat = fingerprint();
        flat.plugin = vec![PluginCapability::ControllerService];
        assert_eq!(rule(&placed, &flat), "C053");
        let publish = ControllerPublishVolumeRequest {
            volume_id: "v".to_owned(),
            node_id: "n".repeat(256),
            volume_capability: mount(),
            readonly: true,
            secrets: Secrets::none(),
            volume_context: Context::new(),
        };
        assert_eq!(publish.validate(&fingerprint()), Ok(()));
        assert_eq!(rule(&publish, &without(ControllerCapability::PublishReadonly)), "C072");
        let far = ControllerPublishVolumeRequest { node_id: "n".repeat(257), ..publish };
        assert_eq!(rule(&far, &fingerprint()), "C006");
    }

    #[test]
    fn fields_that_are_silently_dropped_are_not_confirmed_c090() {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: "v".to_owned(),
            volume_context: map(&[("pool", "a")]),
            volume_capabilities: vec![mount()],
            parameters: map(&[("kind", "fast")]),
            secrets: Secrets::none(),
            mutable_parameters: BTreeMap::new(),
        };
        assert_eq!(request.validate(&fingerprint()), Ok(()));
        let mut answer = ValidateVolumeCapabilitiesResponse::default();
        assert_eq!(answer.unconfirmed(&request), ["volume_capabilities", "volume_context", "parameters"]);
        let confirmed = Confirmed {
            volume_context: request.volume_context.clone(),
            volume_capabilities: request.volume_capabilities.clone(),
            parameters: BTreeMap::new(),
            mutable_parameters: BTreeMap::new(),
        };
        answer.confirmed = Some(confirmed.clone());
        assert_eq!(answer.unconfirmed(&request), ["parameters"]);
        answer.confirmed = Some(Confirmed { parameters: request.parameters.clone(), ..confirmed });
        assert_eq!(answer.unconfirmed(&request), [""; 0]);
    }

    #[test]
    fn a_volume_is_unpublished_from_every_node_only_if_that_is_said_c080() {
        let request = |from| ControllerUnpublishVolumeRequest {
            volume_id: "v".to_owned(),
            from,
            secrets: Secrets::none(),
        };
        assert_eq!(request(UnpublishFrom::AllNodes).validate(&fingerprint()), Ok(()));
        assert_eq!(rule(&request(UnpublishFrom::Node(String::new())), &fingerprint()), "C006");
    }

    /// Holds C096.
    #[test]
    fn only_intended_parameters_are_modified_and_another_volume_is_no_answer_c009_c059() {
        let nothing = ControllerModifyVolumeRequest {
            volume_id: "v".to_owned(),
            secrets: Secrets::none(),
            mutable_parameters: BTreeMap::new(),
        };
        assert_eq!(rule(&nothing, &fingerprint()), "C009");
        let get = ControllerGetVolumeRequest { volume_id: "v".to_owned() };
        let volume = |id: &str| ControllerGetVolumeResponse {
            volume: Volume { volume_id: id.to_owned(), ..Volume::default() },
            status: None,
        };
        assert_eq!(get.check_answer(&volume("v")), Ok(()));
        assert_eq!(get.check_answer(&volume("w")).expect_err("another").rule, "C059");
    }
}
