//! Tests the files on which block volumes are mounted, and their devices.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use callboard_actors::mounts::{Made, Mounts as _, PathKind, PlaceError};

use super::namespace::{Stage, block_on, in_namespace, patient};

#[test]
fn the_file_for_a_block_volume_is_closed_and_goes_only_when_bare_and_empty_v6_v7() {
    in_namespace(
        "block::the_file_for_a_block_volume_is_closed_and_goes_only_when_bare_and_empty_v6_v7",
        async |stage: Stage| {
            let (mounts, place) = (patient(), stage.place("csi/target"));
            assert_eq!(mounts.make_file(place.clone()).await, Ok(Made::New));
            assert_eq!(mounts.make_file(place.clone()).await, Ok(Made::AlreadyThere));
            assert_eq!(fs::metadata(place.path()).unwrap().mode() & 0o7777, 0);

            // A device cannot be made in a user namespace; the kernel mounts any file on a file.
            stage.bind("/dev/null".as_ref(), "csi/target");
            assert_eq!(mounts.make_file(place.clone()).await, Ok(Made::Mounted));
            let mounted = PlaceError::Mounted { path: place.path() };
            assert_eq!(mounts.remove(place.clone()).await.unwrap_err(), mounted);
            let look = mounts.look(place.path()).await.unwrap();
            assert!(look.kind == PathKind::Other && look.mounted().is_some(), "{look:?}");
            stage.unmount("csi/target");

            fs::write(place.path(), "written while nothing was mounted").unwrap();
            let not_empty = PlaceError::NotEmpty { path: place.path() };
            assert_eq!(mounts.make_file(place.clone()).await.unwrap_err(), not_empty);
            assert_eq!(mounts.remove(place.clone()).await.unwrap_err(), not_empty);
            fs::write(place.path(), "").unwrap();
            assert_eq!(mounts.remove(place.clone()).await.unwrap(), [place.path(), stage.path("csi")]);
            stage.directory("csi/target");
            assert!(matches!(mounts.make_file(place).await, Err(PlaceError::WrongKind { .. })));
        },
    );
}

#[test]
fn a_block_device_is_recognised_by_its_number_v7() {
    let devices = fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap());
    let devices = devices.filter(|entry| entry.file_type().unwrap().is_block_device());
    let numbered = devices.map(|device| (device.path(), fs::metadata(device.path()).unwrap().rdev()));
    let sectors = |number| {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/size")).unwrap_or_default()
    };
    let (empty, full): (Vec<_>, Vec<_>) = numbered.partition(|(_, number)| sectors(*number).trim() == "0");
    if full.is_empty() {
        eprintln!("SKIPPED: a look at a block device is not shown, since /dev has none with a disk");
    }
    block_on(async {
        if let Some((device, number)) = full.into_iter().next() {
            let look = patient().look(device).await.unwrap();
            let PathKind::BlockDevice(found) = look.kind else { panic!("{look:?}") };
            assert_eq!(rustix::fs::makedev(found.number.major, found.number.minor), number);
        }
        if let Some((device, _)) = empty.into_iter().next() {
            let dead = patient().look(device).await.unwrap_err().to_string();
            assert!(dead.contains("no disk is behind block device"), "{dead}");
        }
    });
}
