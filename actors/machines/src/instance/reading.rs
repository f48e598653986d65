//! The answers that were read over one connection, and the calls that are still missing.

use std::fmt;
use std::sync::Arc;

use super::state::{Half, InstanceConfig};
use crate::csi::{Answer, Fault, Readiness, Rpc, check_same_plugin, check_same_provider, quoted};
use crate::vocabulary::{
    ControllerCapability, CsiFingerprint, Expansion, GroupControllerCapability, Identity, NodeCapability,
    NodeInfo, PluginCapability,
};

/// An answer that a plugin may decline (C019).
#[derive(Debug, Clone, Hash)]
enum Answered<T> {
    With(T),
    Declined,
}

#[derive(Debug, Clone, Hash)]
struct Offers {
    capabilities: Vec<PluginCapability>,
    expansion: Vec<Expansion>,
}

impl Offers {
    fn has_controller(&self) -> bool {
        self.capabilities.contains(&PluginCapability::ControllerService)
    }

    fn has_group_controller(&self) -> bool {
        self.capabilities.contains(&PluginCapability::GroupControllerService)
    }
}

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Reading {
    identity: Option<Identity>,
    offers: Option<Offers>,
    is_ready: bool,
    controller: Option<Answered<Vec<ControllerCapability>>>,
    group_controller: Option<Answered<Vec<GroupControllerCapability>>>,
    node: Option<Vec<NodeCapability>>,
    node_info: Option<Answered<NodeInfo>>,
    /// What was remarked about these answers.
    remarks: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Next {
    Ask(Rpc),
    Complete(Arc<CsiFingerprint>, Vec<String>),
}

#[derive(Debug)]
pub(super) enum Refusal {
    /// It is not ready (C039).
    NotReady,
    Broken(String),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Broken(format!("faulty answer, {fault}"))
    }
}

impl Reading {
    /// The next call. Before anything but the identity service is called, the plugin must have answered ready (C039).
    pub(super) fn next(&self, half: Half) -> Next {
        let (Some(identity), Some(offers)) = (&self.identity, &self.offers) else {
            return Next::Ask(if self.identity.is_none() {
                Rpc::PluginInfo
            } else {
                Rpc::PluginCapabilities
            });
        };
        if !self.is_ready {
            return Next::Ask(Rpc::Probe);
        }
        let fingerprint = CsiFingerprint {
            identity: identity.clone(),
            plugin: offers.capabilities.clone(),
            expansion: offers.expansion.clone(),
            controller: None,
            group_controller: None,
            node: None,
            node_info: None,
        };
        match half {
            Half::Controller => self.next_of_controller(fingerprint, offers),
            Half::Node => self.next_of_node(fingerprint, offers),
        }
    }

    fn next_of_controller(&self, fingerprint: CsiFingerprint, offers: &Offers) -> Next {
        let Some(Answered::With(controller)) = &self.controller else {
            return Next::Ask(Rpc::ControllerCapabilities);
        };
        let fingerprint = CsiFingerprint { controller: Some(controller.clone()), ..fingerprint };
        if !offers.has_group_controller() {
            return self.complete(fingerprint, None);
        }
        match &self.group_controller {
            None => Next::Ask(Rpc::GroupControllerCapabilities),
            Some(Answered::With(groups)) => {
                self.complete(CsiFingerprint { group_controller: Some(groups.clone()), ..fingerprint }, None)
            }
            Some(Answered::Declined) => self.complete(fingerprint, Some(NO_GROUPS)),
        }
    }

    fn next_of_node(&self, fingerprint: CsiFingerprint, offers: &Offers) -> Next {
        let Some(node) = &self.node else { return Next::Ask(Rpc::NodeCapabilities) };
        let fingerprint = CsiFingerprint { node: Some(node.clone()), ..fingerprint };
        match (&self.node_info, &self.controller) {
            (None, _) => Next::Ask(Rpc::NodeInfo),
            (Some(Answered::With(info)), _) => {
                self.complete(CsiFingerprint { node_info: Some(info.clone()), ..fingerprint }, None)
            }
            (Some(Answered::Declined), None) if offers.has_controller() => {
                Next::Ask(Rpc::ControllerCapabilities)
            }
            (Some(Answered::Declined), None | Some(Answered::With(_))) => self.complete(fingerprint, None),
            (Some(Answered::Declined), Some(Answered::Declined)) => {
                self.complete(fingerprint, Some(UNDECIDED))
            }
        }
    }

