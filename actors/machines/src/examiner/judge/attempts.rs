//! Failed calls, each kept until the same call succeeds or its effect is undone.

use std::collections::{BTreeMap, BTreeSet};

use crate::csi::Call;
use crate::examiner::request::Request;
use crate::rpc::Code;

/// The object of a call: two calls with the same key are attempts at the same thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    call: Call,
    about: Vec<String>,
}

/// The last attempt, which failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    pub(super) request: Request,
    /// `None`: its caller left.
    pub(super) code: Option<Code>,
    pub(super) ended_at: u64,
    /// How many attempts in a row were answered with `ABORTED`, this one included.
    pub(super) aborted: u32,
    /// The pause before their first retry, in milliseconds.
    pub(super) first_pause: Option<u64>,
}

/// All attempts that failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Attempts {
    failed: BTreeMap<Key, Attempt>,
    /// The calls that the plugin reported as unimplemented since capabilities were read.
    unimplemented: BTreeSet<Call>,
    /// The pause before the retry in flight of each failed attempt.
    pauses: BTreeMap<Key, u64>,
}

impl Key {
    pub(super) fn of(call: Call, request: &Request) -> Self {
        let it = request;
        let about = match call {
            Call::CreateVolume | Call::CreateSnapshot | Call::CreateVolumeGroupSnapshot => vec![&it.name],
            Call::ControllerPublishVolume | Call::ControllerUnpublishVolume => {
                vec![&it.volume_id, &it.node_id]
            }
            Call::NodePublishVolume | Call::NodeUnpublishVolume => vec![&it.volume_id, &it.target_path],
            Call::ListVolumes | Call::ListSnapshots => vec![&it.starting_token],
            _ => vec![&it.volume_id, &it.snapshot_id, &it.group_snapshot_id],
        };
        Self { call, about: about.into_iter().cloned().collect() }
    }
}

impl Attempts {
    /// The last attempt at the same thing, if it failed.
    pub(super) fn before(&self, call: Call, request: &Request) -> Option<&Attempt> {
        self.failed.get(&Key::of(call, request))
    }

    pub(super) fn is_unimplemented(&self, call: Call) -> bool {
        self.unimplemented.contains(&call)
    }

    /// A call begins. An undo ends the attempts at its step; reading capabilities permits calls that were unimplemented (C019).
    pub(super) fn begin(&mut self, at: u64, call: Call, request: &Request) {
        let key = Key::of(call, request);
        if let Some(attempt) = self.failed.get(&key) {
            self.pauses.insert(key, at.saturating_sub(attempt.ended_at));
        }
        let undone = match call {
            Call::ControllerUnpublishVolume => Some(Call::ControllerPublishVolume),
            Call::NodeUnstageVolume => Some(Call::NodeStageVolume),
            Call::NodeUnpublishVolume => Some(Call::NodePublishVolume),
            _ => None,
        };
        if let Some(undone) = undone {
            self.failed.retain(|key, attempt| {
                key.call != undone
                    || attempt.request.volume_id != request.volume_id
                    || (undone == Call::NodePublishVolume
                        && attempt.request.target_path != request.target_path)
            });
        }
        let reads_capabilities = matches!(
            call,
            Call::GetPluginCapabilities
                | Call::ControllerGetCapabilities
                | Call::GroupControllerGetCapabilities
                | Call::NodeGetCapabilities
        );
        if reads_capabilities {
            self.unimplemented.clear();
        }
    }

    /// A call has ended with this code, or its caller has left.
    pub(super) fn end(&mut self, at: u64, call: Call, request: Request, code: Option<Code>) {
        let key = Key::of(call, &request);
        let pause = self.pauses.remove(&key);
        if code == Some(Code::Ok) {
            self.failed.remove(&key);
            if call == Call::DeleteVolume {
                self.failed.retain(|_, attempt| attempt.request.volume_id != request.volume_id);
            }
            return;
        }
        if code == Some(Code::Unimplemented) {
            self.unimplemented.insert(call);
        }
        let before = self.failed.remove(&key).filter(|before| before.code == Some(Code::Aborted));
        let is_aborted = code == Some(Code::Aborted);
        let (aborted, first_pause) = match before.filter(|_| is_aborted) {
            Some(before) => (before.aborted + 1, before.first_pause.or(pause)),
            None => (u32::from(is_aborted), None),
        };
        self.failed.insert(key, Attempt { request, code, ended_at: at, aborted, first_pause });
    }

    /// A new process of the plugin may have other capabilities.
    pub(super) fn capabilities_may_have_changed(&mut self) {
        self.unimplemented.clear();
    }
}
