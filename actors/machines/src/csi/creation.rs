//! Requests to the controller that create and delete a volume, and their answers.

use std::collections::BTreeMap;

use super::call::Call;
use super::controller::{can, check_modes, check_mutable};
use super::request::Request;
use super::rules::{self, inconsistent};
use super::secrets::Secrets;
use super::volume::{
    CapacityRange, TopologyRequirement, Volume, VolumeCapability, VolumeContentSource, check_capabilities,
    check_secrets, supported, withheld,
};
use crate::rpc::Fault;
use crate::vocabulary::text::quoted;
use crate::vocabulary::{ControllerCapability, CsiFingerprint, PluginCapability};

/// Creates a volume. Answered with a [`Volume`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateVolumeRequest {
    /// Chosen by the host, the same for every retry (C050).
    pub name: String,
    /// The requested size; `None` leaves it to the plugin.
    pub capacity_range: Option<CapacityRange>,
    /// The requested ways of use; all at once, at least one (C051).
    pub volume_capabilities: Vec<VolumeCapability>,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// The requested content; `None` for an empty volume. Needs the capability for clones or snapshots (C057).
    pub volume_content_source: Option<VolumeContentSource>,
    /// The places from which it must be accessible. Needs the topology capability (C053).
    pub accessibility_requirements: Option<TopologyRequirement>,
    /// Parameters that can be modified later. They need `MODIFY_VOLUME`, and win over `parameters` (C056).
    pub mutable_parameters: BTreeMap<String, String>,
}

impl Request for CreateVolumeRequest {
    type Answer = Volume;
    const CALL: Call = Call::CreateVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &self.volume_capabilities)
    }

    fn check(&self) -> Result<(), Fault> {
        rules::given_name("name", &self.name)?;
        self.capacity_range.as_ref().map_or(Ok(()), CapacityRange::check)?;
        check_capabilities(&self.volume_capabilities)?;
        rules::map("parameters", &self.parameters)?;
        check_secrets(&self.secrets)?;
        self.volume_content_source.as_ref().map_or(Ok(()), VolumeContentSource::check)?;
        self.accessibility_requirements.as_ref().map_or(Ok(()), TopologyRequirement::check)?;
        rules::map("mutable_parameters", &self.mutable_parameters)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        let (source, place) = ("volume_content_source", "accessibility_requirements");
        let needed = match self.volume_content_source {
            None => None,
            Some(VolumeContentSource::Volume(_)) => Some(ControllerCapability::CloneVolume),
            Some(VolumeContentSource::Snapshot(_)) => Some(ControllerCapability::CreateDeleteSnapshot),
        };
        needed.map_or(Ok(()), |needed| supported("C057", source, needed.as_str(), can(plugin, needed)))?;
        let topology = PluginCapability::VolumeAccessibilityConstraints;
        let is_supported = self.accessibility_requirements.is_none() || plugin.requires_topology();
        supported("C053", place, topology.as_str(), is_supported)?;
        check_mutable(&self.mutable_parameters, plugin)?;
        check_modes(&self.volume_capabilities, plugin)
    }

    /// Does not check the volume against the request; [`check_fit`](Self::check_fit) does: a volume that does not fit still has an id,
    /// which is needed to delete it.
    fn check_answer(&self, volume: &Volume) -> Result<(), Fault> {
        volume.check()
    }
}

impl CreateVolumeRequest {
    /// Checks that a created volume has the requested size (C052), content (C057) and place (C054). A volume that does not still
    /// exists: delete it.
    ///
    /// # Errors
    /// The property that does not fit.
    pub fn check_fit(&self, volume: &Volume) -> Result<(), Fault> {
        self.capacity_range.map_or(Ok(()), |range| range.check_size(volume.capacity_bytes))?;
        if let Some(wanted) = &self.volume_content_source
            && volume.content_source.as_ref() != Some(wanted)
        {
            let is = volume.content_source.as_ref().map_or_else(|| "not set".to_owned(), content);
            let detail = format!("is {is}, and {} was asked for", content(wanted));
            return Err(inconsistent("C057", "content_source", detail));
        }
        let wanted = self.accessibility_requirements.as_ref();
        match wanted.is_none_or(|wanted| wanted.is_met_by(&volume.accessible_topology)) {
            true => Ok(()),
            false => Err(inconsistent("C054", "accessible_topology", "has none of the requisite places")),
        }
    }
}

/// The content of a volume, in words.
fn content(source: &VolumeContentSource) -> String {
    match source {
        VolumeContentSource::Snapshot(id) => format!("snapshot \"{}\"", quoted(id)),
        VolumeContentSource::Volume(id) => format!("volume \"{}\"", quoted(id)),
    }
}

/// Deletes a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// Secrets for this call.
    pub secrets: Secrets,
}

