//! The lines of what goes wrong in actors, and is mended.

use callboard_actors::shell::Notice;
use callboard_proto::admin::v1::Fate;

use super::line::{Line, Voice};
use super::merge::Rank;
use super::retell::Retell;

/// Retells the notices of a host.
#[derive(Debug, Default)]
pub(super) struct NoticesTeller;

impl Retell for NoticesTeller {
    type News = Notice;
    type View = Vec<Notice>;

    fn begin(&mut self, _: &Vec<Notice>) -> Vec<(Rank, Line)> {
        Vec::new()
    }

    fn retell(&mut self, notice: &Notice) -> Vec<(Rank, Line)> {
        let (actor, message) = match notice {
            Notice::Crashed { actor, message, .. } => (actor, format!("crashed, and was rebuilt: {message}")),
            Notice::WriteFailed { actor, error } => (actor, format!("could not write: {error}")),
            Notice::LoadFailed { actor, error } => (actor, format!("could not read: {error}")),
            // These are told by `status` and in the log; they are about records and readers and not about who lives.
            Notice::DeadLetter { .. } | Notice::Lagged { .. } | Notice::Quarantined { .. } => {
                return Vec::new();
            }
        };
        let voice = Voice::Actor(actor.clone());
        vec![(Rank::First, Line::new(voice.clone(), Voice::Everyone, message).of_fate(voice, Fate::Troubled))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_told_under_the_name_of_the_actor() {
        let notice =
            Notice::Crashed { actor: "registry".to_owned(), message: "a drill".to_owned(), crashes: 1 };
        let lines = NoticesTeller.retell(&notice);
        let told: Vec<_> =
            lines.iter().map(|(_, line)| format!("{} → {}: {}", line.from, line.to, line.message)).collect();
        assert_eq!(told, ["registry → everyone: crashed, and was rebuilt: a drill"]);
    }
}
