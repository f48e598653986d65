//! The messages to the owner of the volumes, and the events of mounts.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::csi::{AccessMode, AccessType, Context, MountVolume, VolumeCapability};
use callboard_actors::shell::Message;
use callboard_actors::vocabulary::AllocationId;
use callboard_actors::volume::{ForceScope, NewVolume, ObservedEnd, Usage, VolumeKey, VolumeSpec};
use callboard_actors::volumes::{
    AllocationEnded, AwaitUnused, Claim, ConfirmClaims, CreateVolume, DeleteVolume, DescribeVolume,
    ForceRelease, ForgetVolume, KnownVolume, ListVolumes, RegisterVolume, Release, Volumes, VolumesAnswer,
};

use super::super::storage::Taken;
use super::{Entry, Mistake, Stage, Words};
use crate::config::volume_words;
use crate::timeline::volume_answer;

pub(super) const VERBS: &[Entry] = &[
    ("register-volume VOLUME NAME [id=TEXT]", register),
    ("create-volume VOLUME NAME [within=DURATION] [parameter.NAME=TEXT]...", create),
    ("claim VOLUME ALLOCATION [mode=MODE] [read-only=yes|no] [within=DURATION]", claim),
    ("release VOLUME ALLOCATION [within=DURATION]", release),
    ("ended ALLOCATION [within=DURATION]", ended),
    ("confirm [ALLOCATION]... [unclear=ALLOCATION]", confirm),
    ("force VOLUME [ALLOCATION] [reason=TEXT]", force),
    ("delete VOLUME [within=DURATION]", delete),
    ("forget VOLUME", forget),
    ("describe-volume VOLUME", describe),
    ("volumes", volumes),
    ("unused NAME [within=DURATION]", unused),
    ("storage", storage),
    ("unmount TEXT", unmount),
];

/// The timeout of an answer unless a line sets another.
const WITHIN: Duration = Duration::from_secs(60);

/// Sends a message to the owner of the volumes, and shows the answer.
pub(super) fn say<Q: Message<Volumes>>(
    stage: &mut Stage,
    message: Q,
    wrap: fn(Q::Reply) -> VolumesAnswer,
) -> Result<(), Mistake> {
    let volumes = stage.host()?.volumes().clone();
    let tell = move |answer| volume_answer(&wrap(answer)).unwrap_or_default();
    stage.ask("volumes", volumes.ask(message), tell);
    Ok(())
}

pub(super) fn volume(words: &mut Words<'_>) -> Result<VolumeKey, Mistake> {
    volume_words::volume_key(words.next("volume")?).map_err(Mistake::new)
}

pub(super) fn within(words: &mut Words<'_>) -> Result<Duration, Mistake> {
    Ok(words.duration("within")?.unwrap_or(WITHIN))
}

fn allocation(text: &str) -> Result<AllocationId, Mistake> {
    AllocationId::new(text).map_err(|error| Mistake::new(error.to_string()))
}

/// A mounted file system; for any number of writers unless the line sets another mode.
fn capability(words: &mut Words<'_>) -> Result<VolumeCapability, Mistake> {
    let mode = words.key("mode").map(volume_words::access_mode).transpose().map_err(Mistake::new)?;
    let access_mode = mode.unwrap_or(AccessMode::MultiNodeMultiWriter);
    Ok(VolumeCapability { access_type: AccessType::Mount(MountVolume::default()), access_mode })
}

fn register(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (key, plugin) = (volume(words)?, words.plugin_name()?);
    let volume_id = words.key("id").map_or_else(|| format!("id-{}", key.name), str::to_owned);
    let spec = VolumeSpec { key, plugin, volume_id, volume_context: Context::new() };
    let volume = KnownVolume::new(Arc::new(spec));
    say(stage, RegisterVolume { volume }, VolumesAnswer::RegisterVolume)
}

