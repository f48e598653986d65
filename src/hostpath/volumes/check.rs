//! Checks the arguments of calls as the specification requires it of a plugin.

use std::collections::HashMap;
use std::path::Path;

use callboard_proto::csi::v1 as wire;
use tonic::Status;
use wire::volume_capability::AccessType;
use wire::volume_capability::access_mode::Mode;

use super::records::{Capability, Map};

/// The only parameter of a volume that can be changed. It has no effect.
const LABEL: &str = "label";
/// The most bytes of a string (C004).
const STRING_MAX: usize = 128;

/// A required text.
pub(super) fn given<'a>(text: &'a str, what: &str) -> Result<&'a str, Status> {
    let length = there(text, what)?.len();
    if length > STRING_MAX {
        return Err(Status::invalid_argument(format!(
            "the {what} has {length} bytes, more than {STRING_MAX}"
        )));
    }
    Ok(text)
}

/// A required text of any length.
pub(super) fn there<'a>(text: &'a str, what: &str) -> Result<&'a str, Status> {
    if text.is_empty() {
        return Err(Status::invalid_argument(format!("the request has no {what}")));
    }
    Ok(text)
}

/// A required absolute path.
pub(super) fn path<'a>(text: &'a str, what: &str) -> Result<&'a Path, Status> {
    let path = Path::new(there(text, what)?);
    if !path.is_absolute() {
        return Err(Status::invalid_argument(format!("the {what} {text:?} is not absolute")));
    }
    Ok(path)
}

/// A required capability.
pub(super) fn capability(wished: Option<&wire::VolumeCapability>) -> Result<Capability, Status> {
    let wished = wished.ok_or_else(|| Status::invalid_argument("the request has no volume capability"))?;
    let mode = wished.access_mode.as_ref().map_or(0, |mode| mode.mode);
    if Mode::try_from(mode).is_err() || mode == Mode::Unknown as i32 {
        return Err(Status::invalid_argument(
            "the volume capability has no access mode of the specification",
        ));
    }
    let of = |is_block, mount: wire::volume_capability::MountVolume| Capability {
        is_block,
        fs_type: mount.fs_type,
        mount_flags: mount.mount_flags,
        mount_group: mount.volume_mount_group,
        mode,
    };
    match wished.access_type.clone() {
        Some(AccessType::Block(_)) => Ok(of(true, wire::volume_capability::MountVolume::default())),
        Some(AccessType::Mount(mount)) => Ok(of(false, mount)),
        None => {
            Err(Status::invalid_argument("the volume capability is neither of a block nor of a mount volume"))
        }
    }
}

/// Capabilities, at least one; all are block, or all are mount. Returns which.
pub(super) fn access_type(wished: &[wire::VolumeCapability]) -> Result<bool, Status> {
    let first = capability(wished.first())?.is_block;
    for other in wished {
        if capability(Some(other))?.is_block != first {
            return Err(Status::invalid_argument("a volume cannot be both a block and a mount volume"));
        }
    }
    Ok(first)
}

/// The limits of a capacity in bytes: at least, and at most if there is a limit.
pub(super) fn range(wished: Option<&wire::CapacityRange>) -> Result<(i64, Option<i64>), Status> {
    let wire::CapacityRange { required_bytes, limit_bytes } = wished.copied().unwrap_or_default();
    if required_bytes < 0 || limit_bytes < 0 {
        return Err(Status::invalid_argument("a capacity is negative"));
    }
    let limit = (limit_bytes > 0).then_some(limit_bytes);
    if limit.is_some_and(|limit| limit < required_bytes) {
        let problem =
            format!("at least {required_bytes} and at most {limit_bytes} bytes contradict each other");
        return Err(Status::invalid_argument(problem));
    }
    Ok((required_bytes, limit))
}

/// The mutable parameters; all must be known.
pub(super) fn mutable(wished: &HashMap<String, String>) -> Result<Map, Status> {
    match wished.keys().find(|key| *key != LABEL) {
        Some(key) => Err(Status::invalid_argument(format!(
            "{key:?} is no parameter that can be changed; there is {LABEL}"
        ))),
        None => Ok(map(wished)),
    }
}

pub(super) fn map(from: &HashMap<String, String>) -> Map {
    from.clone().into_iter().collect()
}

/// Whether several targets on one node, or several nodes, may use it at the same time (C.5 of the rules).
pub(super) fn is_for_several(capability: &Capability) -> bool {
    is_for_several_nodes(capability) || capability.mode == Mode::SingleNodeMultiWriter as i32
}

pub(super) fn is_for_several_nodes(capability: &Capability) -> bool {
    let several = [Mode::MultiNodeReaderOnly, Mode::MultiNodeSingleWriter, Mode::MultiNodeMultiWriter];
    several.into_iter().any(|mode| capability.mode == mode as i32)
}

/// Whether it may only be read.
pub(super) fn is_for_readers(capability: &Capability) -> bool {
    [Mode::SingleNodeReaderOnly, Mode::MultiNodeReaderOnly]
        .into_iter()
        .any(|mode| capability.mode == mode as i32)
}
