//! Reads the publications and writes of a step of the registry, and compares them with the expected ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::registry::{
    Active, Departure, Entry, Registry, RegistryAnswer, RegistryNews, RegistryView, Standing, StoredChange,
};
use callboard_actors::shell::{AskId, Effect, Gate};
use callboard_actors::vocabulary::{Fitness, Generation, PluginKey, RegistrationNumber, RunNumber};

use super::super::law::Law;
use super::board::{Held, Scene, Served, UNTOLD};
use super::disk::Rows;
use super::laws::RegistryLaws;
use super::model::ExpectedNews;

/// The effects of one step, by kind, each with its position.
pub(super) struct Reading<'a> {
    current: Option<AskId>,
    changes: Vec<(usize, Gate, &'a StoredChange)>,
    answers: Vec<(usize, AskId, &'a RegistryAnswer)>,
    news: Vec<(usize, &'a RegistryNews)>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(effects: &'a [Effect<Registry>], current: Option<AskId>) -> Self {
        let mut reading = Self { current, changes: Vec::new(), answers: Vec::new(), news: Vec::new() };
        for (place, effect) in effects.iter().enumerate() {
            match effect {
                Effect::Persist(gate, change) => reading.changes.push((place, *gate, change)),
                Effect::Reply(id, answer) => reading.answers.push((place, *id, answer)),
                Effect::Publish(news) => reading.news.push((place, news)),
                Effect::Call { .. } | Effect::StartTimer(..) | Effect::CancelTimer(_) | Effect::Stop(_) => {}
            }
        }
        reading
    }

    /// Whether it publishes a change whose write need not be on disk.
    pub(super) fn is_told_ahead(&self) -> bool {
        !self.changes.is_empty()
    }

    /// A change with a gate that is too weak or too strong.
    fn misgated(&self, is_promise: bool) -> Option<(Gate, Law)> {
        let due = if is_promise { Gate::Promises } else { Gate::Nothing };
        self.changes.iter().find_map(|(_, gate, _)| match gate {
            gate if *gate < due => Some((*gate, Law::Shell1)),
            gate => (*gate > due).then_some((*gate, Law::Shell1a)),
        })
    }

    pub(super) fn answer_to(&self, id: AskId) -> Option<&'a RegistryAnswer> {
        self.answers.iter().find(|(_, other, _)| *other == id).map(|(_, _, answer)| *answer)
    }

    /// Answers to earlier callers.
    pub(super) fn others(&self) -> impl Iterator<Item = (AskId, &'a RegistryAnswer)> + '_ {
        let others = self.answers.iter().filter(|(_, id, _)| Some(*id) != self.current);
        others.map(|(_, id, answer)| (*id, *answer))
    }

    /// Whether an effect leaves before all writes of this step that it depends on have been handed over.
    fn is_ahead_of_its_write(&self) -> bool {
        let Some((last, ..)) = self.changes.last() else { return false };
        let answers = self.answers.iter().map(|(place, _, _)| place);
        let first_said = answers.chain(self.news.iter().map(|(place, _)| place)).min();
        let is_in_pieces = self.changes.len() > 1;
        !is_in_pieces && first_said.is_some_and(|said| said < last)
    }
}

/// The expected changes on disk of a message.
#[derive(Default)]
struct Written {
    put: Vec<RegistrationNumber>,
    delete: Vec<RegistrationNumber>,
}

impl RegistryLaws {
    /// Compares the publications and writes of a step with the expected ones. `law` is the law that forbids whatever is too much.
    pub(super) fn check_expected_news(
        &mut self,
        expected: Vec<ExpectedNews>,
        law: Law,
        has_roles: bool,
        reading: &Reading<'_>,
    ) {
        for (_, news) in &reading.news {
            self.check_election(news);
        }
        let mut written = Written::default();
        let mut came = Vec::new();
        for place in 0..expected.len().max(reading.news.len()) {
            let told = reading.news.get(place).map(|(_, news)| *news);
            match (expected.get(place), told) {
                (Some(expected), Some(news)) if self.is_expected(expected, news, &mut written, &mut came) => {
                }
                (expected, told) => {
                    let law =
                        blame(expected, told, place.checked_sub(1).map(|last| reading.news[last].1), law);
                    self.verdict.violation(law, || format!("{told:?} was told where {expected:?} was due"));
                    return;
                }
            }
        }
        self.check_written(written, law, has_roles, reading);
        self.check_awakened(&came, reading);
    }

    /// While the active registration is fit and stays, only a fit and calm one takes over, unless the policy chooses another.
    fn check_election(&mut self, news: &RegistryNews) {
        let RegistryNews::ActiveChanged { plugin, to: Some(to), .. } = news else { return };
        let Some(board) = self.model.boards.get(plugin) else { return };
        let active = board.active.as_ref().map(|active| active.number);
        let mut held = board.held.iter().filter(|held| held.is_confirmed);
        let is_fit = |held: &&Held| held.fitness == Fitness::Fit;
        let former = held.clone().find(|held| Some(held.number) == active).filter(is_fit);
        let next = held.find(|held| held.registration.allocation == to.registration.allocation);
        let (Some(former), Some(next)) = (former, next) else { return };
        let scene = Scene { options: &self.options, now: self.now };
        if former.number == next.number || board.is_chosen(next, &scene) {
            return;
        }
        if !is_fit(&next) {
            let fitness = next.fitness.clone();
            self.verdict
                .violation(Law::R1a, || format!("{to:?} takes over from a fit one and is {fitness:?}"));
        } else if !board.is_calm(next, &scene) {
            self.verdict.violation(Law::R1c, || format!("{to:?} takes over from a fit one in its calm time"));
        }
    }

    fn is_expected(
        &mut self,
        expected: &ExpectedNews,
        news: &RegistryNews,
        written: &mut Written,
        came: &mut Vec<(PluginKey, Generation)>,
    ) -> bool {
        match (expected, news) {
            (ExpectedNews::Registered(registration), RegistryNews::Registered(entry)) => {
                written.put.push(entry.number);
                self.number_came(entry);
                is_confirmed(entry) && entry.registration == *registration
            }
            (ExpectedNews::Updated(number, registration), RegistryNews::Updated(entry))
            | (ExpectedNews::Renewed(number, registration), RegistryNews::Renewed(entry)) => {
                written.put.push(*number);
                self.generation_came(entry);
                if entry.number != *number {
                    self.verdict.violation(Law::R2, || format!("{entry:?} had number {number}"));
                }
                is_confirmed(entry) && entry.registration == *registration
            }
            (ExpectedNews::PolicyChanged(number, generation, registration), RegistryNews::Updated(entry)) => {
                written.put.push(*number);
                entry.number == *number
                    && entry.generation == *generation
                    && is_confirmed(entry)
                    && entry.registration == *registration
            }
            (ExpectedNews::Deregistered(number, why), RegistryNews::Deregistered(entry, said)) => {
                written.delete.push(*number);
                let was_allowed = *why != Departure::NotConfirmed || !is_confirmed(entry);
                entry.number == *number && why == said && was_allowed
            }
            (
                ExpectedNews::ActiveChanged { plugin, from, to },
                RegistryNews::ActiveChanged { plugin: said, from: was, to: is, reason: _ },
            ) => {
                let generation = |active: &Option<Active>| active.as_ref().map(|active| active.generation);
                plugin == said
                    && *from == generation(was)
                    && self.is_routed(
                        plugin,
                        to.as_ref().zip(is.as_ref()),
                        to.is_some() == is.is_some(),
                        written,
                        came,
                    )
            }
            (
                ExpectedNews::Registered(_)
                | ExpectedNews::Updated(..)
                | ExpectedNews::PolicyChanged(..)
                | ExpectedNews::Renewed(..)
                | ExpectedNews::Deregistered(..)
                | ExpectedNews::ActiveChanged { .. },
                _,
            ) => false,
        }
    }

    /// A number is greater than all earlier ones.
    fn number_came(&mut self, entry: &Entry) {
        if entry.number <= self.newest_number {
            self.verdict.violation(Law::R2, || format!("{entry:?} has an old number"));
        }
        self.newest_number = self.newest_number.max(entry.number);
        let board = self.model.board_mut(&entry.registration.plugin);
        if let Some(held) = board.held.iter_mut().find(|held| held.number == UNTOLD) {
            held.number = entry.number;
        }
        self.generation_came(entry);
    }

    /// A generation is given only once.
    fn generation_came(&mut self, entry: &Entry) {
        if entry.generation <= self.newest_generation {
            self.verdict.violation(Law::R1, || format!("{entry:?} has an old generation"));
        }
        self.newest_generation = self.newest_generation.max(entry.generation);
        let board = self.model.board_mut(&entry.registration.plugin);
        if let Some(held) = board.held.iter_mut().find(|held| held.number == entry.number) {
            held.generation = entry.generation;
        }
    }

    fn is_routed(
        &mut self,
        plugin: &PluginKey,
        to: Option<(&Arc<callboard_actors::vocabulary::Registration>, &Active)>,
        is_same_kind: bool,
        written: &mut Written,
        came: &mut Vec<(PluginKey, Generation)>,
    ) -> bool {
        let board = self.model.board_mut(plugin);
        written.put.extend(board.keep_unspent(to.map(|(registration, _)| &registration.allocation)));
        let Some((registration, active)) = to else {
            board.active = None;
            return is_same_kind;
        };
        let is_it = |held: &&mut Held| held.registration.allocation == registration.allocation;
        let Some(held) = board.held.iter_mut().find(is_it) else { return false };
        let (is_given, was_active) = (held.generation == active.generation, held.was_active);
        held.was_active = true;
        written.put.push(held.number);
        came.push((plugin.clone(), active.generation));
        board.active = Some(Served {
            number: held.number,
            generation: active.generation,
            registration: Arc::clone(registration),
        });
        if was_active || !is_given {
            self.verdict.violation(Law::R1, || {
                format!("{active:?} is not of its registration, or was fit and active before")
            });
        }
        active.registration == *registration
    }

    // === Writes ===

    fn check_written(&mut self, expected: Written, law: Law, has_roles: bool, reading: &Reading<'_>) {
        // Only registrations are promised.
        let is_promise = matches!(law, Law::R3 | Law::R9) && !reading.changes.is_empty();
        let rows = || reading.changes.iter().flat_map(|(_, _, change)| &change.put);
        let put = sorted(rows().map(|row| row.number).collect());
        let delete =
            sorted(reading.changes.iter().flat_map(|(_, _, change)| change.delete.iter().copied()).collect());
        let (expected_put, expected_delete) = (sorted(expected.put), sorted(expected.delete));
        let lacks = |has: &[RegistrationNumber], due: &[RegistrationNumber]| {
            due.iter().any(|number| has.binary_search(number).is_err())
        };
        if lacks(&put, &expected_put) || lacks(&delete, &expected_delete) {
            let law = if has_roles { Law::R5 } else { Law::Shell1 };
            self.verdict.violation(law, || format!("written: {put:?} and without {delete:?}; due: {expected_put:?} and without {expected_delete:?}"));
        } else if put != expected_put || delete != expected_delete {
            self.verdict.violation(law, || format!("written: {put:?} and without {delete:?}; due: {expected_put:?} and without {expected_delete:?}"));
        }
        for row in rows() {
            let held = self.model.find(&row.registration.plugin, &row.registration.allocation);
            let is_so =
                held.is_some_and(|held| held.number == row.number && held.registration == row.registration);
            if !is_so || row.confirmed_in != self.run {
                self.verdict.violation(law, || format!("{row:?} was written, and that is not what is held"));
            }
        }
        if let Some((gate, law)) = reading.misgated(is_promise) {
            self.verdict.violation(law, || format!("what is written is waited for by {gate:?}"));
        }
        if reading.is_ahead_of_its_write() {
            self.verdict
                .violation(Law::Shell1, || "something is said before the write that it rests on".to_owned());
        }
    }
}

fn sorted(mut numbers: Vec<RegistrationNumber>) -> Vec<RegistrationNumber> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn is_confirmed(entry: &Entry) -> bool {
    entry.standing == Standing::Confirmed
}

/// The law that was broken where one publication was expected and another was made.
fn blame(
    expected: Option<&ExpectedNews>,
    told: Option<&RegistryNews>,
    before: Option<&RegistryNews>,
    law: Law,
) -> Law {
    let to = match told {
        Some(RegistryNews::ActiveChanged { to: Some(to), .. }) => Some(to),
        Some(
            RegistryNews::ActiveChanged { to: None, .. }
            | RegistryNews::Registered(_)
            | RegistryNews::Updated(_)
            | RegistryNews::Renewed(_)
            | RegistryNews::Deregistered(..),
        )
        | None => None,
    };
    match (expected, told) {
        (_, Some(_)) if told == before => Law::R6,
        (Some(ExpectedNews::ActiveChanged { to: None, .. }), _) if to.is_some() => Law::R8,
        // A takeover costs a connection that need not end.
        (Some(ExpectedNews::ActiveChanged { .. }), Some(RegistryNews::Renewed(_))) => Law::R1d,
        (Some(ExpectedNews::ActiveChanged { .. }), _) => Law::R1,
        (Some(ExpectedNews::Updated(..) | ExpectedNews::PolicyChanged(..)), _) => Law::R3,
        (Some(ExpectedNews::Renewed(..)), _) => Law::R1,
        (Some(ExpectedNews::Registered(_) | ExpectedNews::Deregistered(..)), _) => Law::R6,
        (None, Some(RegistryNews::ActiveChanged { .. })) => Law::R1,
        (None, _) => law,
    }
}

/// The state that a subscriber builds from all notifications.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Picture {
    has_heard: bool,
    entries: BTreeMap<RegistrationNumber, Entry>,
    active: BTreeMap<PluginKey, Active>,
}

