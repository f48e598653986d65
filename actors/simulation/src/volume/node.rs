//! A plugin with the calls that it received, and the kernel with its mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use callboard_actors::vocabulary::Generation;
use callboard_machines::csi::{self, AccessMode, Context};
use callboard_machines::mounts::{MountIdentity, UniqueMountId};
use callboard_machines::volume::{
    ControllerRoute, Expands, Failure, Known, Mark, NodeRoute, Route, Seen, VolumeCall, VolumeOutcome,
};

use super::event::Answered;
use super::groups::Groups;
use super::storage::Storage;

mod happening;
mod modes;
mod refusing;

/// The context of the volume with this id; a volume that is yet to be created has none.
pub(super) fn context_of(volume_id: &str) -> Context {
    let of = ("of".to_owned(), volume_id.to_owned());
    if volume_id.is_empty() { Context::new() } else { Context::from([of]) }
}

/// The publish context of an attachment.
fn attached() -> Context {
    Context::from([("device".to_owned(), "sdb".to_owned())])
}

/// The state of a step, as an observer of all calls and answers knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Sure {
    /// Nothing is set up.
    #[default]
    Down,
    /// It is set up.
    Up,
    /// Unknown.
    Unsure,
}

/// The step of a call. Equal steps are the same step to an observer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum StepOf {
    /// Its existence: it is created and deleted.
    Exist,
    Attach,
    Stage(PathBuf),
    Publish(PathBuf),
}

/// The call in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InFlight {
    pub(super) number: u64,
    pub(super) call: VolumeCall,
    /// The known state of its step before the call.
    before: Sure,
    /// Its host has given up its step by force.
    is_forgotten: bool,
}

/// The plugin and the kernel of one machine. They outlive every host.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct Node {
    /// The present generation of the plugin.
    generation: u64,
    /// Whether it stages volumes.
    pub(crate) stages: bool,
    /// Whether it does not know the access modes for several writers on one node.
    lacks_modes: bool,
    /// Whether it attaches volumes.
    attaches: bool,
    /// Whether it creates volumes.
    pub(crate) creates: bool,
    /// The size of the volume.
    pub(super) storage: Storage,
    /// The volumes that it has created and not deleted: the name and the number of each.
    pub(super) made: BTreeMap<String, u32>,
    /// How many it has ever created.
    made_ever: u32,
    mounts: BTreeMap<PathBuf, u32>,
    /// The mounts that lead to a staging directory at which nothing was mounted.
    bare: BTreeSet<PathBuf>,
    /// Targets of claims that were given up by force, each individually.
    abandoned: BTreeSet<PathBuf>,
    /// Targets of a volume that was given up as a whole. Nothing waits for them, and nothing is set up over them.
    left: BTreeSet<PathBuf>,
    /// Targets that were given up and at which the plugin was not asked to undo the publication, then or since.
    owed: BTreeSet<PathBuf>,
    /// Paths at which every look hangs.
    hung: BTreeSet<PathBuf>,
    /// The states that an observer knows.
    known: BTreeMap<StepOf, Sure>,
    /// The access mode of the request of each step that may be set up.
    modes: BTreeMap<StepOf, AccessMode>,
    /// Whether the last look at each path, as its host received it, found what the host had recorded, or nothing to compare with.
    seen: BTreeMap<PathBuf, bool>,
    pub(crate) in_flight: Option<InFlight>,
}

/// The step of a call, and whether it is set up by it.
pub(super) fn step_of(call: &VolumeCall) -> Option<(StepOf, bool)> {
    Some(match call {
        VolumeCall::ReadRoute
        | VolumeCall::Look { .. }
        | VolumeCall::AwaitAudits(_)
        // An order is not a step of a claim, and has no inverse.
        | VolumeCall::Order(..) => return None,
        VolumeCall::Create(..) => (StepOf::Exist, true),
        VolumeCall::Delete(..) => (StepOf::Exist, false),
        VolumeCall::Attach(..) => (StepOf::Attach, true),
        VolumeCall::Detach(..) => (StepOf::Attach, false),
        VolumeCall::Stage(_, _, args, ..) => (StepOf::Stage(args.staging_path.clone()), true),
        VolumeCall::Unstage(_, _, args) => (StepOf::Stage(args.staging_path.clone()), false),
        VolumeCall::Publish(_, _, args, _) => (StepOf::Publish(args.target_path.clone()), true),
        VolumeCall::Unpublish(_, _, path) => (StepOf::Publish(path.clone()), false),
    })
}

impl Node {
    pub(super) fn new(stages: bool, attaches: bool, creates: bool) -> Self {
        Self { generation: 1, stages, attaches, creates, ..Self::default() }
    }

