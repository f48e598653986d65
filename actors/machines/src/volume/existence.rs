//! The existence of a volume in the ledger: its origin, and its creation with the exact arguments (V5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::record::{Desired, Intent, Step, Towards, VolumeKey, VolumeSpec};
use crate::csi::{
    self, AccessType, CapacityRange, CreateVolumeRequest, MountVolume, Secrets, TopologyRequirement,
    VolumeCapability, VolumeContentSource,
};
use crate::vocabulary::Generation;

/// The maximum number of bytes of namespace and name in the name for the plugin, which has at most 128.
const NAME_PART_MAX: usize = 100;

/// A volume to be created, as requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NewVolume {
    /// The requested size; `None` leaves it to the plugin (C052).
    pub capacity_range: Option<CapacityRange>,
    /// The required capabilities; all at once, at least one (C051).
    pub capabilities: Vec<VolumeCapability>,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
    /// The initial content; `None` for nothing (C057).
    pub content_source: Option<VolumeContentSource>,
    /// The required accessibility (C053, C054).
    pub accessibility: Option<TopologyRequirement>,
    /// Parameters that can be modified later (C056).
    pub mutable_parameters: BTreeMap<String, String>,
}

impl NewVolume {
    /// The request for the volume, under this name.
    #[must_use]
    pub fn request(&self, name: &str, secrets: Secrets) -> CreateVolumeRequest {
        CreateVolumeRequest {
            name: name.to_owned(),
            capacity_range: self.capacity_range,
            volume_capabilities: self.capabilities.clone(),
            parameters: self.parameters.clone(),
            secrets,
            volume_content_source: self.content_source.clone(),
            accessibility_requirements: self.accessibility.clone(),
            mutable_parameters: self.mutable_parameters.clone(),
        }
    }
}

/// The differences between the arguments of two creations.
impl NewVolume {
    /// Each argument that differs in `other`, with the value that it has here. Mount flags are not shown.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        if self.capacity_range != other.capacity_range {
            all.push(match self.capacity_range {
                None => "no capacity was given".to_owned(),
                Some(CapacityRange { required_bytes, limit_bytes: 0 }) => {
                    format!("the capacity was {required_bytes} bytes")
                }
                Some(CapacityRange { required_bytes, limit_bytes }) => {
                    format!("the capacity was {required_bytes} to {limit_bytes} bytes")
                }
            });
        }
        if self.capabilities != other.capabilities {
            all.extend(self.capabilities.iter().map(usage));
        }
        all.extend(other_parameters("parameter", &self.parameters, &other.parameters));
        let (own, others) = (&self.mutable_parameters, &other.mutable_parameters);
        all.extend(other_parameters("mutable parameter", own, others));
        let others = [
            ("the content was another one", self.content_source != other.content_source),
            ("the topology was another one", self.accessibility != other.accessibility),
        ];
        all.extend(others.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()));
        all
    }
}

fn usage(capability: &VolumeCapability) -> String {
    let mode = capability.access_mode.word();
    match &capability.access_type {
        AccessType::Block => format!("the usage was block device, {mode}"),
        AccessType::Mount(MountVolume { fs_type, mount_flags, volume_mount_group }) => {
            let fs_type = if fs_type.is_empty() { "of no given type" } else { fs_type };
            let group = if volume_mount_group.is_empty() { "no group" } else { volume_mount_group };
            let flags = mount_flags.expose().len();
            format!("the usage was file system {fs_type}, {mode}, {group}, {flags} mount flags")
        }
    }
}

fn other_parameters(what: &str, own: &Parameters, other: &Parameters) -> Vec<String> {
    let keys: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
    let differing = keys.into_iter().filter(|key| own.get(*key) != other.get(*key));
    let told = differing.map(|key| match own.get(key) {
        Some(value) => format!("{what} {key:?} was {value:?}"),
        None => format!("{what} {key:?} was not given"),
    });
    told.collect()
}

/// Parameters by key.
type Parameters = BTreeMap<String, String>;

/// The arguments of `CreateVolume`; a retry repeats them (C013).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateArgs {
    /// Generated once for each creation, and the same in every try of it (C050).
    pub name: String,
    /// The requested volume.
    pub volume: NewVolume,
}

impl CreateArgs {
    /// A name that no other creation has: it begins with the name of the volume, for people, and ends with a random number.
    #[must_use]
    pub fn new(key: &VolumeKey, volume: NewVolume, random: u64) -> Self {
        let part: String = format!("{}-{}", key.namespace, key.name).chars().take(NAME_PART_MAX).collect();
        Self { name: format!("{part}-{random:016x}"), volume }
    }