    pub(super) fn take(
        &mut self,
        answer: Answer,
        config: &InstanceConfig,
        known: Option<&CsiFingerprint>,
    ) -> Result<(), Refusal> {
        match answer {
            Answer::PluginInfo(identity) => {
                check_name(&identity, config, known)?;
                self.identity = Some(identity);
            }
            Answer::PluginCapabilities { capabilities, expansion } => {
                let offers = Offers { capabilities, expansion };
                if config.half == Half::Controller && !offers.has_controller() {
                    return Err(Refusal::Broken(NO_CONTROLLER.to_owned()));
                }
                self.offers = Some(offers);
            }
            Answer::Probe(Readiness::Ready) => self.is_ready = true,
            Answer::Probe(Readiness::NotReady) => return Err(Refusal::NotReady),
            Answer::ControllerCapabilities(controller) => self.take_controller(controller, config.half)?,
            Answer::GroupControllerCapabilities(groups) => {
                self.group_controller = Some(Answered::With(groups));
            }
            Answer::NodeCapabilities(node) => self.node = Some(node),
            Answer::NodeInfo(info) => self.node_info = Some(Answered::With(info)),
        }
        Ok(())
    }

    /// A node half is asked for these only when it declined `NodeGetInfo` (C146).
    fn take_controller(&mut self, controller: Vec<ControllerCapability>, half: Half) -> Result<(), Refusal> {
        let publishes = controller.contains(&ControllerCapability::PublishUnpublishVolume);
        if half == Half::Node && publishes {
            self.node_info = None;
            return Err(Refusal::Broken(NODE_UNNAMED.to_owned()));
        }
        self.controller = Some(Answered::With(controller));
        Ok(())
    }

    /// Records that the plugin does not implement a call. False means that the call is mandatory.
    pub(super) fn declined(&mut self, rpc: Rpc, half: Half) -> bool {
        match (half, rpc) {
            (Half::Node, Rpc::NodeInfo) => self.node_info = Some(Answered::Declined),
            (Half::Node, Rpc::ControllerCapabilities) => self.controller = Some(Answered::Declined),
            (Half::Controller, Rpc::GroupControllerCapabilities) => {
                self.group_controller = Some(Answered::Declined);
            }
            (Half::Node, Rpc::GroupControllerCapabilities)
            | (Half::Controller, Rpc::NodeInfo | Rpc::ControllerCapabilities)
            | (
                Half::Controller | Half::Node,
                Rpc::PluginInfo | Rpc::PluginCapabilities | Rpc::Probe | Rpc::NodeCapabilities,
            ) => return false,
        }
        true
    }

    /// Keeps what is remarked about an answer until another connection is read.
    pub(super) fn remark(&mut self, remarks: &[String]) {
        for remark in remarks {
            if !self.remarks.contains(remark) {
                self.remarks.push(remark.clone());
            }
        }
    }

    fn complete(&self, fingerprint: CsiFingerprint, remark: Option<&str>) -> Next {
        let remarks = self.remarks.iter().cloned().chain(remark.map(str::to_owned));
        Next::Complete(Arc::new(fingerprint), remarks.collect())
    }

    /// Forgets the readiness, so that the next check begins with a probe.
    pub(super) const fn forget_readiness(&mut self) {
        self.is_ready = false;
    }
}

/// A remark, for this half cannot know it (C146).
const UNDECIDED: &str = "NodeGetInfo is not implemented, and whether the controller needs a node id cannot be told from here; \
                         if it does, its volumes cannot be published on this node";
/// A refusal (C033).
const NO_CONTROLLER: &str = "CONTROLLER_SERVICE is not named, so no call of a controller may be made; \
                             register it as a node plugin (`type = \"node\"` of its allocation), or look into its configuration";
/// A remark: the other services of the controller serve (C034).
const NO_GROUPS: &str = "GROUP_CONTROLLER_SERVICE is named and GroupControllerGetCapabilities is not implemented, so no call of a \
                         group controller may be made; report it to the plugin's vendor";
/// A refusal (C146).
const NODE_UNNAMED: &str = "NodeGetInfo is not implemented although the controller has PUBLISH_UNPUBLISH_VOLUME and needs a \
                            node id; report it to the plugin's vendor";

/// Compares the plugin's own name with its registration and with the previous generation (C031).
fn check_name(
    identity: &Identity,
    config: &InstanceConfig,
    known: Option<&CsiFingerprint>,
) -> Result<(), Refusal> {
    if let Some(known) = known {
        check_same_provider(&known.identity, identity)?;
    }
    match &config.expected_provider {
        Some(expected) if *expected != identity.provider => Err(Refusal::Broken(format!(
            "it is registered as \"{}\" and calls itself \"{}\"",
            quoted(expected),
            quoted(&identity.provider)
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The remark about a fingerprint that differs from the previous one (C032).
pub(super) fn remark(now: &CsiFingerprint, known: Option<&Arc<CsiFingerprint>>) -> Option<String> {
    known.and_then(|known| check_same_plugin(known, now).err()).map(|fault| fault.to_string())
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady => f.write_str("the plugin says that it is not ready; wait for it"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}
