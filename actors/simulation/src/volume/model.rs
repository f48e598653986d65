//! A volume with its ledger, its plugin and the kernel, and the allocations that use it.
//!
//! Carries out the effects of the volume; the plugin answers when the world requests it.

mod args;
mod carrying;
mod ending;
mod existing;
mod expanding;
mod grouping;
mod refused;
mod restarting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::shell::{Message, StopMode};
use callboard_actors::vocabulary::{
    AllocationId, Backoff, Moment, PluginName, RunNumber, Timestamp, VolumeName, VolumeNamespace,
};
use callboard_machines::csi::{AccessMode, AccessType, VolumeCapability};
use callboard_machines::volume::{
    Claim, ForceRelease, ForceScope, ObservedEnd, Release, RouteChanged, Usage, Volume, VolumeConfig,
    VolumeKey, VolumeLayout, VolumeOptions, VolumeSpec,
};

use super::super::law::Law;
use super::super::law_checker::{Verdict, Violation};
use super::super::stand_in::{Count, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::writes::Outcome;
use super::disk::VolumeDisk;
use super::event::Answered;
use super::laws::VolumeLaws;
use super::node::{Node, StepOf, context_of, step_of};

pub(crate) type Owner = StandIn<Volume, VolumeDisk, VolumeLaws>;

/// How long a caller waits.
const WITHIN: Duration = Duration::from_secs(20);

/// A caller's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// The allocation, its round, and its deadline.
    Claim(u8, u8, Timestamp),
    Release,
    Force,
    GiveUp,
    Create,
    Delete,
    Expand,
    TakeGroup,
    /// With its number.
    DeleteGroup(u32),
    Route,
    Other,
}

/// An allocation as its host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct User {
    /// Its processes use the volume.
    pub(super) is_holding: bool,
    /// The mount that it received was unmounted from outside, so its processes use nothing that was mounted since.
    pub(super) has_lost_mount: bool,
    /// It has requested the release of its last claim.
    pub(super) is_releasing: bool,
    /// It gave up waiting for its claim, which continues.
    pub(super) is_pending: bool,
    /// Its claim failed.
    pub(super) has_failed: bool,
    /// How often it has claimed or released. An answer to an earlier round changes nothing.
    pub(super) round: u8,
}

impl User {
    /// It claims or releases.
    const fn begin(&mut self, is_releasing: bool) {
        self.round = self.round.wrapping_add(1);
        (self.is_releasing, self.is_pending, self.has_failed) = (is_releasing, false, false);
        self.is_holding &= !is_releasing;
    }
}

/// The volume and its surroundings.
#[derive(Debug, Clone, Hash)]
pub(crate) struct VolumeModel {
    pub(crate) owner: Owner,
    /// The number of steps in earlier runs.
    steps_before: Count,
    tamper: Option<Rc<dyn Tamper<Volume>>>,
    pub(crate) node: Node,
    pub(super) users: BTreeMap<u8, User>,
    /// The last size that was requested.
    pub(super) wished_bytes: u64,
    unanswered: BTreeMap<u64, Asked>,
    askers: u64,
    /// Claims of an earlier run that are neither confirmed nor released yet.
    unconfirmed: BTreeSet<AllocationId>,
    /// Whether the volume was claimed in this run.
    has_claimed: bool,
    /// The id of the volume as its owner knows it, and the id whose deletion waits for permission.
    known_id: String,
    to_allow: Option<String>,
    /// The ids whose deletion its owner has allowed.
    allowed: BTreeSet<String>,
    /// The audits that were published in this run, and the forced releases that were answered.
    audits: (u32, u32),
    /// The audits that were published in all runs.
    published: u32,
    /// Whether a release was forced, so that something may be left.
    is_forced: bool,
    /// Whether a forced release was refused that may be done later all the same: its disk failed after it had shown that it takes writes.
    is_force_refused: bool,
    /// Whether a confirmation of claims may be lost, so that its caller repeats it.
    is_confirmation_due: bool,
    run: u64,
    boot: u64,
    is_single: bool,
    /// Whether a call that is cut by a crash takes effect.
    cut_takes_effect: bool,
    verdict: Verdict,
}

