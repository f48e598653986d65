//! The questions to the registry: how they are chosen, asked and printed, the answers of the plain list, and wrong answers.
//!
//! Each question is complete here: as a client of a simulated host asks it ([`Question`]), as the small world asks it
//! ([`prompt`], [`wait`]), its laws, and the wrong answer that these must detect.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::registry::{
    ActiveBecause, Describe, DescribePlugins, Description, Entry, InactiveBecause, List, RegistrationOf,
    Registry, RegistryAnswer, RegistryAsk, Standby, Standing, WaitError, WaitForPlugin,
};
use callboard_actors::shell::{AskId, Effect, Input};
use callboard_actors::vocabulary::{
    AllocationId, FailoverPolicy, Fitness, Generation, Moment, PluginKey, Timestamp,
};

use super::super::law::Law;
use super::super::simulator::{Names, Tampers, plugin_text};
use super::super::tamper::Tamper;
use super::board::{Board, Held, Scene};
use super::laws::RegistryLaws;
use super::model::Model;
use super::reading::Reading;
use crate::random::Random;

/// A client's question to the registry in a simulated host. Plugins and allocations are named by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// About a plugin.
    Describe(u32),
    /// About all plugins.
    DescribeAll,
    /// Whether, and how, an allocation of a plugin is registered.
    RegistrationOf(u32, u32),
    /// The list of registrations.
    List,
    /// It waits for a plugin, for this number of milliseconds.
    Wait(u32, u32),
}

impl Question {
    /// A question about a plugin, by a number below 60.
    pub(crate) fn about(plugin: u32, number: u64, random: &mut Random, names: &Names) -> Self {
        match number {
            0..=29 => Self::Describe(plugin),
            30..=39 => {
                // Mostly about an allocation that serves the plugin, or did.
                let who = random.place(names.allocations());
                let served = names.served_by(who);
                let meant = served.first().filter(|_| !random.once_in(8));
                Self::RegistrationOf(meant.map_or(plugin, |meant| names.plugin_number(meant)), who)
            }
            _ => Self::Wait(plugin, random.place(5_000)),
        }
    }

    /// A question about all plugins.
    pub(crate) const fn about_all(is_list: bool) -> Self {
        if is_list { Self::List } else { Self::DescribeAll }
    }

    /// The message.
    pub(crate) fn message(self, names: &Names) -> RegistryAsk {
        match self {
            Self::Describe(plugin) => RegistryAsk::Describe(Describe { plugin: names.plugin(plugin) }),
            Self::DescribeAll => RegistryAsk::DescribePlugins(DescribePlugins),
            Self::RegistrationOf(plugin, who) => {
                let (plugin, allocation) = (names.plugin(plugin), names.allocation(who));
                RegistryAsk::RegistrationOf(RegistrationOf { plugin, allocation })
            }
            Self::List => RegistryAsk::List(List),
            Self::Wait(plugin, millis) => {
                let within = Duration::from_millis(millis.into());
                RegistryAsk::WaitForPlugin(WaitForPlugin { plugin: names.plugin(plugin), within })
            }
        }
    }
}

/// As a line of a history, and of a message script.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Describe(plugin) => write!(f, "describe {}", plugin_text(*plugin)),
            Self::DescribeAll => f.write_str("describe-all"),
            Self::RegistrationOf(plugin, who) => write!(f, "registration a{who} {}", plugin_text(*plugin)),
            Self::List => f.write_str("list"),
            Self::Wait(plugin, millis) => {
                // A script cannot have a shorter time.
                write!(f, "wait {} within={}ms", plugin_text(*plugin), millis.max(&1))
            }
        }
    }
}

// === In the small world ===

/// All questions that are answered at once.
pub(super) fn prompt(plugin: PluginKey, allocation: AllocationId) -> [RegistryAsk; 4] {
    [
        RegistryAsk::List(List),
        RegistryAsk::Describe(Describe { plugin: plugin.clone() }),
        RegistryAsk::DescribePlugins(DescribePlugins),
        RegistryAsk::RegistrationOf(RegistrationOf { plugin, allocation }),
    ]
}

/// The same questions in the syntax of a message script of the registry.
pub(super) const PROMPT: &str = "list; describe csi-node/zfs; describe-all; registration-of a csi-node/zfs";

/// The question that is answered when the plugin is registered.
pub(super) const fn wait(plugin: PluginKey) -> RegistryAsk {
    RegistryAsk::WaitForPlugin(WaitForPlugin { plugin, within: Duration::from_secs(3) })
}

