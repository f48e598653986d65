//! Keeps the state of single files, for callers that name a file: they do not wait for other probes.

use super::choosing::usable;
use super::messages::{BlockedBy, CatalogAnswer, PluginSource, ResolveFile, ResolvedPlugin};
use super::options::CatalogOptions;
use super::refusal::{Refusal, ResolveError};
use super::scanning::{NotAdmitted, admit_name, candidate, order};
use super::state::{Catalog, CatalogCall, Draft, Phase, Told};
use crate::kernel::{AskId, StepContext};

#[derive(Debug, Clone)]
pub(super) enum FileKnown {
    /// It is this plugin, and usable.
    Usable(Box<ResolvedPlugin>),
    Refused(Refusal),
    Blocked(BlockedBy),
}

impl FileKnown {
    pub(super) fn of(file: &str, told: &Result<Box<Told>, Refusal>, options: &CatalogOptions) -> Self {
        match told {
            Ok(told) if options.blocked.contains(told.plugin.name.as_str()) => Self::Blocked(BlockedBy::Name),
            Ok(told) => {
                let source = PluginSource::External(file.to_owned());
                match usable(candidate(source, told), options) {
                    Ok(resolved) => Self::Usable(Box::new(resolved)),
                    Err(refusal) => Self::Refused(refusal),
                }
            }
            Err(refusal) => Self::Refused(refusal.clone()),
        }
    }

    fn answer(&self, ask: &ResolveFile) -> Result<Box<ResolvedPlugin>, ResolveError> {
        let ResolveFile { plugin, file, .. } = ask;
        match self {
            Self::Usable(resolved) if resolved.info.plugin == *plugin => Ok(resolved.clone()),
            Self::Usable(resolved) => Err(ResolveError::Another {
                plugin: plugin.clone(),
                file: file.clone(),
                told: resolved.info.plugin.clone(),
            }),
            Self::Refused(reason) => Err(ResolveError::Refused {
                plugin: plugin.clone(),
                source_name: PluginSource::External(file.clone()),
                reason: Box::new(reason.clone()),
            }),
            Self::Blocked(by) => Err(ResolveError::Blocked { plugin: plugin.clone(), by: *by }),
        }
    }
}

impl Catalog {
    pub(super) fn file_asked(&mut self, id: AskId, ask: &ResolveFile, cx: &mut StepContext<Self>) {
        let waiting = self.waiting();
        let answer = match &self.phase {
            Phase::Stopping => Err(ResolveError::Stopping { plugin: ask.plugin.clone() }),
            Phase::Sweeping | Phase::Reading | Phase::Probing(_) | Phase::Resting => {
                match self.files.get(&ask.file) {
                    Some(known) if !ask.anew => known.answer(ask),
                    Some(_) | None if waiting >= self.options.limits.waiting_max => {
                        Err(ResolveError::TooMany { waiting })
                    }
                    Some(_) | None => {
                        self.resolving_files.push((id, ask.clone()));
                        self.hurry(&ask.file, cx);
                        return;
                    }
                }
            }
        };
        cx.reply(id, CatalogAnswer::ResolveFile(answer));
    }

    /// Probes a file that a caller waits for: by the scan, ahead of the others, or concurrently.
    fn hurry(&mut self, file: &str, cx: &mut StepContext<Self>) {
        if let Phase::Probing(scan) = &mut self.phase
            && let Some(place) = scan.queue.iter().position(|queued| queued == file)
            && let Some(name) = scan.queue.remove(place)
        {
            self.probe(name, cx);
        } else if !self.is_to_be_asked(file) {
            self.look(file, cx);
        }
    }

    /// Whether a file is being probed already, or will be by the scan in progress.
    fn is_to_be_asked(&self, file: &str) -> bool {
        let by_the_scan = match &self.phase {
            Phase::Sweeping | Phase::Reading => true,
            Phase::Probing(scan) => scan.running.values().any(|name| name == file),
            Phase::Resting | Phase::Stopping => false,
        };
        by_the_scan || self.looks.values().any(|name| name == file)
    }

    /// Probes one file, independent of any scan. Its file type is checked when it is opened.
    fn look(&mut self, file: &str, cx: &mut StepContext<Self>) {
        match admit_name(file, &self.options) {
            Ok(()) => {}
            Err(NotAdmitted::Odd) => {
                return self.file_known(file, FileKnown::Refused(Refusal::OddName), cx);
            }
            Err(NotAdmitted::Blocked(by)) => {
                return self.file_known(file, FileKnown::Blocked(by), cx);
            }
        }
        let key = self.next_key();
        match order(file, key.attempt, &self.options) {
            Some(order) => {
                self.looks.insert(key.attempt, file.to_owned());
                cx.call(key, order.longest(), CatalogCall::Probe(Box::new(order)));
            }
            None => self.file_known(file, FileKnown::Refused(Refusal::OddName), cx),
        }
    }

    /// Stores the result of a file's probe, and answers its waiting callers.
    pub(super) fn file_told(
        &mut self,
        file: &str,
        told: &Result<Box<Told>, Refusal>,
        cx: &mut StepContext<Self>,
    ) {
        let known = FileKnown::of(file, told, &self.options);
        self.file_known(file, known, cx);
    }

    fn file_known(&mut self, file: &str, known: FileKnown, cx: &mut StepContext<Self>) {
        let (served, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.resolving_files).into_iter().partition(|(_, ask)| ask.file == file);
        self.resolving_files = waiting;
        for (id, ask) in served {
            cx.reply(id, CatalogAnswer::ResolveFile(known.answer(&ask)));
        }
        self.files.insert(file.to_owned(), known);
    }

    /// Stores the state of the files that must not be launched, as soon as the directory is read. Files that callers wait
    /// for and that the scan will not probe are probed separately.
    pub(super) fn files_admitted(&mut self, draft: &Draft, cx: &mut StepContext<Self>) {
        for refused in &draft.refused {
            let known = FileKnown::Refused(refused.reason.clone());
            self.file_known(refused.source.name(), known, cx);
        }
        for blocked in &draft.blocked {
            self.file_known(blocked.source.name(), FileKnown::Blocked(blocked.by), cx);
        }
    }

    /// Probes the files that callers wait for.
    pub(super) fn look_for_those_who_wait(&mut self, cx: &mut StepContext<Self>) {
        let files: Vec<String> = self.resolving_files.iter().map(|(_, ask)| ask.file.clone()).collect();
        for file in files {
            if self.resolving_files.iter().any(|(_, ask)| ask.file == file) {
                self.hurry(&file, cx);
            }
        }
    }
}
