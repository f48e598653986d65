//! What the plain list answers.

use callboard_actors::registry::{Description, Entry, RegistryAnswer, RegistryAsk, Standing};

use super::board::Held;
use super::model::Model;

impl Model {
    /// Whether this is the answer to a question.
    pub(super) fn answers(&self, ask: &RegistryAsk, answer: &RegistryAnswer) -> bool {
        match (ask, answer) {
            (RegistryAsk::List(_), RegistryAnswer::List(entries)) => self.lists(entries),
            (RegistryAsk::Describe(asked), RegistryAnswer::Describe(said)) => {
                asked.plugin == said.plugin && self.describes(said)
            }
            (RegistryAsk::DescribePlugins(_), RegistryAnswer::DescribePlugins(said)) => {
                let held = self.boards.iter().filter(|(_, board)| !board.held.is_empty());
                said.iter().map(|said| &said.plugin).eq(held.map(|(plugin, _)| plugin))
                    && said.iter().all(|said| self.describes(said))
            }
            (RegistryAsk::RegistrationOf(asked), RegistryAnswer::RegistrationOf(said)) => {
                is_said(self.find(&asked.plugin, &asked.allocation), said.as_ref())
            }
            (_, _) => false,
        }
    }

    /// All of them, in their order.
    fn lists(&self, entries: &[Entry]) -> bool {
        let mut held: Vec<&Held> = self.boards.values().flat_map(|board| &board.held).collect();
        held.sort_unstable_by_key(|held| held.number);
        are_said(held.into_iter(), entries)
    }

    /// Whom work is routed to, and the others, the newest first.
    fn describes(&self, said: &Description) -> bool {
        let board = self.boards.get(&said.plugin);
        let active = board.and_then(|board| board.active.as_ref());
        let is_same_active = match (active, &said.active) {
            (None, None) => true,
            (Some(active), Some(said)) => {
                active.generation == said.generation && active.registration == said.registration
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        let of = |is_confirmed: bool| {
            let held = board.into_iter().flat_map(|board| board.held.iter().rev());
            held.filter(move |held| held.is_confirmed == is_confirmed)
        };
        let standby = of(true).filter(|held| active.is_none_or(|active| active.number != held.number));
        let said_standby: Vec<Entry> = said.standby.iter().map(|standby| standby.entry.clone()).collect();
        is_same_active && are_said(standby, &said_standby) && are_said(of(false), &said.provisional)
    }
}

fn are_said<'a>(mut held: impl Iterator<Item = &'a Held>, said: &[Entry]) -> bool {
    said.iter().all(|said| is_said(held.next(), Some(said))) && held.next().is_none()
}

fn is_said(held: Option<&Held>, said: Option<&Entry>) -> bool {
    match (held, said) {
        (None, None) => true,
        (Some(held), Some(said)) => {
            held.number == said.number
                && held.registration == said.registration
                && held.is_confirmed == (said.standing == Standing::Confirmed)
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}
