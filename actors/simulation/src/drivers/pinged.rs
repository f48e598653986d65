//! Tracks the pings of a driver that is watched.

use callboard_actors::driver::{Driver, DriverHealth, DriverReport, DriverStage};
use callboard_actors::shell::{CallKey, CallLost, Effect};

use super::known::{Heard, Outcome};

/// The pings since it has been watched.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Pinged {
    /// Whether the timer of the next ping is set.
    pub(super) is_due: bool,
    /// The ping in flight.
    pub(super) awaited: Option<CallKey>,
    /// Whether the last ping had no answer.
    pub(super) is_unanswered: bool,
    /// The last health that the plugin reported.
    pub(super) said: Option<(DriverHealth, String)>,
}

impl Pinged {
    /// A ping returned. `None` if it is stale; otherwise whether it has an answer, if that is known.
    pub(super) fn returned(&mut self, key: CallKey, outcome: &Outcome) -> Option<Option<bool>> {
        self.awaited.take_if(|awaited| *awaited == key)?;
        let is_answered = match outcome {
            Ok(Ok(_)) => true,
            Ok(Err(_)) | Err(CallLost::DeadlineExceeded(_)) => false,
            Err(CallLost::Crashed(_) | CallLost::Busy(_)) => return Some(None),
        };
        self.is_unanswered = !is_answered;
        Some(Some(is_answered))
    }

    /// A ping without an answer shows in the report, and cuts and ends nothing. Returns the violation, if there is one.
    pub(super) fn check(
        &mut self,
        is_pinged: bool,
        heard: &Heard,
        effects: &[Effect<Driver>],
        report: &DriverReport,
    ) -> Option<String> {
        if let Heard::Fingerprint(said) = heard {
            self.said = Some((said.health, said.description.clone()));
        }
        let ends =
            |effect: &_| matches!(effect, Effect::Call { .. } | Effect::StartTimer(..) | Effect::Stop(_));
        if *heard == Heard::Pinged(false) && effects.iter().any(ends) {
            return Some(format!("a ping has no answer, and that leads to {effects:?}"));
        }
        if report.stage != DriverStage::Watching {
            return None;
        }
        if is_pinged && !self.is_due {
            return Some("it is watched, and is not pinged again".to_owned());
        }
        let told = Some((report.health, report.reason.clone()));
        if self.is_unanswered && (report.health != DriverHealth::Unhealthy || told == self.said) {
            return Some(format!("a ping has no answer, and {told:?} is told"));
        }
        (*heard == Heard::Pinged(true) && self.said != told)
            .then(|| format!("a ping is answered, it said {:?}, and {told:?} is told", self.said))
    }
}
