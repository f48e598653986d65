//! The decisions of the owner of the processes.

use std::time::Duration;

use super::messages::{
    NoSuchProcess, ProcessReported, ProcessesAnswer, ProcessesAsk, ProcessesNews, ProcessesView, RecallError,
    RecallProcess, Recalled, StopProcess,
};
use super::state::{
    ChildEnded, Entry, Processes, ProcessesCall, ProcessesChange, ProcessesOptions, ProcessesOutcome,
    ProcessesTimer, Sweeping, Waiter,
};
use crate::kernel::{AskId, CallKey, CallLost, Effects, Input, Machine, StopMode};
use crate::process::{ProcessConfig, ProcessName, ProcessPhase, ProcessRecord, ProcessTag};
use crate::vocabulary::{Attempt, Generation, Moment};

/// The deadline of a message to a process actor; it is only sent.
pub(super) const SHORT: Duration = Duration::from_secs(10);
/// The deadline of one search through all processes of the machine, and of ending those that were found.
const SWEEP_DEADLINE: Duration = Duration::from_secs(60);
const SWEEP_PAUSE: Duration = Duration::from_secs(2);
/// How many processes that could not be ended are named.
const LEFT_TOLD_MAX: usize = 16;
/// The deadline of one wait for endings; then it is repeated.
const LONG: Duration = Duration::from_secs(3_600);

impl Machine for Processes {
    const KIND: &'static str = "processes";
    type Config = ProcessesOptions;
    type Image = Vec<ProcessRecord>;
    type Ask = ProcessesAsk;
    type Answer = ProcessesAnswer;
    type Call = ProcessesCall;
    type Outcome = ProcessesOutcome;
    type Timer = ProcessesTimer;
    type Change = ProcessesChange;
    type News = ProcessesNews;
    type View = ProcessesView;

    fn restore(options: &ProcessesOptions, records: Vec<ProcessRecord>, moment: Moment) -> Self {
        let entry = |record: ProcessRecord| {
            (record.name.clone(), Entry::new(record, ProcessPhase::Recalled, moment.now))
        };
        Self {
            options: options.clone(),
            entries: records.into_iter().map(entry).collect(),
            remembered: Default::default(),
            sweeping: Sweeping::UnderWay,
            early: Default::default(),
            is_saving: false,
            stopping: None,
            life: Attempt::new(moment.random >> 16 << 8),
            launches: 0,
        }
    }

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => self.begin(effects),
            Input::Asked { id, ask, .. } => self.asked(*id, ask, moment, effects),
            Input::Returned { call, outcome, .. } => self.returned(call, outcome, moment, effects),
            Input::Elapsed(timer) => self.elapsed(timer, effects),
            Input::StopRequested(mode) => self.stop(*mode, moment, effects),
        }
    }

    fn view(&self) -> ProcessesView {
        ProcessesView {
            reports: self.entries.values().map(Entry::report).collect(),
            settled: self.sweeping == Sweeping::Settled,
        }
    }

    fn stops_within(&self) -> Option<Duration> {
        Some(self.stop_deadline())
    }

    fn is_promise(ask: &ProcessesAsk) -> bool {
        matches!(ask, ProcessesAsk::LaunchProcess(_))
    }

    fn is_new_promise(&self, ask: &ProcessesAsk) -> bool {
        matches!(ask, ProcessesAsk::LaunchProcess(_))
    }

    /// It looks at each process that it reads of, and a launch goes on when its record is on disk.
    fn reads_ahead() -> bool {
        true
    }

    fn awaits_disk(call: &ProcessesCall) -> bool {
        matches!(call, ProcessesCall::AwaitDisk { .. })
    }
}

/// Makes a call. Each names the life it is for, so its key adds nothing.
pub(super) fn make(deadline: Duration, call: ProcessesCall, effects: &mut Effects<Processes>) {
    effects.call(CallKey { generation: Generation::default(), attempt: Attempt::default() }, deadline, call);
}

