//! What a look finds, and whether a recorded mount is recognised (V7).

use std::fs;
use std::os::unix::fs::symlink;

use callboard_actors::mounts::{
    Difference, KernelMounts, LookError, MountRecord, MountState, Mounts as _, MountsAt, PathKind, PathLook,
};
use rustix::mount::{MountFlags, mount_remount};

use super::namespace::{BOOT, PATIENT, Stage, both, in_namespace};

async fn look(stage: &Stage, mounts: &KernelMounts, below: &str) -> PathLook {
    mounts.look(stage.path(below)).await.unwrap()
}

async fn record(stage: &Stage, mounts: &KernelMounts, below: &str) -> MountRecord {
    MountRecord::of(BOOT.into(), &look(stage, mounts, below).await).expect("something is mounted")
}

/// The state of a record's mount by a look of either kind.
async fn states(record: &MountRecord) -> [MountState; 2] {
    let [quick, by_table] =
        both(PATIENT).map(|mounts| async move { mounts.look(record.mount_point.clone()).await.unwrap() });
    [record.compare(BOOT, &quick.await), record.compare(BOOT, &by_table.await)]
}

async fn is_same(record: &MountRecord) -> bool {
    states(record).await == [MountState::Same, MountState::Same]
}

async fn is_gone(record: &MountRecord) -> bool {
    states(record).await == [MountState::Gone, MountState::Gone]
}

/// Whether the kernel gives unique ids; if not, prints that a test is skipped.
fn has_unique_ids(record: &MountRecord) -> bool {
    let has_one = record.identity.unique_id().is_some();
    if !has_one {
        eprintln!("SKIPPED: what only a unique id tells is not shown, since this kernel has none");
    }
    has_one
}

#[test]
fn a_bind_of_a_bare_directory_is_told_from_one_of_a_mount_v7() {
    in_namespace("looks::a_bind_of_a_bare_directory_is_told_from_one_of_a_mount_v7", async |stage: Stage| {
        let staging = stage.directory("staging");
        stage.directory("target");
        stage.bind(&staging, "target");
        for mounts in both(PATIENT) {
            let [bare, target] =
                [look(&stage, &mounts, "staging").await, look(&stage, &mounts, "target").await];
            assert!(bare.is_bare_and_same_as(&target), "{bare:?} {target:?}");
            assert!(!target.is_bare_and_same_as(&bare), "something is mounted there");
        }
        stage.tmpfs("staging");
        stage.directory("other");
        stage.bind(&staging, "other");
        for mounts in both(PATIENT) {
            let staged = look(&stage, &mounts, "staging").await;
            for target in ["target", "other", "absent"] {
                let target = look(&stage, &mounts, target).await;
                assert!(!staged.is_bare_and_same_as(&target), "{staged:?} {target:?}");
            }
        }
    });
}

#[test]
fn a_bind_and_a_tmpfs_are_told_from_bare_directories_v7() {
    in_namespace("looks::a_bind_and_a_tmpfs_are_told_from_bare_directories_v7", async |stage: Stage| {
        let source = stage.directory("source/sub");
        stage.directory("bare");
        stage.directory("bound");
        stage.bind(&source, "bound");
        stage.tmpfs("memory");

        for mounts in both(PATIENT) {
            let bare = look(&stage, &mounts, "bare").await;
            assert!(bare.kind == PathKind::Directory && bare.mounted().is_none(), "{bare:?}");
            let absent = look(&stage, &mounts, "absent").await;
            assert!(absent.kind == PathKind::Absent && absent.mounted().is_none(), "{absent:?}");
            let (bound, memory) =
                (look(&stage, &mounts, "bound").await, look(&stage, &mounts, "memory").await);
            assert!(bound.mounted().is_some() && memory.mounted().is_some(), "{bound:?}, {memory:?}");
            assert_ne!(bound.mounted(), memory.mounted());
            assert_eq!((memory.kind, memory.mode), (PathKind::Directory, 0o1777));
            assert!(is_same(&record(&stage, &mounts, "bound").await).await);
        }
        let listed = |below: &str| stage.table().mounted_at(&stage.path(below)).unwrap().clone();
        let (bound, memory) = (listed("bound"), listed("memory"));
        assert_eq!((bound.fs_type.as_str(), bound.root.to_str()), ("tmpfs", Some("/source/sub")));
        assert!(memory.root.to_str() == Some("/") && memory.device != bound.device);
        assert!(!memory.is_read_only() && memory.source == "callboard");

        let flags = MountFlags::BIND | MountFlags::RDONLY;
        mount_remount(stage.path("bound"), flags, "").unwrap();
        assert!(listed("bound").is_mounted_read_only());
    });
}

#[test]
fn a_look_reads_no_mount_table_where_the_kernel_has_unique_ids_v7() {
    in_namespace(
        "looks::a_look_reads_no_mount_table_where_the_kernel_has_unique_ids_v7",
        async |stage: Stage| {
            stage.tmpfs("volume");
            let [quick, by_table] = both(PATIENT);
            let listed = look(&stage, &by_table, "volume").await;
            assert!(matches!(listed.mounts, MountsAt::Listed { .. }), "{listed:?}");
            if has_unique_ids(&record(&stage, &by_table, "volume").await) {
                let quick = look(&stage, &quick, "volume").await;
                let unique_id = listed.mounted().and_then(|mount| mount.unique_id());
                assert_eq!(quick.mounts, MountsAt::Unique(unique_id));
                assert_eq!((quick.kind, quick.mode), (listed.kind, listed.mode));
            }
        },
    );
}