impl VolumeModel {
    pub(super) fn new(node: Node, is_single: bool, tamper: Option<Rc<dyn Tamper<Volume>>>) -> Self {
        Self {
            owner: owner(VolumeDisk::default(), (1, 1), &node, tamper.clone()),
            steps_before: Count(0),
            tamper,
            node,
            users: BTreeMap::new(),
            wished_bytes: 0,
            unanswered: BTreeMap::new(),
            askers: 0,
            unconfirmed: BTreeSet::new(),
            has_claimed: false,
            known_id: String::new(),
            to_allow: None,
            allowed: BTreeSet::new(),
            audits: (0, 0),
            published: 0,
            is_forced: false,
            is_force_refused: false,
            is_confirmation_due: false,
            run: 1,
            boot: 1,
            is_single,
            cut_takes_effect: false,
            verdict: Verdict::NONE,
        }
    }

    /// A volume on a node whose plugin stages, attaches and creates volumes or not, as it is in a simulation.
    pub(crate) fn simulated(
        (stages, attaches, creates): (bool, bool, bool),
        is_single: bool,
        tamper: Option<Rc<dyn Tamper<Volume>>>,
    ) -> Self {
        Self::new(Node::new(stages, attaches, creates), is_single, tamper)
    }

    /// The number of its steps in all runs.
    pub(crate) fn steps(&self) -> u64 {
        self.steps_before.0 + self.owner.steps()
    }

    const fn moment(now: Timestamp) -> Moment {
        Moment { now, random: 0 }
    }

    /// The law that was broken first.
    pub(crate) const fn broken(&self) -> Option<&Violation> {
        self.verdict.broken()
    }

    fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        self.verdict.violation(law, what);
    }

    /// The time at which something is due next.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.owner.next_timer().into_iter().chain(self.owner.pauses_until()).min()
    }

    // === Inputs ===

    pub(super) fn ask<Q: Message<Volume>>(&mut self, now: Timestamp, asked: Asked, message: Q) {
        self.askers += 1;
        self.unanswered.insert(self.askers, asked);
        self.owner.ask(Self::moment(now), self.askers, message.into_ask());
        self.carry(now);
    }

    pub(crate) fn claim(&mut self, now: Timestamp, number: u8) {
        let allocation = allocation(number);
        let user = self.users.entry(number).or_default();
        user.begin(false);
        let round = user.round;
        self.unconfirmed.remove(&allocation);
        self.has_claimed = true;
        let message = Claim { allocation, usage: usage(self.is_single), within: WITHIN };
        self.ask(now, Asked::Claim(number, round, now + WITHIN), message);
    }

    pub(crate) fn release(&mut self, now: Timestamp, number: u8) {
        let allocation = allocation(number);
        self.users.entry(number).or_default().begin(true);
        self.unconfirmed.remove(&allocation);
        let message = Release { allocation, observed: ObservedEnd::Exited, within: WITHIN };
        self.ask(now, Asked::Release, message);
    }

    pub(crate) fn force(&mut self, now: Timestamp) {
        self.is_forced = true;
        let reason = "an operator".to_owned();
        self.ask(now, Asked::Force, ForceRelease { scope: ForceScope::Everything, reason });
    }

    /// An operator gives up the claim of one allocation.
    pub(crate) fn give_up(&mut self, now: Timestamp, number: u8) {
        let scope = ForceScope::Claim(allocation(number));
        self.ask(now, Asked::GiveUp, ForceRelease { scope, reason: "an operator".to_owned() });
    }

    /// The call in flight returns.
    pub(crate) fn answer(&mut self, now: Timestamp, how: Answered) {
        if let Some((number, outcome)) = self.node.answer(how) {
            self.owner.returned(Self::moment(now), number, Ok(outcome));
            self.carry(now);
        }
    }

    /// Another instance of the plugin takes over.
    pub(crate) fn take_over(&mut self, now: Timestamp, stages: bool) {
        let cut = self.node.take_over(stages);
        let route = self.node.route();
        self.owner.checker.routed(route.clone());
        self.ask(now, Asked::Route, RouteChanged { route });
        if let Some((number, outcome)) = cut {
            self.owner.returned(Self::moment(now), number, Ok(outcome));
            self.carry(now);
        }
    }

    pub(crate) fn settle(&mut self, now: Timestamp, count: usize, outcome: Outcome) {
        if let Some(settlement) = self.owner.store.settle(count, outcome) {
            if self.is_force_refused {
                self.note_forced();
            }
            self.owner.settled(Self::moment(now), settlement);
            // Calls that were about to leave have left by then.
            self.carry(now);
            self.note_forced();
        }
    }

    pub(crate) const fn crash(&mut self, takes_effect: bool) {
        self.cut_takes_effect = takes_effect;
        self.owner.crash_next_step();
    }

    /// The mount at this place is unmounted from outside.
    pub(crate) fn pull_away(&mut self, place: usize) {
        let path = self.node.pull_away(place);
        let is_single = self.is_single;
        let losers = self.users.iter_mut().filter(|(number, _)| path == Some(target(**number, is_single)));
        losers.for_each(|(_, user)| user.has_lost_mount = true);
    }

    /// Whether a lie about the call in flight can be detected: the kernel shows mounts, and nothing shows other effects.
    pub(crate) fn may_be_lied_to(&self) -> bool {
        let step = self.node.in_flight.as_ref().and_then(|in_flight| step_of(&in_flight.call));
        matches!(step, Some((StepOf::Stage(_) | StepOf::Publish(_), _)))
    }

    /// The volume is notified that its disk is sick, or sound again.
    pub(crate) fn disk(&mut self, now: Timestamp, is_sick: bool) {
        if self.owner.is_sick() != is_sick {
            self.owner.disk(Self::moment(now), is_sick);
            self.carry(now);
        }
    }

    pub(crate) fn request_stop(&mut self, now: Timestamp, mode: StopMode) {
        self.owner.request_stop(Self::moment(now), mode);
        self.carry(now);
    }

    pub(crate) fn time_passes(&mut self, now: Timestamp) {
        if self.owner.pauses_until().is_some_and(|until| until <= now) {
            self.owner.wake();
        }
        self.owner.timers_due(Self::moment(now));
        self.carry(now);
    }

    /// The ledger is read, if the volume waits for that.
    pub(crate) fn load(&mut self, now: Timestamp) {
        if self.owner.is_loading() {
            let image = self.owner.store.rows().clone();
            self.owner.loaded(Self::moment(now), image);
            self.carry(now);
        }
    }

    /// The next event that happens by itself, with a good result. False if only time can pass.
    pub(crate) fn go_on(&mut self, now: Timestamp) -> bool {
        if self.owner.store.waiting() > 0 {
            self.settle(now, usize::MAX, Outcome::Written);
        } else if self.owner.is_loading() {
            self.load(now);
        } else if self.owner.has_ended() {
            self.next_run(usize::MAX, true, false);
        } else if self.has_unconfirmed() {
            self.confirm(now, true);
        } else if self.waits_to_be_deleted() {
            self.allow(now);
        } else if self.node.in_flight.is_some() {
            self.answer(now, Answered::Ok);
        } else {
            return false;
        }
        true
    }
}

