//! Tests every call of a volume's life beside its claims with every code, before and after its effect: creation, expansion, snapshots,
//! changed parameters, deletion.

use std::fmt::Display;

use callboard_actors::csi::{Call, CapacityRange, Code, Failure, Outcome};
use callboard_actors::vocabulary::PluginName;
use callboard_actors::volume::{Known, NewVolume, VolumeKey};
use callboard_actors::volumes::{
    CreateSnapshot, CreateVolume, DeleteSnapshot, DeleteVolume, DescribeVolume, ExpandVolume, ModifyVolume,
};

use crate::fixture::story;
use crate::node::{Node, PATIENCE, SECOND, key, usage};
use crate::plugin::{Act, Plugin};

/// All calls of the life, in their order.
const LIFE: [Call; 13] = [
    Call::CreateVolume,
    Call::ControllerPublishVolume,
    Call::NodeStageVolume,
    Call::NodePublishVolume,
    Call::ControllerExpandVolume,
    Call::NodeExpandVolume,
    Call::CreateSnapshot,
    Call::DeleteSnapshot,
    Call::ControllerModifyVolume,
    Call::NodeUnpublishVolume,
    Call::NodeUnstageVolume,
    Call::ControllerUnpublishVolume,
    Call::DeleteVolume,
];
/// The calls that are tested here; the others belong to a claim and its release.
const TRIED: [Call; 7] = [
    Call::CreateVolume,
    Call::ControllerExpandVolume,
    Call::NodeExpandVolume,
    Call::CreateSnapshot,
    Call::DeleteSnapshot,
    Call::ControllerModifyVolume,
    Call::DeleteVolume,
];
const SMALL_BYTES: u64 = 10;
const LARGE_BYTES: u64 = 20;

/// One call that fails once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) call: Call,
    pub(crate) code: Code,
    pub(crate) is_done: bool,
}

impl Case {
    /// The outcome as it is known after the failure, by the table of codes.
    fn known(self) -> Known {
        Known::of(Outcome::of(self.call, &Failure::Status { code: self.code, message: String::new() }))
    }

    /// The plugin's reaction.
    pub(crate) fn act(self) -> Act {
        let code = tonic::Code::from_i32(self.code.number());
        if self.is_done { Act::DoneThen(code) } else { Act::Fail(code) }
    }

    /// Whether the same call would be refused again, so that it is not repeated.
    pub(crate) fn is_refused(self, call: Call) -> bool {
        self.call == call && matches!(self.known(), Known::Refused | Known::Unsupported)
    }

    /// Checks how a step ended; true if it succeeded.
    pub(crate) fn check<T, E: Display>(self, call: Call, result: &Result<T, E>) -> bool {
        match result {
            Ok(_) => assert!(!self.is_refused(call), "{self:?}: it was refused"),
            Err(error) => {
                assert!(self.is_refused(call), "{self:?}: {call}: {error}");
                assert!(error.to_string().contains(call.as_str()), "{self:?}: {error}");
            }
        }
        result.is_ok()
    }
}

/// A case for each of these calls with each code, before and after its effect.
pub(crate) fn cases(tried: &[Call]) -> impl Iterator<Item = Case> {
    let codes = Code::ALL.into_iter().filter(|code| *code != Code::Ok);
    codes.flat_map(move |code| {
        tried.iter().flat_map(move |call| [false, true].map(|is_done| Case { call: *call, code, is_done }))
    })
}

#[test]
fn every_call_of_the_life_of_a_volume_with_every_code_before_and_after_its_effect_c016_v2_v4_v5() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        for (number, case) in cases(&TRIED).enumerate() {
            let volume = key(&format!("v{number}"));
            play(&node, &plugin, &volume, case).await;
            assert_eq!(plugin.together(), Vec::<String>::new(), "{case:?}");
            plugin.take_calls();
        }
        node.stop().await;
    });
}

async fn play(node: &Node, plugin: &Plugin, volume: &VolumeKey, case: Case) {
    plugin.once(case.call.as_str(), case.act());
    let Some(id) = create(node, plugin, volume, case).await else { return };
    node.claim(volume, "a").await.expect("it is set up");
    let has_grown = expand(node, plugin, (volume, &id), case).await;
    snapshot(node, plugin, volume, case).await;
    modify(node, plugin, (volume, &id), case).await;
    node.release(volume, "a").await.expect("it is undone");
    delete(node, plugin, (volume, &id), case).await;

    // No step is skipped, none is out of order, and only the call that failed is made twice.
    let is_made = |call: &Call| {
        has_grown || !case.is_refused(Call::ControllerExpandVolume) || *call != Call::NodeExpandVolume
    };
    let is_repeated = !case.is_refused(case.call) || case.call == Call::DeleteVolume;
    let times = |call: Call| if call == case.call && is_repeated { 2 } else { 1 };
    let expected: Vec<_> = LIFE
        .into_iter()
        .filter(is_made)
        .flat_map(|call| std::iter::repeat_n(call.as_str(), times(call)))
        .collect();
    assert_eq!(plugin.take_calls(), expected, "{case:?}");
}

