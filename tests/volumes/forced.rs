//! Tests forced releases by an operator.

use std::path::PathBuf;

use callboard::actors::volume::{ForceScope, ObservedEnd, VolumeKey};
use callboard::actors::volumes::{ForceRelease, Release, ReleaseError};
use callboard::host::Host;
use rustix::mount::{UnmountFlags, unmount};

use crate::namespace::in_namespace;
use crate::node::{
    builder, claim, create, delete, mounted, nothing_is_left, plugin, read, release, until_shown,
    until_vacant, write,
};
use crate::support::{PAUSE, Stage, id};

/// Makes a claim whose plugin does not unpublish it, and force-releases only this claim.
async fn give_up(host: &Host, volume: &VolumeKey) -> PathBuf {
    let claimed = claim(host, volume, "a", false).await.expect("it is set up");
    write(&claimed.path, "from a");
    let observed = ObservedEnd::Exited;
    let asked = Release { volume: volume.clone(), allocation: id("a"), observed, within: PAUSE };
    let released = host.volumes().ask(asked).await.expect("it runs");
    assert!(matches!(released, Err(ReleaseError::Unconfirmed(_))), "{released:?}");
    let scope = ForceScope::Claim(id("a"));
    let force = ForceRelease { volume: volume.clone(), scope, reason: "the test wants it".to_owned() };
    host.volumes().ask(force).await.expect("it runs").expect("it is released");
    claimed.path
}

#[test]
fn a_volume_is_not_unstaged_below_a_target_that_was_given_up_and_is_mounted_v3_c131() {
    let name = "forced::a_volume_is_not_unstaged_below_a_target_that_was_given_up_and_is_mounted_v3_c131";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "plugin").with(&["--fault", "NodeUnpublishVolume=PERMISSION_DENIED"]);
        served.start(&host).await;
        let data = create(&host, "data").await;
        let path = give_up(&host, &data).await;
        until_shown(&host, &data, "from the claim of a; NodeUnpublishVolume").await;
        assert_eq!(mounted(&stage).len(), 2, "the staging stays below the target");
        assert_eq!(read(&path), "from a");

        // It continues after people have unmounted the target, although the plugin refuses to undo the publication that it still
        // records, and then to unstage. A way out is another such claim, which another instance of the plugin undoes.
        unmount(&path, UnmountFlags::empty()).expect("it is mounted");
        until_shown(&host, &data, "unpublish it first").await;
        let mut next = plugin(&stage, "next");
        next.start(&host).await;
        until_shown(&host, &data, "of allocation next").await;
        let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
        assert_eq!(read(&claimed.path), "from a");
        release(&host, &data, "a").await;
        assert_eq!(mounted(&stage).len(), 0);
        served.stop(&host).await;
        next.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn a_target_that_was_given_up_is_undone_as_soon_as_the_plugin_can_v3_c133() {
    let name = "forced::a_target_that_was_given_up_is_undone_as_soon_as_the_plugin_can_v3_c133";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "plugin").with(&["--fault", "NodeUnpublishVolume=INTERNAL"]);
        served.start(&host).await;
        let data = create(&host, "data").await;
        let path = give_up(&host, &data).await;
        until_shown(&host, &data, "NodeUnpublishVolume").await;
        assert_eq!(read(&path), "from a");

        let mut next = plugin(&stage, "next");
        next.start(&host).await;
        until_vacant(&host, &data).await;
        assert_eq!(mounted(&stage).len(), 0);
        delete(&host, &data).await;
        served.stop(&host).await;
        next.stop(&host).await;
        host.stop().await;
        nothing_is_left(&stage);
    });
}
