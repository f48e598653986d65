//! A call that was made goes on whatever becomes of its actor, and the next one of its volume waits for it (V2).

use callboard_actors::shell::Drill;

use crate::fixture::story;
use crate::node::{Node, PATIENCE, SECOND};
use crate::plugin::{Act, Plugin};

/// Lets an actor crash while a plugin works on a staging.
async fn falls(actor: &str, drill: Drill) {
    let node = Node::open();
    let plugin = Plugin::new(&node.kernel);
    let _serving = node.add_plugin("zfs", "p", &plugin).await;
    let data = node.add_volume("zfs", "data").await;
    plugin.once("NodeStageVolume", Act::After(10 * SECOND));
    let claim = tokio::task::spawn_local(node.claim_within(&data, "a", PATIENCE));
    while plugin.calls() < 2 {
        plugin.is_called().await;
    }
    node.drill(actor, drill);
    let first = claim.await.expect("no panic");
    let claimed = match first {
        Ok(claimed) => claimed,
        // The caller may retry.
        Err(error) => {
            assert!(error.is_transient(), "{error}");
            node.claim(&data, "a").await.expect("its successor goes on")
        }
    };
    assert!(node.kernel.is_mounted(&claimed.path));
    assert_eq!(plugin.together(), Vec::<String>::new(), "two calls for one volume, {actor}: {drill:?}");
    let mut staged = plugin.take_calls();
    staged.retain(|call| *call == "NodeStageVolume");
    assert_eq!(staged.len(), 2, "the outcome of the first was lost with its actor");
    node.release(&data, "a").await.expect("it is undone");
    assert_eq!(plugin.together(), Vec::<String>::new());
    node.stop().await;
}

/// Holds C001.
#[test]
fn a_call_whose_volume_is_rebuilt_is_waited_for_v2_f5() {
    story(|| async { falls("volume default/data", Drill::Crash).await });
}

/// Holds C015.
#[test]
fn a_call_whose_volume_gives_up_is_waited_for_by_its_successor_v2_f5() {
    story(|| async { falls("volume default/data", Drill::GiveUp).await });
}

/// Holds C001.
#[test]
fn a_call_whose_volume_is_killed_with_its_owner_is_waited_for_v2_f5() {
    story(|| async { falls("volumes", Drill::Crash).await });
}

#[test]
fn a_call_that_takes_too_long_is_not_waited_for_longer_than_its_deadline_and_nothing_is_lost_v2_v4() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        plugin.once("NodeStageVolume", Act::Hang);
        let claimed = node.claim(&data, "a").await.expect("the second try succeeds");
        assert!(node.kernel.is_mounted(&claimed.path));
        node.release(&data, "a").await.expect("it is undone");
        node.stop().await;
    });
}