fn create(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, plugin, within) = (volume(words)?, words.plugin_name()?, within(words)?);
    let parameters = words.keys_below("parameter.").into_iter();
    let new = NewVolume {
        capabilities: vec![capability(words)?],
        parameters: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..NewVolume::default()
    };
    say(stage, CreateVolume { volume, plugin, new, within }, VolumesAnswer::CreateVolume)
}

fn claim(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, allocation, within) = (volume(words)?, words.allocation()?, within(words)?);
    let read_only = words.yes_or_no("read-only")?.unwrap_or_default();
    let usage = Usage { capability: capability(words)?, read_only };
    say(stage, Claim { volume, allocation, usage, within }, VolumesAnswer::Claim)
}

fn release(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, allocation, within) = (volume(words)?, words.allocation()?, within(words)?);
    let release = Release { volume, allocation, observed: ObservedEnd::Exited, within };
    say(stage, release, VolumesAnswer::Release)
}

fn ended(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (allocation, within) = (words.allocation()?, within(words)?);
    let ended = AllocationEnded { allocation, observed: ObservedEnd::Exited, within };
    say(stage, ended, VolumesAnswer::AllocationEnded)
}

fn confirm(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let living = std::iter::from_fn(|| words.maybe_next()).map(allocation).collect::<Result<_, _>>()?;
    let unclear = words.key("unclear").map(allocation).transpose()?.into_iter().collect();
    say(stage, ConfirmClaims { living, unclear }, VolumesAnswer::ConfirmClaims)
}

fn force(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, claim) = (volume(words)?, words.maybe_next().map(allocation).transpose()?);
    let scope = claim.map_or(ForceScope::Everything, ForceScope::Claim);
    let reason = words.key("reason").unwrap_or("as the script wants it").to_owned();
    say(stage, ForceRelease { volume, scope, reason }, VolumesAnswer::ForceRelease)
}

fn delete(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (volume, within) = (volume(words)?, within(words)?);
    say(stage, DeleteVolume { volume, within }, VolumesAnswer::DeleteVolume)
}

fn forget(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let volume = volume(words)?;
    say(stage, ForgetVolume { volume }, VolumesAnswer::ForgetVolume)
}

fn describe(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let volume = volume(words)?;
    say(stage, DescribeVolume { volume }, VolumesAnswer::DescribeVolume)
}

fn volumes(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    say(stage, ListVolumes, VolumesAnswer::ListVolumes)
}

fn unused(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (plugin, within) = (words.plugin_name()?, within(words)?);
    say(stage, AwaitUnused { plugin, within }, VolumesAnswer::AwaitUnused)
}

/// Shows the mounts, and the existing volumes and snapshots.
fn storage(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let mounted = stage.storage.mounts().mounted();
    let mounted = mounted.iter().map(|path| format!("mounted at {}", path.display()));
    let created = stage.storage.volumes().into_iter().map(|id| format!("created {id}"));
    let sizes = stage.storage.sizes().into_iter().map(|(id, bytes)| format!("{id} has {bytes} bytes"));
    let snapshots = stage.storage.snapshots().into_iter().map(|Taken { id, source, group, .. }| {
        let group = if group.is_empty() { String::new() } else { format!(" in {group}") };
        format!("taken {id} of {source}{group}")
    });
    let all: Vec<_> = created.chain(sizes).chain(snapshots).chain(mounted).collect();
    let told = if all.is_empty() { "nothing".to_owned() } else { all.join("\n") };
    stage.record.answer(told);
    Ok(())
}

/// Removes a mount behind the host's back.
fn unmount(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let text = words.next("part of the path")?;
    let mounts = stage.storage.mounts().clone();
    let paths = mounts.mounted().into_iter().filter_map(|path| path.to_str().map(str::to_owned));
    let meant: Vec<_> = paths.filter(|path| path.contains(text)).collect();
    if meant.is_empty() {
        return Err(Mistake::new(format!("nothing is mounted at a path with {text:?}")));
    }
    meant.iter().for_each(|path| mounts.unmount(path));
    Ok(())
}
