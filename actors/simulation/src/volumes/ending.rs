//! Checks the final state of the owner of the volumes and of their actors once faults have stopped.

use callboard_actors::shell::Machine;
use callboard_machines::volumes::{VolumeActor, VolumeReport};

use super::super::law::Law;
use super::super::law_checker::{Violation, violation};
use super::super::search::Stage;
use super::scene::VolumesScene;
use super::status::{id_of, key, place_of};
use super::volume::{Existence, Phase, VolumeModel};

impl VolumesScene {
    /// Checks the final state.
    pub(super) fn comes_to(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        if stage.stopped.is_some() {
            return self.check_stopped(stage);
        }
        let Some(machine) = stage.actor.machine() else {
            return violation(Law::Shell4, "the owner of the volumes does not live");
        };
        if self.route != self.plugin.route() {
            let (is, due) = (&self.route, self.plugin.route());
            return violation(
                Law::Res5,
                format!("when all was calm, the route was {is:?} instead of {due:?}"),
            );
        }
        let reports = machine.view().volumes;
        for (place, volume) in self.volumes.iter().enumerate() {
            let report = reports.iter().find(|report| place_of(&report.volume.spec.key) == place);
            self.check_actor(place, volume, report)?;
            self.check_claims(place, volume)?;
            self.check_known(stage, place, volume, report)?;
        }
        Ok(())
    }

    fn check_stopped(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        if !stage.actor.has_ended() {
            return violation(Law::S3, "told to stop, the owner of the volumes goes on");
        }
        if self.volumes.iter().any(|volume| volume.child.is_some()) {
            return violation(Law::S4, "the owner of the volumes has ended, and an actor is left");
        }
        Ok(())
    }

    /// A volume in use has an actor, unless that has crashed too often. An unused volume has none.
    fn check_actor(
        &self,
        place: usize,
        volume: &VolumeModel,
        report: Option<&VolumeReport>,
    ) -> Result<(), Violation> {
        let actor = report.map_or(&VolumeActor::Unneeded, |report| &report.actor);
        let is_used = volume.is_used();
        match (actor, &volume.child) {
            (VolumeActor::Running, Some(_)) if is_used => Ok(()),
            (VolumeActor::GivenUp { .. }, None) => Ok(()),
            (VolumeActor::Unneeded, None) if !is_used => Ok(()),
            (_, Some(_)) if !is_used => {
                violation(Law::V13, format!("v{place} is vacant, and its plugin counts as used: {actor:?}"))
            }
            (_, child) => {
                let lives = child.is_some();
                violation(Law::V15, format!("v{place} is in use, an actor lives: {lives}, shown: {actor:?}"))
            }
        }
    }

    fn check_claims(&self, place: usize, volume: &VolumeModel) -> Result<(), Violation> {
        if volume.child.is_some() && volume.has_unconfirmed(self.run) && self.is_confirmed() {
            return violation(Law::V14, format!("a claim of v{place} is not confirmed: {:?}", volume.claims));
        }
        let is_held = |number: &u8| volume.claims.get(number).is_some_and(|claim| claim.phase == Phase::Up);
        let mut held = self.held.iter().filter(|(of, _)| *of == place);
        if let Some((_, number)) = held.find(|(_, number)| !is_held(number)) {
            return violation(Law::V8, format!("a{number} holds v{place}, and its claim is gone"));
        }
        Ok(())
    }

    /// The known volumes are those that exist, and those on disk.
    fn check_known(
        &self,
        stage: &Stage<Self>,
        place: usize,
        volume: &VolumeModel,
        report: Option<&VolumeReport>,
    ) -> Result<(), Violation> {
        let known = report.filter(|report| report.is_known).map(|report| report.volume.clone());
        let row = stage.actor.store.known().iter().find(|known| known.spec.key == key(place));
        if known.as_ref() != row {
            return violation(Law::Shell2, format!("{known:?} is known, and {row:?} is on disk"));
        }
        let is_to_be_deleted = stage.actor.store.rows().deleting.contains(&key(place));
        let is_given_up = report.is_some_and(|report| matches!(report.actor, VolumeActor::GivenUp { .. }));
        if is_to_be_deleted && !volume.is_changing() && !is_given_up && !volume.is_forced {
            return violation(
                Law::C59,
                format!("v{place} was to be deleted, and that is neither done nor refused: {volume:?}"),
            );
        }
        let waits = matches!(volume.existence, Some(Existence::BeingDeleted(Some(_))));
        if waits && volume.child.as_ref().is_some_and(|child| !child.may_be_deleted) {
            return violation(
                Law::C59,
                format!(
                    "v{place} waits to be deleted, and its owner does not say whether it may be: {volume:?}"
                ),
            );
        }
        let created = match volume.existence {
            Some(Existence::Created(id)) => Some(id),
            Some(Existence::BeingCreated | Existence::BeingDeleted(_)) | None => None,
        };
        let id = known.as_ref().and_then(|known| id_of(&known.spec));
        let is_so = created.is_none_or(|created| id == Some(created)) && (id.is_none() || id == volume.there);
        if !is_so && !is_given_up && !volume.is_changing() && !volume.is_forced {
            return violation(
                Law::C59,
                format!(
                    "v{place} is known with the id {id:?}, created as {created:?}, is {:?}",
                    volume.there
                ),
            );
        }
        Ok(())
    }
}
