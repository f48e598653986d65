//! Tests that a host does not believe a plugin that reports a mount or an unmount that did not happen.

use crate::namespace::in_namespace;
use crate::node::{builder, claim, create, mounted, nothing_is_left, plugin, read, release, write};
use crate::support::Stage;

/// The first call of this name succeeds, but mounts or unmounts nothing.
async fn is_not_believed(call: &str) {
    let stage = Stage::new();
    let host = builder(&stage).start_on_own_thread().await.expect("it starts");
    let lie = format!("{call}=lie,nth:1");
    let mut served = plugin(&stage, "plugin").with(&["--fault", &lie]);
    served.start(&host).await;
    let data = create(&host, "data").await;
    let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
    assert_eq!(mounted(&stage).len(), 2, "one staging and one target");
    write(&claimed.path, "from a");
    release(&host, &data, "a").await;
    nothing_is_left(&stage);
    assert!(served.calls(call) > 1, "it was repeated");
    let again = claim(&host, &data, "a", false).await.expect("it is set up");
    assert_eq!(read(&again.path), "from a");
    release(&host, &data, "a").await;
    served.stop(&host).await;
    host.stop().await;
}

#[test]
fn a_publication_that_was_not_made_is_not_handed_out_v7() {
    in_namespace("lies::a_publication_that_was_not_made_is_not_handed_out_v7", async |_| {
        is_not_believed("NodePublishVolume").await;
    });
}

/// The reference plugin publishes the contents of the staging directory, so it would expose a directory of the host.
#[test]
fn a_staging_that_was_not_made_is_not_published_from_v7() {
    in_namespace("lies::a_staging_that_was_not_made_is_not_published_from_v7", async |_| {
        is_not_believed("NodeStageVolume").await;
    });
}

#[test]
fn a_volume_that_was_not_unpublished_is_not_unstaged_v3_v9() {
    in_namespace("lies::a_volume_that_was_not_unpublished_is_not_unstaged_v3_v9", async |_| {
        is_not_believed("NodeUnpublishVolume").await;
    });
}

#[test]
fn a_volume_that_was_not_unstaged_is_unstaged_before_it_is_released_v9() {
    in_namespace("lies::a_volume_that_was_not_unstaged_is_unstaged_before_it_is_released_v9", async |_| {
        is_not_believed("NodeUnstageVolume").await;
    });
}