impl Processes {
    /// Handles the leftovers of an earlier run of the host, or of an earlier life of this machine: one actor per record, and
    /// a sweep for processes without a record.
    fn begin(&mut self, effects: &mut Effects<Self>) {
        make(SHORT, ProcessesCall::Release, effects);
        make(LONG, ProcessesCall::AwaitEndings, effects);
        self.sweep(effects);
        let names: Vec<ProcessName> = self.entries.keys().cloned().collect();
        names.iter().for_each(|name| self.start(name, effects));
    }

    fn sweep(&self, effects: &mut Effects<Self>) {
        let known = self.entries.values().map(|entry| entry.record.tag).collect();
        let names = self.entries.keys().cloned().collect();
        make(SWEEP_DEADLINE, ProcessesCall::Sweep { known, names }, effects);
    }

    /// Starts the actor of a process: to launch it if its spec is known, otherwise to search for it.
    pub(super) fn start(&mut self, name: &ProcessName, effects: &mut Effects<Self>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        self.life = self.life.next();
        entry.life = self.life;
        let config = ProcessConfig { record: entry.record.clone(), spec: entry.spec.clone() };
        make(SHORT, ProcessesCall::Start { life: entry.life, config: Box::new(config) }, effects);
        if let Some(grace) = entry.ending {
            make(SHORT, ProcessesCall::End { life: entry.life, grace }, effects);
        }
        if let Some(mode) = self.stopping {
            make(SHORT, ProcessesCall::Stop { life: entry.life, mode }, effects);
        }
    }

    fn asked(&mut self, id: AskId, ask: &ProcessesAsk, moment: Moment, effects: &mut Effects<Self>) {
        match ask {
            ProcessesAsk::LaunchProcess(ask) => {
                self.launch(id, &ask.name, std::sync::Arc::clone(&ask.spec), moment, effects);
            }
            ProcessesAsk::RecallProcess(ask) => self.recall(id, ask, effects),
            ProcessesAsk::StopProcess(ask) => self.stop_one(id, ask, moment, effects),
            ProcessesAsk::AwaitEnd(ask) => {
                self.wait_for_end(&ask.name, Some(ask.tag), Waiter::End(id), effects);
            }
            ProcessesAsk::ListProcesses(_) => {
                let reports = self.entries.values().map(Entry::report).collect();
                effects.reply(id, ProcessesAnswer::ListProcesses(reports));
            }
            ProcessesAsk::DescribeProcess(ask) => {
                let report = self.entries.get(&ask.name).map(Entry::report);
                effects.reply(id, ProcessesAnswer::DescribeProcess(report));
            }
            ProcessesAsk::ProcessReported(ProcessReported { life, name, news }) => {
                effects.reply(id, ProcessesAnswer::ProcessReported(()));
                if self.entries.get(name).is_some_and(|entry| entry.life == *life) {
                    self.heard(name, news, moment, effects);
                }
            }
        }
    }

    // === Queries ===

    fn waiting(&self) -> usize {
        self.early.len() + self.entries.values().map(|entry| entry.waiters.len()).sum::<usize>()
    }

    fn recall(&mut self, id: AskId, ask: &RecallProcess, effects: &mut Effects<Self>) {
        let waiting = self.waiting();
        let answer = match self.entries.get_mut(&ask.name) {
            Some(entry) => match entry.launched() {
                Some(launched) => Ok(Recalled::Proven(launched)),
                None if waiting < self.options.waiting_max => return entry.waiters.push(Waiter::Recall(id)),
                None => Err(RecallError::TooMany { waiting }),
            },
            None => Ok(match self.remembered.iter().rev().find(|past| past.name == ask.name) {
                Some(past) => {
                    Recalled::Ended { ending: past.ending.clone().map(Box::new), reason: past.reason.clone() }
                }
                None => Recalled::Unknown,
            }),
        };
        effects.reply(id, ProcessesAnswer::RecallProcess(answer));
    }

