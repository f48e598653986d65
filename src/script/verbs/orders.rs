//! The orders for a volume: its expansion, a change of its parameters, and snapshots of it, alone and in groups.

use std::collections::BTreeMap;

use callboard_actors::csi::CapacityRange;
use callboard_actors::volume::VolumeKey;
use callboard_actors::volumes::{
    CreateGroupSnapshot, CreateSnapshot, DeleteGroupSnapshot, DeleteSnapshot, ExpandVolume, VolumesAnswer,
};

use super::volumes::{say, volume, within};
use super::{Entry, Mistake, Stage, Words};
use crate::config::volume_words;

pub(super) const VERBS: &[Entry] = &[
    ("expand VOLUME SIZE [within=DURATION]", expand),
    ("snapshot VOLUME TEXT [within=DURATION] [parameter.NAME=TEXT]...", snapshot),
    ("delete-snapshot VOLUME ID [within=DURATION]", delete_snapshot),
    ("group-snapshot TEXT VOLUME... [within=DURATION] [parameter.NAME=TEXT]...", group_snapshot),
    ("delete-group-snapshot VOLUME ID SNAPSHOT... [within=DURATION]", delete_group_snapshot),
];

fn parameters(words: &mut Words<'_>) -> BTreeMap<String, String> {
    let given = words.keys_below("parameter.").into_iter();
    given.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn expand(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, within) = (volume(words)?, within(words)?);
    let required_bytes = volume_words::volume_size(words.next("size")?).map_err(Mistake::new)?;
    let capacity = CapacityRange { required_bytes, limit_bytes: 0 };
    say(stage, ExpandVolume { volume, capacity, within }, VolumesAnswer::ExpandVolume)
}

fn snapshot(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, within, parameters) = (volume(words)?, within(words)?, parameters(words));
    let name = words.next("name of the snapshot")?.to_owned();
    say(stage, CreateSnapshot { volume, name, parameters, within }, VolumesAnswer::CreateSnapshot)
}

fn delete_snapshot(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, within) = (volume(words)?, within(words)?);
    let snapshot_id = words.next("id of the snapshot")?.to_owned();
    say(stage, DeleteSnapshot { volume, snapshot_id, within }, VolumesAnswer::DeleteSnapshot)
}

fn group_snapshot(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (name, within, parameters) =
        (words.next("name of the group")?.to_owned(), within(words)?, parameters(words));
    let mut volumes: Vec<VolumeKey> = vec![volume(words)?];
    while let Some(text) = words.maybe_next() {
        volumes.push(volume_words::volume_key(text).map_err(Mistake::new)?);
    }
    let take = CreateGroupSnapshot { volumes, name, parameters, within };
    say(stage, take, VolumesAnswer::CreateGroupSnapshot)
}

fn delete_group_snapshot(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, within) = (volume(words)?, within(words)?);
    let group_snapshot_id = words.next("id of the group")?.to_owned();
    let snapshot_ids = std::iter::from_fn(|| words.maybe_next()).map(str::to_owned).collect();
    let delete = DeleteGroupSnapshot { volume, group_snapshot_id, snapshot_ids, within };
    say(stage, delete, VolumesAnswer::DeleteGroupSnapshot)
}
