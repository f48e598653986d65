//! The whole mount table of a process, and which of its mounts a path reaches.

use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashMapExt as _};

use super::line::{self, MalformedMount};
use super::mount::{Mount, MountId};

/// The mounts that a process sees, in the kernel's order.
///
/// Paths are compared by their text: a requested path has no symbolic links, `.` or `..` in it, as the kernel writes them.
#[derive(Debug, Clone, Default)]
pub struct MountTable {
    mounts: Vec<Mount>,
    /// The positions of the mounts of each mount point.
    by_point: HashMap<PathBuf, Vec<usize>>,
    by_id: HashMap<MountId, usize>,
}

impl MountTable {
    /// Parses the content of `/proc/PID/mountinfo`.
    ///
    /// # Errors
    /// [`MalformedMount`] for the first malformed line: a table that lacks mounts would report a path as free.
    pub fn parse(content: &[u8]) -> Result<Self, MalformedMount> {
        let lines = content.strip_suffix(b"\n").unwrap_or(content);
        if lines.is_empty() {
            return Ok(Self::default());
        }
        let lines = lines.split(|byte| *byte == b'\n').enumerate();
        let mounts =
            lines.map(|(index, text)| line::parse(text).ok_or_else(|| line::malformed(index + 1, text)));
        mounts.collect::<Result<Vec<Mount>, MalformedMount>>().map(Self::new)
    }

    /// A table of these mounts.
    #[must_use]
    pub fn new(mounts: Vec<Mount>) -> Self {
        let mut by_point: HashMap<PathBuf, Vec<usize>> = HashMap::with_capacity(mounts.len());
        let mut by_id = HashMap::with_capacity(mounts.len());
        for (position, mount) in mounts.iter().enumerate() {
            by_point.entry(mount.mount_point.clone()).or_default().push(position);
            by_id.insert(mount.id, position);
        }
        Self { mounts, by_point, by_id }
    }

    /// All mounts.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The mount with this id.
    #[must_use]
    pub fn of_id(&self, id: MountId) -> Option<&Mount> {
        self.by_id.get(&id).map(|position| &self.mounts[*position])
    }

    /// The mount that contains a path: a process that opens the path reaches it. It is at the path or above it. `None` if the
    /// table has no mount above it.
    ///
    /// This follows the mounts as the kernel does, from the root on, so hidden mounts are left out: those below another mount on the same
    /// mount point, or below a mount on a directory above.
    #[must_use]
    pub fn visible_at(&self, path: &Path) -> Option<&Mount> {
        let mut ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.reverse();
        let mut reached: Option<&Mount> = None;
        for ancestor in ancestors {
            while let Some(next) = self.mounted_on(reached, ancestor) {
                reached = Some(next);
            }
        }
        reached
    }

    /// The mount that a process reaches at exactly this mount point.
    #[must_use]
    pub fn mounted_at(&self, path: &Path) -> Option<&Mount> {
        self.visible_at(path).filter(|mount| mount.is_at(path))
    }

    /// The mounts at exactly this mount point that no path reaches, since others cover them.
    #[must_use]
    pub fn hidden_at(&self, path: &Path) -> Vec<&Mount> {
        let visible = self.visible_at(path).map(|mount| mount.id);
        self.at(path).filter(|mount| Some(mount.id) != visible).collect()
    }

    /// The mounts at this path and below it, hidden ones too, in an order in which they can be unmounted: each before its parent
    /// mount.
    #[must_use]
    pub fn at_or_below(&self, path: &Path) -> Vec<&Mount> {
        let found = self.mounts.iter().rev().filter(|mount| mount.mount_point.starts_with(path));
        let mut found: Vec<(usize, &Mount)> = found.map(|mount| (self.depth(mount), mount)).collect();
        found.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        found.into_iter().map(|(_, mount)| mount).collect()
    }

    fn at(&self, path: &Path) -> impl DoubleEndedIterator<Item = &Mount> {
        self.by_point.get(path).into_iter().flatten().map(|position| &self.mounts[*position])
    }

    /// The mount on this mount point whose parent is the mount that was reached before; at the beginning, a mount whose parent the process
    /// does not see.
    fn mounted_on(&self, reached: Option<&Mount>, point: &Path) -> Option<&Mount> {
        self.at(point).rfind(|mount| match reached {
            Some(reached) => mount.parent == reached.id && mount.id != reached.id,
            None => self.is_topmost(mount),
        })
    }

    fn is_topmost(&self, mount: &Mount) -> bool {
        mount.parent == mount.id || !self.by_id.contains_key(&mount.parent)
    }

