//! Tests foreign mounts and links at the paths of a volume: they are neither taken for the volume nor touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use callboard::actors::mounts::mounts_of_this_process;
use callboard::host::Host;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::namespace::in_namespace;
use crate::node::{claim, create, key, nothing_is_left, read, release, serve, until_shown, write};
use crate::support::Stage;

const USAGE: &str = "file-system-single-node-multi-writer";

/// The staging path of the volume `data`, and the path at which allocation `a` finds it.
fn paths(stage: &Stage) -> [PathBuf; 2] {
    let volumes = stage.data_dir().canonicalize().expect("it is there").join("csi/node/example");
    let target = volumes.join("per-alloc/a/default/data").join(format!("rw-{USAGE}"));
    [volumes.join("staging/default/data").join(USAGE), target]
}

/// A directory that is not a volume.
fn foreign(stage: &Stage) -> PathBuf {
    let directory = stage.path("foreign");
    fs::create_dir(&directory).expect("it can be made");
    write(&directory, "theirs");
    directory
}

/// Claims the volume while something is in its way, which `take_away` removes, and checks that the claim has waited for that.
async fn waits_until_it_is_gone(host: &Host, word: &str, take_away: impl FnOnce()) {
    let data = key("data");
    let (claimed, ()) = tokio::join!(claim(host, &data, "a", false), async {
        until_shown(host, &data, word).await;
        take_away();
    });
    let claimed = claimed.expect("nothing is in its way any more");
    assert!(!claimed.path.join("file").exists(), "it is the volume");
    write(&claimed.path, "ours");
    release(host, &data, "a").await;
}

/// Mounts a foreign directory at the staging path of the volume, or at the path of the allocation.
async fn is_not_taken_for_the_volume(of: fn([PathBuf; 2]) -> PathBuf) {
    let stage = Stage::new();
    let (host, mut served) = serve(&stage).await;
    create(&host, "data").await;
    let (foreign, path) = (foreign(&stage), of(paths(&stage)));
    fs::create_dir_all(&path).expect("it can be made");
    mount_bind(&foreign, &path).expect("it can be mounted");
    waits_until_it_is_gone(&host, "belongs to no claim of this volume", || {
        assert_eq!(read(&path), "theirs", "it was not touched");
        unmount(&path, UnmountFlags::empty()).expect("it is mounted");
    })
    .await;
    assert_eq!(read(&foreign), "theirs");
    nothing_is_left(&stage);
    served.stop(&host).await;
    host.stop().await;
}

#[test]
fn what_is_mounted_where_a_volume_is_staged_is_not_taken_for_it_v7_v14() {
    in_namespace(
        "foreign::what_is_mounted_where_a_volume_is_staged_is_not_taken_for_it_v7_v14",
        async |_| {
            is_not_taken_for_the_volume(|[staging, _]| staging).await;
        },
    );
}

#[test]
fn what_is_mounted_where_an_allocation_finds_a_volume_is_not_taken_for_it_v7_v14() {
    let name = "foreign::what_is_mounted_where_an_allocation_finds_a_volume_is_not_taken_for_it_v7_v14";
    in_namespace(name, async |_| is_not_taken_for_the_volume(|[_, target]| target).await);
}

/// A plugin would mount through the link.
#[test]
fn a_link_where_an_allocation_finds_a_volume_is_not_followed_v6() {
    in_namespace("foreign::a_link_where_an_allocation_finds_a_volume_is_not_followed_v6", async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        create(&host, "data").await;
        let (foreign, [_, target]) = (foreign(&stage), paths(&stage));
        fs::create_dir_all(target.parent().expect("it has one")).expect("it can be made");
        symlink(&foreign, &target).expect("it can be made");
        waits_until_it_is_gone(&host, "symbolic link", || {
            let table = mounts_of_this_process().expect("it can be read");
            assert_eq!(table.at_or_below(&foreign).len(), 0, "nothing is mounted through it");
            assert_eq!(served.calls("NodePublishVolume"), 0);
            fs::remove_file(&target).expect("it is there");
        })
        .await;
        assert_eq!(read(&foreign), "theirs");
        nothing_is_left(&stage);
        served.stop(&host).await;
        host.stop().await;
    });
}
