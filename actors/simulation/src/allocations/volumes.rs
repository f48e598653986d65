//! The part of the owner of the volumes that a stop of an allocation depends on.

use std::time::Duration;

use callboard_actors::allocations::AllocationsOutcome;
use callboard_actors::shell::{AskError, CallLost};
use callboard_actors::vocabulary::PluginName;
use callboard_actors::volumes::AwaitUnusedError;

use super::super::search::Stage;
use super::event::VolumesWord;
use super::scene::AllocationsScene;

impl AllocationsScene {
    /// The owner of the volumes answers the oldest question, or does not.
    pub(super) fn volumes(&mut self, stage: &mut Stage<Self>, word: VolumesWord) {
        let Some(call) = self.questions.pop_front() else { return };
        let outcome = match word {
            VolumesWord::Unused => Ok(Ok(())),
            VolumesWord::Used => {
                let plugin = PluginName::new("zfs").expect("it is a name");
                let (volumes, waited) = (Vec::new(), Duration::from_secs(10));
                Ok(Err(AwaitUnusedError::InUse { plugin, volumes, waited }))
            }
            VolumesWord::Away => Err(AskError::NotRunning { actor: "volumes".to_owned() }),
            VolumesWord::Silent => {
                return stage.lost(call, CallLost::DeadlineExceeded(Duration::from_secs(15)));
            }
        };
        stage.returned(call, AllocationsOutcome::Unused(outcome));
    }
}