/// Creates the volume, and returns its id unless the plugin refused.
async fn create(node: &Node, plugin: &Plugin, volume: &VolumeKey, case: Case) -> Option<String> {
    let capacity_range = Some(CapacityRange { required_bytes: SMALL_BYTES, limit_bytes: 0 });
    let new = NewVolume { capacity_range, capabilities: vec![usage().capability], ..NewVolume::default() };
    let zfs = PluginName::new("zfs").expect("a good name");
    let create = CreateVolume { volume: volume.clone(), plugin: zfs, new, within: PATIENCE };
    let created = node.volumes.ask(create).await.expect("it runs");
    if case.check(Call::CreateVolume, &created) {
        let id = created.expect("it is checked").volume.volume_id.clone();
        let there = plugin.storage().volumes;
        assert!(there.contains_key(&id), "{case:?}: {there:?}");
        return Some(id);
    }
    let describe = DescribeVolume { volume: volume.clone() };
    assert!(node.volumes.ask(describe).await.expect("it runs").is_err(), "{case:?}: it is forgotten");
    assert_eq!(plugin.take_calls(), ["CreateVolume"], "{case:?}: it is not tried again");
    None
}

/// Expands the volume, and returns whether the storage has grown.
async fn expand(node: &Node, plugin: &Plugin, (volume, id): (&VolumeKey, &str), case: Case) -> bool {
    let capacity = CapacityRange { required_bytes: LARGE_BYTES, limit_bytes: 0 };
    let expand = ExpandVolume { volume: volume.clone(), capacity, within: PATIENCE };
    let expanded = node.volumes.ask(expand).await.expect("it runs");
    let call = if case.call == Call::NodeExpandVolume { case.call } else { Call::ControllerExpandVolume };
    let has_grown = case.check(call, &expanded);
    if has_grown {
        let stored = plugin.storage().volume(id).clone();
        let bytes = LARGE_BYTES.try_into().expect("it is small");
        assert_eq!((stored.bytes, stored.bytes_on_node), (bytes, bytes), "{case:?}");
    }
    has_grown
}

async fn snapshot(node: &Node, plugin: &Plugin, volume: &VolumeKey, case: Case) {
    let create = CreateSnapshot {
        volume: volume.clone(),
        name: format!("of {volume}"),
        parameters: [].into(),
        within: PATIENCE,
    };
    let taken = node.volumes.ask(create).await.expect("it runs");
    let snapshot_id = format!("snapshot of {volume}");
    if case.check(Call::CreateSnapshot, &taken) {
        assert_eq!(taken.expect("it is checked").snapshot_id, snapshot_id, "{case:?}");
        assert!(plugin.storage().snapshots.contains_key(&snapshot_id), "{case:?}");
    }
    let delete =
        DeleteSnapshot { volume: volume.clone(), snapshot_id: snapshot_id.clone(), within: PATIENCE };
    let deleted = node.volumes.ask(delete).await.expect("it runs");
    if case.check(Call::DeleteSnapshot, &deleted) {
        let is_there = plugin.storage().snapshots.contains_key(&snapshot_id);
        assert!(!is_there, "{case:?}");
    }
}

async fn modify(node: &Node, plugin: &Plugin, (volume, id): (&VolumeKey, &str), case: Case) {
    let parameters = [("tier".to_owned(), "fast".to_owned())];
    let modify =
        ModifyVolume { volume: volume.clone(), parameters: parameters.clone().into(), within: PATIENCE };
    let modified = node.volumes.ask(modify).await.expect("it runs");
    if case.check(Call::ControllerModifyVolume, &modified) {
        assert_eq!(plugin.storage().volume(id).parameters, parameters.into(), "{case:?}");
    }
}

async fn delete(node: &Node, plugin: &Plugin, (volume, id): (&VolumeKey, &str), case: Case) {
    let delete = || DeleteVolume { volume: volume.clone(), within: 30 * SECOND };
    let deleted = node.volumes.ask(delete()).await.expect("it runs");
    if !case.check(Call::DeleteVolume, &deleted) {
        node.volumes.ask(delete()).await.expect("it runs").expect("it is tried again");
    }
    let is_there = plugin.storage().volumes.contains_key(id);
    assert!(!is_there, "{case:?}");
}
