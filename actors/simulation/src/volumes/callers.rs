//! The callers of the owner: their requests, and checks of the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use callboard_actors::shell::Message;
use callboard_actors::vocabulary::AllocationId;
use callboard_machines::csi::{AccessMode, AccessType, VolumeCapability};
use callboard_machines::volume::{ForceScope, NewVolume, ObservedEnd, Usage};
use callboard_machines::volumes::{
    AllocationEnded, AwaitUnused, Claim, ConfirmClaims, CreateGroupSnapshot, CreateVolume, DeleteVolume,
    ForceRelease, ForgetVolume, KnownVolume, ModifyVolume, RegisterVolume, Release, VolumesAnswer,
    VolumesAsk,
};

use super::super::law::Law;
use super::super::law_checker::{Violation, violation};
use super::super::search::Stage;
use super::event::VolumesRequest;
use super::plugin::plugin;
use super::scene::VolumesScene;
use super::status::{GROUP, allocation, key, place_of, spec};
use super::volume::Phase;
use super::wants::says_not_begun;

/// How long a caller waits.
const WITHIN: Duration = Duration::from_secs(20);

impl VolumesScene {
    /// A caller sends a request.
    pub(super) fn ask(&mut self, stage: &mut Stage<Self>, request: VolumesRequest) {
        stage.ask(self.message(request));
        let asker = stage.askers();
        self.asked.insert(asker, request);
        self.wants(request);
        match request {
            VolumesRequest::Claim(place, number) => {
                self.claimed_at.insert((place, number), asker);
            }
            VolumesRequest::Release(place, number) => self.lets_go(asker, |of| *of == (place, number)),
            VolumesRequest::Ended(number) => self.lets_go(asker, |(_, of)| *of == number),
            VolumesRequest::Confirm(false) => self.lets_go(asker, |_| true),
            VolumesRequest::Delete(_)
            | VolumesRequest::Order(_)
            | VolumesRequest::Group { .. }
            | VolumesRequest::Confirm(true)
            | VolumesRequest::Force(_)
            | VolumesRequest::Create(_)
            | VolumesRequest::Register(_)
            | VolumesRequest::Forget(_)
            | VolumesRequest::AwaitUnused => {}
        }
    }

    /// Processes no longer use these claims.
    fn lets_go(&mut self, asker: u64, is_meant: impl Fn(&(usize, u8)) -> bool) {
        self.held.retain(|of| !is_meant(of));
        let released = self.claimed_at.keys().filter(|of| is_meant(of));
        self.released_at.extend(released.map(|of| (*of, asker)));
    }

    fn message(&self, request: VolumesRequest) -> VolumesAsk {
        let (within, observed) = (WITHIN, ObservedEnd::Exited);
        match request {
            VolumesRequest::Claim(place, number) => {
                let (volume, allocation, usage) = (key(place), allocation(number), usage());
                Claim { volume, allocation, usage, within }.into_ask()
            }
            VolumesRequest::Release(place, number) => {
                let (volume, allocation) = (key(place), allocation(number));
                Release { volume, allocation, observed, within }.into_ask()
            }
            VolumesRequest::Ended(number) => {
                AllocationEnded { allocation: allocation(number), observed, within }.into_ask()
            }
            VolumesRequest::Confirm(are_living) => {
                let claims = self.volumes.iter().flat_map(|volume| volume.claims.iter());
                let held = claims.filter(|(_, claim)| are_living && claim.phase != Phase::GoingDown);
                let living: BTreeSet<AllocationId> = held.map(|(number, _)| allocation(*number)).collect();
                ConfirmClaims { living, unclear: BTreeSet::new() }.into_ask()
            }
            VolumesRequest::Force(place) => {
                let reason = "an operator".to_owned();
                ForceRelease { volume: key(place), scope: ForceScope::Everything, reason }.into_ask()
            }
            VolumesRequest::Create(place) => {
                let new = NewVolume { capabilities: vec![usage().capability], ..NewVolume::default() };
                CreateVolume { volume: key(place), plugin: plugin(), new, within }.into_ask()
            }
            VolumesRequest::Delete(place) => DeleteVolume { volume: key(place), within }.into_ask(),
            VolumesRequest::Order(place) => {
                ModifyVolume { volume: key(place), parameters: BTreeMap::new(), within }.into_ask()
            }
            VolumesRequest::Group { is_reversed } => {
                let mut volumes: Vec<_> = (0..self.volumes.len()).map(key).collect();
                if is_reversed {
                    volumes.reverse();
                }
                let (name, parameters) = (GROUP.to_owned(), BTreeMap::new());
                CreateGroupSnapshot { volumes, name, parameters, within }.into_ask()
            }
            VolumesRequest::Register(place) => {
                let volume =
                    KnownVolume { capacity_bytes: Some(1), ..KnownVolume::new(spec(place, Some(0))) };
                RegisterVolume { volume }.into_ask()
            }
            VolumesRequest::Forget(place) => ForgetVolume { volume: key(place) }.into_ask(),
            VolumesRequest::AwaitUnused => AwaitUnused { plugin: plugin(), within }.into_ask(),
        }
    }

