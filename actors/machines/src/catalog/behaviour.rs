//! The decisions of the catalog: when it scans, and what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::choosing::resolve;
use super::comparing::compare;
use super::messages::{
    CatalogAnswer, CatalogAsk, CatalogNews, ListPlugins, Listing, ResolveFile, ResolvePlugin, ScanPlugins,
};
use super::options::CatalogOptions;
use super::refusal::{Refusal, ResolveError, ScanError};
use super::state::{Catalog, CatalogCall, CatalogOutcome, Phase, Told};
use crate::kernel::{AskId, CallKey, CallLost, Effects, Input, Machine, Never};
use crate::vocabulary::{Attempt, Generation, Moment, PluginKey};

/// The deadline for ending all temporary instances. Each one has its own bound; this is a safety net for bugs.
const SWEEP_DEADLINE: Duration = Duration::from_secs(120);
/// The margin between the call's own timeout and that of the shell, so that the call's own error is reported.
pub(super) const CALL_GRACE: Duration = Duration::from_secs(5);

impl Machine for Catalog {
    const KIND: &'static str = "catalog";
    type Config = Arc<CatalogOptions>;
    type Image = ();
    type Ask = CatalogAsk;
    type Answer = CatalogAnswer;
    type Call = CatalogCall;
    type Outcome = CatalogOutcome;
    type Timer = Never;
    type Change = Never;
    type News = CatalogNews;
    type View = Listing;

    fn restore(options: &Arc<CatalogOptions>, (): (), moment: Moment) -> Self {
        Self {
            options: Arc::clone(options),
            phase: Phase::Sweeping,
            // Temporary instances of an earlier life, which are still ending, have other names.
            attempt: Attempt::new(moment.random >> 16),
            awaited: Attempt::default(),
            listing: Listing::default(),
            scanning: Vec::new(),
            scanning_next: Vec::new(),
            resolving: Vec::new(),
            resolving_files: Vec::new(),
            files: BTreeMap::new(),
            looks: BTreeMap::new(),
        }
    }

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => self.sweep(effects),
            Input::Asked { id, ask: CatalogAsk::ScanPlugins(ScanPlugins), .. } => {
                self.scan_asked(moment, *id, effects);
            }
            Input::Asked { id, ask: CatalogAsk::ListPlugins(ListPlugins), .. } => {
                effects.reply(*id, CatalogAnswer::ListPlugins(self.view()));
            }
            Input::Asked { id, ask: CatalogAsk::ResolvePlugin(ResolvePlugin { plugin }), .. } => {
                self.resolve_asked(*id, plugin, effects);
            }
            Input::Asked { id, ask: CatalogAsk::ResolveFile(ask), .. } => {
                self.file_asked(*id, ask, effects);
            }
            Input::Returned { key, outcome, .. } => self.returned(moment, *key, outcome, effects),
            Input::Elapsed(never) => match *never {},
            Input::StopRequested(_) => self.stop(effects),
        }
    }

    fn view(&self) -> Listing {
        let is_scanning = match self.phase {
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) => true,
            Phase::Resting | Phase::Stopping => false,
        };
        Listing { is_scanning, ..self.listing.clone() }
    }
}

impl Catalog {
    // === Queries ===

    fn scan_asked(&mut self, moment: Moment, id: AskId, effects: &mut Effects<Self>) {
        let waiting = self.waiting();
        if waiting >= self.options.limits.waiting_max && !matches!(self.phase, Phase::Stopping) {
            effects.reply(id, CatalogAnswer::ScanPlugins(Err(ScanError::TooMany { waiting })));
            return;
        }
        match self.phase {
            Phase::Resting => {
                self.scanning.push(id);
                self.begin_scan(moment, effects);
            }
            // No scan has begun yet.
            Phase::Sweeping => self.scanning.push(id),
            // The scan in progress may have missed recent changes.
            Phase::Reading | Phase::Probing(_) => self.scanning_next.push(id),
            Phase::Stopping => {
                effects.reply(id, CatalogAnswer::ScanPlugins(Err(ScanError::Stopping)));
            }
        }
    }