    fn stop_one(&mut self, id: AskId, ask: &StopProcess, moment: Moment, effects: &mut Effects<Self>) {
        let StopProcess { name, tag, grace } = ask;
        if !self.wait_for_end(name, *tag, Waiter::Stop(id), effects) {
            return;
        }
        let Some(entry) = self.entries.get_mut(name) else { return };
        if entry.is_only_intended() {
            self.withdraw(name, moment, effects);
        } else {
            entry.ending = Some(entry.ending.map_or(*grace, |earlier| earlier.min(*grace)));
            make(SHORT, ProcessesCall::End { life: entry.life, grace: *grace }, effects);
        }
    }

    /// Lets a caller wait for the end of a process. False if it was answered: it has ended, is unknown, or too many wait.
    fn wait_for_end(
        &mut self,
        name: &ProcessName,
        tag: Option<ProcessTag>,
        waiter: Waiter,
        effects: &mut Effects<Self>,
    ) -> bool {
        let waiting = self.waiting();
        let is_meant = |found: ProcessTag| tag.is_none_or(|tag| tag == found);
        let answer = match self.entries.get_mut(name) {
            Some(entry) if is_meant(entry.record.tag) && waiting < self.options.waiting_max => {
                entry.waiters.push(waiter);
                return true;
            }
            Some(entry) if is_meant(entry.record.tag) => Err(NoSuchProcess::TooMany { waiting }),
            Some(_) | None => {
                let past = self.remembered.iter().rev().find(|past| past.name == *name && is_meant(past.tag));
                let unknown = NoSuchProcess::Unknown { name: name.clone(), tag };
                past.and_then(|past| past.ending.clone()).ok_or(unknown)
            }
        };
        match waiter {
            Waiter::Stop(id) => effects.reply(id, ProcessesAnswer::StopProcess(answer)),
            Waiter::End(id) => effects.reply(id, ProcessesAnswer::AwaitEnd(answer)),
            // These wait for more than an end.
            Waiter::Launch(_) | Waiter::Recall(_) => {}
        }
        false
    }

    // === Outcomes of calls ===

    fn returned(
        &mut self,
        call: &ProcessesCall,
        outcome: &Result<ProcessesOutcome, CallLost>,
        moment: Moment,
        effects: &mut Effects<Self>,
    ) {
        match (call, outcome) {
            (ProcessesCall::Sweep { .. }, Ok(ProcessesOutcome::Swept(Ok(_)))) => self.swept(moment, effects),
            (ProcessesCall::Sweep { .. }, Ok(_) | Err(_)) => {
                effects.start_timer(ProcessesTimer::Sweep, moment.now + SWEEP_PAUSE);
            }
            // It was made when everything before it was on disk, whatever came of it.
            (ProcessesCall::AwaitDisk { name, tag }, Ok(_) | Err(_)) => {
                self.on_disk(name, *tag, moment, effects);
            }
            (ProcessesCall::AwaitEndings, outcome) => {
                if let Ok(ProcessesOutcome::Ended(ended)) = outcome {
                    ended.iter().for_each(|ended| self.child_ended(ended, moment, effects));
                }
                make(LONG, ProcessesCall::AwaitEndings, effects);
            }
            // They are only sent; their effects are reported by the actors, or by their endings.
            (
                ProcessesCall::Release
                | ProcessesCall::Start { .. }
                | ProcessesCall::End { .. }
                | ProcessesCall::Stop { .. },
                Ok(_) | Err(_),
            ) => {}
        }
    }

    fn swept(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        if self.sweeping != Sweeping::UnderWay {
            return;
        }
        self.sweeping = Sweeping::Swept;
        for (id, name, spec) in std::mem::take(&mut self.early) {
            self.launch(id, &name, spec, moment, effects);
        }
        self.settle(effects);
    }