    /// A plugin that expands volumes in this way.
    pub(super) fn expanding(mut self, expands: Expands) -> Self {
        self.storage.expands = expands;
        self
    }

    /// A plugin that takes groups of snapshots, which are ready late or at once.
    pub(super) fn grouping(mut self, is_late: bool) -> Self {
        self.storage.groups = Groups::of_a_plugin(is_late);
        self
    }

    /// The present route of calls.
    pub(super) fn route(&self) -> Route {
        let generation = Generation::new(self.generation);
        let node = NodeRoute {
            generation,
            node_id: Some("n1".to_owned()),
            requires_controller: self.attaches,
            stages: self.stages,
            knows_alpha_modes: !self.lacks_modes,
            knows_mount_group: true,
            expands: self.storage.expands != Expands::Not,
        };
        let expands = self.storage.expands;
        let controller = ControllerRoute {
            generation,
            attaches: self.attaches,
            expands,
            takes_snapshots: false,
            modifies: false,
            knows_alpha_modes: !self.lacks_modes,
            takes_groups: self.storage.groups.are_taken,
        };
        let is_there =
            self.attaches || self.creates || expands != Expands::Not || self.storage.groups.are_taken;
        Route { node: Some(node), controller: is_there.then_some(controller) }
    }

    // === The knowledge of an observer ===

    pub(super) fn sure(&self, step: &StepOf) -> Sure {
        self.known.get(step).copied().unwrap_or_default()
    }

    /// The steps that may be set up.
    pub(super) fn maybe_up(&self) -> impl Iterator<Item = &StepOf> {
        self.known.keys()
    }

    fn note(&mut self, step: StepOf, sure: Sure) {
        match sure {
            Sure::Down => {
                self.known.remove(&step);
                self.modes.remove(&step);
            }
            Sure::Up | Sure::Unsure => {
                self.known.insert(step, sure);
            }
        }
    }

