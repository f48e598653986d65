//! Requests to the node service about one volume, and their answers.

use std::slice;

use super::call::Call;
use super::request::Request;
use super::rules::{self, inconsistent};
use super::secrets::Secrets;
use super::volume::{CapacityRange, Context, VolumeCapability, VolumeCondition, check_secrets, withheld};
use crate::rpc::Fault;
use crate::vocabulary::{ControllerCapability, CsiFingerprint, NodeCapability};

fn node(plugin: &CsiFingerprint) -> &[NodeCapability] {
    plugin.node.as_deref().unwrap_or_default()
}

/// Checks that a publish context is set only for a plugin that attaches volumes (C127). The fingerprint of a node half lacks the
/// controller capabilities; then every plugin with a controller may attach.
fn check_publish_context(context: &Context, plugin: &CsiFingerprint) -> Result<(), Fault> {
    let attaches = match &plugin.controller {
        Some(controller) => controller.contains(&ControllerCapability::PublishUnpublishVolume),
        None => plugin.requires_controller(),
    };
    match context.is_empty() || attaches {
        true => Ok(()),
        false => Err(inconsistent(
            "C127",
            "publish_context",
            "is set, and the plugin does not report PUBLISH_UNPUBLISH_VOLUME",
        )),
    }
}

/// Checks a path that may be left out.
fn check_optional_path(rule: &'static str, field: &'static str, path: Option<&String>) -> Result<(), Fault> {
    path.map_or(Ok(()), |path| rules::path(rule, field, path))
}

/// Prepares a volume on this node, once for all its users (C123).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStageVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// The answer of `ControllerPublishVolume`; empty if the plugin does not attach (C074, C127).
    pub publish_context: Context,
    /// An absolute path of a directory that the host has made, as the plugin sees it (C125, C126).
    pub staging_target_path: String,
    /// How it is to be used.
    pub volume_capability: VolumeCapability,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// The context of the volume (C059).
    pub volume_context: Context,
}

impl Request for NodeStageVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::NodeStageVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, slice::from_ref(&self.volume_capability))
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::map("publish_context", &self.publish_context)?;
        rules::path("C125", "staging_target_path", &self.staging_target_path)?;
        self.volume_capability.check()?;
        check_secrets(&self.secrets)?;
        rules::map("volume_context", &self.volume_context)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        check_publish_context(&self.publish_context, plugin)?;
        self.volume_capability.check_node(node(plugin))
    }
}

/// The inverse of [`NodeStageVolumeRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUnstageVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// The path that it was staged at (C130, C133).
    pub staging_target_path: String,
}

impl Request for NodeUnstageVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::NodeUnstageVolume;

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::path("C125", "staging_target_path", &self.staging_target_path)
    }
}

/// Makes a volume available at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePublishVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// The answer of `ControllerPublishVolume`; empty if the plugin does not attach (C074, C127).
    pub publish_context: Context,
    /// The path that it is staged at: set if and only if the plugin stages (C135).
    pub staging_target_path: Option<String>,
    /// The path where it appears: absolute; the plugin makes it below a directory that the host has made (C136).
    pub target_path: String,
    /// How it is to be used.
    pub volume_capability: VolumeCapability,
    /// Whether it may only be read at this path.
    pub readonly: bool,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// The context of the volume (C059).
    pub volume_context: Context,
}

impl Request for NodePublishVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::NodePublishVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, slice::from_ref(&self.volume_capability))
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::map("publish_context", &self.publish_context)?;
        check_optional_path("C125", "staging_target_path", self.staging_target_path.as_ref())?;
        rules::path("C136", "target_path", &self.target_path)?;
        self.volume_capability.check()?;
        check_secrets(&self.secrets)?;
        rules::map("volume_context", &self.volume_context)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        check_publish_context(&self.publish_context, plugin)?;
        let told = |detail: &str| Err(inconsistent("C135", "staging_target_path", detail));
        match (plugin.stages(), &self.staging_target_path) {
            (true, None) => told("is not set, and the plugin reports STAGE_UNSTAGE_VOLUME"),
            (false, Some(_)) => told("is set, and the plugin does not report STAGE_UNSTAGE_VOLUME"),
            (true, Some(_)) | (false, None) => self.volume_capability.check_node(node(plugin)),
        }
    }
}

