//! Every call of a claim and its release with every code, before and after its effect: the desired state is reached, and nothing is done
//! twice that must not be (V2, V3, V4, table C.6).

use callboard_actors::volume::VolumeKey;
use tonic::Code;

use crate::fixture::story;
use crate::node::{Node, SECOND};
use crate::plugin::{Act, Plugin};

const UP: [&str; 3] = ["ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"];
const DOWN: [&str; 3] = ["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"];
/// The plugin says that the same call would be refused again, at least with the same secrets and rights (C018, C020).
const FINAL: [Code; 5] = [
    Code::InvalidArgument,
    Code::AlreadyExists,
    Code::Unimplemented,
    Code::PermissionDenied,
    Code::Unauthenticated,
];

/// One call that fails once.
#[derive(Debug, Clone, Copy)]
struct Case {
    call: &'static str,
    code: Code,
    is_done: bool,
}

fn cases() -> impl Iterator<Item = Case> {
    let codes = (1..=16).map(Code::from_i32);
    codes.flat_map(|code| {
        let calls = UP.into_iter().chain(DOWN);
        calls.flat_map(move |call| [false, true].map(|is_done| Case { call, code, is_done }))
    })
}

/// Holds C001, C017, C018, C020, C076, C077, C128, C129 and C140.
#[test]
fn every_call_with_every_code_before_and_after_its_effect_c016_v2_v3_v4() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        for (number, case) in cases().enumerate() {
            let volume = node.add_volume("zfs", &format!("v{number}")).await;
            play(&node, &plugin, &volume, case).await;
        }
        node.stop().await;
    });
}

async fn play(node: &Node, plugin: &Plugin, volume: &VolumeKey, case: Case) {
    let Case { call, code, is_done } = case;
    plugin.once(call, if is_done { Act::DoneThen(code) } else { Act::Fail(code) });
    let claimed = node.claim(volume, "a").await;
    let up = plugin.take_calls();
    let is_refused = UP.contains(&call) && FINAL.contains(&code);
    match claimed {
        Ok(claimed) => {
            assert!(!is_refused, "{case:?}: it was refused");
            assert!(node.kernel.is_mounted(&claimed.path), "{case:?}: it is not mounted");
            assert_eq!(up, ups(case), "{case:?}");
            release(node, volume, case).await;
            let mut down = plugin.take_calls();
            down.dedup();
            assert_eq!(down, DOWN, "{case:?}");
        }
        Err(error) => {
            assert!(is_refused, "{case:?}: {error}");
            assert!(error.to_string().contains(call), "{case:?}: {error}");
            assert_eq!(up.iter().filter(|made| **made == call).count(), 1, "{case:?}: it is not repeated");
            node.is_unneeded(volume).await;
        }
    }
    assert_eq!(node.kernel.left(), Vec::<std::path::PathBuf>::new(), "{case:?}");
    assert_eq!(plugin.together(), Vec::<String>::new(), "{case:?}");
    plugin.take_calls();
}

/// These calls in order, with one of them twice.
fn repeated(calls: &[&'static str], twice: &str) -> Vec<&'static str> {
    calls.iter().flat_map(|call| std::iter::repeat_n(*call, if *call == twice { 2 } else { 1 })).collect()
}

/// The calls that set a volume up. A plugin that refuses to publish it for now may have forgotten that it has staged it (C129).
fn ups(case: Case) -> Vec<&'static str> {
    let [attach, stage, publish] = UP;
    let is_denied = matches!(case.code, Code::NotFound | Code::FailedPrecondition) && !case.is_done;
    match case.call == publish && is_denied {
        true => vec![attach, stage, publish, stage, publish],
        false => repeated(&UP, case.call),
    }
}

/// Whether the plugin answers that it does not have an undo that it reports: what no mount table shows may be left (C019, C082).
fn is_left(call: &str, code: Code) -> bool {
    DOWN.contains(&call) && code == Code::Unimplemented
}

/// Releases a claim. An undo that is finally refused waits for the next request.
async fn release(node: &Node, volume: &VolumeKey, Case { call, code, .. }: Case) {
    let first = node.release_within(volume, "a", 30 * SECOND).await;
    let is_held = DOWN.contains(&call) && FINAL.contains(&code);
    match first {
        Ok(_) => assert!(!is_left(call, code), "{call} {code:?}: something may be left"),
        Err(error) => {
            assert!(is_held, "{call} {code:?}: {error}");
            node.release_within(volume, "a", 30 * SECOND).await.expect("it is tried again");
        }
    }
    node.is_unneeded(volume).await;
}
