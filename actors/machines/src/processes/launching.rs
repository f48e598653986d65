//! Launches a process for the owner of the processes: the intent first (write-ahead), the answer last (PRC-09).

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::behaviour::{SHORT, make};
use super::messages::{ProcessesAnswer, ProcessesNews};
use super::state::{Entry, Processes, ProcessesCall, ProcessesChange, Sweeping, Waiter};
use crate::kernel::{AskId, Gate, StepContext};
use crate::process::{
    LaunchError, Launched, Over, ProcessEnding, ProcessName, ProcessPhase, ProcessRecord, ProcessSpec,
    ProcessTag, Why,
};
use crate::vocabulary::Moment;

impl Entry {
    /// Whether a launch must wait for it: it is a leftover that is being searched for, or is being ended (PRC-03).
    pub(super) fn is_unsettled(&self) -> bool {
        match self.phase {
            ProcessPhase::Recalled => true,
            ProcessPhase::Stopping | ProcessPhase::Clearing => self.spec.is_none() && !self.is_adopted,
            ProcessPhase::Intended | ProcessPhase::Spawned | ProcessPhase::Ready | ProcessPhase::Ended => {
                false
            }
        }
    }

    pub(super) fn launched(&self) -> Option<Launched> {
        if self.phase != ProcessPhase::Ready {
            return None;
        }
        Some(Launched {
            name: self.record.name.clone(),
            tag: self.record.tag,
            pid: self.pid()?,
            started_at: self.record.started_at,
            handshake: self.record.handshake.clone(),
            is_adopted: self.is_adopted,
            spec_digest: Some(self.record.spec_digest),
        })
    }
}

impl Processes {
    pub(super) fn launch(
        &mut self,
        id: AskId,
        name: &ProcessName,
        spec: Arc<ProcessSpec>,
        cx: &mut StepContext<Self>,
    ) {
        if self.stopping.is_some() {
            return self.refuse_stopping(id, name, cx);
        }
        if self.sweeping == Sweeping::UnderWay && self.early.len() < self.options.processes_max {
            return self.early.push_back((id, name.clone(), spec));
        }
        if let Some(error) = self.refusal(name, &spec) {
            return refuse(id, error, cx);
        }
        match self.entries.get_mut(name) {
            Some(entry) if entry.is_unsettled() && entry.next.is_none() => {
                entry.next = Some((id, spec));
            }
            Some(entry) => {
                refuse(id, LaunchError::Occupied { name: name.clone(), pid: entry.pid() }, cx);
            }
            None => self.intend(id, name, spec, cx),
        }
    }

    fn refusal(&self, name: &ProcessName, spec: &ProcessSpec) -> Option<LaunchError> {
        if let Some(Err(source)) = spec.handshake.as_ref().map(|terms| terms.check()) {
            return Some(LaunchError::Terms { name: name.clone(), source });
        }
        let processes = self.entries.len() + self.early.len();
        let is_one_too_many = processes >= self.options.processes_max && !self.entries.contains_key(name);
        is_one_too_many.then(|| LaunchError::TooMany { name: name.clone(), processes })
    }

    /// Writes the intent; the process is started when it is on disk.
    fn intend(&mut self, id: AskId, name: &ProcessName, spec: Arc<ProcessSpec>, cx: &mut StepContext<Self>) {
        let record = ProcessRecord::intent(name.clone(), self.draw_tag(name, cx.moment()), &spec, cx.now());
        cx.write(Gate::Promises, ProcessesChange::Keep(vec![record.clone()]));
        await_disk(&record, cx);
        let mut entry = Entry::new(record, ProcessPhase::Intended, cx.now());
        entry.spec = Some(spec);
        entry.waiters.push(Waiter::Launch(id));
        cx.publish(ProcessesNews::Changed(entry.report()));
        self.entries.insert(name.clone(), entry);
    }

    /// The record of a launch is on disk: its process is started, or was ready and is now reported as ready.
    pub(super) fn on_disk(&mut self, name: &ProcessName, tag: ProcessTag, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(name).filter(|entry| entry.record.tag == tag) else { return };
        if entry.is_only_intended() {
            self.start(name, cx);
        } else if entry.has_said_ready
            && matches!(entry.phase, ProcessPhase::Spawned | ProcessPhase::Recalled)
        {
            self.note_ready(name, cx);
        }
    }

    /// Ends a launch whose intent is not on disk.
    pub(super) fn withdraw(&mut self, name: &ProcessName, cx: &mut StepContext<Self>) {
        let error = LaunchError::Stopped { name: name.clone() };
        self.over(name, &Over::NotStarted(error), cx);
    }

    /// An unpredictable and unique tag, derived from the secret of this start, the time, a random number and a counter.
    pub(super) fn draw_tag(&mut self, name: &ProcessName, moment: Moment) -> ProcessTag {
        self.launches += 1;
        let mut hasher = Sha256::new();
        hasher.update(self.options.secret);
        hasher.update(moment.now.since_epoch().as_nanos().to_le_bytes());
        hasher.update(moment.random.to_le_bytes());
        hasher.update(self.launches.to_le_bytes());
        hasher.update(name.as_str());
        let digest: [u8; 32] = hasher.finalize().into();
        let (tag, _) = digest.split_at(16);
        ProcessTag::new(tag.try_into().expect("it was split at its length"))
    }

    pub(super) fn refuse_stopping(&self, id: AskId, name: &ProcessName, cx: &mut StepContext<Self>) {
        refuse(id, LaunchError::Stopping { name: name.clone() }, cx);
    }
}

/// Waits until this record is on disk, as it was last written: [`on_disk`](Processes::on_disk) continues with it.
pub(super) fn await_disk(record: &ProcessRecord, cx: &mut StepContext<Processes>) {
    let (name, tag) = (record.name.clone(), record.tag);
    make(SHORT, ProcessesCall::AwaitDisk { name, tag }, cx);
}

pub(super) fn refuse(id: AskId, error: LaunchError, cx: &mut StepContext<Processes>) {
    cx.reply(id, ProcessesAnswer::LaunchProcess(Err(error)));
}

/// The error for a caller whose process ended before it was ready.
pub(super) fn failed(ending: &ProcessEnding, why: &Why, diagnosis: &[String]) -> LaunchError {
    let (name, diagnosis) = (ending.name.clone(), diagnosis.to_vec());
    let ending = Box::new(ending.clone());
    match why {
        Why::Itself => LaunchError::Ended { name, ending, diagnosis },
        Why::TimedOut(waited) => LaunchError::TimedOut { name, waited: *waited, ending, diagnosis },
        Why::Handshake(source) => LaunchError::Handshake { name, source: source.clone(), ending, diagnosis },
        Why::Program(source) => LaunchError::Executable { name, source: source.clone() },
        Why::Asked => LaunchError::Stopped { name },
        Why::Left(reason) | Why::NotProven(reason) => LaunchError::Failed { name, reason: reason.clone() },
    }
}
