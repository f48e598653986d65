//! Makes one scan: which plugins exist, which may be probed, and their answers.

use super::behaviour::CALL_GRACE;
use super::choosing::choose;
use super::messages::{BlockedBy, BlockedPlugin, Listing, PluginSource, RefusedPlugin};
use super::options::{Allowed, CatalogOptions};
use super::refusal::{DirectoryError, Refusal};
use super::spec::external_spec;
use super::state::{
    Candidate, CandidateSchema, Catalog, CatalogCall, DirectoryEntry, Draft, EntryKind, Phase, ProbeOrder,
    Scan, Told,
};
use crate::kernel::{CallLost, StepContext};
use crate::process::{Lifetime, ProcessName, ProcessSpec};
use crate::vocabulary::Attempt;

/// The length limit of a file name in the plugin directory: it becomes part of a process name.
const FILE_NAME_BYTES_MAX: usize = 100;

impl Catalog {
    pub(super) fn begin_scan(&mut self, cx: &mut StepContext<Self>) {
        let key = self.awaited_key();
        self.phase = Phase::Reading;
        let limits = self.options.limits;
        match self.options.directory.clone() {
            Some(directory) => {
                let call = CatalogCall::ReadDirectory { directory, files_max: limits.files_max };
                cx.call(key, limits.directory_deadline, call);
            }
            None => self.directory_read(&Ok(Vec::new()), cx),
        }
    }

    pub(super) fn directory_read(
        &mut self,
        read: &Result<Vec<DirectoryEntry>, DirectoryError>,
        cx: &mut StepContext<Self>,
    ) {
        let mut draft = internal_draft(&self.options);
        let (mut queue, mut names) = (Vec::new(), Vec::new());
        match read {
            Ok(entries) => {
                for entry in entries {
                    names.push(&*entry.name);
                    if admit(entry, &self.options, &mut draft) {
                        queue.push(entry.name.clone());
                    }
                }
                refuse_absent(&names, &self.options, &mut draft);
            }
            // The directory was not read, so the former results are kept.
            Err(error) if self.listing.scanned_at.is_some() => {
                let listing = Listing { directory_error: Some(error.clone()), ..self.listing.clone() };
                self.conclude(listing, cx);
                return;
            }
            Err(error) => draft.directory_error = Some(error.clone()),
        }
        queue.sort();
        self.files_admitted(&draft, cx);
        self.phase =
            Phase::Probing(Box::new(Scan { queue: queue.into(), running: Default::default(), draft }));
        self.look_for_those_who_wait(cx);
        self.probe_next(cx);
    }

    pub(super) fn directory_lost(&mut self, lost: &CallLost, cx: &mut StepContext<Self>) {
        let directory = self.options.directory.clone().unwrap_or_default();
        let error = match lost {
            CallLost::DeadlineExceeded(waited) => DirectoryError::TimedOut { directory, waited: *waited },
            CallLost::Crashed(_) | CallLost::Busy(_) => {
                DirectoryError::System { directory, message: lost.to_string() }
            }
        };
        self.directory_read(&Err(error), cx);
    }

    /// Starts probes up to the limit, and ends the scan when all are done.
    fn probe_next(&mut self, cx: &mut StepContext<Self>) {
        let options = std::sync::Arc::clone(&self.options);
        loop {
            let Phase::Probing(scan) = &mut self.phase else { return };
            if scan.running.len() >= options.limits.probes_at_once.max(1) {
                return;
            }
            let Some(name) = scan.queue.pop_front() else {
                if scan.running.is_empty() {
                    let draft = std::mem::take(&mut scan.draft);
                    self.conclude(choose(draft, &options, cx.now()), cx);
                }
                return;
            };
            self.probe(name, cx);
        }
    }

