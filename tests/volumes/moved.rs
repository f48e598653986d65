//! Tests a data directory that is moved while volumes are in use: the mounts in it move with it, and nothing is left at the paths of the
//! ledger. That does not prove that the volumes are down.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard::actors::mounts::mounts_of_this_process;
use callboard::actors::volume::{ObservedEnd, VolumeKey};
use callboard::actors::volumes::{ConfirmClaims, DeleteVolume, Release};
use callboard::host::Host;

use crate::namespace::in_namespace;
use crate::node::{
    builder, claim, contents, create, delete, key, nothing_is_left, plugin, read, release, serve,
    until_shown, write,
};
use crate::support::{LONG, Stage, id};

/// Long enough for several attempts.
const SHORT: Duration = Duration::from_secs(1);

/// Where the data directory is moved to.
fn aside(stage: &Stage) -> PathBuf {
    stage.path("aside")
}

/// The path of a claim below another data directory.
fn below(stage: &Stage, data_dir: &Path, path: &Path) -> PathBuf {
    let old = stage.path("").canonicalize().expect("it is there").join("data");
    data_dir.join(path.strip_prefix(old).expect("it lies in the data directory"))
}

/// The number of mounts of volumes, at any path.
fn mounts(stage: &Stage) -> usize {
    let place = stage.path("").canonicalize().expect("it is there");
    mounts_of_this_process().expect("it can be read").at_or_below(&place).len()
}

/// The reason why a volume is not released in a time with several attempts. An attempt still in flight then gives no reason.
async fn not_released(host: &Host, volume: &VolumeKey) -> String {
    let asked = async {
        loop {
            let observed = ObservedEnd::Exited;
            let ask = Release { volume: volume.clone(), allocation: id("a"), observed, within: SHORT };
            let refused = host.volumes().ask(ask).await.expect("it runs");
            let told = refused.expect_err("it cannot be undone there").to_string();
            if !told.contains("is in flight") {
                return told;
            }
        }
    };
    tokio::time::timeout(LONG, asked).await.expect("a try comes to its end")
}

#[test]
fn what_moves_with_the_data_directory_of_a_running_host_is_not_taken_for_undone_v6_v7_v8() {
    let name = "moved::what_moves_with_the_data_directory_of_a_running_host_is_not_taken_for_undone_v6_v7_v8";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let data = create(&host, "data").await;
        let path = claim(&host, &data, "a", false).await.expect("it is set up").path;
        write(&path, "from a");
        let before = mounts(&stage);
        fs::rename(stage.data_dir(), aside(&stage)).expect("it can be moved");

        let moved = below(&stage, &aside(&stage), &path);
        let told = not_released(&host, &data).await;
        assert!(told.contains("the data directory was removed or renamed"), "{told}");
        let refused = DeleteVolume { volume: key("data"), within: SHORT };
        host.volumes().ask(refused).await.expect("it runs").expect_err("it is in use");
        assert_eq!(served.calls("NodeUnpublishVolume"), 0);
        assert_eq!((read(&moved), mounts(&stage)), ("from a".to_owned(), before));

        fs::rename(aside(&stage), stage.data_dir()).expect("it can be moved back");
        release(&host, &data, "a").await;
        nothing_is_left(&stage);
        delete(&host, &data).await;
        assert_eq!(contents(&stage), 0);
        served.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn what_moved_with_the_data_directory_between_two_runs_is_not_taken_for_undone_v5_v8_v14() {
    let name = "moved::what_moved_with_the_data_directory_between_two_runs_is_not_taken_for_undone_v5_v8_v14";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, served) = serve(&stage).await;
        let data = create(&host, "data").await;
        let path = claim(&host, &data, "a", false).await.expect("it is set up").path;
        write(&path, "from a");
        let before = mounts(&stage);
        host.detach().await;
        drop(served);
        fs::rename(stage.data_dir(), aside(&stage)).expect("it can be moved");

        let confirm = || ConfirmClaims { living: [id("a")].into(), unclear: [].into() };
        let moved_builder = crate::node::refined(stage.builder_at(aside(&stage)));
        let host = moved_builder.start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "second");
        served.start(&host).await;
        host.volumes().ask(confirm()).await.expect("it runs");
        until_shown(&host, &data, "give it up by force instead").await;
        let moved = below(&stage, &aside(&stage), &path);
        let told = not_released(&host, &data).await;
        assert!(told.contains("start it with the data directory at its former path"), "{told}");
        assert_eq!(served.calls("NodeUnpublishVolume") + served.calls("NodeUnstageVolume"), 0);
        assert_eq!((read(&moved), mounts(&stage)), ("from a".to_owned(), before));
        host.detach().await;
        drop(served);

        fs::rename(aside(&stage), stage.data_dir()).expect("it can be moved back");
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "third");
        served.start(&host).await;
        assert_eq!(read(&path), "from a");
        release(&host, &data, "a").await;
        nothing_is_left(&stage);
        assert_eq!(contents(&stage), 1, "the volume itself is there");
        tokio::time::timeout(LONG, served.stop(&host)).await.expect("nothing holds it up");
        host.stop().await;
    });
}
