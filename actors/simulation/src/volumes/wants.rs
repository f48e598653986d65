//! Tracks the requests of callers: a request that a sick disk refused as not begun is never carried out later (SHELL-1A).

use std::collections::{BTreeMap, BTreeSet};

use callboard_machines::volume::{Order, VolumeAsk};
use callboard_machines::volumes::{
    ClaimError, CreateError, DeleteError, ForceError, NoAnswer, OrderError, VolumesAnswer,
};

use super::super::law::Law;
use super::super::law_checker::{Violation, violation};
use super::event::VolumesRequest;
use super::scene::VolumesScene;
use super::status::number_of;

/// A request that a sick disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Wanted {
    Claim(usize, u8),
    Create(usize),
    Delete(usize),
    Order(usize),
    Group,
    Force(usize),
}

/// How many callers have made each request and received no answer that nothing of it was begun, and what a volume has begun.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Wants {
    asked: BTreeMap<Wanted, u8>,
    begun: BTreeSet<Wanted>,
}

impl VolumesScene {
    /// A caller sends a request.
    pub(super) fn wants(&mut self, request: VolumesRequest) {
        if let (Some(wants), Some(wanted)) = (&mut self.wants, wanted(request)) {
            *wants.asked.entry(wanted).or_default() += 1;
        }
    }

    /// A volume has accepted this request.
    pub(super) fn begins(&mut self, place: usize, ask: &VolumeAsk) -> Result<(), Violation> {
        let (Some(wants), Some(wanted)) = (&mut self.wants, begun_by(place, ask)) else { return Ok(()) };
        wants.begun.insert(wanted);
        wants.check(wanted)
    }

    /// A caller receives the answer that nothing of its request was begun.
    pub(super) fn is_refused(&mut self, request: VolumesRequest) -> Result<(), Violation> {
        let (Some(wants), Some(wanted)) = (&mut self.wants, wanted(request)) else { return Ok(()) };
        let asked = wants.asked.entry(wanted).or_default();
        *asked = asked.saturating_sub(1);
        wants.check(wanted)
    }
}

impl Wants {
    fn check(&self, wanted: Wanted) -> Result<(), Violation> {
        let is_asked = self.asked.get(&wanted).is_some_and(|asked| *asked > 0);
        if is_asked || !self.begun.contains(&wanted) {
            return Ok(());
        }
        violation(
            Law::Shell1a,
            format!("{wanted:?} was begun, and each of its callers is told that nothing was"),
        )
    }
}

const fn wanted(request: VolumesRequest) -> Option<Wanted> {
    Some(match request {
        VolumesRequest::Claim(place, number) => Wanted::Claim(place, number),
        VolumesRequest::Create(place) => Wanted::Create(place),
        VolumesRequest::Delete(place) => Wanted::Delete(place),
        VolumesRequest::Order(place) => Wanted::Order(place),
        VolumesRequest::Group { .. } => Wanted::Group,
        VolumesRequest::Force(place) => Wanted::Force(place),
        VolumesRequest::Release(..)
        | VolumesRequest::Ended(_)
        | VolumesRequest::Confirm(_)
        | VolumesRequest::Register(_)
        | VolumesRequest::Forget(_)
        | VolumesRequest::AwaitUnused => return None,
    })
}

fn begun_by(place: usize, ask: &VolumeAsk) -> Option<Wanted> {
    Some(match ask {
        VolumeAsk::Claim(claim) => Wanted::Claim(place, number_of(&claim.allocation)),
        VolumeAsk::CreateVolume(_) => Wanted::Create(place),
        VolumeAsk::DeleteVolume(_) => Wanted::Delete(place),
        VolumeAsk::PlaceOrder(placed) if matches!(placed.order, Order::TakeGroup(_)) => Wanted::Group,
        VolumeAsk::PlaceOrder(_) => Wanted::Order(place),
        VolumeAsk::ForceRelease(_) => Wanted::Force(place),
        VolumeAsk::PrepareForce(_)
        | VolumeAsk::AllowDeletion(_)
        | VolumeAsk::Disown(_)
        | VolumeAsk::Release(_)
        | VolumeAsk::ConfirmClaims(_)
        | VolumeAsk::RouteChanged(_)
        | VolumeAsk::DescribeVolume(_) => return None,
    })
}

/// Whether an answer reports that the disk refused the request, and that nothing was begun.
pub(super) const fn says_not_begun(answer: &VolumesAnswer) -> bool {
    let no_answer = match answer {
        VolumesAnswer::Claim(Err(ClaimError::NoAnswer(no_answer)))
        | VolumesAnswer::CreateVolume(Err(CreateError::NoAnswer(no_answer)))
        | VolumesAnswer::DeleteVolume(Err(DeleteError::NoAnswer(no_answer)))
        | VolumesAnswer::ModifyVolume(Err(OrderError::NoAnswer(no_answer)))
        | VolumesAnswer::CreateGroupSnapshot(Err(OrderError::NoAnswer(no_answer)))
        | VolumesAnswer::ForceRelease(Err(ForceError::NoAnswer(no_answer))) => no_answer,
        VolumesAnswer::ForceRelease(Err(ForceError::NotPrepared { .. })) => return true,
        _ => return false,
    };
    matches!(no_answer, NoAnswer::NotDurable { is_begun: false, .. })
}