    /// Probes one file as part of the scan.
    pub(super) fn probe(&mut self, name: String, cx: &mut StepContext<Self>) {
        let key = self.next_key();
        let order = order(&name, key.attempt, &self.options);
        let Phase::Probing(scan) = &mut self.phase else { return };
        match order {
            Some(order) => {
                scan.running.insert(key.attempt, name);
                cx.call(key, order.longest(), CatalogCall::Probe(Box::new(order)));
            }
            None => scan.draft.refuse(PluginSource::External(name), Refusal::OddName),
        }
    }

    pub(super) fn probed(
        &mut self,
        attempt: Attempt,
        told: &Result<Box<Told>, Refusal>,
        cx: &mut StepContext<Self>,
    ) {
        let Phase::Probing(scan) = &mut self.phase else { return };
        // The outcome of an earlier scan is stale.
        let Some(name) = scan.running.remove(&attempt) else { return };
        self.file_told(&name, told, cx);
        let Phase::Probing(scan) = &mut self.phase else { return };
        let source = PluginSource::External(name);
        match told {
            Ok(told) => scan.draft.candidates.push(candidate(source, told)),
            Err(refusal) => scan.draft.refuse(source, refusal.clone()),
        }
        self.probe_next(cx);
    }
}

impl Draft {
    fn refuse(&mut self, source: PluginSource, reason: Refusal) {
        self.refused.push(RefusedPlugin { source, plugin: None, reason });
    }

    fn block(&mut self, source: PluginSource, by: BlockedBy) {
        self.blocked.push(BlockedPlugin { source, plugin: None, by });
    }
}

impl ProbeOrder {
    /// The maximal duration of a probe: the sum of its timeouts.
    pub(super) fn longest(&self) -> std::time::Duration {
        let calls = self.call_deadline.saturating_mul(3).saturating_add(self.polite_deadline);
        let ending = self.stop_grace.saturating_mul(2).saturating_add(CALL_GRACE);
        self.spec.start_timeout.saturating_add(calls).saturating_add(ending)
    }
}

/// Whether a file of the directory may be launched (SEC-05). Otherwise records the reason.
fn admit(entry: &DirectoryEntry, options: &CatalogOptions, draft: &mut Draft) -> bool {
    let source = PluginSource::External(entry.name.clone());
    match (admit_name(&entry.name, options), entry.kind) {
        (Ok(()), EntryKind::Program) => return true,
        (Ok(()), EntryKind::Inert) => draft.refuse(source, Refusal::NotExecutable),
        (Ok(()), EntryKind::Link) => draft.refuse(source, Refusal::Link),
        (Ok(()), EntryKind::Other) => draft.refuse(source, Refusal::NotAFile),
        (Err(NotAdmitted::Odd), _) => draft.refuse(source, Refusal::OddName),
        (Err(NotAdmitted::Blocked(by)), _) => draft.block(source, by),
    }
    false
}

/// Why a file is not launched, independent of its content.
#[derive(Debug, Clone, Copy)]
pub(super) enum NotAdmitted {
    Odd,
    Blocked(BlockedBy),
}

/// Whether a file of this name may be launched.
pub(super) fn admit_name(name: &str, options: &CatalogOptions) -> Result<(), NotAdmitted> {
    let is_allowed = match &options.allowed {
        Allowed::Everything => true,
        Allowed::Only(names) => names.contains(name) || options.entries.contains_key(name),
    };
    match (is_plain(name), options.blocked.contains(name), is_allowed) {
        (false, _, _) => Err(NotAdmitted::Odd),
        (true, true, _) => Err(NotAdmitted::Blocked(BlockedBy::File)),
        (true, false, false) => Err(NotAdmitted::Blocked(BlockedBy::NotAllowed)),
        (true, false, true) => Ok(()),
    }
}

fn is_plain(name: &str) -> bool {
    name.len() <= FILE_NAME_BYTES_MAX && ProcessName::new(name).is_ok()
}

