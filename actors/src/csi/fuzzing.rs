//! Decodes arbitrary bytes as the answers of a CSI plugin.

use prost::Message;

use super::check::{self, Leeway};
use super::convert;
use crate::fuzzing::{check_shown, check_told};
use crate::rpc::Fault;

/// The size limit of a manifest or a topology (C005).
const MAP_BYTES: usize = super::rules::MAP_BYTES_MAX;

/// The first byte selects the answer type, the rest is the answer. An accepted answer is within all limits.
///
/// # Panics
/// When it is not within all limits.
pub(crate) fn answers(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 7 {
        0 => read(bytes, convert::identity, |identity| {
            assert!((1..=63).contains(&identity.provider.len()), "the name of a plugin");
            assert!(identity.version.len() <= check::STRING_BYTES_MAX, "the version of a plugin");
            assert!(map_bytes(identity.manifest.iter()) <= MAP_BYTES, "a manifest");
        }),
        1 => read(bytes, convert::plugin_capabilities, |(offers, expansion)| {
            assert!(is_set(&offers) && is_set(&expansion), "{offers:?} {expansion:?}");
        }),
        2 => read(bytes, convert::readiness, |_| ()),
        3 => read(bytes, convert::controller_capabilities, |offers| assert!(is_set(&offers), "{offers:?}")),
        4 => read(bytes, convert::node_capabilities, |offers| assert!(is_set(&offers), "{offers:?}")),
        5 => {
            read(bytes, convert::group_controller_capabilities, |offers| {
                assert!(is_set(&offers), "{offers:?}")
            });
        }
        _ => read(bytes, convert::node_info, |info| {
            assert!((1..=check::NODE_ID_BYTES_MAX).contains(&info.node_id.len()), "a node id");
            assert!(info.max_volumes != Some(0), "no limit is none");
            let Some(topology) = info.topology else { return };
            assert!(!topology.is_empty(), "a topology without segments is none");
            assert!(map_bytes(topology.iter()) <= MAP_BYTES, "a topology");
        }),
    }
}

fn read<W: Message + Default, T>(
    bytes: &[u8],
    convert: impl Fn(W, &mut Leeway) -> Result<T, Fault>,
    check: impl Fn(T),
) {
    let Ok(answer) = W::decode(bytes) else { return };
    let mut leeway = Leeway::default();
    match convert(answer, &mut leeway) {
        Ok(taken) => {
            check(taken);
            leeway.remarks.iter().for_each(|remark| check_shown(remark));
        }
        Err(fault) => {
            check_told(&fault);
            check_shown(&fault.to_string());
            assert!(fault.rule.starts_with('C'), "{fault} names no rule");
        }
    }
}

fn is_set<T: Ord>(items: &[T]) -> bool {
    items.windows(2).all(|pair| pair[0] < pair[1])
}

fn map_bytes<'a>(entries: impl Iterator<Item = (&'a String, &'a String)>) -> usize {
    entries.map(|(key, value)| key.len() + value.len()).sum()
}
