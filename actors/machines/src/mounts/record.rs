//! The record of a mount, and whether the mount is still there.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::look::PathLook;
use super::mount::{DeviceNumber, Mount, MountId, UniqueMountId};

/// The identity by which a mount is recognised (V7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MountIdentity {
    /// Its unique id alone: no other mount of the same boot has it, or had it.
    Unique(UniqueMountId),
    /// Its entry in the mount table.
    Listed(ListedMount),
}

/// The part of a mount's table entry by which it is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListedMount {
    /// Its id.
    pub id: MountId,
    /// Its unique id, where the kernel has one.
    pub unique_id: Option<UniqueMountId>,
    /// The device of its file system.
    pub device: DeviceNumber,
    /// Its root within its file system.
    pub root: PathBuf,
    /// The type of its file system.
    pub fs_type: String,
}

/// The record of a mount: written after a step, and compared before the mount is used again (V7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MountRecord {
    /// The boot of the machine in which it was mounted, as in `/proc/sys/kernel/random/boot_id`. No mount survives a boot.
    pub boot_id: Arc<str>,
    /// The mount point.
    pub mount_point: PathBuf,
    /// The mount.
    pub identity: MountIdentity,
}

/// The state of a recorded mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountState {
    /// It is there, and a process that opens the mount point reaches it.
    Same,
    /// It is not there, and nothing is mounted at its mount point.
    Gone,
    /// It is not there, and another mount is at its mount point.
    Replaced {
        /// The other mount.
        by: MountIdentity,
        /// The differences, in this order.
        differences: Vec<Difference>,
    },
    /// It is there, and no path reaches it: another mount is on it, or on a directory above it.
    Covered {
        /// The mount that a process reaches at the mount point.
        by: Mount,
    },
}

/// A difference between two mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Difference {
    /// The machine was booted in between.
    Boot,
    /// Id or unique id. If it is the only difference, then the same thing was mounted again, or this process has another mount namespace.
    Id,
    /// The device of the file system.
    Device,
    /// The root within the file system.
    Root,
    /// The type of the file system.
    FsType,
}

impl MountIdentity {
    /// The unique id, where it is known.
    #[must_use]
    pub const fn unique_id(&self) -> Option<UniqueMountId> {
        match self {
            Self::Unique(id) => Some(*id),
            Self::Listed(mount) => mount.unique_id,
        }
    }

    /// The differences to another mount of the same boot. Where both unique ids are known, they decide alone: the path of the root within
    /// its file system may change under a mount that stays. A unique id never equals an identity without one.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        if self.unique_id().is_some_and(|id| Some(id) == other.unique_id()) {
            return vec![];
        }
        match (self, other) {
            (Self::Listed(one), Self::Listed(two)) => one.differences(two),
            (Self::Unique(_), _) | (_, Self::Unique(_)) => vec![Difference::Id],
        }
    }
}

impl ListedMount {
    /// The differences to another mount that is not the same by its unique id.
    fn differences(&self, other: &Self) -> Vec<Difference> {
        let is_other_unique = self.unique_id.is_some() && other.unique_id.is_some();
        let found = [
            (self.id != other.id || is_other_unique, Difference::Id),
            (self.device != other.device, Difference::Device),
            (self.root != other.root, Difference::Root),
            (self.fs_type != other.fs_type, Difference::FsType),
        ];
        found.into_iter().filter(|(differs, _)| *differs).map(|(_, difference)| difference).collect()
    }
}

impl MountRecord {
    /// Records the result of a look. `None` if the path is not a mount point.
    #[must_use]
    pub fn of(boot_id: Arc<str>, look: &PathLook) -> Option<Self> {
        Some(Self { boot_id, mount_point: look.path.clone(), identity: look.mounted()? })
    }

    /// Compares with a look at the mount point in the boot `boot_id`. A look at another path finds it gone.
    #[must_use]
    pub fn compare(&self, boot_id: &str, look: &PathLook) -> MountState {
        if look.path != self.mount_point {
            return MountState::Gone;
        }
        let is_this_boot = *self.boot_id == *boot_id;
        let is_same = |other: &MountIdentity| is_this_boot && self.identity.differences(other).is_empty();
        let found = look.mounted();
        if found.as_ref().is_some_and(is_same) {
            return MountState::Same;
        }
        if let Some(by) = look.covering(|hidden| is_same(&hidden.identity())) {
            return MountState::Covered { by: by.clone() };
        }
        found.map_or(MountState::Gone, |by| {
            let boot = (!is_this_boot).then_some(Difference::Boot);
            let differences = boot.into_iter().chain(self.identity.differences(&by)).collect();
            MountState::Replaced { by, differences }
        })
    }
}

