//! Directories are made and removed one by one, and what is not empty, not ours or a mount is never touched (V6, V7).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use callboard_actors::mounts::{Made, Mounts as _, Place, PlaceError};

use super::namespace::{Stage, block_on, in_namespace, patient};

const NOTHING: [PathBuf; 0] = [];

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

async fn make(place: &Place) -> Result<Made, PlaceError> {
    patient().make_mount_point(place.clone()).await
}

async fn remove(place: &Place) -> Result<Vec<PathBuf>, PlaceError> {
    patient().remove(place.clone()).await
}

#[test]
fn a_bare_mount_point_is_closed_and_what_leads_to_it_is_passable_v7() {
    in_namespace(
        "directories::a_bare_mount_point_is_closed_and_what_leads_to_it_is_passable_v7",
        async |stage: Stage| {
            let place = stage.place("csi/node/staging");
            assert_eq!(make(&place).await, Ok(Made::New));
            assert_eq!(mode(&place.path()), 0);
            assert_eq!(mode(&stage.path("csi/node")), 0o711);
            assert_eq!(mode(&stage.path("csi")), 0o711);
            fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
            fs::set_permissions(stage.path("csi"), fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!(make(&place).await, Ok(Made::AlreadyThere));
            assert_eq!(mode(&place.path()), 0, "it is closed again");
            assert_eq!(mode(&stage.path("csi")), 0o700, "what was there keeps its mode");

            let target = stage.place("csi/target/volume");
            assert_eq!(patient().make_parent(target.clone()).await, Ok(Made::New));
            assert_eq!(mode(&stage.path("csi/target")), 0o711);
            assert!(!target.path().exists(), "its plugin makes it");
        },
    );
}

#[test]
fn a_workload_that_is_not_root_cannot_write_to_a_bare_mount_point_v7_vol_07() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let base = directory.path().canonicalize().unwrap();
        let place = Place::new(&base, &base.join("staging/volume")).unwrap();
        assert_eq!(make(&place).await, Ok(Made::New));
        let mut workload = Command::new("touch");
        workload.arg(place.path().join("file")).stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            workload.uid(65_534);
        }
        assert!(!workload.status().unwrap().success(), "it wrote to the local disk");
        assert_eq!(remove(&place).await.unwrap(), [place.path(), base.join("staging")]);
    });
}

#[test]
fn what_is_removed_is_empty_and_its_base_stays_v6() {
    in_namespace("directories::what_is_removed_is_empty_and_its_base_stays_v6", async |stage: Stage| {
        let (one, two) = (stage.place("csi/plugin/one/target"), stage.place("csi/plugin/two"));
        make(&one).await.unwrap();
        make(&two).await.unwrap();
        assert_eq!(remove(&one).await.unwrap(), [one.path(), stage.path("csi/plugin/one")]);
        assert!(two.path().is_dir(), "another volume uses what is above");
        assert_eq!(remove(&one).await.unwrap(), NOTHING, "it is idempotent");
        let rest = [two.path(), stage.path("csi/plugin"), stage.path("csi")];
        assert_eq!(remove(&two).await.unwrap(), rest);
        assert!(stage.path("").is_dir());
    });
}

#[test]
fn what_is_to_stay_of_a_path_is_not_removed_with_the_rest_v6() {
    in_namespace(
        "directories::what_is_to_stay_of_a_path_is_not_removed_with_the_rest_v6",
        async |stage: Stage| {
            let place = stage.place("csi/plugin/one/target").keeping(2);
            make(&place).await.unwrap();
            assert_eq!(remove(&place).await.unwrap(), [place.path(), stage.path("csi/plugin/one")]);
            assert!(stage.path("csi/plugin").is_dir());
            assert_eq!(remove(&place).await.unwrap(), NOTHING, "it is idempotent");
            let all = stage.place("csi/plugin").keeping(2);
            assert_eq!(remove(&all).await.unwrap(), [all.path()], "the path itself is removed");
        },
    );
}

#[test]
fn a_removal_that_a_crash_cut_short_is_resumed_v6() {
    in_namespace("directories::a_removal_that_a_crash_cut_short_is_resumed_v6", async |stage: Stage| {
        let place = stage.place("csi/plugin/one/target");
        make(&place).await.unwrap();
        fs::remove_dir(place.path()).unwrap();
        fs::remove_dir(stage.path("csi/plugin/one")).unwrap();
        assert_eq!(remove(&place).await.unwrap(), [stage.path("csi/plugin"), stage.path("csi")]);
    });
}

/// Holds C142.
#[test]
fn files_in_a_directory_and_files_under_a_dead_mount_point_stay_v6_vol_06() {
    in_namespace(
        "directories::files_in_a_directory_and_files_under_a_dead_mount_point_stay_v6_vol_06",
        async |stage: Stage| {
            let place = stage.place("csi/target");
            make(&place).await.unwrap();
            let file = place.path().join("file");
            fs::write(&file, "below").unwrap();
            stage.tmpfs("csi/target");
            fs::write(&file, "mounted").unwrap();
            let mounted = PlaceError::Mounted { path: place.path() };
            assert_eq!(remove(&place).await.unwrap_err(), mounted);
            assert_eq!(make(&place).await, Ok(Made::Mounted));
            assert_eq!(fs::read_to_string(&file).unwrap(), "mounted");

            let inside = stage.place("csi/target/inner");
            fs::create_dir(inside.path()).unwrap();
            assert_eq!(remove(&inside).await.unwrap_err(), mounted, "nothing is removed below a mount");
            assert_eq!(make(&stage.place("csi/target/inner/more")).await.unwrap_err(), mounted);
            assert!(inside.path().is_dir());

            stage.unmount("csi/target");
            assert_eq!(remove(&place).await, Err(PlaceError::NotEmpty { path: place.path() }));
            assert_eq!(fs::read_to_string(&file).unwrap(), "below");
        },
    );
}