    /// The request.
    #[must_use]
    pub fn request(&self, secrets: Secrets) -> CreateVolumeRequest {
        self.volume.request(&self.name, secrets)
    }
}

/// The origin of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was made elsewhere, and the host reports that it exists.
    Registered,
    /// It is created here.
    Created(Arc<CreateArgs>),
}

/// The existence of a volume at its plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Existence {
    /// Its origin.
    pub origin: Origin,
    /// Whether it is to exist. A released volume is deleted, and then forgotten.
    pub desired: Desired,
    /// Its creation, with its deletion as the inverse.
    pub step: Step<(), ()>,
    /// The answer of the plugin that created it, whole (C059, V10).
    pub volume: Option<Arc<csi::Volume>>,
}

impl Existence {
    /// The existence of a volume with an id that the host knows; `None` for a volume without an id, which is yet to be created.
    pub(super) fn registered(spec: &VolumeSpec) -> Option<Self> {
        let up = Step::Up(Intent { args: (), generation: Generation::default() }, ());
        (!spec.volume_id.is_empty()).then_some(Self {
            origin: Origin::Registered,
            desired: Desired::Held,
            step: up,
            volume: None,
        })
    }

    /// The capabilities with which it was to be created here; empty if it was not created here.
    pub(super) fn made_for(&self) -> &[VolumeCapability] {
        match &self.origin {
            Origin::Registered => &[],
            Origin::Created(args) => &args.volume.capabilities,
        }
    }

    /// The existence of a volume that is to be created.
    pub(super) const fn wanted(args: Arc<CreateArgs>) -> Self {
        Self { origin: Origin::Created(args), desired: Desired::Held, step: Step::Down, volume: None }
    }

    /// A volume that is created for the first time is requested with the modes that its controller knows (C154).
    pub(super) fn refine(&mut self, knows_alpha: bool) {
        if let Origin::Created(args) = &mut self.origin {
            let volume = args.volume.for_plugin(knows_alpha);
            if args.volume != volume {
                *args = Arc::new(CreateArgs { name: args.name.clone(), volume });
            }
        }
    }

    /// The state after a restart.
    pub(super) fn restored(self) -> Self {
        Self { step: self.step.restored(), ..self }
    }

    /// The arguments with which it is created.
    pub(super) const fn args(&self) -> Option<&Arc<CreateArgs>> {
        match &self.origin {
            Origin::Created(args) => Some(args),
            Origin::Registered => None,
        }
    }

    /// Whether the ledger has to keep it although it is not used. A registered volume that stays as it is need not be kept: its host knows
    /// it.
    pub(super) const fn is_to_be_kept(&self) -> bool {
        let is_as_registered = matches!(
            (&self.origin, self.desired, &self.step),
            (Origin::Registered, Desired::Held, Step::Up(..))
        );
        !is_as_registered
    }

    /// Whether it may exist at the plugin under an id that is not known here.
    pub(super) const fn is_unclear(&self) -> bool {
        matches!(self.step, Step::GoingUp(_) | Step::Unknown(Towards::Up, _))
    }

    /// The difference from the request, if any.
    pub(super) fn unfit(&self) -> Option<String> {
        let (args, volume) = (self.args()?, self.volume.as_ref()?);
        let fault = args.request(Secrets::none()).check_fit(volume).err()?;
        Some(fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csi::Request;
    use crate::vocabulary::{VolumeName, VolumeNamespace};

    fn named(namespace: &str, name: &str, random: u64) -> String {
        let key = VolumeKey {
            namespace: VolumeNamespace::new(namespace).expect("it is a name"),
            name: VolumeName::new(name).expect("it is a name"),
        };
        let capability = VolumeCapability {
            access_type: AccessType::Block,
            access_mode: csi::AccessMode::SingleNodeWriter,
        };
        let volume = NewVolume { capabilities: vec![capability], ..NewVolume::default() };
        let args = CreateArgs::new(&key, volume, random);
        assert_eq!(args.request(Secrets::none()).check(), Ok(()), "{}", args.name);
        args.name
    }

    #[test]
    fn the_name_of_a_creation_tells_its_volume_and_is_never_that_of_another_one_c050() {
        assert_eq!(named("default", "data", 0xab), "default-data-00000000000000ab");
        assert_ne!(named("default", "data", 1), named("default", "data", 2));
        let longest = named(&"n".repeat(255), &"v".repeat(255), u64::MAX);
        assert_eq!(longest.len(), 117);
    }
}
