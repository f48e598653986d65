//! The owner of the volumes, as far as a stop of an allocation depends on it.

use std::time::Duration;

use callboard_actors::allocations::AllocationsOutcome;
use callboard_actors::shell::{AskError, CallLost};
use callboard_actors::vocabulary::PluginName;
use callboard_actors::volumes::AwaitUnusedError;

use super::event::VolumesWord;
use super::world::AllocationsWorld;

impl AllocationsWorld {
    /// The owner of the volumes answers the oldest question, or does not.
    pub(super) fn volumes(&mut self, word: VolumesWord) {
        let Some(call) = self.questions.pop_front() else { return };
        let outcome = match word {
            VolumesWord::Unused => Ok(Ok(Ok(()))),
            VolumesWord::Used => {
                let plugin = PluginName::new("zfs").expect("it is a name");
                let (volumes, waited) = (Vec::new(), Duration::from_secs(10));
                Ok(Ok(Err(AwaitUnusedError::InUse { plugin, volumes, waited })))
            }
            VolumesWord::Away => Ok(Err(AskError::NotRunning { actor: "volumes".to_owned() })),
            VolumesWord::Silent => Err(CallLost::DeadlineExceeded(Duration::from_secs(15))),
        };
        self.owner.returned(self.moment(), call, outcome.map(AllocationsOutcome::Unused));
    }
}