    /// Its host gives up by force everything that it does not know for certain.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.modes.clear();
        self.owed.clear();
        self.left.append(&mut self.abandoned);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.is_forgotten = true;
        }
    }

    /// Whether the last look found the expected mount; `None` before the first look of this run.
    pub(super) fn seen(&self, path: &Path) -> Option<bool> {
        self.seen.get(path).copied()
    }

    // === Calls ===

    /// A call arrives.
    pub(super) fn called(&mut self, number: u64, call: VolumeCall) {
        let step = step_of(&call);
        let before = step.as_ref().map_or(Sure::Down, |(step, _)| self.sure(step));
        // A step that is undone again stays down.
        let step = step.filter(|(_, is_up)| *is_up || before != Sure::Down);
        step.into_iter().for_each(|(step, _)| self.note(step, Sure::Unsure));
        self.note_mode(&call);
        if let VolumeCall::Unpublish(_, _, path) = &call {
            self.owed.remove(path);
        }
        self.in_flight = Some(InFlight { number, call, before, is_forgotten: false });
    }

    /// The result of a look.
    pub(super) fn look(&mut self, path: &Path, recorded: Option<&Mark>) -> Seen {
        if self.hung.contains(path) {
            return Seen::Unclear("it hangs".to_owned());
        }
        let seen = self.mounts.get(path).map_or(Seen::Nothing, |id| Seen::Present(mark(*id)));
        let is_as_recorded = match (&seen, recorded) {
            (Seen::Present(there), Some(recorded)) => there == recorded,
            (Seen::Present(_), None) => true,
            (Seen::Nothing | Seen::BareStaging | Seen::Dead(_) | Seen::Unclear(_), _) => false,
        };
        self.seen.insert(path.to_owned(), is_as_recorded && !self.bare.contains(path));
        seen
    }

    /// The call in flight ends, and its host receives the result.
    pub(super) fn answer(&mut self, how: Answered) -> Option<(u64, VolumeOutcome)> {
        let InFlight { number, call, before, is_forgotten } = self.in_flight.take()?;
        if let VolumeCall::Order(_, _, call) = &call {
            return Some((number, self.storage.answer(call, how)));
        }
        let (step, is_up) = step_of(&call)?;
        if matches!(how, Answered::Ok | Answered::UnclearAfter) {
            self.take_effect(&call, &step, is_up);
        }
        let made = self.made_by(&call);
        let is_detach = matches!((&step, is_up), (StepOf::Attach, false));
        let is_unstage = self.stages && matches!((&step, is_up), (StepOf::Stage(_), false));
        let result = match how {
            Answered::Ok | Answered::Lie => Ok(()),
            // For a plugin that reports this capability, neither error proves that nothing is left (C019, C082).
            Answered::Refused if is_detach || is_unstage => Err(Known::Unsupported),
            Answered::NotNow if is_detach => Err(Known::Absent),
            Answered::Refused => Err(Known::Refused),
            Answered::NotNow => Err(Known::NotNow),
            Answered::UnclearBefore | Answered::UnclearAfter => Err(Known::Unclear),
        };
        let result = result.map_err(|known| Failure { known, reason: format!("{how}") });
        let seen = match &step {
            StepOf::Exist | StepOf::Attach => Seen::Nothing,
            StepOf::Stage(path) => self.look(path, None),
            // An undo is not followed by a look at the staging directory.
            StepOf::Publish(path) => match self.look(path, None) {
                Seen::Present(_) if is_up && self.bare.contains(path) => Seen::BareStaging,
                seen => seen,
            },
        };
        let sure = match (how, is_up, before) {
            (Answered::Ok | Answered::Lie, true, _) => Sure::Up,
            (Answered::Ok | Answered::Lie, false, _) if seen == Seen::Nothing => Sure::Down,
            (Answered::Refused | Answered::NotNow, _, before) => before,
            (_, false, Sure::Down) => Sure::Down,
            _ => Sure::Unsure,
        };
        let outcome = match &step {
            StepOf::Exist if is_up => VolumeOutcome::Created(result.map(|()| created(made))),
            StepOf::Exist => VolumeOutcome::Controller(result.map(|()| Context::new())),
            StepOf::Attach => {
                let context = if is_up { attached() } else { Context::new() };
                VolumeOutcome::Controller(result.map(|()| context))
            }
            StepOf::Stage(_) | StepOf::Publish(_) => VolumeOutcome::Node(result, seen),
        };
        if !is_forgotten {
            self.note(step, sure);
        }
        Some((number, outcome))
    }

    /// Whether a call has the publish context that it needs.
    pub(super) fn has_publish_context(&self, call: &VolumeCall) -> bool {
        let attaches = self.route().controller.is_some_and(|controller| controller.attaches);
        match call {
            VolumeCall::Stage(_, _, args, ..) if attaches => args.publish_context == attached(),
            VolumeCall::Publish(_, _, args, _) if attaches => args.publish_context == attached(),
            _ => true,
        }
    }

    /// The caller of the call in flight is gone. The call takes effect or not.
    pub(super) fn cut(&mut self, takes_effect: bool) {
        let Some(InFlight { call, .. }) = self.in_flight.take() else { return };
        if let (VolumeCall::Order(_, _, call), true) = (&call, takes_effect) {
            self.storage.take_effect(call);
        }
        if let Some((step, is_up)) = step_of(&call).filter(|_| takes_effect) {
            self.take_effect(&call, &step, is_up);
        }
    }

    /// The number of the volume that a creation has made, or that already existed.
    fn made_by(&self, call: &VolumeCall) -> u32 {
        match call {
            VolumeCall::Create(_, _, args) => {
                self.made.get(&args.name).copied().unwrap_or(self.made_ever + 1)
            }
            _ => 0,
        }
    }

    fn exists_or_not(&mut self, call: &VolumeCall) {
        match call {
            VolumeCall::Create(_, _, args) => {
                let number = self.made_by(call);
                self.made_ever = self.made_ever.max(number);
                self.made.insert(args.name.clone(), number);
            }
            VolumeCall::Delete(spec, _) => self.made.retain(|_, number| id(*number) != spec.volume_id),
            _ => {}
        }
    }

    fn take_effect(&mut self, call: &VolumeCall, step: &StepOf, is_up: bool) {
        let path = match step {
            StepOf::Exist => return self.exists_or_not(call),
            StepOf::Attach => return,
            StepOf::Stage(path) | StepOf::Publish(path) => path,
        };
        let staging = match call {
            VolumeCall::Publish(_, _, args, _) => args.staging_path.as_ref(),
            _ => None,
        };
        let is_bare = staging.is_some_and(|staging| !self.mounts.contains_key(staging));
        match is_bare && !self.mounts.contains_key(path) {
            true => self.bare.insert(path.clone()),
            false => !is_up && self.bare.remove(path),
        };
        let next = self.mounts.values().max().map_or(1, |last| last + 1);
        match is_up {
            true => *self.mounts.entry(path.clone()).or_insert(next),
            false => self.mounts.remove(path).unwrap_or_default(),
        };
    }
}

/// The plugin's answer about the volume that it creates.
fn created(number: u32) -> csi::Volume {
    let volume_id = id(number);
    csi::Volume { volume_context: context_of(&volume_id), volume_id, ..csi::Volume::default() }
}

fn id(number: u32) -> String {
    format!("id-{number}")
}

/// The same unique ids are given again after each boot.
fn mark(id: u32) -> Mark {
    Mark::Mount(MountIdentity::Unique(UniqueMountId(id.into())))
}
