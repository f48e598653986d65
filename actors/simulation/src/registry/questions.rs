//! What the plain list answers.

use callboard_actors::registry::{
    Description, Entry, Lack, Merit, RegistryAnswer, RegistryAsk, Standby, Standing,
};
use callboard_actors::vocabulary::{FailoverPolicy, Fitness};

use super::board::{Board, Held, Scene};
use super::model::Model;

impl Model {
    /// Whether this is the answer to a question.
    pub(super) fn answers(&self, ask: &RegistryAsk, answer: &RegistryAnswer, scene: &Scene<'_>) -> bool {
        match (ask, answer) {
            (RegistryAsk::List(_), RegistryAnswer::List(entries)) => self.lists(entries),
            (RegistryAsk::Describe(asked), RegistryAnswer::Describe(said)) => {
                asked.plugin == said.plugin && self.describes(said, scene)
            }
            (RegistryAsk::DescribePlugins(_), RegistryAnswer::DescribePlugins(said)) => {
                let held = self.boards.iter().filter(|(_, board)| !board.held.is_empty());
                said.iter().map(|said| &said.plugin).eq(held.map(|(plugin, _)| plugin))
                    && said.iter().all(|said| self.describes(said, scene))
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
    fn describes(&self, said: &Description, scene: &Scene<'_>) -> bool {
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
        let is_explained = board.is_none_or(|board| board.explains(said, scene));
        is_same_active
            && is_explained
            && are_said(standby, &said_standby)
            && are_said(of(false), &said.provisional)
    }
}

impl Board {
    /// Whether it is said as it is at present why the active one is active, and what each other one lacks.
    fn explains(&self, said: &Description, scene: &Scene<'_>) -> bool {
        let Some(active) = &self.active else { return said.merit.is_none() };
        let Some(active) = self.held.iter().find(|held| held.number == active.number) else { return false };
        let is_pinned = self.is_chosen(active, scene) && said.policy != FailoverPolicy::Newest;
        let is_fit = |held: &&Held| held.is_confirmed && held.fitness == Fitness::Fit;
        let others = || self.held.iter().filter(is_fit).filter(|held| held.number != active.number);
        let are_newer = others().any(|held| held.number > active.number);
        let merit = match (&said.policy, &active.fitness) {
            (FailoverPolicy::Newest, _) => Merit::Newest,
            _ if is_pinned => Merit::Pinned,
            (_, Fitness::Unproven) => Merit::Awaited,
            (_, Fitness::Unfit { .. }) => Merit::NoneFit,
            (_, Fitness::Fit) if are_newer => Merit::NewestCalm,
            (_, Fitness::Fit) if others().count() == 0 && !self.is_calm(active, scene) => Merit::OnlyFit,
            (_, Fitness::Fit) => Merit::NewestFit,
        };
        let lacks = |standby: &Standby| {
            let Some(held) = self.held.iter().find(|held| held.number == standby.entry.number) else {
                return false;
            };
            match (&standby.lack, &held.fitness) {
                (Lack::Unfit { reason }, Fitness::Unfit { reason: known }) => reason == known,
                (_, Fitness::Unfit { .. }) | (Lack::Unfit { .. }, _) => false,
                (lack, _) if said.policy == FailoverPolicy::Newest => *lack == Lack::Older,
                (lack, Fitness::Unproven) => *lack == Lack::Unproven,
                (lack, Fitness::Fit) if is_pinned => *lack == Lack::NotPinned,
                (Lack::Calm { until }, Fitness::Fit) => *until > scene.now && !self.is_calm(held, scene),
                (lack, Fitness::Fit) => *lack == Lack::Older && self.is_calm(held, scene),
            }
        };
        said.merit == Some(merit) && said.standby.iter().all(lacks)
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
