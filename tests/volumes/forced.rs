//! What an operator gives up by force.

use callboard::actors::volume::{ForceScope, ObservedEnd};
use callboard::actors::volumes::{ForceRelease, Release, ReleaseError};
use rustix::mount::{UnmountFlags, unmount};

use crate::namespace::in_namespace;
use crate::node::{builder, claim, create, mounted, plugin, read, release, until_shown, write};
use crate::support::{PAUSE, Stage, id};

#[test]
fn a_volume_is_not_unstaged_below_a_target_that_was_given_up_and_is_mounted_v3_c131() {
    let name = "forced::a_volume_is_not_unstaged_below_a_target_that_was_given_up_and_is_mounted_v3_c131";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "plugin").with(&["--fault", "NodeUnpublishVolume=INTERNAL"]);
        served.start(&host).await;
        let data = create(&host, "data").await;
        let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
        write(&claimed.path, "from a");

        let observed = ObservedEnd::Exited;
        let given_up = Release { volume: data.clone(), allocation: id("a"), observed, within: PAUSE };
        let pending = host.volumes().ask(given_up).await.expect("it runs");
        assert!(matches!(pending, Err(ReleaseError::Unconfirmed(_))), "{pending:?}");
        let scope = ForceScope::Claim(id("a"));
        let force = ForceRelease { volume: data.clone(), scope, reason: "the test wants it".to_owned() };
        host.volumes().ask(force).await.expect("it runs").expect("it is released");

        until_shown(&host, &data, "from the claim of a; look whether").await;
        assert_eq!(mounted(&stage).len(), 2, "the staging stays below the target");
        assert_eq!(read(&claimed.path), "from a");

        // It goes on when people have unmounted it. The plugin refuses to unstage what it takes for published; a claim like that one, which
        // another instance of it undoes, is a way out.
        let mut next = plugin(&stage, "next");
        next.start(&host).await;
        unmount(&claimed.path, UnmountFlags::empty()).expect("it is mounted");
        until_shown(&host, &data, "unpublish it first").await;
        let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
        assert_eq!(read(&claimed.path), "from a");
        release(&host, &data, "a").await;
        assert_eq!(mounted(&stage).len(), 0);
        served.stop(&host).await;
        next.stop(&host).await;
        host.stop().await;
    });
}
