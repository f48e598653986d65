//! The layouts of steps: their arguments, and the observed results.
//!
//! Never add, remove or reorder fields or variants without a new schema of every row that has them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::parts::{CapabilityPart, Part, PathPart, UsagePart};
use super::{AttachArgs, Intent, Mark, Proof, PublishArgs, StageArgs, Step, Towards};
use crate::mounts::{BlockDevice, DeviceNumber, ListedMount, MountId, MountIdentity, UniqueMountId};
use crate::vocabulary::Generation;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IntentPart<A> {
    args: A,
    generation: u64,
}

impl<A: Part> Part for IntentPart<A> {
    type Of = Intent<A::Of>;

    fn of(it: &Self::Of) -> Self {
        Self { args: A::of(&it.args), generation: it.generation.get() }
    }

    fn read(self) -> Result<Self::Of, String> {
        Ok(Intent { args: self.args.read()?, generation: Generation::new(self.generation) })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum StepPart<A, P> {
    Down,
    GoingUp(IntentPart<A>),
    Up(IntentPart<A>, P),
    GoingDown(IntentPart<A>),
    UnknownUp(IntentPart<A>),
    UnknownDown(IntentPart<A>),
}

impl<A: Part, P: Part> Part for StepPart<A, P> {
    type Of = Step<A::Of, P::Of>;

    fn of(it: &Self::Of) -> Self {
        match it {
            Step::Down => Self::Down,
            Step::GoingUp(intent) => Self::GoingUp(Part::of(intent)),
            Step::Up(intent, proof) => Self::Up(Part::of(intent), P::of(proof)),
            Step::GoingDown(intent) => Self::GoingDown(Part::of(intent)),
            Step::Unknown(Towards::Up, intent) => Self::UnknownUp(Part::of(intent)),
            Step::Unknown(Towards::Down, intent) => Self::UnknownDown(Part::of(intent)),
        }
    }

    fn read(self) -> Result<Self::Of, String> {
        Ok(match self {
            Self::Down => Step::Down,
            Self::GoingUp(intent) => Step::GoingUp(intent.read()?),
            Self::Up(intent, proof) => Step::Up(intent.read()?, proof.read()?),
            Self::GoingDown(intent) => Step::GoingDown(intent.read()?),
            Self::UnknownUp(intent) => Step::Unknown(Towards::Up, intent.read()?),
            Self::UnknownDown(intent) => Step::Unknown(Towards::Down, intent.read()?),
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AttachPart {
    node_id: String,
    capability: CapabilityPart,
}

impl Part for AttachPart {
    type Of = AttachArgs;

    fn of(it: &AttachArgs) -> Self {
        Self { node_id: it.node_id.clone(), capability: CapabilityPart::of(&it.capability) }
    }

    fn read(self) -> Result<AttachArgs, String> {
        if self.node_id.is_empty() {
            return Err("an attachment names no node, which would mean all of them".to_owned());
        }
        Ok(AttachArgs { node_id: self.node_id, capability: self.capability.read()? })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StagePart {
    staging_path: PathPart,
    publish_context: BTreeMap<String, String>,
    capability: CapabilityPart,
}

impl Part for StagePart {
    type Of = StageArgs;

    fn of(it: &StageArgs) -> Self {
        Self {
            staging_path: PathPart::of(&it.staging_path),
            publish_context: it.publish_context.clone(),
            capability: CapabilityPart::of(&it.capability),
        }
    }

    fn read(self) -> Result<StageArgs, String> {
        Ok(StageArgs {
            staging_path: self.staging_path.read()?,
            publish_context: self.publish_context,
            capability: self.capability.read()?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PublishPart {
    target_path: PathPart,
    staging_path: Option<PathPart>,
    publish_context: BTreeMap<String, String>,
    usage: UsagePart,
}

impl Part for PublishPart {
    type Of = PublishArgs;

    fn of(it: &PublishArgs) -> Self {
        Self {
            target_path: PathPart::of(&it.target_path),
            staging_path: Part::of(&it.staging_path),
            publish_context: it.publish_context.clone(),
            usage: UsagePart::of(&it.usage),
        }
    }

    fn read(self) -> Result<PublishArgs, String> {
        Ok(PublishArgs {
            target_path: self.target_path.read()?,
            staging_path: self.staging_path.read()?,
            publish_context: self.publish_context,
            usage: self.usage.read()?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProofPart {
    boot_id: String,
    mark: Option<MarkPart>,
}

/// The root of a mount is only compared, so it may be anything. Schema 1 of the rows has no `Unique`, and schema 2 no `Block`.
#[derive(Debug, Serialize, Deserialize)]
enum MarkPart {
    Mount { id: u64, unique_id: Option<u64>, device: (u32, u32), root: OsString, fs_type: String },
    Device(u32, u32),
    Unique(u64),
    Block { mount: Option<MountPart>, device: (u32, u32), sequence: Option<u64> },
}

impl Part for ProofPart {
    type Of = Proof;

    fn of(it: &Proof) -> Self {
        Self { boot_id: it.boot_id.as_ref().to_owned(), mark: Part::of(&it.mark) }
    }

    fn read(self) -> Result<Proof, String> {
        Ok(Proof { boot_id: self.boot_id.into(), mark: self.mark.read()? })
    }
}

/// The mount of a block device.
#[derive(Debug, Serialize, Deserialize)]
enum MountPart {
    Listed { id: u64, unique_id: Option<u64>, device: (u32, u32), root: OsString, fs_type: String },
    Unique(u64),
}

impl Part for MountPart {
    type Of = MountIdentity;

    fn of(it: &MountIdentity) -> Self {
        match it {
            MountIdentity::Unique(id) => Self::Unique(id.0),
            MountIdentity::Listed(ListedMount { id, unique_id, device, root, fs_type }) => Self::Listed {
                id: id.0,
                unique_id: unique_id.map(|id| id.0),
                device: (device.major, device.minor),
                root: root.clone().into_os_string(),
                fs_type: fs_type.clone(),
            },
        }
    }

    fn read(self) -> Result<MountIdentity, String> {
        Ok(match self {
            Self::Unique(id) => MountIdentity::Unique(UniqueMountId(id)),
            Self::Listed { id, unique_id, device: (major, minor), root, fs_type } => {
                MountIdentity::Listed(ListedMount {
                    id: MountId(id),
                    unique_id: unique_id.map(UniqueMountId),
                    device: DeviceNumber { major, minor },
                    root: root.into(),
                    fs_type,
                })
            }
        })
    }
}

impl Part for MarkPart {
    type Of = Mark;

    fn of(it: &Mark) -> Self {
        match it {
            Mark::Mount(mount) => match MountPart::of(mount) {
                MountPart::Unique(id) => Self::Unique(id),
                MountPart::Listed { id, unique_id, device, root, fs_type } => {
                    Self::Mount { id, unique_id, device, root, fs_type }
                }
            },
            Mark::Device { mount, device: BlockDevice { number, sequence } } => Self::Block {
                mount: mount.as_ref().map(MountPart::of),
                device: (number.major, number.minor),
                sequence: *sequence,
            },
        }
    }

    fn read(self) -> Result<Mark, String> {
        let device =
            |(major, minor), sequence| BlockDevice { number: DeviceNumber { major, minor }, sequence };
        Ok(match self {
            Self::Unique(id) => Mark::Mount(MountPart::Unique(id).read()?),
            Self::Mount { id, unique_id, device, root, fs_type } => {
                Mark::Mount(MountPart::Listed { id, unique_id, device, root, fs_type }.read()?)
            }
            Self::Device(major, minor) => Mark::Device { mount: None, device: device((major, minor), None) },
            Self::Block { mount, device: number, sequence } => {
                Mark::Device { mount: mount.map(Part::read).transpose()?, device: device(number, sequence) }
            }
        })
    }
}
