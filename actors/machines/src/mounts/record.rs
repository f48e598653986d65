//! What is kept of a mount, and whether it is still there.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::look::PathLook;
use super::mount::{DeviceNumber, Mount, MountId, UniqueMountId};
use super::table::MountTable;

/// What recognises a mount (V7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MountIdentity {
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

/// What is kept of a mount: after a step it is written down, and before the mount is used again it is compared (V7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MountRecord {
    /// The boot of the machine in which it was mounted, as in `/proc/sys/kernel/random/boot_id`. No mount survives a boot.
    pub boot_id: Arc<str>,
    /// The mount point.
    pub mount_point: PathBuf,
    /// The mount.
    pub identity: MountIdentity,
}

/// What became of a mount that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountState {
    /// It is there, and a process that opens the mount point reaches it.
    Same,
    /// It is not there, and nothing is mounted at its mount point.
    Gone,
    /// It is not there, and another one is at its mount point.
    Replaced {
        /// The other one.
        by: Mount,
        /// In what they differ, in this order.
        differences: Vec<Difference>,
    },
    /// It is there, and no path reaches it: another one is mounted over it, or over a directory above it.
    Covered {
        /// The one that a process reaches at the mount point.
        by: Mount,
    },
}

/// In what two mounts differ.
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
    /// In what another mount differs. Unique ids are compared if both are known; the id is compared in any case.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let is_other_unique = self.unique_id.zip(other.unique_id).is_some_and(|(one, two)| one != two);
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
    /// Records what a look found. `None` if the path is no mount point.
    #[must_use]
    pub fn of(boot_id: Arc<str>, look: &PathLook) -> Option<Self> {
        let mount = look.mounted()?;
        Some(Self { boot_id, mount_point: mount.mount_point.clone(), identity: mount.identity() })
    }

    /// Compares with the table of the boot `boot_id`.
    #[must_use]
    pub fn compare(&self, boot_id: &str, table: &MountTable) -> MountState {
        let hidden = table.hidden_at(&self.mount_point);
        self.state(boot_id, table.visible_at(&self.mount_point), hidden.into_iter())
    }

    /// Compares with a look at the mount point in the boot `boot_id`. A look at another path finds it gone.
    #[must_use]
    pub fn compare_look(&self, boot_id: &str, look: &PathLook) -> MountState {
        self.state(boot_id, look.mount.as_ref(), look.hidden.iter())
    }

    fn state<'a>(
        &self,
        boot_id: &str,
        visible: Option<&Mount>,
        mut hidden: impl Iterator<Item = &'a Mount>,
    ) -> MountState {
        let is_this_boot = *self.boot_id == *boot_id;
        let is_same = |mount: &Mount| {
            is_this_boot
                && mount.is_at(&self.mount_point)
                && self.identity.differences(&mount.identity()).is_empty()
        };
        match visible {
            Some(visible) if is_same(visible) => MountState::Same,
            Some(visible) if hidden.any(is_same) => MountState::Covered { by: visible.clone() },
            Some(visible) if visible.is_at(&self.mount_point) => {
                let boot = (!is_this_boot).then_some(Difference::Boot);
                let rest = self.identity.differences(&visible.identity());
                MountState::Replaced {
                    by: visible.clone(),
                    differences: boot.into_iter().chain(rest).collect(),
                }
            }
            Some(_) | None => MountState::Gone,
        }
    }
}

impl fmt::Display for MountIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount {}, {} {}:{}", self.id, self.fs_type, self.device, self.root.display())
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

    fn state(rest: &str) -> MountState {
        record().compare(BOOT, &table(rest))
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
        let after = |rest| record().compare("two", &table(rest));
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
        let MountState::Covered { by } = record.compare(BOOT, &table(text)) else { panic!("it is covered") };
        assert_eq!(by.id, MountId(31));
        assert!(MountState::Covered { by }.to_string().starts_with("another mount covers it: mount 31"));
    }

    #[test]
    fn a_tmpfs_that_got_the_numbers_of_its_predecessor_has_another_unique_id_v7_vol_07() {
        let with = |unique_id| {
            let mut record = record();
            record.identity.unique_id = Some(unique_id);
            record
        };
        let mut now = PathLook::of(Path::new("/v"), &table(OURS));
        now.set_unique_id(Some(UniqueMountId(7)));
        assert_eq!(with(UniqueMountId(7)).compare_look(BOOT, &now), MountState::Same);
        let MountState::Replaced { differences, .. } = with(UniqueMountId(6)).compare_look(BOOT, &now) else {
            panic!("it is another mount");
        };
        assert_eq!(differences, [Difference::Id]);
        assert_eq!(record().compare_look(BOOT, &now), MountState::Same, "an older record knows no unique id");
        assert_eq!(with(UniqueMountId(6)).compare(BOOT, &table(OURS)), MountState::Same);
    }

    #[test]
    fn a_look_is_recorded_and_compared_like_the_table_v7() {
        let look = |path: &str, rest: &str| PathLook::of(Path::new(path), &table(rest));
        let upper = format!("{OURS}31 30 8:1 /home /v rw - ext4 /dev/sda rw\n");
        assert_eq!(MountRecord::of(BOOT.into(), &look("/v", OURS)), Some(record()));
        assert_eq!(MountRecord::of(BOOT.into(), &look("/v/below", OURS)), None);
        assert_eq!(record().compare_look(BOOT, &look("/v", OURS)), MountState::Same);
        assert_eq!(record().compare_look(BOOT, &look("/v", "")), MountState::Gone);
        assert!(matches!(record().compare_look(BOOT, &look("/v", &upper)), MountState::Covered { .. }));
        assert_eq!(record().compare_look(BOOT, &look("/w", OURS)), MountState::Gone);
    }
}
