//! What a look finds, and whether a recorded mount is recognised (V7).

use std::fs;
use std::os::unix::fs::symlink;

use callboard_actors::mounts::{
    Difference, LookError, MountRecord, MountState, Mounts as _, PathKind, PathLook,
};
use rustix::mount::{MountFlags, mount_remount};

use super::namespace::{BOOT, Stage, in_namespace, patient};

async fn look(stage: &Stage, below: &str) -> PathLook {
    patient().look(stage.path(below)).await.unwrap()
}

async fn record(stage: &Stage, below: &str) -> MountRecord {
    MountRecord::of(BOOT.into(), &look(stage, below).await).expect("something is mounted")
}

/// What the look and the table say of a record, which have to agree.
async fn state(stage: &Stage, record: &MountRecord) -> MountState {
    let look = patient().look(record.mount_point.clone()).await.unwrap();
    let (by_look, by_table) = (record.compare_look(BOOT, &look), record.compare(BOOT, &stage.table()));
    assert_eq!(std::mem::discriminant(&by_look), std::mem::discriminant(&by_table), "{by_look} / {by_table}");
    by_look
}

#[test]
fn a_bind_and_a_tmpfs_are_told_from_bare_directories_v7() {
    in_namespace("looks::a_bind_and_a_tmpfs_are_told_from_bare_directories_v7", async |stage: Stage| {
        let source = stage.directory("source/sub");
        stage.directory("bare");
        stage.directory("bound");
        stage.bind(&source, "bound");
        stage.tmpfs("memory");

        let bare = look(&stage, "bare").await;
        assert!(bare.kind == PathKind::Directory && bare.mounted().is_none(), "{bare:?}");
        assert_eq!(bare.mount.as_ref().unwrap().mount_point, stage.path(""));
        let absent = look(&stage, "absent").await;
        assert!(absent.kind == PathKind::Absent && absent.mounted().is_none());
        let bound = look(&stage, "bound").await;
        let mount = bound.mounted().unwrap();
        assert_eq!((mount.fs_type.as_str(), mount.root.to_str()), ("tmpfs", Some("/source/sub")));
        let memory = look(&stage, "memory").await;
        let other = memory.mounted().unwrap();
        assert!(other.root.to_str() == Some("/") && other.device != mount.device);
        assert!(!other.is_read_only() && other.source == "callboard");
        assert_eq!(state(&stage, &record(&stage, "bound").await).await, MountState::Same);

        let flags = MountFlags::BIND | MountFlags::RDONLY;
        mount_remount(stage.path("bound"), flags, "").unwrap();
        assert!(look(&stage, "bound").await.mounted().unwrap().is_mounted_read_only());
    });
}

#[test]
fn a_mount_that_is_pulled_away_is_gone_v7_vol_07() {
    in_namespace("looks::a_mount_that_is_pulled_away_is_gone_v7_vol_07", async |stage: Stage| {
        stage.tmpfs("volume");
        let record = record(&stage, "volume").await;
        stage.unmount("volume");
        assert_eq!(state(&stage, &record).await, MountState::Gone);
        fs::remove_dir(stage.path("volume")).unwrap();
        assert_eq!(state(&stage, &record).await, MountState::Gone, "nor is there a directory");
    });
}

#[test]
fn a_mount_in_the_place_of_another_is_never_taken_for_it_v7_vol_07() {
    in_namespace(
        "looks::a_mount_in_the_place_of_another_is_never_taken_for_it_v7_vol_07",
        async |stage: Stage| {
            stage.tmpfs("volume");
            let record = record(&stage, "volume").await;
            let source = stage.directory("source");
            stage.unmount("volume");
            stage.bind(&source, "volume");
            let MountState::Replaced { differences, .. } = state(&stage, &record).await else {
                panic!("a bind is there now")
            };
            assert!(differences.contains(&Difference::Root), "{differences:?}");

            stage.unmount("volume");
            stage.tmpfs("volume");
            if record.identity.unique_id.is_none() {
                eprintln!(
                    "SKIPPED: a tmpfs with the numbers of its predecessor: this kernel has no unique ids"
                );
                return;
            }
            // The kernel may have given it the id and device of its predecessor.
            let look = patient().look(record.mount_point.clone()).await.unwrap();
            let MountState::Replaced { differences, .. } = record.compare_look(BOOT, &look) else {
                panic!("it is another tmpfs: {look:?}")
            };
            assert!(differences.contains(&Difference::Id), "{differences:?}");
        },
    );
}

#[test]
fn a_mount_under_another_is_covered_and_comes_back_v7() {
    in_namespace("looks::a_mount_under_another_is_covered_and_comes_back_v7", async |stage: Stage| {
        stage.tmpfs("above/volume");
        let record = record(&stage, "above/volume").await;
        stage.tmpfs("above/volume");
        assert!(matches!(state(&stage, &record).await, MountState::Covered { .. }));
        stage.unmount("above/volume");
        assert_eq!(state(&stage, &record).await, MountState::Same);

        stage.tmpfs("above");
        let MountState::Covered { by } = state(&stage, &record).await else { panic!("it is out of reach") };
        assert_eq!(by.mount_point, stage.path("above"));
        stage.unmount("above");
        assert_eq!(state(&stage, &record).await, MountState::Same);
    });
}

#[test]
fn a_link_is_never_taken_for_what_it_leads_to_v6_v7() {
    in_namespace("looks::a_link_is_never_taken_for_what_it_leads_to_v6_v7", async |stage: Stage| {
        stage.tmpfs("volume");
        symlink(stage.path("volume"), stage.path("link")).unwrap();
        let link = look(&stage, "link").await;
        assert!(link.kind == PathKind::Link && link.mounted().is_none(), "{link:?}");
        let error = patient().look(stage.path("link/below")).await.unwrap_err();
        assert!(matches!(&error, LookError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("a part of it is a symbolic link"), "{error}");
    });
}

#[test]
fn names_with_blanks_and_line_breaks_are_recognised_v7() {
    in_namespace("looks::names_with_blanks_and_line_breaks_are_recognised_v7", async |stage: Stage| {
        for name in ["a b", "a\tb", "a\nb", "a\\040b", "a\\", "#", "\u{e9}\u{4e2d}"] {
            stage.tmpfs(name);
            assert_eq!(state(&stage, &record(&stage, name).await).await, MountState::Same, "{name:?}");
        }
    });
}

#[tokio::test]
async fn a_relative_path_is_refused_v7() {
    let error = patient().look("volume".into()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot look at volume: it is not absolute");
    let under_a_file = patient().look("/proc/version/x".into()).await.unwrap_err();
    assert!(matches!(under_a_file, LookError::Refused { .. }), "{under_a_file}");
}