impl fmt::Display for MountIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unique(id) => write!(f, "mount with the unique id {id}"),
            Self::Listed(ListedMount { id, unique_id: _, device, root, fs_type }) => {
                write!(f, "mount {id}, {fs_type} {device}:{}", root.display())
            }
        }
    }
}

impl fmt::Display for MountState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("the recorded mount"),
            Self::Gone => f.write_str("nothing is mounted there any more"),
            Self::Replaced { by, differences } => {
                let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
                write!(f, "another mount is there, which differs in {}: {by}", words.join(", "))
            }
            Self::Covered { by } => write!(f, "another mount covers it: {by}"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boot => "boot",
            Self::Id => "mount id",
            Self::Device => "device",
            Self::Root => "root",
            Self::FsType => "file system type",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::look::MountsAt;
    use super::super::table::MountTable;
    use super::*;

    const BOOT: &str = "one";
    const ROOT: &str = "21 1 8:1 / / rw - ext4 /dev/sda rw\n";
    const OURS: &str = "30 21 0:5 / /v rw - tmpfs tmpfs rw\n";

    fn record() -> MountRecord {
        MountRecord {
            boot_id: BOOT.into(),
            mount_point: "/v".into(),
            identity: table(OURS).mounts()[1].identity(),
        }
    }

    fn table(rest: &str) -> MountTable {
        MountTable::parse(format!("{ROOT}{rest}").as_bytes()).unwrap()
    }

    fn look(path: &str, rest: &str) -> PathLook {
        PathLook::of(Path::new(path), &table(rest))
    }

    fn state(rest: &str) -> MountState {
        record().compare(BOOT, &look("/v", rest))
    }

    fn differences(rest: &str) -> Vec<Difference> {
        match state(rest) {
            MountState::Replaced { differences, .. } => differences,
            other => panic!("not replaced: {other}"),
        }
    }

    #[test]
    fn the_recorded_mount_is_recognised_v7() {
        assert_eq!(state(OURS), MountState::Same);
        let written = OURS.replace(" rw - ", " ro,nosuid shared:4 - ");
        assert_eq!(state(&written), MountState::Same, "options and propagation are no part of it");
    }

    #[test]
    fn a_mount_that_was_pulled_away_is_gone_v7_vol_07() {
        assert_eq!(state(""), MountState::Gone);
        assert_eq!(state("30 21 0:5 / /w rw - tmpfs tmpfs rw\n"), MountState::Gone, "it was moved");
    }

    #[test]
    fn another_mount_in_its_place_is_told_with_the_difference_v7_vol_07() {
        assert_eq!(differences(&OURS.replace("30 21", "31 21")), [Difference::Id]);
        assert_eq!(differences(&OURS.replace("0:5", "0:6")), [Difference::Device]);
        assert_eq!(differences(&OURS.replace(" / /v", " /sub /v")), [Difference::Root]);
        assert_eq!(differences(&OURS.replace("- tmpfs", "- ramfs")), [Difference::FsType]);
        let told = state(&OURS.replace("30 21 0:5", "31 21 0:6")).to_string();
        assert!(
            told.starts_with("another mount is there, which differs in mount id, device: mount 31"),
            "{told}"
        );
    }

    #[test]
    fn after_a_boot_no_mount_is_the_recorded_one_v7() {
        let after = |rest| record().compare("two", &look("/v", rest));
        assert_eq!(after(""), MountState::Gone);
        let MountState::Replaced { differences, .. } = after(OURS) else { panic!("it is another boot") };
        assert_eq!(differences, [Difference::Boot]);
    }

    #[test]
    fn a_mount_over_it_covers_it_and_does_not_replace_it_v7() {
        let upper = format!("{OURS}31 30 8:1 /home /v rw - ext4 /dev/sda rw\n");
        let MountState::Covered { by } = state(&upper) else { panic!("{}", state(&upper)) };
        assert_eq!(by.id, MountId(31));
    }

    #[test]
    fn a_mount_over_a_directory_above_covers_it_too_v7() {
        let record = MountRecord { mount_point: "/d/v".into(), ..record() };
        let text = "30 21 0:5 / /d/v rw - tmpfs tmpfs rw\n31 21 0:7 / /d rw - tmpfs other rw\n";
        let MountState::Covered { by } = record.compare(BOOT, &look("/d/v", text)) else {
            panic!("it is covered")
        };
        assert_eq!(by.id, MountId(31));
        assert!(MountState::Covered { by }.to_string().starts_with("another mount covers it: mount 31"));
    }

    /// The same mount as the table lists it, with a unique id.
    fn listed(unique_id: u64) -> MountRecord {
        let mut listed = look("/v", OURS);
        listed.set_unique_id(Some(UniqueMountId(unique_id)));
        MountRecord::of(BOOT.into(), &listed).unwrap()
    }

    /// A look that asks only for the unique id.
    fn quick(unique_id: u64) -> PathLook {
        let mounts = MountsAt::Unique(Some(UniqueMountId(unique_id)));
        PathLook { mounts, ..look("/v", OURS) }
    }

    fn is_another(state: &MountState) -> bool {
        matches!(state, MountState::Replaced { differences, .. } if *differences == [Difference::Id])
    }

    #[test]
    fn a_tmpfs_that_got_the_numbers_of_its_predecessor_has_another_unique_id_v7_vol_07() {
        let mut now = look("/v", OURS);
        now.set_unique_id(Some(UniqueMountId(7)));
        assert_eq!(listed(7).compare(BOOT, &now), MountState::Same);
        assert!(is_another(&listed(6).compare(BOOT, &now)), "it is another mount");
        assert_eq!(record().compare(BOOT, &now), MountState::Same, "an older record knows no unique id");
        assert_eq!(listed(6).compare(BOOT, &look("/v", OURS)), MountState::Same);
    }

    #[test]
    fn the_unique_id_alone_decides_where_both_sides_know_it_v7() {
        let of_quick = |unique_id| MountRecord::of(BOOT.into(), &quick(unique_id)).unwrap();
        assert_eq!(of_quick(7).compare(BOOT, &quick(7)), MountState::Same);
        assert!(is_another(&of_quick(6).compare(BOOT, &quick(7))));
        assert_eq!(listed(7).compare(BOOT, &quick(7)), MountState::Same, "a record that the table made");
        assert!(is_another(&listed(6).compare(BOOT, &quick(7))));
        let mut renamed = look("/v", &OURS.replace(" / /v", " /renamed /v"));
        renamed.set_unique_id(Some(UniqueMountId(7)));
        assert_eq!(listed(7).compare(BOOT, &renamed), MountState::Same, "its directory was renamed");
        assert_eq!(of_quick(7).compare(BOOT, &renamed), MountState::Same);
        let MountState::Replaced { differences, .. } = of_quick(7).compare("two", &quick(7)) else {
            panic!("a unique id says nothing in another boot")
        };
        assert_eq!(differences, [Difference::Boot]);
        assert!(is_another(&of_quick(7).compare(BOOT, &look("/v", OURS))), "not known to be the same");
        let nothing = PathLook { mounts: MountsAt::Unique(None), ..quick(7) };
        assert_eq!(of_quick(7).compare(BOOT, &nothing), MountState::Gone);
        assert_eq!(of_quick(7).identity.to_string(), "mount with the unique id 7");
    }

    #[test]
    fn a_look_is_recorded_and_compared_like_the_table_v7() {
        let upper = format!("{OURS}31 30 8:1 /home /v rw - ext4 /dev/sda rw\n");
        assert_eq!(MountRecord::of(BOOT.into(), &look("/v", OURS)), Some(record()));
        assert_eq!(MountRecord::of(BOOT.into(), &look("/v/below", OURS)), None);
        assert_eq!(record().compare(BOOT, &look("/v", OURS)), MountState::Same);
        assert_eq!(record().compare(BOOT, &look("/v", "")), MountState::Gone);
        assert!(matches!(record().compare(BOOT, &look("/v", &upper)), MountState::Covered { .. }));
        assert_eq!(record().compare(BOOT, &look("/w", OURS)), MountState::Gone);
    }
}
