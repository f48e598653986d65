//! Computes the paths where a volume is staged and published: one function from the whole identity to a path (VOL-04).

use std::path::{Path, PathBuf};

use super::record::{StageArgs, Usage, VolumeKey};
use crate::csi::{AccessType, Context};
use crate::vocabulary::{AllocationId, PluginName};

/// The directory of all targets of a plugin.
const TARGETS: &str = "per-alloc";

/// The directories of the volumes of one plugin. Two volumes, allocations or usages never share a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeLayout {
    base: PathBuf,
}

impl VolumeLayout {
    /// The number of path components below the data directory that are never removed: those of `csi/node/PLUGIN/staging` and
    /// `csi/node/PLUGIN/per-alloc`. All volumes of the plugin share them, so they are not made again for each volume that is used alone.
    pub const KEPT_NAMES: usize = 4;

    /// The layout below the data directory of the host: `csi/node/PLUGIN`.
    #[must_use]
    pub fn new(data_dir: &Path, plugin: &PluginName) -> Self {
        Self { base: data_dir.join("csi/node").join(plugin.as_str()) }
    }

    /// The staging path of a volume: `staging/NAMESPACE/VOLUME/USAGE`, shared by all allocations that use it.
    #[must_use]
    pub fn staging(&self, volume: &VolumeKey, usage: &Usage) -> PathBuf {
        below(self.base.join("staging"), volume).join(shared(usage))
    }

    /// The arguments to stage a volume for a usage, with the publish context of its attachment: empty while that is not known, or without
    /// one.
    pub(super) fn stage_args(
        &self,
        volume: &VolumeKey,
        usage: &Usage,
        publish_context: Context,
    ) -> StageArgs {
        let (staging_path, capability) = (self.staging(volume, usage), usage.capability.clone());
        StageArgs { staging_path, publish_context, capability }
    }

    /// The path where an allocation finds a volume: `per-alloc/ALLOCATION/NAMESPACE/VOLUME/USAGE`.
    #[must_use]
    pub fn target(&self, volume: &VolumeKey, allocation: &AllocationId, usage: &Usage) -> PathBuf {
        let access = if usage.read_only { "ro" } else { "rw" };
        let usage = format!("{access}-{}", shared(usage));
        self.targets(volume, allocation).join(usage)
    }

    /// The allocation that finds a volume at this path, if the path comes from a layout.
    #[must_use]
    pub fn allocation_of(target: &Path) -> Option<AllocationId> {
        let of_allocation =
            target.ancestors().nth(3).filter(|path| path.parent().is_some_and(|up| up.ends_with(TARGETS)))?;
        AllocationId::new(of_allocation.file_name()?.to_str()?).ok()
    }

    /// The directory below which an allocation finds a volume, for every usage.
    pub(super) fn targets(&self, volume: &VolumeKey, allocation: &AllocationId) -> PathBuf {
        below(self.base.join(TARGETS).join(allocation.as_str()), volume)
    }
}

fn below(parent: PathBuf, volume: &VolumeKey) -> PathBuf {
    parent.join(volume.namespace.as_str()).join(volume.name.as_str())
}

/// The part of a usage that all claims of a volume share, as a file name.
fn shared(usage: &Usage) -> String {
    let access = match usage.capability.access_type {
        AccessType::Block => "block-device",
        AccessType::Mount(_) => "file-system",
    };
    let mode = usage.capability.access_mode.word();
    format!("{access}-{mode}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::csi::{AccessMode, MountVolume, VolumeCapability};
    use crate::vocabulary::{VolumeName, VolumeNamespace};

    fn usages() -> Vec<Usage> {
        let types = [AccessType::Block, AccessType::Mount(MountVolume::default())];
        let all = types.iter().flat_map(|access_type| {
            AccessMode::ALL
                .map(|access_mode| VolumeCapability { access_type: access_type.clone(), access_mode })
        });
        all.flat_map(|capability| {
            [true, false].map(|read_only| Usage { capability: capability.clone(), read_only })
        })
        .collect()
    }

    /// Holds C125 and C136.
    #[test]
    fn different_identities_never_share_a_path_vol_04() {
        let names = ["a", "b", "a-b", "staging", "per-alloc", "rw-file-system", "..."];
        let (mut targets, mut staged, mut count) = (BTreeSet::new(), BTreeSet::new(), 0);
        for plugin in ["zfs", "nfs"] {
            let layout = VolumeLayout::new(Path::new("/data"), &PluginName::new(plugin).unwrap());
            for namespace in names {
                for name in names {
                    let key = VolumeKey {
                        namespace: VolumeNamespace::new(namespace).unwrap(),
                        name: VolumeName::new(name).unwrap(),
                    };
                    for usage in usages() {
                        staged.insert(layout.staging(&key, &usage));
                        for allocation in names {
                            let allocation = AllocationId::new(allocation).unwrap();
                            let target = layout.target(&key, &allocation, &usage);
                            assert_eq!(VolumeLayout::allocation_of(&target), Some(allocation));
                            targets.insert(target);
                            count += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(targets.len(), count);
        assert_eq!(staged.len(), count / names.len() / 2, "read-only claims share the staging");
        assert!(targets.is_disjoint(&staged));
        let is_outside = |path: &&PathBuf| !path.starts_with("/data/csi/node");
        assert_eq!(targets.iter().find(is_outside), None);
        // No path is below another one: a directory that is removed for one path is never a parent of another.
        let paths: Vec<_> = targets.iter().chain(&staged).collect();
        assert!(paths.windows(2).all(|pair| !pair[1].starts_with(pair[0])));
    }
}