/// The inverse of [`NodePublishVolumeRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUnpublishVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// The path that it was published at (C141).
    pub target_path: String,
}

impl Request for NodeUnpublishVolumeRequest {
    type Answer = ();
    const CALL: Call = Call::NodeUnpublishVolume;

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::path("C136", "target_path", &self.target_path)
    }
}

/// Asks how full a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGetVolumeStatsRequest {
    /// The volume.
    pub volume_id: String,
    /// A path that it is staged or published at.
    pub volume_path: String,
    /// The path that it is staged at; to be set if it is staged (C144).
    pub staging_target_path: Option<String>,
}

/// The unit of a [`VolumeUsage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UsageUnit {
    /// Bytes.
    Bytes,
    /// Inodes.
    Inodes,
    /// A unit that this version does not know, by its number (C026).
    Other(i32),
}

/// How full a volume is, in one unit. Zero may also mean that the plugin left it out (C145).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeUsage {
    /// The free amount.
    pub available: u64,
    /// The total amount.
    pub total: u64,
    /// The used amount.
    pub used: u64,
    /// The unit.
    pub unit: UsageUnit,
}

/// The answer to a [`NodeGetVolumeStatsRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeGetVolumeStatsResponse {
    /// How full it is, one entry for each unit.
    pub usage: Vec<VolumeUsage>,
    /// Its condition; `None` if the plugin does not report it; alpha (C095).
    pub volume_condition: Option<VolumeCondition>,
}

impl Request for NodeGetVolumeStatsRequest {
    type Answer = NodeGetVolumeStatsResponse;
    const CALL: Call = Call::NodeGetVolumeStats;

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::path("C008", "volume_path", &self.volume_path)?;
        check_optional_path("C125", "staging_target_path", self.staging_target_path.as_ref())
    }
}

/// Makes a volume larger on this node, after `ControllerExpandVolume` if that requires it (C111, C149).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeExpandVolumeRequest {
    /// The volume.
    pub volume_id: String,
    /// A path that it is staged or published at.
    pub volume_path: String,
    /// The requested size; `None` for the size of its storage.
    pub capacity_range: Option<CapacityRange>,
    /// The path that it is staged at; to be set if it is staged (C151).
    pub staging_target_path: Option<String>,
    /// How it is used: as it was staged or published.
    pub volume_capability: Option<VolumeCapability>,
    /// Secrets for this call; alpha.
    pub secrets: Secrets,
}

/// The answer to a [`NodeExpandVolumeRequest`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeExpandVolumeResponse {
    /// Its size now, in bytes; zero if the plugin does not report it.
    pub capacity_bytes: u64,
}