/// Refuses configured plugins that do not exist.
fn refuse_absent(names: &[&str], options: &CatalogOptions, draft: &mut Draft) {
    let internal = || options.internal.iter().map(|internal| internal.plugin.name.as_str());
    for name in options.entries.keys() {
        if !names.contains(&&**name) && !internal().any(|internal| internal == name) {
            draft.refuse(PluginSource::External(name.clone()), Refusal::Absent);
        }
    }
}

fn internal_draft(options: &CatalogOptions) -> Draft {
    let mut draft = Draft::default();
    for internal in &options.internal {
        let source = PluginSource::Internal(internal.plugin.name.to_string());
        if options.blocked.contains(internal.plugin.name.as_str()) {
            let (plugin, by) = (Some(internal.plugin.clone()), BlockedBy::File);
            draft.blocked.push(BlockedPlugin { source, plugin, by });
            continue;
        }
        draft.candidates.push(Candidate {
            source,
            plugin: internal.plugin.clone(),
            version: internal.version.clone(),
            api_versions: internal.api_versions.clone(),
            schema: internal.schema.clone().map_or(CandidateSchema::Nothing, CandidateSchema::Given),
        });
    }
    draft
}

pub(super) fn candidate(source: PluginSource, told: &Told) -> Candidate {
    Candidate {
        source,
        plugin: told.plugin.clone(),
        version: told.version.clone(),
        api_versions: told.api_versions.clone(),
        schema: match &told.schema {
            Some(spec) => CandidateSchema::Told(Box::new(spec.clone())),
            None => CandidateSchema::Nothing,
        },
    }
}

/// The order to probe a file. `None` if no process could have its name, which was checked before.
pub(super) fn order(file: &str, attempt: Attempt, options: &CatalogOptions) -> Option<ProbeOrder> {
    let limits = &options.limits;
    let name = ProcessName::new(format!("catalog-{attempt}-{file}")).ok()?;
    let entry = options.entries.get(file);
    let stop_grace = entry.and_then(|entry| entry.stop_grace).unwrap_or(limits.stop_grace);
    // Its output is logged, and part of the error if it fails; it is not kept on disk.
    let spec = ProcessSpec {
        lifetime: Lifetime::Bound,
        stop_grace,
        output_kept_bytes: 0,
        ..external_spec(file, options)
    };
    Some(ProbeOrder {
        name,
        spec,
        call_deadline: limits.call_deadline,
        polite_deadline: limits.polite_deadline,
        stop_grace,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalog::PluginEntry;

    #[test]
    fn a_temporary_instance_ends_with_the_host_and_leaves_nothing_on_disk_prc_02() {
        let mut options = CatalogOptions::new();
        options.limits.stop_grace = Duration::from_secs(3);
        let ordered = |options: &CatalogOptions| order("exec", Attempt::new(7), options).unwrap();
        let usual = ordered(&options);
        assert_eq!((usual.spec.lifetime, usual.spec.output_kept_bytes), (Lifetime::Bound, 0));
        assert_eq!([usual.stop_grace, usual.spec.stop_grace], [Duration::from_secs(3); 2]);
        let entry = PluginEntry { stop_grace: Some(Duration::from_secs(9)), ..PluginEntry::new() };
        options.entries.insert("exec".to_owned(), entry);
        let own = ordered(&options);
        assert_eq!([own.stop_grace, own.spec.stop_grace], [Duration::from_secs(9); 2]);
    }

    #[test]
    fn a_probe_may_take_as_long_as_there_is_time() {
        let mut options = CatalogOptions::new();
        let usual = order("exec", Attempt::new(7), &options).unwrap().longest();
        // The handshake, three answers, the shutdown call, twice the grace, and a margin.
        assert_eq!(usual, Duration::from_secs(60 + 3 * 10 + 2 + 2 * 5) + CALL_GRACE);
        options.limits.call_deadline = Duration::MAX;
        options.limits.stop_grace = Duration::MAX;
        assert_eq!(order("exec", Attempt::new(7), &options).unwrap().longest(), Duration::MAX);
    }
}