#[test]
fn a_mount_that_is_pulled_away_is_gone_v7_vol_07() {
    in_namespace("looks::a_mount_that_is_pulled_away_is_gone_v7_vol_07", async |stage: Stage| {
        for mounts in both(PATIENT) {
            stage.tmpfs("volume");
            let record = record(&stage, &mounts, "volume").await;
            stage.unmount("volume");
            assert!(is_gone(&record).await);
            fs::remove_dir(stage.path("volume")).unwrap();
            assert!(is_gone(&record).await, "nor is there a directory");
        }
    });
}

#[test]
fn a_mount_in_the_place_of_another_is_never_taken_for_it_v7_vol_07() {
    in_namespace(
        "looks::a_mount_in_the_place_of_another_is_never_taken_for_it_v7_vol_07",
        async |stage: Stage| {
            let source = stage.directory("source");
            for mounts in both(PATIENT) {
                stage.tmpfs("volume");
                let record = record(&stage, &mounts, "volume").await;
                stage.unmount("volume");
                stage.bind(&source, "volume");
                let [quick, by_table] = states(&record).await;
                let is_replaced = |state: &MountState| matches!(state, MountState::Replaced { .. });
                assert!(is_replaced(&quick) && is_replaced(&by_table), "{quick} / {by_table}");

                stage.unmount("volume");
                stage.tmpfs("volume");
                if has_unique_ids(&record) {
                    // The new mount may have the id and device of the old one.
                    for state in states(&record).await {
                        let MountState::Replaced { differences, .. } = state else {
                            panic!("it is another tmpfs: {state}")
                        };
                        assert!(differences.contains(&Difference::Id), "{differences:?}");
                    }
                }
                stage.unmount("volume");
            }
        },
    );
}

#[test]
fn a_bind_whose_source_was_renamed_is_the_same_mount_v7() {
    in_namespace("looks::a_bind_whose_source_was_renamed_is_the_same_mount_v7", async |stage: Stage| {
        let source = stage.directory("source");
        stage.directory("volume");
        stage.bind(&source, "volume");
        let records = both(PATIENT).map(|mounts| {
            let stage = &stage;
            async move { record(stage, &mounts, "volume").await }
        });
        let records = futures_util::future::join_all(records).await;
        fs::rename(&source, stage.path("renamed")).unwrap();
        for record in &records {
            if has_unique_ids(record) {
                assert!(is_same(record).await, "{record:?}");
            }
        }
    });
}

#[test]
fn a_mount_under_another_is_covered_and_comes_back_v7() {
    in_namespace("looks::a_mount_under_another_is_covered_and_comes_back_v7", async |stage: Stage| {
        for mounts in both(PATIENT) {
            stage.tmpfs("above/volume");
            let record = record(&stage, &mounts, "above/volume").await;
            stage.tmpfs("above/volume");
            assert!(!states(&record).await.contains(&MountState::Same));
            stage.unmount("above/volume");
            assert!(is_same(&record).await);

            stage.tmpfs("above");
            assert!(!states(&record).await.contains(&MountState::Same), "it is out of reach");
            stage.unmount("above");
            assert!(is_same(&record).await);
            stage.unmount("above/volume");
        }
        // The mount table shows what covers a mount that it listed.
        stage.tmpfs("above/volume");
        let listed = PathLook::of(&stage.path("above/volume"), &stage.table());
        let record = MountRecord::of(BOOT.into(), &listed).unwrap();
        stage.tmpfs("above/volume");
        let covered = PathLook::of(&record.mount_point, &stage.table());
        let MountState::Covered { by } = record.compare(BOOT, &covered) else { panic!("it is covered") };
        assert_eq!(by.mount_point, record.mount_point);
        stage.unmount("above/volume");
        stage.tmpfs("above");
        let covered = PathLook::of(&record.mount_point, &stage.table());
        let MountState::Covered { by } = record.compare(BOOT, &covered) else { panic!("it is covered") };
        assert_eq!(by.mount_point, stage.path("above"));
    });
}

#[test]
fn a_link_is_never_taken_for_what_it_leads_to_v6_v7() {
    in_namespace("looks::a_link_is_never_taken_for_what_it_leads_to_v6_v7", async |stage: Stage| {
        stage.tmpfs("volume");
        symlink(stage.path("volume"), stage.path("link")).unwrap();
        for mounts in both(PATIENT) {
            let link = look(&stage, &mounts, "link").await;
            assert!(link.kind == PathKind::Link && link.mounted().is_none(), "{link:?}");
            let error = mounts.look(stage.path("link/below")).await.unwrap_err();
            assert!(matches!(&error, LookError::Refused { .. }), "{error}");
            assert!(error.to_string().contains("a part of it is a symbolic link"), "{error}");
        }
    });
}

#[test]
fn names_with_blanks_and_line_breaks_are_recognised_v7() {
    in_namespace("looks::names_with_blanks_and_line_breaks_are_recognised_v7", async |stage: Stage| {
        for name in ["a b", "a\tb", "a\nb", "a\\040b", "a\\", "#", "\u{e9}\u{4e2d}"] {
            stage.tmpfs(name);
            for mounts in both(PATIENT) {
                assert!(is_same(&record(&stage, &mounts, name).await).await, "{name:?}");
            }
        }
    });
}

#[tokio::test]
async fn a_relative_path_is_refused_v7() {
    for mounts in both(PATIENT) {
        let error = mounts.look("volume".into()).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot look at volume: it is not absolute");
        let under_a_file = mounts.look("/proc/version/x".into()).await.unwrap_err();
        assert!(matches!(under_a_file, LookError::Refused { .. }), "{under_a_file}");
    }
}
