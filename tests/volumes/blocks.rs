//! Tests block volumes: data on the device survives the death of its plugin, and a device whose disk was replaced is
//! never handed out.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use callboard::actors::csi::{AccessMode, AccessType, VolumeCapability};
use callboard::actors::volume::{Claimed, Usage, VolumeKey};
use callboard::actors::volumes::{Claim, CreateVolume};
use callboard::host::Host;

use crate::namespace::{in_namespace, in_namespace_of_root};
use crate::node::{creation, delete, key, nothing_is_left, release, serve};
use crate::support::{LONG, PAUSE, Stage, id};

/// As root of the machine both tests make loop devices, and the number of one must not be taken by the other.
static LOOP_DEVICES: Mutex<()> = Mutex::new(());

const TEXT: &[u8] = b"written to a block volume";

fn usage() -> Usage {
    let access_mode = AccessMode::SingleNodeMultiWriter;
    Usage { capability: VolumeCapability { access_type: AccessType::Block, access_mode }, read_only: false }
}

async fn create(host: &Host, name: &str) -> VolumeKey {
    let mut creation: CreateVolume = creation(name);
    creation.new.capabilities = vec![usage().capability];
    host.volumes().ask(creation).await.expect("it runs").expect("it is created");
    key(name)
}

async fn claim(host: &Host, volume: &VolumeKey, allocation: &str) -> Claimed {
    let claim = Claim { volume: volume.clone(), allocation: id(allocation), usage: usage(), within: LONG };
    let claimed = host.volumes().ask(claim).await.expect("it runs").expect("it is set up");
    assert!(claimed.is_block);
    claimed
}

fn write(device: &Path, text: &[u8]) {
    let file = File::options().write(true).open(device).expect("it can be opened");
    file.write_all_at(text, 4_096).expect("it can be written");
    file.sync_all().expect("it is on disk");
}

fn read(device: &Path) -> Vec<u8> {
    let mut found = vec![0; TEXT.len()];
    File::open(device).expect("it can be opened").read_exact_at(&mut found, 4_096).expect("it can be read");
    found
}

#[test]
fn what_is_written_to_a_block_volume_outlives_its_plugin_v7_res_05() {
    let _alone = LOOP_DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = "blocks::what_is_written_to_a_block_volume_outlives_its_plugin_v7_res_05";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let raw = create(&host, "raw").await;
        let claimed = claim(&host, &raw, "a").await;
        write(&claimed.path, TEXT);
        served.kill(&host).await;
        served.start(&host).await;
        let again = claim(&host, &raw, "a").await;
        assert_eq!((again.path == claimed.path, &*read(&again.path)), (true, TEXT));
        let shared = claim(&host, &raw, "b").await;
        assert_eq!(read(&shared.path), TEXT);
        release(&host, &raw, "a").await;
        assert_eq!(read(&shared.path), TEXT, "the other claim is not touched");
        release(&host, &raw, "b").await;
        nothing_is_left(&stage);
        assert_eq!(read(&claim(&host, &raw, "c").await.path), TEXT);
        release(&host, &raw, "c").await;
        delete(&host, &raw).await;
        served.stop(&host).await;
        host.stop().await;
    });
}

/// The number of a loop device is reused for the next image as soon as it is free, with the same device file.
#[test]
fn a_device_that_has_lost_its_disk_or_has_another_one_is_not_handed_out_v7_vol_07() {
    if File::options().read(true).write(true).open("/dev/loop-control").is_err() {
        eprintln!("SKIPPED: a device that has another disk is not shown, since only root makes loop devices");
        return;
    }
    let _alone = LOOP_DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = "blocks::a_device_that_has_lost_its_disk_or_has_another_one_is_not_handed_out_v7_vol_07";
    in_namespace_of_root(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let raw = create(&host, "raw").await;
        let claimed = claim(&host, &raw, "a").await;
        write(&claimed.path, TEXT);

        losetup(&["--detach", &device_at(&claimed.path)]);
        let again = claim(&host, &raw, "a").await;
        assert_eq!(read(&again.path), TEXT, "it has its disk again");

        let other = stage.path("other");
        fs::write(&other, vec![7; 1 << 20]).expect("it can be written");
        let device = device_at(&again.path);
        losetup(&["--detach", &device]);
        losetup(&[&device, other.to_str().expect("a readable path")]);
        assert_eq!(read(&again.path), [7; TEXT.len()], "the kernel shows the other disk under the same file");
        let again = claim(&host, &raw, "a").await;
        assert_eq!(read(&again.path), TEXT);
        losetup(&["--detach", &device]);
        release(&host, &raw, "a").await;
        nothing_is_left(&stage);
        served.stop(&host).await;
        host.stop().await;
    });
}

/// The loop device of this device file.
fn device_at(path: &Path) -> String {
    let number = rustix::fs::minor(fs::metadata(path).expect("it is there").rdev());
    PathBuf::from(format!("/dev/loop{number}")).display().to_string()
}

/// Repeats it while another process, such as udev, still has the device open.
fn losetup(arguments: &[&str]) {
    let until = Instant::now() + LONG;
    loop {
        let output = Command::new("losetup").args(arguments).output().expect("losetup runs");
        if output.status.success() {
            return;
        }
        assert!(Instant::now() < until, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        std::thread::sleep(PAUSE);
    }
}
