//! The mounts of a volume, as the kernel reports them.

use std::collections::BTreeMap;
use std::path::Path;

use callboard_actors::mounts::{Mount, MountTable};

use super::check::Look;

/// The mounts of one volume, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mounted {
    staged: Vec<u64>,
    /// By allocation, or by task.
    published: BTreeMap<String, Vec<u64>>,
}

impl Mounted {
    /// The mounts of a volume, named as `NAMESPACE/NAME`. `volumes` is the directory of the plugin's volumes, without links.
    pub(super) fn of(table: &MountTable, volumes: &Path, volume: &str) -> Self {
        let mut mounted = Self::default();
        for mount in table.at_or_below(volumes) {
            match kind(mount, volumes, Path::new(volume)) {
                Some(Kind::Staged) => mounted.staged.push(mount.id.0),
                Some(Kind::PublishedFor(whom)) => mounted.published.entry(whom).or_default().push(mount.id.0),
                None => {}
            }
        }
        mounted
    }

    /// Checks that it is staged once or not at all, and published once for each of these, in alphabetical order, and for no other.
    pub(super) fn is(&self, staged: bool, published: &[&str]) -> Look {
        let once = self.published.values().all(|ids| ids.len() == 1);
        let holds = self.staged.len() == usize::from(staged) && once && self.published.keys().eq(published);
        Look::new(holds, self.described())
    }

    /// Checks that the earlier mounts are still the same; other users may have further mounts.
    pub(super) fn has_still(&self, before: &Self) -> Look {
        let is_same = |(whom, ids): (&String, &Vec<u64>)| self.published.get(whom) == Some(ids);
        let holds = self.staged == before.staged && before.published.iter().all(is_same);
        let seen = self.described();
        let seen = if holds { seen } else { format!("{seen}; before: {}", before.described()) };
        Look::new(holds, seen)
    }

    fn described(&self) -> String {
        let list = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
        let staged = match &self.staged[..] {
            [] => "not staged".to_owned(),
            ids => format!("staged by mount {}", list(ids)),
        };
        let for_each = self.published.iter().map(|(whom, ids)| format!("for {whom} by mount {}", list(ids)));
        let published = for_each.collect::<Vec<_>>().join(", ");
        if published.is_empty() {
            format!("{staged}, not published")
        } else {
            format!("{staged}, published {published}")
        }
    }
}

enum Kind {
    Staged,
    PublishedFor(String),
}

/// `staging/NAMESPACE/VOLUME/USAGE`, or `per-alloc/ALLOCATION/NAMESPACE/VOLUME/USAGE`.
fn kind(mount: &Mount, volumes: &Path, volume: &Path) -> Option<Kind> {
    let below = mount.mount_point.strip_prefix(volumes).ok()?;
    let is_of_volume = |below: &Path| below.parent() == Some(volume);
    if let Ok(rest) = below.strip_prefix("staging") {
        return is_of_volume(rest).then_some(Kind::Staged);
    }
    let rest = below.strip_prefix("per-alloc").ok()?;
    let allocation = rest.components().next()?;
    let whom = allocation.as_os_str().to_string_lossy().into_owned();
    is_of_volume(rest.strip_prefix(allocation).ok()?).then_some(Kind::PublishedFor(whom))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(points: &[(u64, &str)]) -> MountTable {
        let line = |(id, point): &(u64, &str)| {
            format!("{id} 1 8:1 /content /d/csi/node/hostpath/{point} rw - ext4 /dev/sda rw\n")
        };
        MountTable::parse(points.iter().map(line).collect::<String>().as_bytes()).unwrap()
    }

    fn of(points: &[(u64, &str)]) -> Mounted {
        Mounted::of(&table(points), Path::new("/d/csi/node/hostpath"), "default/data")
    }

    #[test]
    fn a_volume_is_staged_once_and_published_for_each_and_others_are_others() {
        let mounted = of(&[
            (7, "staging/default/data/rw"),
            (8, "per-alloc/right/default/data/rw"),
            (9, "per-alloc/left/default/data/rw"),
            (10, "staging/default/copy/rw"),
            (11, "staging/blue/data/rw"),
            (12, "per-alloc/default/data/rw"),
        ]);
        let seen = "staged by mount 7, published for left by mount 9, for right by mount 8";
        assert_eq!(mounted.is(true, &["left", "right"]), Look::new(true, seen));
        assert!(!mounted.is(false, &["left", "right"]).holds && !mounted.is(true, &["left"]).holds);
        let twice = of(&[(7, "staging/default/data/rw"), (8, "staging/default/data/rw")]);
        assert_eq!(twice.is(true, &[]), Look::new(false, "staged by mount 8 and 7, not published"));
        let twice = of(&[(7, "per-alloc/left/default/data/rw"), (8, "per-alloc/left/default/data/rw")]);
        assert!(!twice.is(false, &["left"]).holds);
        assert_eq!(of(&[]).is(false, &[]), Look::new(true, "not staged, not published"));
    }

    #[test]
    fn a_mount_that_was_made_again_is_another_one_and_one_for_another_may_come() {
        let (staged, left) = ((7, "staging/default/data/rw"), (8, "per-alloc/left/default/data/rw"));
        let before = of(&[staged, left]);
        assert!(before.has_still(&before).holds);
        assert!(of(&[staged, left, (9, "per-alloc/copier/default/data/rw")]).has_still(&before).holds);
        assert!(!of(&[staged]).has_still(&before).holds);
        assert!(!of(&[staged, (9, "per-alloc/left/default/data/rw")]).has_still(&before).holds);
        let look = of(&[(9, "staging/default/data/rw"), left]).has_still(&before);
        let told = |staged| format!("staged by mount {staged}, published for left by mount 8");
        assert_eq!(look, Look::new(false, format!("{}; before: {}", told(9), told(7))));
    }
}
