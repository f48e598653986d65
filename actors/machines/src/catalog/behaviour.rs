//! Decides when the catalog scans, and answers its callers.

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
use crate::kernel::{AskId, CallKey, CallLost, Input, Machine, Never, StepContext};
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

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.sweep(cx),
            Input::Asked { id, ask: CatalogAsk::ScanPlugins(ScanPlugins), .. } => {
                self.scan_asked(*id, cx);
            }
            Input::Asked { id, ask: CatalogAsk::ListPlugins(ListPlugins), .. } => {
                cx.reply(*id, CatalogAnswer::ListPlugins(self.view()));
            }
            Input::Asked { id, ask: CatalogAsk::ResolvePlugin(ResolvePlugin { plugin }), .. } => {
                self.resolve_asked(*id, plugin, cx);
            }
            Input::Asked { id, ask: CatalogAsk::ResolveFile(ask), .. } => {
                self.file_asked(*id, ask, cx);
            }
            Input::Returned { key, outcome, .. } => self.returned(*key, outcome, cx),
            Input::Elapsed(never) => match *never {},
            Input::StopRequested(_) => self.stop(cx),
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

    fn scan_asked(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        let waiting = self.waiting();
        if waiting >= self.options.limits.waiting_max && !matches!(self.phase, Phase::Stopping) {
            cx.reply(id, CatalogAnswer::ScanPlugins(Err(ScanError::TooMany { waiting })));
            return;
        }
        match self.phase {
            Phase::Resting => {
                self.scanning.push(id);
                self.begin_scan(cx);
            }
            // No scan has begun yet.
            Phase::Sweeping => self.scanning.push(id),
            // The scan in progress may have missed recent changes.
            Phase::Reading | Phase::Probing(_) => self.scanning_next.push(id),
            Phase::Stopping => {
                cx.reply(id, CatalogAnswer::ScanPlugins(Err(ScanError::Stopping)));
            }
        }
    }

    fn resolve_asked(&mut self, id: AskId, plugin: &PluginKey, cx: &mut StepContext<Self>) {
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
        cx.reply(id, CatalogAnswer::ResolvePlugin(answer));
    }

    pub(super) fn waiting(&self) -> usize {
        let files = self.resolving_files.len();
        self.scanning.len() + self.scanning_next.len() + self.resolving.len() + files
    }

    // === Calls ===

    fn sweep(&mut self, cx: &mut StepContext<Self>) {
        let key = self.awaited_key();
        cx.call(key, SWEEP_DEADLINE, CatalogCall::Sweep);
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
        key: CallKey,
        outcome: &Result<CatalogOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let is_awaited = key.attempt == self.awaited;
        if let Some(file) = self.looks.remove(&key.attempt) {
            return self.file_told(&file, &probed(outcome), cx);
        }
        match &self.phase {
            // Continues whether all are gone or one cannot be ended: their names are unique, so they do not interfere.
            Phase::Sweeping if is_awaited => self.begin_scan(cx),
            Phase::Reading if is_awaited => match outcome {
                Ok(CatalogOutcome::Directory(read)) => self.directory_read(read, cx),
                Ok(CatalogOutcome::Swept | CatalogOutcome::Probed(_)) => {}
                Err(lost) => self.directory_lost(lost, cx),
            },
            Phase::Probing(_) => self.probed(key.attempt, &probed(outcome), cx),
            Phase::Stopping if is_awaited => cx.stop(),
            // The outcome of a stale call.
            Phase::Sweeping | Phase::Reading | Phase::Resting | Phase::Stopping => {}
        }
    }

    // === The end of a scan ===

    pub(super) fn conclude(&mut self, listing: Listing, cx: &mut StepContext<Self>) {
        for news in compare(&self.listing, &listing) {
            cx.publish(news);
        }
        self.listing = listing;
        self.phase = Phase::Resting;
        for id in self.scanning.drain(..) {
            cx.reply(id, CatalogAnswer::ScanPlugins(Ok(self.listing.clone())));
        }
        for (id, plugin) in self.resolving.drain(..) {
            let answer = resolve(&self.listing, &plugin, &self.options);
            cx.reply(id, CatalogAnswer::ResolvePlugin(answer));
        }
        self.look_for_those_who_wait(cx);
        if !self.scanning_next.is_empty() {
            self.scanning = std::mem::take(&mut self.scanning_next);
            self.begin_scan(cx);
        }
    }

    // === Shutdown ===

    fn stop(&mut self, cx: &mut StepContext<Self>) {
        match self.phase {
            Phase::Stopping => return,
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) | Phase::Resting => {}
        }
        self.phase = Phase::Stopping;
        for id in self.scanning.drain(..).chain(self.scanning_next.drain(..)) {
            cx.reply(id, CatalogAnswer::ScanPlugins(Err(ScanError::Stopping)));
        }
        for (id, plugin) in self.resolving.drain(..) {
            cx.reply(id, CatalogAnswer::ResolvePlugin(Err(ResolveError::Stopping { plugin })));
        }
        for (id, ResolveFile { plugin, .. }) in self.resolving_files.drain(..) {
            cx.reply(id, CatalogAnswer::ResolveFile(Err(ResolveError::Stopping { plugin })));
        }
        self.sweep(cx);
    }
}

fn probed(outcome: &Result<CatalogOutcome, CallLost>) -> Result<Box<Told>, Refusal> {
    match outcome {
        Ok(CatalogOutcome::Probed(told)) => told.clone(),
        Ok(CatalogOutcome::Swept | CatalogOutcome::Directory(_)) => {
            Err(Refusal::Lost("the reply does not match the request".to_owned()))
        }
        Err(lost) => Err(Refusal::Lost(lost.to_string())),
    }
}
