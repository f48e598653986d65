//! Lists the possible events around the owner, and the bound of each.

use super::super::search::Stage;
use super::super::writes::Outcome;
use super::event::{PluginWord, VolumeAct, VolumesBounds, VolumesEvent, VolumesRequest};
use super::scene::VolumesScene;
use super::volume::VolumeModel;

impl VolumesScene {
    /// Lists the possible events around the owner, while it lives.
    pub(super) fn list(&self, stage: &Stage<Self>, own: &mut dyn FnMut(VolumesEvent)) {
        for place in 0..self.volumes.len() {
            let claims = (0..stage.left.allocations).flat_map(|number| {
                [VolumesRequest::Claim(place, number), VolumesRequest::Release(place, number)]
            });
            let others = [
                VolumesRequest::Force(place),
                VolumesRequest::Create(place),
                VolumesRequest::Delete(place),
                VolumesRequest::Order(place),
                VolumesRequest::Forget(place),
            ];
            // An operator registers a volume that exists.
            let is_there = self.volumes[place].there == Some(0);
            let registered = is_there.then_some(VolumesRequest::Register(place));
            claims.chain(others).chain(registered).for_each(|request| own(VolumesEvent::Ask(request)));
            let volume = &self.volumes[place];
            let acts = VolumeAct::ALL.into_iter().filter(|act| volume.can(*act));
            acts.for_each(|act| own(VolumesEvent::Act(place, act)));
            (!volume.answers.is_empty()).then(|| own(VolumesEvent::Answer(place)));
            (!volume.news.is_empty()).then(|| own(VolumesEvent::News(place)));
        }
        (0..stage.left.allocations).for_each(|number| own(VolumesEvent::Ask(VolumesRequest::Ended(number))));
        own(VolumesEvent::Ask(VolumesRequest::AwaitUnused));
        for is_reversed in [false, true] {
            own(VolumesEvent::Ask(VolumesRequest::Group { is_reversed }));
        }
        [true, false].into_iter().for_each(|living| own(VolumesEvent::Ask(VolumesRequest::Confirm(living))));
        let words = PluginWord::ALL.into_iter().filter(|word| self.plugin.may_say(*word));
        words.for_each(|word| own(VolumesEvent::Say(word)));
        let (has_news, is_followed) = (self.plugin.has_news(), self.plugin.is_followed());
        (self.await_endings.is_some() && !self.endings.is_empty()).then(|| own(VolumesEvent::Endings));
        (has_news && is_followed).then(|| own(VolumesEvent::Deliver));
        has_news.then(|| own(VolumesEvent::Lag));
        is_followed.then(|| own(VolumesEvent::Lose));
        (!self.loses_route).then(|| own(VolumesEvent::LoseRoute));
        let waiting = stage.actor.store.waiting();
        if waiting > 0 && !stage.actor.is_sick() {
            for outcome in [Outcome::Written, Outcome::Failed, Outcome::FailedButWritten] {
                own(VolumesEvent::Settle(waiting, outcome));
            }
        }
        own(VolumesEvent::RefuseNext);
        own(VolumesEvent::Disk(!stage.actor.is_sick()));
        let ledgers = self.volumes.iter().map(VolumeModel::is_sick).enumerate();
        ledgers.for_each(|(place, is_sick)| own(VolumesEvent::Ledger(place, !is_sick)));
        (0..=waiting).for_each(|reached| own(VolumesEvent::Kill(reached)));
    }
}

impl VolumesEvent {
    /// Whether the event is a request or a fault, and does not happen by itself.
    #[must_use]
    pub const fn is_rare(&self) -> bool {
        let mut bounds = VolumesBounds::NONE;
        bounds.of(self).is_some()
    }
}

impl VolumesBounds {
    /// The bound of an event, if it has one.
    pub(super) const fn of(&mut self, event: &VolumesEvent) -> Option<&mut u8> {
        match event {
            VolumesEvent::Ask(request) => Some(match request {
                VolumesRequest::Claim(..) => &mut self.claims,
                VolumesRequest::Release(..) | VolumesRequest::Ended(_) => &mut self.releases,
                VolumesRequest::Confirm(_) => &mut self.confirmations,
                VolumesRequest::Force(_) => &mut self.forces,
                VolumesRequest::Create(_) => &mut self.creations,
                VolumesRequest::Delete(_) => &mut self.deletions,
                VolumesRequest::Order(_) => &mut self.orders,
                VolumesRequest::Group { .. } => &mut self.groups,
                VolumesRequest::Register(_) | VolumesRequest::Forget(_) => &mut self.changes,
                VolumesRequest::AwaitUnused => &mut self.waits,
            }),
            VolumesEvent::Act(_, VolumeAct::Fails | VolumeAct::GivesUp | VolumeAct::IsSilent) => {
                Some(&mut self.faults)
            }
            VolumesEvent::Act(_, VolumeAct::Falls | VolumeAct::FallsOverNext) => Some(&mut self.falls),
            VolumesEvent::Say(_) => Some(&mut self.words),
            VolumesEvent::Lag | VolumesEvent::Lose | VolumesEvent::LoseRoute => Some(&mut self.losses),
            VolumesEvent::Settle(_, Outcome::Failed | Outcome::FailedButWritten)
            | VolumesEvent::RefuseNext => Some(&mut self.failures),
            VolumesEvent::Disk(true) | VolumesEvent::Ledger(_, true) => Some(&mut self.sicknesses),
            VolumesEvent::Kill(_) => Some(&mut self.kills),
            VolumesEvent::Act(_, VolumeAct::Works | VolumeAct::Ends)
            | VolumesEvent::Answer(_)
            | VolumesEvent::News(_)
            | VolumesEvent::Endings
            | VolumesEvent::Deliver
            | VolumesEvent::Disk(false)
            | VolumesEvent::Ledger(_, false)
            | VolumesEvent::Settle(_, Outcome::Written) => None,
        }
    }
}
