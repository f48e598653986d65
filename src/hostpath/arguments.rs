//! The arguments of the plugin.

use std::collections::BTreeMap;
use std::path::PathBuf;

use callboard_actors::vocabulary::{Role, SocketPath};
use callboard_proto::csi::v1 as wire;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wire::controller_service_capability::rpc::Type as ControllerCapability;
use wire::node_service_capability::rpc::Type as NodeCapability;
use wire::plugin_capability::volume_expansion::Type as Expansion;

use super::faults::FaultArgs;

/// The arguments of `callboard plugin hostpath`.
#[derive(Debug, Clone, Args)]
pub struct HostpathArgs {
    /// Where to listen: unix:///path or an absolute path
    #[arg(long, env = "CSI_ENDPOINT", value_name = "ENDPOINT", value_parser = SocketPath::from_endpoint)]
    pub endpoint: SocketPath,

    /// Its role: controller, node or monolith
    #[arg(long, default_value = "monolith", hide_possible_values = true, value_parser = role_parser())]
    pub role: Role,

    /// Its name, which must never change
    #[arg(long, default_value = "hostpath.callboard.example")]
    pub name: String,

    /// Its version
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub plugin_version: String,

    /// The id of its node [default: the name of this host]
    #[arg(long, value_name = "ID")]
    pub node_id: Option<String>,

    /// The most volumes on the node; 0 means no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub max_volumes: i64,

    /// The topology of the node, as KEY=VALUE; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub topology: Vec<(String, String)>,

    // C183
    /// Claim that there is no controller: a plugin with only a node service
    #[arg(long)]
    pub without_controller: bool,

    /// Claim a capability of the controller, by its name in the specification; may be given several times [default: none, or all
    /// that volumes can have]
    #[arg(long, value_name = "NAME", value_parser = controller_capability)]
    pub controller_capability: Vec<ControllerCapability>,

    /// Claim a capability of the node service, by its name in the specification; may be given several times [default: none, or all
    /// that volumes can have]
    #[arg(long, value_name = "NAME", value_parser = node_capability)]
    pub node_capability: Vec<NodeCapability>,

    /// Serve real volumes, kept in this directory
    #[arg(long, value_name = "DIR")]
    pub volumes: Option<PathBuf>,

    /// The bytes that all volumes may have together [default: what the file system has]
    #[arg(long, value_name = "BYTES", requires = "volumes", value_parser = clap::value_parser!(i64).range(0..))]
    pub capacity: Option<i64>,

    /// Claim that volumes can grow only while they are not in use, and refuse to grow them otherwise
    #[arg(long, requires = "volumes")]
    pub offline_expansion: bool,

    /// Another node that the controller knows; may be given several times
    #[arg(long, value_name = "ID", requires = "volumes")]
    pub other_node: Vec<String>,

    /// How to misbehave.
    #[command(flatten)]
    pub faults: FaultArgs,
}

impl HostpathArgs {
    /// The node id: the argument, else the name of this host.
    #[must_use]
    pub fn node_id(&self) -> String {
        let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        self.node_id.clone().unwrap_or_else(host)
    }

    /// When its volumes can grow, as the plugin offers it.
    #[must_use]
    pub const fn expansion(&self) -> Expansion {
        if self.offline_expansion { Expansion::Offline } else { Expansion::Online }
    }

    /// The topology of the node, if given.
    #[must_use]
    pub fn topology(&self) -> Option<BTreeMap<String, String>> {
        (!self.topology.is_empty()).then(|| self.topology.iter().cloned().collect())
    }
}

fn role_parser() -> impl TypedValueParser<Value = Role> {
    let named = |name: String| Role::ALL.into_iter().find(|role| role.as_str() == name);
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(move |name| named(name).ok_or(NoSuchRole))
}

/// Impossible: the argument parser has checked that the name is that of a role.
#[derive(Debug, thiserror::Error)]
#[error("no role has this name")]
struct NoSuchRole;

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn controller_capability(name: &str) -> Result<ControllerCapability, String> {
    let known = "expected a name such as CREATE_DELETE_VOLUME";
    ControllerCapability::from_str_name(name).ok_or_else(|| known.to_owned())
}

fn node_capability(name: &str) -> Result<NodeCapability, String> {
    let known = "expected a name such as STAGE_UNSTAGE_VOLUME";
    NodeCapability::from_str_name(name).ok_or_else(|| known.to_owned())
}
