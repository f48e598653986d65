//! Checks the arguments of each call for a volume: only its own paths (V6), and all contexts that its plugin has answered (V10).

use std::path::{Path, PathBuf};

use callboard_machines::volume::{VolumeCall, VolumeLayout};

use super::super::super::law::Law;
use super::super::node::context_of;
use super::VolumeModel;

impl VolumeModel {
    pub(super) fn check_args(&mut self, call: &VolumeCall) {
        if let Some(path) = paths(call).into_iter().flatten().find(|path| !is_own(path)) {
            let path = path.display().to_string();
            self.violation(Law::V6, || {
                format!("{call:?} has the path {path}, which is not one of this volume")
            });
        }
        if call.spec().is_some_and(|spec| spec.volume_context != context_of(&spec.volume_id)) {
            self.violation(Law::V10, || format!("{call:?} is made without the context of the volume"));
        }
        if !self.node.has_publish_context(call) && !self.is_forced {
            self.violation(Law::V10, || {
                format!("{call:?} is made without the publish context of the attachment")
            });
        }
    }

    /// Whether the claim at this path was given up by a write that has settled together with the call that leaves now.
    pub(super) fn is_given_up(&self, path: &Path) -> bool {
        let allocation = VolumeLayout::allocation_of(path);
        allocation.is_some_and(|allocation| self.owner.store.is_given_up(&allocation))
    }
}

/// The paths that a call creates, mounts or removes.
fn paths(call: &VolumeCall) -> [Option<&PathBuf>; 2] {
    match call {
        VolumeCall::Attach(_, _, _, next) => [next.as_ref(), None],
        VolumeCall::Stage(_, _, args, _, next) => [Some(&args.staging_path), next.as_ref()],
        VolumeCall::Unstage(_, _, args) => [Some(&args.staging_path), None],
        VolumeCall::Publish(_, _, args, _) => [Some(&args.target_path), args.staging_path.as_ref()],
        VolumeCall::Unpublish(_, _, path) => [Some(path), None],
        VolumeCall::Create(..)
        | VolumeCall::Delete(..)
        | VolumeCall::Detach(..)
        | VolumeCall::Order(..)
        | VolumeCall::ReadRoute
        | VolumeCall::Look { .. }
        | VolumeCall::AwaitAudits(_) => [None, None],
    }
}

/// Whether a path belongs to the volume `n/v` of the plugin `p`: its staging path, or a path at which an allocation finds it.
fn is_own(path: &Path) -> bool {
    let Ok(path) = path.strip_prefix("/d/csi/node/p") else { return false };
    let names: Vec<_> = path.iter().filter_map(|name| name.to_str()).collect();
    matches!(names[..], ["staging", "n", "v", usage] | ["per-alloc", _, "n", "v", usage] if usage != "..")
}
