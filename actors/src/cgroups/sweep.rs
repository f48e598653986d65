//! Cleanup of leftover cgroups of dead runs: found by name, and only if the allocation is ours (T197, TH050, TH053).

use std::collections::BTreeSet;

use super::GroupName;
use super::error::CgroupError;
use super::files::children;
use super::group::TaskCgroups;
use super::mode::CgroupMode;

impl TaskCgroups {
    /// The names of all existing task cgroups: `ALLOCID.NAME`, those of other hosts on this machine too.
    #[must_use]
    pub fn list(&self) -> Vec<GroupName> {
        let parents: &[&str] = match self.mode() {
            CgroupMode::V2 => &["nomad.slice/share.slice", "nomad.slice/reserve.slice"],
            CgroupMode::V1 => &["freezer/nomad", "memory/nomad", "cpu/nomad", "cpuset/nomad/reserve"],
            CgroupMode::None { .. } => &[],
        };
        let suffix = if *self.mode() == CgroupMode::V2 { ".scope" } else { "" };
        let names =
            parents.iter().flat_map(|parent| children(&self.root().join(parent))).filter_map(|path| {
                let name = path.file_name()?.to_str()?.strip_suffix(suffix)?;
                name.contains('.').then(|| name.to_owned())
            });
        let names: BTreeSet<String> = names.collect();
        names.iter().map(|name| GroupName::of_text(name)).collect()
    }

    /// Kills and removes the cgroups of dead runs: those that are not in `keep` and for which `ours` accepts the whole name,
    /// `ALLOCID.NAME`. Cgroups of another host are not touched. Returns those that were removed, and the failures.
    pub fn sweep(
        &self,
        ours: impl Fn(&str) -> bool,
        keep: &BTreeSet<GroupName>,
    ) -> (Vec<GroupName>, Vec<(GroupName, CgroupError)>) {
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        for name in self.list() {
            if !ours(name.as_str()) || keep.contains(&name) {
                continue;
            }
            match self.destroy(&name) {
                Ok(()) => removed.push(name),
                Err(error) => left.push((name, error)),
            }
        }
        (removed, left)
    }
}