pub(super) fn allocation(number: u8) -> AllocationId {
    AllocationId::new(format!("a{number}")).expect("it is an id")
}

/// The path at which an allocation finds the volume.
fn target(number: u8, is_single: bool) -> PathBuf {
    layout().target(&key(), &allocation(number), &usage(is_single))
}

fn number_of(id: &AllocationId) -> Option<u8> {
    id.as_str().strip_prefix('a')?.parse().ok()
}

fn usage(is_single: bool) -> Usage {
    let access_mode = if is_single { AccessMode::SingleNodeWriter } else { AccessMode::MultiNodeMultiWriter };
    let capability = VolumeCapability { access_type: AccessType::Block, access_mode };
    Usage { capability, read_only: false }
}

fn key() -> VolumeKey {
    VolumeKey {
        namespace: VolumeNamespace::new("n").expect("it is a name"),
        name: VolumeName::new("v").expect("it is a name"),
    }
}

fn plugin() -> PluginName {
    PluginName::new("p").expect("it is a name")
}

fn layout() -> VolumeLayout {
    VolumeLayout::new(Path::new("/d"), &plugin())
}

fn owner(
    disk: VolumeDisk,
    (run, boot): (u64, u64),
    node: &Node,
    tamper: Option<Rc<dyn Tamper<Volume>>>,
) -> Owner {
    let volume_id = if node.creates { String::new() } else { "v".to_owned() };
    let volume_context = context_of(&volume_id);
    let spec = VolumeSpec { key: key(), plugin: plugin(), volume_id, volume_context };
    let options = VolumeOptions::default();
    let config = VolumeConfig {
        spec: Arc::new(spec),
        layout: layout(),
        boot_id: boot.to_string().into(),
        run: RunNumber::new(run),
        options: VolumeOptions {
            backoff: Backoff { jitter_percent: 0, ..options.backoff },
            tries_max: 2,
            ..options
        },
    };
    StandIn::begin(config, disk, VolumeLaws::of(node.route()), Rules::default()).tampered_with(tamper)
}
