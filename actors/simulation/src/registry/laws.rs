//! Checks the registry after every step against the plain list.

use std::collections::BTreeMap;

use callboard_actors::registry::{
    CheckOutcome, Registry, RegistryAnswer, RegistryAsk, RegistryNews, RegistryOptions, RegistryTimer,
    RegistryView, Standing,
};
use callboard_actors::shell::{AskId, Effect, Input};
use callboard_actors::vocabulary::{Generation, Moment, PluginKey, RegistrationNumber, RunNumber, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Left;
use super::board::Scene;
use super::disk::{Rows, has_had};
use super::model::{ExpectedAnswer, Model};
use super::reading::{Picture, Reading};

/// Observes every step of the registry. It remembers what was published across all lives and runs.
#[derive(Debug, Clone, Hash)]
pub struct RegistryLaws {
    pub(super) options: RegistryOptions,
    /// The time of the present step.
    pub(super) now: Timestamp,
    is_thorough: bool,
    pub(super) model: Model,
    pub(super) run: RunNumber,
    begun: Timestamp,
    expected: Option<Rows>,
    pub(super) waiting: BTreeMap<AskId, (PluginKey, Timestamp)>,
    pub(super) newest_number: RegistrationNumber,
    pub(super) newest_generation: Generation,
    /// The newest of them that was published: unpublished numbers may be given again.
    told_number: RegistrationNumber,
    told_generation: Generation,
    told: u64,
    /// Whether a change was published whose write may not have reached the disk yet.
    is_told_ahead: bool,
    picture: Picture,
    /// The number of identity checks that were decided in this life and have not left.
    checks_held: usize,
    /// The violations found.
    pub verdict: Verdict,
}

impl RegistryLaws {
    /// No step yet. Thorough laws also keep the complete state that a subscriber would have, which takes time in proportion to its size.
    #[must_use]
    pub fn new(options: RegistryOptions, is_thorough: bool) -> Self {
        Self {
            options,
            now: Timestamp::default(),
            is_thorough,
            model: Model::default(),
            run: RunNumber::default(),
            begun: Timestamp::default(),
            expected: None,
            waiting: BTreeMap::new(),
            newest_number: RegistrationNumber::default(),
            newest_generation: Generation::default(),
            told_number: RegistrationNumber::default(),
            told_generation: Generation::default(),
            told: 0,
            is_told_ahead: false,
            picture: Picture::default(),
            checks_held: 0,
            verdict: Verdict::NONE,
        }
    }

    /// The machine is about to be rebuilt from these rows, in this run, which began at this time.
    pub fn expect(&mut self, rows: Rows, run: RunNumber, begun: Timestamp) {
        self.expected = Some(rows);
        (self.run, self.begun) = (run, begun);
    }

    /// The state that subscribers received must be on disk whenever nothing is in flight between the two.
    pub fn compare_told(&mut self, rows: &Rows, is_anything_waiting: bool) {
        self.is_told_ahead &= is_anything_waiting;
        if self.is_thorough && !self.is_told_ahead && !self.picture.is_of(rows, self.run) {
            self.verdict.violation(Law::Shell1, || "subscribers were told what is not on disk".to_owned());
        }
    }

    /// The actor was killed: its subscribers are gone, and the next one starts from a snapshot.
    pub fn forget_listeners(&mut self) {
        self.told = 0;
        self.picture = Picture::default();
        self.waiting.clear();
    }

    /// The number of identity checks that were decided and have not left.
    #[must_use]
    pub const fn checks_held(&self) -> usize {
        self.checks_held
    }

    // === The required result of a step ===

    fn asked(
        &mut self,
        moment: Moment,
        id: AskId,
        asked_at: Timestamp,
        ask: &RegistryAsk,
        reading: &Reading<'_>,
    ) {
        let mut expected = Vec::new();
        match ask {
            RegistryAsk::Register(message) => {
                let scene = Scene { options: &self.options, now: moment.now };
                let expected_answer = self.model.register(message, &scene, &mut expected);
                let law = if expected_answer == ExpectedAnswer::Refused { Law::R9 } else { Law::R3 };
                self.check_expected_answer(id, &expected_answer, law, reading);
                self.check_expected_news(expected, law, message.plugins.len() > 1, reading);
            }
            RegistryAsk::Deregister(message) => {
                let scene = Scene { options: &self.options, now: moment.now };
                let expected_answer = self.model.deregister(message, &scene, &mut expected);
                self.check_expected_answer(id, &expected_answer, Law::R4, reading);
                self.check_expected_news(expected, Law::R4, message.plugins.len() > 1, reading);
            }
            RegistryAsk::ReportFitness(report) => {
                let scene = Scene { options: &self.options, now: moment.now };
                self.model.report(report, &scene, &mut expected);
                self.check_taken(id, reading);
                self.check_expected_news(expected, Law::R1b, false, reading);
            }
            RegistryAsk::Renew(renew) => {
                let scene = Scene { options: &self.options, now: moment.now };
                self.model.renew(renew, &scene, &mut expected);
                self.check_taken(id, reading);
                self.check_expected_news(expected, Law::R1, false, reading);
            }
            // Everything else is a question; one that the plain list cannot answer breaks a law.
            question => self.questioned(moment, id, asked_at, question, reading),
        }
    }

    fn check_expected_answer(
        &mut self,
        id: AskId,
        expected_answer: &ExpectedAnswer,
        law: Law,
        reading: &Reading<'_>,
    ) {
        let is_said = match (reading.answer_to(id), expected_answer) {
            (Some(RegistryAnswer::Register(Err(_))), ExpectedAnswer::Refused) => true,
            (Some(RegistryAnswer::Register(Ok(said))), ExpectedAnswer::Registered(expected)) => {
                said == expected
            }
            (Some(RegistryAnswer::Deregister(said)), ExpectedAnswer::Deregistered(expected)) => match said {
                callboard_actors::registry::Deregistered::Removed(removed) => removed == expected,
                callboard_actors::registry::Deregistered::NotRegistered => expected.is_empty(),
            },
            (answer, _) => {
                let is_missing = answer.is_none();
                if is_missing {
                    self.verdict.violation(Law::Shell7, || {
                        format!("{id:?} was not answered; expected {expected_answer:?}")
                    });
                }
                false
            }
        };
        if !is_said {
            self.verdict.violation(law, || {
                format!("{:?} was answered; expected {expected_answer:?}", reading.answer_to(id))
            });
        }
    }

    fn check_taken(&mut self, id: AskId, reading: &Reading<'_>) {
        if reading.answer_to(id).is_none() {
            self.verdict.violation(Law::Shell7, || format!("{id:?} was not answered"));
        }
    }

    /// Its complete view equals the plain list.
    pub fn compare_view(&mut self, view: &RegistryView) {
        let held = self.model.boards.values().flat_map(|board| &board.held);
        let mut held: Vec<_> = held.map(|held| (held.number, held.is_confirmed)).collect();
        held.sort_unstable();
        let shown = view.entries.iter().map(|entry| (entry.number, entry.standing == Standing::Confirmed));
        let is_list = shown.eq(held);
        let served = self.model.boards.values().filter_map(|board| board.active.as_ref());
        let is_active =
            view.active.iter().map(|active| active.generation).eq(served.map(|served| served.generation));
        if !is_list || !is_active {
            let law = if is_list { Law::R1 } else { Law::R2 };
            self.verdict.violation(law, || {
                "what the registry shows as a whole is not what a plain list says".to_owned()
            });
        }
    }

    // === Publications ===

    fn note_told(&mut self, news: &RegistryNews) {
        match news {
            RegistryNews::Registered(entry) | RegistryNews::Updated(entry) | RegistryNews::Renewed(entry) => {
                self.told_number = self.told_number.max(entry.number);
                self.told_generation = self.told_generation.max(entry.generation);
            }
            RegistryNews::Deregistered(..) | RegistryNews::ActiveChanged { .. } => {}
        }
    }
}

impl LawChecker<Registry> for RegistryLaws {
    fn rebuilt(&mut self, _moment: Moment, machine: &Registry) {
        self.checks_held = 0;
        let Some(rows) = self.expected.take() else { return };
        self.model = Model::of(&rows, self.run);
        self.waiting.clear();
        (self.newest_number, self.newest_generation) = (self.told_number, self.told_generation);
        self.check_rebuilt(machine, &rows);
    }

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Registry>,
        effects: &[Effect<Registry>],
        _machine: &Registry,
    ) {
        self.now = moment.now;
        let current = match input {
            Input::Asked { id, .. } | Input::Elapsed(RegistryTimer::Waited(id)) => Some(*id),
            Input::Resumed
            | Input::Returned { .. }
            | Input::Elapsed(RegistryTimer::GraceOver | RegistryTimer::CheckAgain | RegistryTimer::Calm(_))
            | Input::StopRequested(_) => None,
        };
        let reading = Reading::of(effects, current);
        self.is_told_ahead |= reading.is_told_ahead();
        self.checks_held += effects.iter().filter(|effect| matches!(effect, Effect::Call { .. })).count();
        let mut expected = Vec::new();
        match input {
            Input::Asked { id, asked_at, ask } => self.asked(moment, *id, *asked_at, ask, &reading),
            Input::Returned { call, outcome, .. } => {
                if matches!(outcome, Ok(CheckOutcome::Proven)) {
                    let scene = Scene { options: &self.options, now: moment.now };
                    self.model.prove(&call.registration, call.number, &scene, &mut expected);
                }
                self.check_expected_news(expected, Law::R8, false, &reading);
            }
            Input::Elapsed(RegistryTimer::GraceOver) => {
                if !has_had(self.options.restore_grace, self.begun, moment.now) {
                    self.verdict.violation(Law::R8, || "the grace ended before its time".to_owned());
                }
                self.model.end_grace(&mut expected);
                self.check_expected_news(expected, Law::R8, false, &reading);
            }
            Input::Elapsed(RegistryTimer::Waited(id)) => self.waited(moment, *id, &reading),
            Input::Elapsed(RegistryTimer::Calm(plugin)) => {
                let scene = Scene { options: &self.options, now: moment.now };
                self.model.calm_ended(plugin, &scene, &mut expected);
                self.check_expected_news(expected, Law::R1c, false, &reading);
            }
            Input::Resumed | Input::Elapsed(RegistryTimer::CheckAgain) | Input::StopRequested(_) => {
                self.check_expected_news(expected, Law::R8, false, &reading);
            }
        }
    }

    fn panicked(&mut self, input: &Input<Registry>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }

    fn left(&mut self, left: &Left<Registry>, is_durable: bool) {
        if !is_durable {
            self.verdict.violation(Law::Shell1, || {
                format!("{left:?} left before the write in front of it was on disk")
            });
        }
        match left {
            Left::News(number, news) => {
                self.told += 1;
                let told = self.told;
                if *number != told {
                    self.verdict.violation(Law::R6, || format!("news {number} came where {told} was due"));
                }
                self.note_told(news);
                if self.is_thorough {
                    self.picture.hear(news);
                }
            }
            Left::Snapshot(number, view) => {
                self.told = *number;
                if self.is_thorough {
                    self.picture = Picture::of(view);
                }
            }
            Left::Call { .. } => self.checks_held = self.checks_held.saturating_sub(1),
            Left::Answer(..) | Left::Refused(..) | Left::Ended(_) => {}
        }
    }
}
