//! The layouts of the existence of a volume: the arguments of its creation, and the answer of its plugin.
//!
//! Never add, remove or reorder fields or variants without a new schema of every row that has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::parts::{CapabilityPart, Part};
use super::step_parts::StepPart;
use super::{CreateArgs, Desired, Existence, NewVolume, Origin};
use crate::csi::{self, CapacityRange, TopologyRequirement, VolumeContentSource};

type Map = BTreeMap<String, String>;

/// Without arguments the volume is registered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ExistencePart {
    args: Option<Box<CreatePart>>,
    desired: DesiredPart,
    step: StepPart<(), ()>,
    volume: Option<Box<MadePart>>,
}

impl Part for ExistencePart {
    type Of = Existence;

    fn of(it: &Existence) -> Self {
        let args = match &it.origin {
            Origin::Registered => None,
            Origin::Created(args) => Some(Part::of(args)),
        };
        Self {
            args,
            desired: DesiredPart::of(&it.desired),
            step: Part::of(&it.step),
            volume: Part::of(&it.volume),
        }
    }

    fn read(self) -> Result<Existence, String> {
        Ok(Existence {
            origin: self.args.read()?.map_or(Origin::Registered, Origin::Created),
            desired: self.desired.read()?,
            step: self.step.read()?,
            volume: self.volume.read()?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum DesiredPart {
    Held,
    Released,
}

impl Part for DesiredPart {
    type Of = Desired;

    fn of(it: &Desired) -> Self {
        match it {
            Desired::Held => Self::Held,
            Desired::Released => Self::Released,
        }
    }

    fn read(self) -> Result<Desired, String> {
        Ok(match self {
            Self::Held => Desired::Held,
            Self::Released => Desired::Released,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct CreatePart {
    name: String,
    required_and_limit_bytes: Option<(u64, u64)>,
    capabilities: Vec<CapabilityPart>,
    parameters: Map,
    content_source: Option<SourcePart>,
    requisite_and_preferred: Option<(Vec<Map>, Vec<Map>)>,
    mutable_parameters: Map,
}

impl Part for CreatePart {
    type Of = CreateArgs;

    fn of(it: &CreateArgs) -> Self {
        let CreateArgs { name, volume } = it;
        let bytes = |range: CapacityRange| (range.required_bytes, range.limit_bytes);
        let places = |places: &TopologyRequirement| (places.requisite.clone(), places.preferred.clone());
        Self {
            name: name.clone(),
            required_and_limit_bytes: volume.capacity_range.map(bytes),
            capabilities: Part::of(&volume.capabilities),
            parameters: volume.parameters.clone(),
            content_source: Part::of(&volume.content_source),
            requisite_and_preferred: volume.accessibility.as_ref().map(places),
            mutable_parameters: volume.mutable_parameters.clone(),
        }
    }

    fn read(self) -> Result<CreateArgs, String> {
        if self.name.is_empty() {
            return Err("a creation has no name, by which it could be repeated".to_owned());
        }
        let range = |(required_bytes, limit_bytes)| CapacityRange { required_bytes, limit_bytes };
        let places = |(requisite, preferred)| TopologyRequirement { requisite, preferred };
        let volume = NewVolume {
            capacity_range: self.required_and_limit_bytes.map(range),
            capabilities: self.capabilities.read()?,
            parameters: self.parameters,
            content_source: self.content_source.read()?,
            accessibility: self.requisite_and_preferred.map(places),
            mutable_parameters: self.mutable_parameters,
        };
        Ok(CreateArgs { name: self.name, volume })
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum SourcePart {
    Snapshot(String),
    Volume(String),
}

impl Part for SourcePart {
    type Of = VolumeContentSource;

    fn of(it: &VolumeContentSource) -> Self {
        match it {
            VolumeContentSource::Snapshot(id) => Self::Snapshot(id.clone()),
            VolumeContentSource::Volume(id) => Self::Volume(id.clone()),
        }
    }

    fn read(self) -> Result<VolumeContentSource, String> {
        Ok(match self {
            Self::Snapshot(id) => VolumeContentSource::Snapshot(id),
            Self::Volume(id) => VolumeContentSource::Volume(id),
        })
    }
}

/// The answer of the plugin.
#[derive(Debug, Serialize, Deserialize)]
struct MadePart {
    capacity_bytes: u64,
    volume_id: String,
    volume_context: Map,
    content_source: Option<SourcePart>,
    accessible_topology: Vec<Map>,
}

impl Part for MadePart {
    type Of = csi::Volume;

    fn of(it: &csi::Volume) -> Self {
        Self {
            capacity_bytes: it.capacity_bytes,
            volume_id: it.volume_id.clone(),
            volume_context: it.volume_context.clone(),
            content_source: Part::of(&it.content_source),
            accessible_topology: it.accessible_topology.clone(),
        }
    }

    fn read(self) -> Result<csi::Volume, String> {
        if self.volume_id.is_empty() {
            return Err("a volume that was created has no id".to_owned());
        }
        Ok(csi::Volume {
            capacity_bytes: self.capacity_bytes,
            volume_id: self.volume_id,
            volume_context: self.volume_context,
            content_source: self.content_source.read()?,
            accessible_topology: self.accessible_topology,
        })
    }
}