    /// Publishes that all leftovers are settled, when they are.
    pub(super) fn settle(&mut self, effects: &mut Effects<Self>) {
        let is_settled = |entry: &Entry| entry.phase != ProcessPhase::Recalled;
        if self.sweeping == Sweeping::Swept && self.entries.values().all(is_settled) {
            self.sweeping = Sweeping::Settled;
            effects.publish(ProcessesNews::Settled);
        }
    }

    /// An actor that ended without final news has crashed. Its record finds the process, alive or dead.
    fn child_ended(&mut self, ended: &ChildEnded, moment: Moment, effects: &mut Effects<Self>) {
        let backoff = self.options.restart_backoff;
        let Some(entry) = self.entries.get_mut(&ended.name) else { return };
        if entry.life != ended.life {
            return;
        }
        entry.spec = None;
        entry.phase = ProcessPhase::Recalled;
        entry.has_said_ready = false;
        entry.since = moment.now;
        let pause = entry.restarts.failed(&backoff, moment);
        effects.publish(ProcessesNews::Changed(entry.report()));
        effects.start_timer(ProcessesTimer::Restart(ended.name.clone()), moment.now + pause);
    }

    fn elapsed(&mut self, timer: &ProcessesTimer, effects: &mut Effects<Self>) {
        match timer {
            ProcessesTimer::Save => self.save(effects),
            ProcessesTimer::Restart(name) => self.start(name, effects),
            // A detached process has its record and no entry any more: the sweep would take it for unknown.
            ProcessesTimer::Sweep if self.stopping.is_some() => {}
            ProcessesTimer::Sweep => self.sweep(effects),
            ProcessesTimer::StopDeadline => {
                // A process that has not ended keeps its record, and the next run of the host continues with it.
                self.save(effects);
                match self.left_behind() {
                    Some(left) => effects.fail(left),
                    None => effects.stop(),
                }
            }
        }
    }

    fn save(&mut self, effects: &mut Effects<Self>) {
        self.is_saving = false;
        let behind = self.entries.values_mut().filter_map(|entry| {
            let is_behind = std::mem::take(&mut entry.is_behind);
            is_behind.then(|| entry.record.clone())
        });
        let records: Vec<ProcessRecord> = behind.collect();
        if !records.is_empty() {
            effects.record(ProcessesChange::Keep(records));
        }
    }

    // === The end of the host ===

    fn stop(&mut self, mode: StopMode, moment: Moment, effects: &mut Effects<Self>) {
        self.stopping = Some(mode);
        for (id, name, _) in std::mem::take(&mut self.early) {
            self.refuse_stopping(id, &name, effects);
        }
        let intended = self.entries.iter().filter(|(_, entry)| entry.is_only_intended());
        for name in intended.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.withdraw(&name, moment, effects);
        }
        for entry in self.entries.values() {
            make(SHORT, ProcessesCall::Stop { life: entry.life, mode }, effects);
        }
        effects.start_timer(ProcessesTimer::StopDeadline, moment.now + self.stop_deadline());
        self.end_if_empty(effects);
    }

    fn stop_deadline(&self) -> Duration {
        let graces = self.entries.values().map(|entry| entry.record.stop_grace);
        graces.max().unwrap_or(Duration::ZERO).saturating_add(self.options.stop_margin)
    }

    /// The processes that could not be ended, by name and PID. A pending start ends with its actor (PRC-02).
    fn left_behind(&self) -> Option<String> {
        let left = self.entries.values().filter(|entry| entry.phase != ProcessPhase::Intended);
        let left: Vec<String> = left.map(Entry::name_and_pid).collect();
        let told = left.iter().take(LEFT_TOLD_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        match left.len().saturating_sub(LEFT_TOLD_MAX) {
            0 if left.is_empty() => None,
            0 => Some(format!("processes could not be ended: {told}")),
            more => Some(format!("processes could not be ended: {told} and {more} more")),
        }
    }

    pub(super) fn end_if_empty(&self, effects: &mut Effects<Self>) {
        if self.stopping.is_some() && self.entries.is_empty() {
            effects.stop();
        }
    }
}