impl Picture {
    pub(super) fn of(view: &RegistryView) -> Self {
        let active = view.active.iter().map(|active| (active.registration.plugin.clone(), active.clone()));
        let entries = view.entries.iter().map(|entry| (entry.number, entry.clone()));
        Self { has_heard: true, entries: entries.collect(), active: active.collect() }
    }

    pub(super) fn hear(&mut self, news: &RegistryNews) {
        match news {
            RegistryNews::Registered(entry) | RegistryNews::Updated(entry) | RegistryNews::Renewed(entry) => {
                self.entries.insert(entry.number, entry.clone());
            }
            RegistryNews::Deregistered(entry, _) => {
                self.entries.remove(&entry.number);
            }
            RegistryNews::ActiveChanged { plugin, to, .. } => match to {
                Some(to) => {
                    self.active.insert(plugin.clone(), to.clone());
                }
                None => {
                    self.active.remove(plugin);
                }
            },
        }
    }

    /// Whether these rows are the same; a subscriber without a snapshot has nothing to compare.
    pub(super) fn is_of(&self, rows: &Rows, run: RunNumber) -> bool {
        let is_same = |(entry, row): (&Entry, &callboard_actors::registry::Stored)| {
            entry.number == row.number
                && entry.registration == row.registration
                && is_confirmed(entry) == (row.confirmed_in == run)
        };
        let mut last = BTreeMap::new();
        for row in rows.values().filter(|row| row.confirmed_in == run) {
            let Some(since) = row.active_since else { continue };
            let last = last.entry(&row.registration.plugin).or_insert((since, row.generation));
            *last = (*last).max((since, row.generation));
        }
        let last = last.into_iter().map(|(plugin, (_, generation))| (plugin, generation));
        let active = self.active.iter().map(|(plugin, active)| (plugin, active.generation));
        let is_whole =
            self.entries.len() == rows.len() && self.entries.values().zip(rows.values()).all(is_same);
        !self.has_heard || is_whole && active.eq(last)
    }
}