    fn resolve_asked(&mut self, id: AskId, plugin: &PluginKey, effects: &mut Effects<Self>) {
        let waiting = self.waiting();
        let answer = match self.phase {
            Phase::Stopping => Err(ResolveError::Stopping { plugin: plugin.clone() }),
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) | Phase::Resting
                if self.listing.scanned_at.is_some() =>
            {
                resolve(&self.listing, plugin, &self.options)
            }
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) | Phase::Resting
                if waiting >= self.options.limits.waiting_max =>
            {
                Err(ResolveError::TooMany { waiting })
            }
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) | Phase::Resting => {
                self.resolving.push((id, plugin.clone()));
                return;
            }
        };
        effects.reply(id, CatalogAnswer::ResolvePlugin(answer));
    }

    pub(super) fn waiting(&self) -> usize {
        let files = self.resolving_files.len();
        self.scanning.len() + self.scanning_next.len() + self.resolving.len() + files
    }

    // === Calls ===

    fn sweep(&mut self, effects: &mut Effects<Self>) {
        let key = self.awaited_key();
        effects.call(key, SWEEP_DEADLINE, CatalogCall::Sweep);
    }

    pub(super) fn next_key(&mut self) -> CallKey {
        self.attempt = self.attempt.next();
        CallKey { generation: Generation::default(), attempt: self.attempt }
    }

    /// The key of the call that the phase waits for.
    pub(super) fn awaited_key(&mut self) -> CallKey {
        let key = self.next_key();
        self.awaited = key.attempt;
        key
    }

    fn returned(
        &mut self,
        moment: Moment,
        key: CallKey,
        outcome: &Result<CatalogOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        let is_awaited = key.attempt == self.awaited;
        if let Some(file) = self.looks.remove(&key.attempt) {
            return self.file_told(&file, &probed(outcome), effects);
        }
        match &self.phase {
            // Whether all are gone or one cannot be ended: their names are unique, so they do not interfere.
            Phase::Sweeping if is_awaited => self.begin_scan(moment, effects),
            Phase::Reading if is_awaited => match outcome {
                Ok(CatalogOutcome::Directory(read)) => self.directory_read(moment, read, effects),
                Ok(CatalogOutcome::Swept | CatalogOutcome::Probed(_)) => {}
                Err(lost) => self.directory_lost(moment, lost, effects),
            },
            Phase::Probing(_) => self.probed(moment, key.attempt, &probed(outcome), effects),
            Phase::Stopping if is_awaited => effects.stop(),
            // The outcome of a stale call.
            Phase::Sweeping | Phase::Reading | Phase::Resting | Phase::Stopping => {}
        }
    }

    // === The end of a scan ===

    pub(super) fn conclude(&mut self, moment: Moment, listing: Listing, effects: &mut Effects<Self>) {
        for news in compare(&self.listing, &listing) {
            effects.publish(news);
        }
        self.listing = listing;
        self.phase = Phase::Resting;
        for id in self.scanning.drain(..) {
            effects.reply(id, CatalogAnswer::ScanPlugins(Ok(self.listing.clone())));
        }
        for (id, plugin) in self.resolving.drain(..) {
            let answer = resolve(&self.listing, &plugin, &self.options);
            effects.reply(id, CatalogAnswer::ResolvePlugin(answer));
        }
        self.look_for_those_who_wait(effects);
        if !self.scanning_next.is_empty() {
            self.scanning = std::mem::take(&mut self.scanning_next);
            self.begin_scan(moment, effects);
        }
    }

    // === Shutdown ===

    fn stop(&mut self, effects: &mut Effects<Self>) {
        match self.phase {
            Phase::Stopping => return,
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) | Phase::Resting => {}
        }
        self.phase = Phase::Stopping;
        for id in self.scanning.drain(..).chain(self.scanning_next.drain(..)) {
            effects.reply(id, CatalogAnswer::ScanPlugins(Err(ScanError::Stopping)));
        }
        for (id, plugin) in self.resolving.drain(..) {
            effects.reply(id, CatalogAnswer::ResolvePlugin(Err(ResolveError::Stopping { plugin })));
        }
        for (id, ResolveFile { plugin, .. }) in self.resolving_files.drain(..) {
            effects.reply(id, CatalogAnswer::ResolveFile(Err(ResolveError::Stopping { plugin })));
        }
        self.sweep(effects);
    }
}

fn probed(outcome: &Result<CatalogOutcome, CallLost>) -> Result<Box<Told>, Refusal> {
    match outcome {
        Ok(CatalogOutcome::Probed(told)) => told.clone(),
        Ok(CatalogOutcome::Swept | CatalogOutcome::Directory(_)) => {
            Err(Refusal::Lost("another question was answered than was asked".to_owned()))
        }
        Err(lost) => Err(Refusal::Lost(lost.to_string())),
    }
}