/// The same question in the syntax of a message script of the registry.
pub(super) const WAIT: &str = "wait csi-node/zfs 3";

/// Whether an answer may wait for something else than the disk.
pub(crate) const fn may_wait(ask: &RegistryAsk) -> bool {
    matches!(ask, RegistryAsk::WaitForPlugin(_))
}

/// Whether this is a question that is answered at once.
pub(super) const fn is_prompt(ask: &RegistryAsk) -> bool {
    let changes = matches!(
        ask,
        RegistryAsk::Register(_)
            | RegistryAsk::Deregister(_)
            | RegistryAsk::ReportFitness(_)
            | RegistryAsk::Renew(_)
    );
    !changes && !may_wait(ask)
}

// === Wrong answers ===

/// A registry that denies what it holds, in its answers to questions of one kind.
#[derive(Debug)]
struct Denies(Question);

impl Tamper<Registry> for Denies {
    fn effects(
        &self,
        _: &Registry,
        _: &Input<Registry>,
        mut effects: Vec<Effect<Registry>>,
    ) -> Vec<Effect<Registry>> {
        for effect in &mut effects {
            if let Effect::Reply(_, answer) = effect {
                self.deny(answer);
            }
        }
        effects
    }
}

impl Denies {
    fn deny(&self, answer: &mut RegistryAnswer) {
        match (self.0, answer) {
            (Question::Describe(_), RegistryAnswer::Describe(said)) => said.active = None,
            (Question::DescribeAll, RegistryAnswer::DescribePlugins(said)) => said.clear(),
            (Question::RegistrationOf(..), RegistryAnswer::RegistrationOf(said)) => *said = None,
            (Question::List, RegistryAnswer::List(said)) => said.clear(),
            (Question::Wait(..), RegistryAnswer::WaitForPlugin(said)) => {
                *said = Err(WaitError::TooMany { waiting: 0 });
            }
            (_, _) => {}
        }
    }
}

impl Tampers {
    /// A registry that denies what it holds, in its answers to questions of this kind, for a simulation that must fail.
    #[must_use]
    pub fn deny(question: Question) -> Self {
        Self { registry: Some(Rc::new(Denies(question))), ..Self::default() }
    }
}

// === Their laws ===

impl RegistryLaws {
    /// A question changes nothing, and has the answer of a plain list: at once, or when the plugin is registered (R7).
    pub(super) fn questioned(
        &mut self,
        moment: Moment,
        id: AskId,
        asked_at: Timestamp,
        ask: &RegistryAsk,
        reading: &Reading<'_>,
    ) {
        if let RegistryAsk::WaitForPlugin(question) = ask {
            return self.wait(moment, id, &question.plugin, asked_at + question.within, reading);
        }
        self.check_question(id, ask, reading);
        self.check_expected_news(Vec::new(), Law::R9, false, reading);
    }

    fn check_question(&mut self, id: AskId, ask: &RegistryAsk, reading: &Reading<'_>) {
        let answer = reading.answer_to(id);
        let scene = Scene { options: &self.options, now: self.now };
        if !answer.is_some_and(|answer| self.model.answers(ask, answer, &scene)) {
            self.verdict
                .violation(Law::R1, || format!("{answer:?} is not what a plain list says to {ask:?}"));
        }
    }

    fn wait(
        &mut self,
        moment: Moment,
        id: AskId,
        plugin: &PluginKey,
        until: Timestamp,
        reading: &Reading<'_>,
    ) {
        let active = self.model.boards.get(plugin).and_then(|board| board.active.as_ref());
        let (generation, is_full) =
            (active.map(|a| a.generation), self.waiting.len() >= self.options.waiting_max);
        let is_right = match (reading.answer_to(id), generation) {
            (Some(RegistryAnswer::WaitForPlugin(Ok(said))), Some(generation)) => {
                said.generation == generation
            }
            (Some(RegistryAnswer::WaitForPlugin(Err(WaitError::TooMany { .. }))), None) => is_full,
            (None, None) => !is_full,
            (Some(_), None) | (_, Some(_)) => false,
        };
        if !is_right {
            let now = moment.now;
            self.verdict.violation(Law::R7, || {
                format!("at {now} who asked for {plugin} heard {:?}", reading.answer_to(id))
            });
        }
        if reading.answer_to(id).is_none() {
            self.waiting.insert(id, (plugin.clone(), until));
        }
    }