    /// The claims of an allocation that are older than this question.
    fn is_left(&self, asker: u64, (place, number): (usize, u8)) -> bool {
        let claim = self.place(place).claims.get(&number);
        let claimed_at = self.claimed_at.get(&(place, number)).copied().unwrap_or_default();
        claim.is_some() && claimed_at < asker
    }

    /// A caller receives its answer.
    pub(super) fn heard(
        &mut self,
        asker: u64,
        request: VolumesRequest,
        answer: &VolumesAnswer,
    ) -> Result<(), Violation> {
        if says_not_begun(answer) {
            self.is_refused(request)?;
        }
        match (request, answer) {
            (VolumesRequest::Claim(place, number), VolumesAnswer::Claim(Ok(_))) => {
                let claim = self.place(place).claims.get(&number);
                let is_up = claim.is_some_and(|claim| claim.phase == Phase::Up);
                let released_at = self.released_at.get(&(place, number)).copied().unwrap_or_default();
                if is_up && released_at < asker {
                    self.held.insert((place, number));
                }
            }
            (VolumesRequest::Release(place, number), VolumesAnswer::Release(Ok(_)))
                if self.is_left(asker, (place, number)) =>
            {
                return violation(
                    Law::V15,
                    format!("v{place} is told to be released by a{number}, and is not"),
                );
            }
            (VolumesRequest::Ended(number), VolumesAnswer::AllocationEnded(rows)) => {
                let is_refused = |place: &usize| {
                    rows.iter().any(|row| row.result.is_err() && place_of(&row.volume) == *place)
                };
                let mut left = (0..self.volumes.len()).filter(|place| !is_refused(place));
                if let Some(place) = left.find(|place| self.is_left(asker, (*place, number))) {
                    return violation(
                        Law::V15,
                        format!("a{number} has ended, and v{place} is still claimed"),
                    );
                }
            }
            // Confirmations that could not be sent are made when the actor starts again.
            (VolumesRequest::Confirm(_), VolumesAnswer::ConfirmClaims(_)) => {
                self.confirmed_in = Some(self.builds);
            }
            (VolumesRequest::AwaitUnused, VolumesAnswer::AwaitUnused(Ok(()))) => {
                let used = self.volumes.iter().find(|volume| volume.is_used());
                if let Some(used) = used {
                    return violation(
                        Law::V13,
                        format!("the plugin is told to be unused, and there is {used:?}"),
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the host reported the living allocations to the present machine.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed_in == Some(self.builds)
    }

    /// The request that the host repeats until it has the outcome.
    pub(super) fn repeated(&self, stage: &Stage<Self>) -> Option<VolumesRequest> {
        let is_asked = self
            .asked
            .iter()
            .any(|(asker, request)| matches!(request, VolumesRequest::Confirm(_)) && stage.awaits(*asker));
        let is_due =
            self.volumes.iter().any(|volume| volume.has_unconfirmed(self.run)) && !self.is_confirmed();
        (is_due && !is_asked).then_some(VolumesRequest::Confirm(true))
    }
}

fn usage() -> Usage {
    let access_mode = AccessMode::MultiNodeMultiWriter;
    let capability = VolumeCapability { access_type: AccessType::Block, access_mode };
    Usage { capability, read_only: false }
}
