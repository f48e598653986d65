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

fn given<T: Clone>(answered: &Answered<T>) -> Option<T> {
    match answered {
        Answered::With(answer) => Some(answer.clone()),
        Answered::Declined => None,
    }
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

/// The answers that were read over one connection.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Reading {
    is_ready: bool,
    read: Read,
    /// The remarks about the answers.
    remarks: Vec<String>,
}

/// How much was read. Each later round only probes, so the answers are not kept beside the fingerprint that is built from them.
#[derive(Debug, Clone, Hash)]
enum Read {
    Partly(Box<Answers>),
    Whole(Arc<CsiFingerprint>),
}

#[derive(Debug, Clone, Hash, Default)]
struct Answers {
    identity: Option<Identity>,
    offers: Option<Offers>,
    controller: Option<Answered<Vec<ControllerCapability>>>,
    group_controller: Option<Answered<Vec<GroupControllerCapability>>>,
    node: Option<Vec<NodeCapability>>,
    node_info: Option<Answered<NodeInfo>>,
}

impl Default for Read {
    fn default() -> Self {
        Self::Partly(Box::default())
    }
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
    /// The next call. Before any service except the identity service is called, the plugin must have answered ready (C039).
    pub(super) fn next(&mut self, half: Half) -> Next {
        if let Read::Partly(answers) = &self.read {
            match answers.fingerprint(self.is_ready, half) {
                Err(missing) => return Next::Ask(missing),
                Ok(fingerprint) => {
                    self.remarks.extend(answers.remark(half).map(str::to_owned));
                    self.read = Read::Whole(Arc::new(fingerprint));
                }
            }
        }
        match &self.read {
            Read::Whole(fingerprint) if self.is_ready => {
                Next::Complete(Arc::clone(fingerprint), self.remarks.clone())
            }
            Read::Whole(_) | Read::Partly(_) => Next::Ask(Rpc::Probe),
        }
    }

    pub(super) fn take(
        &mut self,
        answer: Answer,
        config: &InstanceConfig,
        known: Option<&CsiFingerprint>,
    ) -> Result<(), Refusal> {
        match (answer, &mut self.read) {
            (Answer::Probe(Readiness::Ready), _) => self.is_ready = true,
            (Answer::Probe(Readiness::NotReady), _) => return Err(Refusal::NotReady),
            (answer, Read::Partly(answers)) => answers.take(answer, config, known)?,
            // Only its readiness is asked for.
            (_, Read::Whole(_)) => {}
        }
        Ok(())
    }

    /// Records that the plugin does not implement a call. False means that the call is mandatory.
    pub(super) fn declined(&mut self, rpc: Rpc, half: Half) -> bool {
        match &mut self.read {
            Read::Partly(answers) => answers.decline(rpc, half),
            Read::Whole(_) => false,
        }
    }

    /// Keeps the remarks about an answer until another connection is read.
    pub(super) fn remark(&mut self, remarks: &[String]) {
        for remark in remarks {
            if !self.remarks.contains(remark) {
                self.remarks.push(remark.clone());
            }
        }
    }

    /// Forgets the readiness, so that the next check begins with a probe.
    pub(super) const fn forget_readiness(&mut self) {
        self.is_ready = false;
    }
}

impl Answers {
    /// The fingerprint that the answers form, or the next missing call. A node half's answers about the controller are not part of it.
    fn fingerprint(&self, is_ready: bool, half: Half) -> Result<CsiFingerprint, Rpc> {
        let identity = self.identity.as_ref().ok_or(Rpc::PluginInfo)?;
        let offers = self.offers.as_ref().ok_or(Rpc::PluginCapabilities)?;
        if !is_ready {
            return Err(Rpc::Probe);
        }
        let missing = match half {
            Half::Controller => self.missing_of_controller(offers),
            Half::Node => self.missing_of_node(offers),
        };
        match missing {
            Some(rpc) => Err(rpc),
            None => Ok(CsiFingerprint {
                identity: identity.clone(),
                plugin: offers.capabilities.clone(),
                expansion: offers.expansion.clone(),
                controller: self.controller.as_ref().and_then(given).filter(|_| half == Half::Controller),
                group_controller: self.group_controller.as_ref().and_then(given),
                node: self.node.clone(),
                node_info: self.node_info.as_ref().and_then(given),
            }),
        }
    }

    fn missing_of_controller(&self, offers: &Offers) -> Option<Rpc> {
        match (&self.controller, &self.group_controller) {
            (None | Some(Answered::Declined), _) => Some(Rpc::ControllerCapabilities),
            (Some(Answered::With(_)), None) if offers.has_group_controller() => {
                Some(Rpc::GroupControllerCapabilities)
            }
            (Some(Answered::With(_)), _) => None,
        }
    }

    fn missing_of_node(&self, offers: &Offers) -> Option<Rpc> {
        match (&self.node, &self.node_info, &self.controller) {
            (None, _, _) => Some(Rpc::NodeCapabilities),
            (Some(_), None, _) => Some(Rpc::NodeInfo),
            (Some(_), Some(Answered::Declined), None) if offers.has_controller() => {
                Some(Rpc::ControllerCapabilities)
            }
            (Some(_), Some(_), _) => None,
        }
    }

    /// The remark about a complete set of answers.
    const fn remark(&self, half: Half) -> Option<&'static str> {
        match (half, &self.node_info, &self.controller, &self.group_controller) {
            (Half::Controller, _, _, Some(Answered::Declined)) => Some(NO_GROUPS),
            (Half::Node, Some(Answered::Declined), Some(Answered::Declined), _) => Some(UNDECIDED),
            (Half::Controller | Half::Node, _, _, _) => None,
        }
    }

    fn take(
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
            Answer::ControllerCapabilities(controller) => self.take_controller(controller, config.half)?,
            Answer::GroupControllerCapabilities(groups) => {
                self.group_controller = Some(Answered::With(groups));
            }
            Answer::NodeCapabilities(node) => self.node = Some(node),
            Answer::NodeInfo(info) => self.node_info = Some(Answered::With(info)),
            // It is not part of the fingerprint.
            Answer::Probe(_) => {}
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

    fn decline(&mut self, rpc: Rpc, half: Half) -> bool {
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
}

/// A remark, since this half cannot know it (C146).
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