    pub(super) fn waited(&mut self, moment: Moment, id: AskId, reading: &Reading<'_>) {
        let Some((plugin, until)) = self.waiting.remove(&id) else { return };
        let is_right = matches!(reading.answer_to(id), Some(RegistryAnswer::WaitForPlugin(Err(_))));
        if !is_right || moment.now < until {
            self.verdict.violation(Law::R7, || {
                format!("the timeout for {plugin} ended: {:?}", reading.answer_to(id))
            });
        }
    }

    /// The callers that waited for one of these, and no others, are answered in this step.
    pub(super) fn check_awakened(&mut self, came: &[(PluginKey, Generation)], reading: &Reading<'_>) {
        for (id, answer) in reading.others() {
            let waited = self.waiting.remove(&id).map(|(plugin, _)| plugin);
            let RegistryAnswer::WaitForPlugin(Ok(active)) = answer else {
                self.verdict.violation(Law::Shell7, || {
                    format!("{id:?} was answered {answer:?} by another question's step")
                });
                continue;
            };
            let is_it = |(plugin, generation): &(PluginKey, Generation)| {
                Some(plugin) == waited.as_ref() && *generation == active.generation
            };
            if !came.iter().any(is_it) {
                self.verdict
                    .violation(Law::R7, || format!("{id:?} waited for {waited:?} and was given {active:?}"));
            }
        }
        let is_forgotten =
            |(plugin, _): &&(PluginKey, Timestamp)| came.iter().any(|(came, _)| came == plugin);
        if !came.is_empty()
            && let Some((plugin, _)) = self.waiting.values().find(is_forgotten)
        {
            let plugin = plugin.clone();
            self.verdict.violation(Law::R7, || format!("{plugin} has come, and a caller still waits for it"));
        }
    }
}

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

    /// All registrations, in order.
    fn lists(&self, entries: &[Entry]) -> bool {
        let mut held: Vec<&Held> = self.boards.values().flat_map(|board| &board.held).collect();
        held.sort_unstable_by_key(|held| held.number);
        are_said(held.into_iter(), entries)
    }

    /// The registration that work is routed to, and the others, the newest first.
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
    /// Whether the description gives the present reasons why the active one is active, and what each other one lacks.
    fn explains(&self, said: &Description, scene: &Scene<'_>) -> bool {
        let Some(active) = &self.active else { return said.active_because.is_none() };
        let Some(active) = self.held.iter().find(|held| held.number == active.number) else { return false };
        let is_pinned = self.is_chosen(active, scene) && said.policy != FailoverPolicy::Newest;
        let is_fit = |held: &&Held| held.is_confirmed && held.fitness == Fitness::Fit;
        let others = || self.held.iter().filter(is_fit).filter(|held| held.number != active.number);
        let are_newer = others().any(|held| held.number > active.number);
        let merit = match (&said.policy, &active.fitness) {
            (FailoverPolicy::Newest, _) => ActiveBecause::Newest,
            _ if is_pinned => ActiveBecause::Pinned,
            (_, Fitness::Unproven) => ActiveBecause::Awaited,
            (_, Fitness::Unfit { .. }) => ActiveBecause::NoneFit,
            (_, Fitness::Fit) if are_newer => ActiveBecause::NewestCalm,
            (_, Fitness::Fit) if others().count() == 0 && !self.is_calm(active, scene) => {
                ActiveBecause::OnlyFit
            }
            (_, Fitness::Fit) => ActiveBecause::NewestFit,
        };
        let lacks = |standby: &Standby| {
            let Some(held) = self.held.iter().find(|held| held.number == standby.entry.number) else {
                return false;
            };
            match (&standby.inactive_because, &held.fitness) {
                (InactiveBecause::Unfit { reason }, Fitness::Unfit { reason: known }) => reason == known,
                (_, Fitness::Unfit { .. }) | (InactiveBecause::Unfit { .. }, _) => false,
                (lack, _) if said.policy == FailoverPolicy::Newest => *lack == InactiveBecause::Older,
                (lack, Fitness::Unproven) => *lack == InactiveBecause::Unproven,
                (lack, Fitness::Fit) if is_pinned => *lack == InactiveBecause::NotPinned,
                (InactiveBecause::Calm { until }, Fitness::Fit) => {
                    *until > scene.now && !self.is_calm(held, scene)
                }
                (lack, Fitness::Fit) => *lack == InactiveBecause::Older && self.is_calm(held, scene),
            }
        };
        said.active_because == Some(merit) && said.standby.iter().all(lacks)
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