#[test]
fn a_bind_of_the_same_file_system_is_a_mount_too_v6_vol_06() {
    in_namespace(
        "directories::a_bind_of_the_same_file_system_is_a_mount_too_v6_vol_06",
        async |stage: Stage| {
            let data = stage.directory("data");
            let empty = stage.directory("data/empty");
            make(&stage.place("csi/target")).await.unwrap();
            stage.bind(&data, "csi/target");
            let mounted = PlaceError::Mounted { path: stage.path("csi/target") };
            assert_eq!(remove(&stage.place("csi/target/empty")).await.unwrap_err(), mounted);
            assert_eq!(remove(&stage.place("csi/target")).await.unwrap_err(), mounted);
            assert!(empty.is_dir(), "it is a directory of the user, though it is empty");
        },
    );
}

#[test]
fn a_link_is_never_followed_v6_vol_06() {
    in_namespace("directories::a_link_is_never_followed_v6_vol_06", async |stage: Stage| {
        let data = stage.directory("data/empty");
        stage.directory("csi");
        symlink(stage.path("data"), stage.path("csi/link")).unwrap();
        let link = PlaceError::Link { path: stage.path("csi/link") };
        for place in [stage.place("csi/link"), stage.place("csi/link/empty")] {
            assert_eq!(make(&place).await.unwrap_err(), link);
            assert_eq!(remove(&place).await.unwrap_err(), link);
            assert_eq!(patient().make_file(place).await.unwrap_err(), link);
        }
        symlink("nowhere", stage.path("csi/dangling")).unwrap();
        let dangling = stage.place("csi/dangling");
        let error = PlaceError::Link { path: dangling.path() };
        assert_eq!(make(&dangling).await.unwrap_err(), error);
        assert_eq!(patient().make_file(dangling).await.unwrap_err(), error);
        assert!(data.is_dir() && !stage.path("csi/nowhere").exists());
    });
}

#[test]
fn what_is_no_directory_is_refused_and_stays_v6() {
    in_namespace("directories::what_is_no_directory_is_refused_and_stays_v6", async |stage: Stage| {
        stage.directory("csi");
        fs::write(stage.path("csi/file"), "data").unwrap();
        let below = stage.place("csi/file/below");
        let wrong =
            PlaceError::WrongKind { path: stage.path("csi/file"), found: "a file", wanted: "a directory" };
        assert_eq!(make(&stage.place("csi/file")).await.unwrap_err(), wrong);
        assert_eq!(make(&below).await.unwrap_err(), wrong);
        assert_eq!(remove(&below).await.unwrap_err(), wrong);
        assert_eq!(fs::read_to_string(stage.path("csi/file")).unwrap(), "data");
        let base = Place::new(Path::new("/nonexistent"), Path::new("/nonexistent/x")).unwrap();
        let error = make(&base).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot open /nonexistent: No such file"), "{error}");
    });
}

#[test]
fn what_belongs_to_another_user_is_not_removed_v6() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("csi/theirs")).unwrap();
    if std::os::unix::fs::chown(base.join("csi/theirs"), Some(65_534), None).is_err() {
        eprintln!("SKIPPED: a directory of another user is not shown, since this process is not root");
        return;
    }
    let place = Place::new(&base, &base.join("csi/theirs")).unwrap();
    let foreign = PlaceError::Foreign { path: place.path(), owner: 65_534 };
    block_on(async {
        assert_eq!(remove(&place).await.unwrap_err(), foreign);
        assert_eq!(make(&place).await.unwrap_err(), foreign);
        assert_eq!(remove(&Place::new(&base, &base.join("csi/none")).unwrap()).await.unwrap(), NOTHING);
    });
    assert!(place.path().is_dir());
}

#[test]
fn volumes_that_share_directories_are_made_and_removed_at_once_v6_v9() {
    in_namespace(
        "directories::volumes_that_share_directories_are_made_and_removed_at_once_v6_v9",
        async |stage: Stage| {
            let mounts = patient();
            let rounds = (0..8).map(|volume| {
                let (mounts, place) =
                    (mounts.clone(), stage.place(&format!("csi/plugin/ns/volume-{volume}/rw")));
                async move {
                    for _ in 0..50 {
                        let made = mounts.make_mount_point(place.clone()).await;
                        assert_eq!(made, Ok(Made::New));
                        let removed = mounts.remove(place.clone()).await.unwrap();
                        assert!(removed.contains(&place.path()), "{removed:?}");
                    }
                }
            });
            futures_util::future::join_all(rounds).await;
            assert!(fs::read_dir(stage.path("")).unwrap().next().is_none(), "nothing is left");
        },
    );
}