impl Request for NodeExpandVolumeRequest {
    type Answer = NodeExpandVolumeResponse;
    const CALL: Call = Call::NodeExpandVolume;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, self.volume_capability.as_slice())
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::path("C008", "volume_path", &self.volume_path)?;
        self.capacity_range.as_ref().map_or(Ok(()), CapacityRange::check)?;
        check_optional_path("C125", "staging_target_path", self.staging_target_path.as_ref())?;
        self.volume_capability.as_ref().map_or(Ok(()), VolumeCapability::check)?;
        check_secrets(&self.secrets)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        self.volume_capability.as_ref().map_or(Ok(()), |capability| capability.check_node(node(plugin)))
    }

    fn check_answer(&self, answer: &NodeExpandVolumeResponse) -> Result<(), Fault> {
        self.capacity_range.map_or(Ok(()), |range| range.check_size(answer.capacity_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{fingerprint, map, mount};
    use super::*;

    fn publish(staging_target_path: Option<&str>) -> NodePublishVolumeRequest {
        NodePublishVolumeRequest {
            volume_id: "v".to_owned(),
            publish_context: Context::new(),
            staging_target_path: staging_target_path.map(str::to_owned),
            target_path: "/targets/v".to_owned(),
            volume_capability: mount(),
            readonly: false,
            secrets: Secrets::none(),
            volume_context: Context::new(),
        }
    }

    fn without(removed: &[NodeCapability]) -> CsiFingerprint {
        let mut plugin = fingerprint();
        plugin.node.as_mut().expect("it is a node").retain(|capability| !removed.contains(capability));
        plugin
    }

    #[test]
    fn the_staging_path_is_set_if_and_only_if_the_plugin_stages_c135() {
        let unstaged = without(&[NodeCapability::StageUnstageVolume]);
        assert_eq!(publish(Some("/stage")).validate(&fingerprint()), Ok(()));
        assert_eq!(publish(None).validate(&unstaged), Ok(()));
        for error in [publish(None).validate(&fingerprint()), publish(Some("/stage")).validate(&unstaged)] {
            assert_eq!(error.expect_err("the wrong way round").fault.rule, "C135");
        }
    }

    #[test]
    fn a_publish_context_is_only_for_plugins_that_attach_c127() {
        let mut request = publish(Some("/stage"));
        request.publish_context = map(&[("device", "/dev/sdb")]);
        assert_eq!(request.validate(&fingerprint()), Ok(()));
        let mut plugin = fingerprint();
        plugin.controller = Some(vec![ControllerCapability::CreateDeleteVolume]);
        assert_eq!(request.validate(&plugin).expect_err("it does not attach").fault.rule, "C127");
        plugin.controller = None;
        assert_eq!(request.validate(&plugin), Ok(()));
        plugin.plugin.clear();
        assert_eq!(request.validate(&plugin).expect_err("it has no controller").fault.rule, "C127");
        request.publish_context.clear();
        assert_eq!(request.validate(&plugin), Ok(()));
    }

    #[test]
    fn every_path_is_absolute_c125_c136() {
        let rule = |request: &NodePublishVolumeRequest| request.check().expect_err("relative").rule;
        assert_eq!(rule(&publish(Some("stage"))), "C125");
        let relative = NodePublishVolumeRequest { target_path: "t".to_owned(), ..publish(None) };
        assert_eq!(rule(&relative), "C136");
        let unstage = NodeUnstageVolumeRequest { volume_id: "v".into(), staging_target_path: "/a/..".into() };
        assert_eq!(unstage.check().expect_err("it climbs").rule, "C125");
        let unpublish = NodeUnpublishVolumeRequest { volume_id: String::new(), target_path: "/t".into() };
        assert_eq!(unpublish.check().expect_err("no id").rule, "C004");
        let stats = NodeGetVolumeStatsRequest {
            volume_id: "v".into(),
            volume_path: "v".into(),
            staging_target_path: None,
        };
        assert_eq!(stats.check().expect_err("relative").rule, "C008");
    }

    #[test]
    fn a_volume_that_did_not_grow_enough_is_a_fault_c052() {
        let request = NodeExpandVolumeRequest {
            volume_id: "v".to_owned(),
            volume_path: "/targets/v".to_owned(),
            capacity_range: Some(CapacityRange { required_bytes: 10, limit_bytes: 0 }),
            staging_target_path: None,
            volume_capability: Some(mount()),
            secrets: Secrets::none(),
        };
        assert_eq!(request.validate(&fingerprint()), Ok(()));
        let answer = |capacity_bytes| request.check_answer(&NodeExpandVolumeResponse { capacity_bytes });
        assert_eq!((answer(10), answer(0)), (Ok(()), Ok(())));
        assert_eq!(answer(9).expect_err("too small").rule, "C052");
        assert!(request.validate(&without(&[NodeCapability::ExpandVolume])).is_err());
    }
}