    /// The number of mounts from this one to the root. Bounded by the length of the table, whatever parents the table contains.
    fn depth(&self, mount: &Mount) -> usize {
        let mut current = mount;
        for depth in 0..self.mounts.len() {
            match self.of_id(current.parent) {
                Some(parent) if parent.id != current.id => current = parent,
                Some(_) | None => return depth,
            }
        }
        self.mounts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tmpfs with a bind mount over it, a file system inside the tmpfs that the bind mount hides, and a neighbour with a similar name.
    const TABLE: &str = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw\n\
                         30 21 0:5 / /d/a rw,nosuid - tmpfs tmpfs rw,size=1024k\n\
                         33 30 0:7 / /d/a/in rw - tmpfs inner rw\n\
                         31 30 8:1 /home /d/a ro,relatime master:4 - ext4 /dev/sda rw\n\
                         32 21 0:6 / /d/abc rw - tmpfs tmpfs rw\n";

    fn table(text: &str) -> MountTable {
        MountTable::parse(text.as_bytes()).unwrap()
    }

    fn visible(table: &MountTable, path: &str) -> Option<u64> {
        table.visible_at(Path::new(path)).map(|mount| mount.id.0)
    }

    fn ids(mounts: &[&Mount]) -> Vec<u64> {
        mounts.iter().map(|mount| mount.id.0).collect()
    }

    #[test]
    fn a_path_lies_on_the_mount_that_a_process_reaches_v7() {
        let table = table(TABLE);
        assert_eq!(visible(&table, "/"), Some(21));
        assert_eq!(visible(&table, "/d/x"), Some(21));
        assert_eq!(visible(&table, "/d/a"), Some(31), "the upper one of two");
        assert_eq!(visible(&table, "/d/a/x"), Some(31));
        assert_eq!(visible(&table, "/d/abc/x"), Some(32));
        assert_eq!(visible(&table, "/d/ab"), Some(21), "a name that begins alike is another one");
    }

    #[test]
    fn a_mount_inside_one_that_is_covered_is_hidden_v7() {
        let table = table(TABLE);
        assert_eq!(visible(&table, "/d/a/in"), Some(31));
        assert_eq!(table.mounted_at(Path::new("/d/a/in")), None);
        assert_eq!(ids(&table.hidden_at(Path::new("/d/a/in"))), [33]);
        assert_eq!(ids(&table.hidden_at(Path::new("/d/a"))), [30]);
        assert_eq!(ids(&table.hidden_at(Path::new("/d"))), [0; 0]);
    }

    #[test]
    fn what_is_at_a_path_and_below_comes_in_the_order_of_unmounting_vol_06() {
        let table = table(TABLE);
        assert_eq!(ids(&table.at_or_below(Path::new("/d/a"))), [31, 33, 30]);
        assert_eq!(ids(&table.at_or_below(Path::new("/d/a/in"))), [33]);
        assert_eq!(table.at_or_below(Path::new("/")).len(), 5);
        assert!(table.at_or_below(Path::new("/d/a/none")).is_empty());
        let moved = "21 1 8:1 / / rw - ext4 s rw\n30 31 0:5 / /d/b/c rw - tmpfs t rw\n31 21 0:6 / /d/b rw - tmpfs t rw\n";
        let moved = MountTable::parse(moved.as_bytes()).unwrap();
        assert_eq!(
            ids(&moved.at_or_below(Path::new("/d"))),
            [30, 31],
            "an older mount that was moved onto a newer one"
        );
    }

    #[test]
    fn the_root_may_be_mounted_over_and_may_be_its_own_parent_v7() {
        let own = table(
            "1 1 0:1 / / rw - rootfs rootfs rw\n2 1 8:1 / / rw - ext4 s rw\n3 2 0:3 / /p rw - proc p rw\n",
        );
        assert_eq!(visible(&own, "/"), Some(2));
        assert_eq!(visible(&own, "/p/1"), Some(3));
        assert_eq!(ids(&own.at_or_below(Path::new("/"))), [3, 2, 1]);
    }

    #[test]
    fn a_process_in_a_changed_root_sees_mounts_without_their_parents_v7() {
        let jail = table("40 21 0:3 / /proc rw - proc p rw\n41 40 0:4 / /proc/x rw - tmpfs t rw\n");
        assert_eq!(visible(&jail, "/etc"), None);
        assert_eq!(visible(&jail, "/proc/1"), Some(40));
        assert_eq!(visible(&jail, "/proc/x"), Some(41));
    }

    #[test]
    fn parents_in_a_circle_end_no_search_late_v7() {
        let circle = table("1 2 0:1 / /a rw - x x rw\n2 1 0:2 / /a rw - x x rw\n");
        assert_eq!(visible(&circle, "/a"), None);
        assert_eq!(circle.at_or_below(Path::new("/a")).len(), 2);
    }

    #[test]
    fn a_table_that_is_cut_off_is_refused_and_names_its_line_v7() {
        let cut = &TABLE[..TABLE.len() - 12];
        let error = MountTable::parse(cut.as_bytes()).unwrap_err();
        assert_eq!(error.line, 5);
        assert!(error.to_string().contains("line 5 is no line of a mount table: \"32 21 0:6"), "{error}");
        assert!(MountTable::parse(b"").unwrap().mounts().is_empty());
    }
}
