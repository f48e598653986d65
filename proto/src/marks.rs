//! Reads from the descriptors which parts of the wire are secret, and which may still change.
//!
//! CSI marks both with custom options. The generated code does not contain these options; the
//! descriptors do.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

use crate::FILE_DESCRIPTOR_SET;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET)
        .expect("the build has linked these descriptors before it wrote them")
});

/// Names the fields of a message with content that must never reach a log, an error, a trace, a dump or plain
/// storage (C025).
///
/// Takes the full name of the message, such as `csi.v1.NodeStageVolumeRequest`, and returns the bare names of
/// its fields. `None` means that there is no message of that name. The mount flags of a volume have no mark,
/// although the specification wants them treated as secret: they are not in the result.
#[must_use]
pub fn secret_fields(message: &str) -> Option<Vec<String>> {
    Some(marked_fields(&POOL.get_message_by_name(message)?, "csi.v1.csi_secret"))
}

/// Names the fields of a message that may still change or be removed (C027).
///
/// Takes and returns names as [`secret_fields`] does.
#[must_use]
pub fn alpha_fields(message: &str) -> Option<Vec<String>> {
    Some(marked_fields(&POOL.get_message_by_name(message)?, "csi.v1.alpha_field"))
}

/// Returns whether a part of the wire is marked as one that may still change or be removed (C027).
///
/// Takes the full name of a service, method, message, field, enum or enum value. An enum value goes below its
/// enum, as in `csi.v1.NodeServiceCapability.RPC.Type.VOLUME_CONDITION`. Only the mark of that part itself
/// counts, not the mark of an enclosing part. `None` means that nothing has that name.
#[must_use]
pub fn is_alpha(name: &str) -> Option<bool> {
    whole_is_alpha(name).or_else(|| {
        let (parent, part) = name.rsplit_once('.')?;
        part_is_alpha(parent, part)
    })
}

fn whole_is_alpha(name: &str) -> Option<bool> {
    if let Some(service) = POOL.get_service_by_name(name) {
        return Some(is_marked(&service.options(), "csi.v1.alpha_service"));
    }
    if let Some(message) = POOL.get_message_by_name(name) {
        return Some(is_marked(&message.options(), "csi.v1.alpha_message"));
    }
    let found = POOL.get_enum_by_name(name)?;
    Some(is_marked(&found.options(), "csi.v1.alpha_enum"))
}

fn part_is_alpha(parent: &str, part: &str) -> Option<bool> {
    if let Some(service) = POOL.get_service_by_name(parent) {
        let method = service.methods().find(|method| method.name() == part)?;
        return Some(is_marked(&method.options(), "csi.v1.alpha_method"));
    }
    if let Some(message) = POOL.get_message_by_name(parent) {
        let field = message.get_field_by_name(part)?;
        return Some(is_marked(&field.options(), "csi.v1.alpha_field"));
    }
    let value = POOL.get_enum_by_name(parent)?.get_value_by_name(part)?;
    Some(is_marked(&value.options(), "csi.v1.alpha_enum_value"))
}

fn marked_fields(message: &MessageDescriptor, mark: &str) -> Vec<String> {
    let marked = message.fields().filter(|field| is_marked(&field.options(), mark));
    marked.map(|field| field.name().to_owned()).collect()
}

fn is_marked(options: &DynamicMessage, mark: &str) -> bool {
    let extension = POOL.get_extension_by_name(mark);
    extension.is_some_and(|extension| options.get_extension(&extension).as_bool() == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c025_secret_fields_are_named_by_the_descriptors() {
        let none: Vec<String> = Vec::new();
        assert_eq!(secret_fields("csi.v1.NodeStageVolumeRequest"), Some(vec!["secrets".to_owned()]));
        assert_eq!(secret_fields("csi.v1.NodeUnstageVolumeRequest"), Some(none));
        assert_eq!(secret_fields("csi.v1.NoSuchRequest"), None);
    }

    #[test]
    fn c027_alpha_parts_of_every_kind_are_named_by_the_descriptors() {
        assert_eq!(alpha_fields("csi.v1.GetCapacityResponse"), Some(vec!["minimum_volume_size".to_owned()]));
        for (name, alpha) in [
            ("csi.v1.SnapshotMetadata", Some(true)),
            ("csi.v1.Node", Some(false)),
            ("csi.v1.Controller.GetSnapshot", Some(true)),
            ("csi.v1.Controller.CreateSnapshot", Some(false)),
            ("csi.v1.Controller.NoSuchMethod", None),
            ("csi.v1.NodeExpandVolumeRequest", Some(false)),
            ("csi.v1.NodeExpandVolumeRequest.secrets", Some(true)),
            ("csi.v1.NodeExpandVolumeRequest.no_such_field", None),
            ("csi.v1.NodeServiceCapability.RPC.Type", Some(false)),
            ("csi.v1.NodeServiceCapability.RPC.Type.VOLUME_CONDITION", Some(true)),
            ("csi.v1.NodeServiceCapability.RPC.Type.EXPAND_VOLUME", Some(false)),
            ("csi.v1.NodeServiceCapability.RPC.Type.NO_SUCH_VALUE", None),
            ("nothing", None),
        ] {
            assert_eq!(is_alpha(name), alpha, "{name}");
        }
    }
}