impl Request for DeleteVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::DeleteVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        check_secrets(&self.secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{create, fingerprint, map};
    use super::*;

    fn rule(request: &impl Request, plugin: &CsiFingerprint) -> &'static str {
        request.validate(plugin).expect_err("a rule is broken").fault.rule
    }

    #[test]
    fn a_volume_is_named_usable_and_within_all_sizes_c004_c005_c050_c051_c052() {
        let plugin = fingerprint();
        assert_eq!(create().validate(&plugin), Ok(()));
        let big = map(&[("key", &"v".repeat(4096))]);
        let bad = [
            ("C004", CreateVolumeRequest { name: "n".repeat(129), ..create() }),
            ("C050", CreateVolumeRequest { name: "a\u{7}".to_owned(), ..create() }),
            ("C051", CreateVolumeRequest { volume_capabilities: Vec::new(), ..create() }),
            ("C052", CreateVolumeRequest { capacity_range: Some(CapacityRange::default()), ..create() }),
            ("C005", CreateVolumeRequest { parameters: big.clone(), ..create() }),
            ("C005", CreateVolumeRequest { mutable_parameters: big.clone(), ..create() }),
            ("C023", CreateVolumeRequest { secrets: Secrets::new(map(&[("a b", "c")])), ..create() }),
            (
                "C054",
                CreateVolumeRequest { accessibility_requirements: Some(Default::default()), ..create() },
            ),
        ];
        for (expected, request) in bad {
            assert_eq!(rule(&request, &plugin), expected, "{request:?}");
        }
    }

    #[test]
    fn a_new_volume_has_an_id_a_context_and_a_topology_that_can_be_kept_c004_c005_c055() {
        let request = create();
        let volume = Volume { volume_id: "v".to_owned(), capacity_bytes: 10, ..Volume::default() };
        assert_eq!(request.check_answer(&volume), Ok(()));
        let long = Volume { volume_id: "v".repeat(rules::PLUGIN_TEXT_BYTES_MAX), ..volume.clone() };
        assert_eq!(request.check_answer(&long), Ok(()), "without its id it could not be deleted");
        let bad = [
            ("C004", Volume { volume_id: String::new(), ..volume.clone() }),
            ("C004", Volume { volume_id: "v".repeat(rules::PLUGIN_TEXT_BYTES_MAX + 1), ..volume.clone() }),
            ("C005", Volume { volume_context: map(&[("key", &"v".repeat(4096))]), ..volume.clone() }),
            ("C055", Volume { accessible_topology: vec![map(&[("zone", "")])], ..volume.clone() }),
        ];
        for (expected, volume) in bad {
            assert_eq!(request.check_answer(&volume).expect_err("at fault").rule, expected, "{volume:?}");
        }
    }

    /// Holds C036.
    #[test]
    fn a_new_volume_that_is_not_what_was_asked_for_is_an_answer_and_does_not_fit_c052_c054_c057() {
        let (a, b) = (map(&[("region", "r"), ("zone", "a")]), map(&[("region", "r"), ("zone", "b")]));
        let mut request = create();
        request.capacity_range = Some(CapacityRange { required_bytes: 10, limit_bytes: 20 });
        let volume = Volume { volume_id: "v".to_owned(), capacity_bytes: 10, ..Volume::default() };
        assert_eq!(request.check_fit(&volume), Ok(()));
        let unfit = |request: &CreateVolumeRequest, volume: &Volume| {
            assert_eq!(request.check_answer(volume), Ok(()), "its id is not lost");
            request.check_fit(volume).expect_err("it is not what was asked for").rule
        };
        assert_eq!(unfit(&request, &Volume { capacity_bytes: 9, ..volume.clone() }), "C052");
        assert_eq!(unfit(&request, &Volume { capacity_bytes: 21, ..volume.clone() }), "C052");
        request.volume_content_source = Some(VolumeContentSource::Snapshot("s".to_owned()));
        assert_eq!(unfit(&request, &volume), "C057");
        let told = |content_source| {
            let volume = Volume { content_source, ..volume.clone() };
            request.check_fit(&volume).expect_err("it has another content").to_string()
        };
        assert_eq!(told(None), "content_source is not set, and snapshot \"s\" was asked for");
        let other = told(Some(VolumeContentSource::Volume("v\u{1b}[2J".to_owned())));
        assert_eq!(other, "content_source is volume \"v\\u{1b}[2J\", and snapshot \"s\" was asked for");
        let long = told(Some(VolumeContentSource::Snapshot("s".repeat(9_000))));
        assert!(long.len() < 700 && long.contains("(9000 bytes in all)"), "{long}");
        let restored = Volume { content_source: request.volume_content_source.clone(), ..volume };
        assert_eq!(request.check_fit(&restored), Ok(()));
        let place = TopologyRequirement { requisite: vec![a.clone()], preferred: Vec::new() };
        request.accessibility_requirements = Some(place);
        let at = |accessible_topology| Volume { accessible_topology, ..restored.clone() };
        assert_eq!(unfit(&request, &at(vec![b.clone()])), "C054");
        let in_region = map(&[("Region", "r")]);
        for good in [vec![], vec![b.clone(), a], vec![in_region]] {
            assert_eq!(request.check_fit(&at(good)), Ok(()));
        }
        request.accessibility_requirements =
            Some(TopologyRequirement { requisite: vec![], preferred: vec![map(&[("zone", "c")])] });
        assert_eq!(request.check_fit(&at(vec![b])), Ok(()));
    }
}
