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
use crate::kernel::{
    AskId, CallKey, CallLost, Input, Machine, StepContext, StopMode, await_endings_again, await_news,
};
use crate::process::{ProcessConfig, ProcessName, ProcessPhase, ProcessRecord, ProcessTag};
use crate::vocabulary::{Attempt, Generation, Moment};

/// The deadline of a message to a process actor; it is only sent.
pub(super) const SHORT: Duration = Duration::from_secs(10);
/// The deadline of one search through all processes of the machine, and of ending those that were found.
const SWEEP_DEADLINE: Duration = Duration::from_secs(60);
const SWEEP_PAUSE: Duration = Duration::from_secs(2);
/// The maximum number of processes in the report of those that could not be ended.
const LEFT_TOLD_MAX: usize = 16;

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

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.begin(cx),
            Input::Asked { id, ask, .. } => self.asked(*id, ask, cx),
            Input::Returned { call, outcome, .. } => self.returned(call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(mode) => self.stop(*mode, cx),
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

    /// It checks each process of the records that it reads, and a launch continues when its record is on disk.
    fn reads_ahead() -> bool {
        true
    }

    fn awaits_disk(call: &ProcessesCall) -> bool {
        matches!(call, ProcessesCall::AwaitDisk { .. })
    }
}

/// Makes a call. Each names the life it is for, so its key adds nothing.
pub(super) fn make(deadline: Duration, call: ProcessesCall, cx: &mut StepContext<Processes>) {
    cx.call(CallKey { generation: Generation::default(), attempt: Attempt::default() }, deadline, call);
}

impl Processes {
    /// Handles the leftovers of an earlier run of the host, or of an earlier life of this machine: one actor per record, and
    /// a sweep for processes without a record.
    fn begin(&mut self, cx: &mut StepContext<Self>) {
        make(SHORT, ProcessesCall::Release, cx);
        await_news(ProcessesCall::AwaitEndings, cx);
        self.sweep(cx);
        let names: Vec<ProcessName> = self.entries.keys().cloned().collect();
        names.iter().for_each(|name| self.start(name, cx));
    }

    fn sweep(&self, cx: &mut StepContext<Self>) {
        let known = self.entries.values().map(|entry| entry.record.tag).collect();
        let names = self.entries.keys().cloned().collect();
        make(SWEEP_DEADLINE, ProcessesCall::Sweep { known, names }, cx);
    }

    /// Starts the actor of a process: to launch it if its spec is known, otherwise to search for it.
    pub(super) fn start(&mut self, name: &ProcessName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        self.life = self.life.next();
        entry.life = self.life;
        let config = ProcessConfig { record: entry.record.clone(), spec: entry.spec.clone() };
        make(SHORT, ProcessesCall::Start { life: entry.life, config: Box::new(config) }, cx);
        if let Some(grace) = entry.ending {
            make(SHORT, ProcessesCall::End { life: entry.life, grace }, cx);
        }
        if let Some(mode) = self.stopping {
            make(SHORT, ProcessesCall::Stop { life: entry.life, mode }, cx);
        }
    }

    fn asked(&mut self, id: AskId, ask: &ProcessesAsk, cx: &mut StepContext<Self>) {
        match ask {
            ProcessesAsk::LaunchProcess(ask) => {
                self.launch(id, &ask.name, std::sync::Arc::clone(&ask.spec), cx);
            }
            ProcessesAsk::RecallProcess(ask) => self.recall(id, ask, cx),
            ProcessesAsk::StopProcess(ask) => self.stop_one(id, ask, cx),
            ProcessesAsk::AwaitEnd(ask) => {
                self.wait_for_end(&ask.name, Some(ask.tag), Waiter::End(id), cx);
            }
            ProcessesAsk::ListProcesses(_) => {
                let reports = self.entries.values().map(Entry::report).collect();
                cx.reply(id, ProcessesAnswer::ListProcesses(reports));
            }
            ProcessesAsk::DescribeProcess(ask) => {
                let report = self.entries.get(&ask.name).map(Entry::report);
                cx.reply(id, ProcessesAnswer::DescribeProcess(report));
            }
            ProcessesAsk::ProcessReported(ProcessReported { life, name, news }) => {
                cx.reply(id, ProcessesAnswer::ProcessReported(()));
                if self.entries.get(name).is_some_and(|entry| entry.life == *life) {
                    self.heard(name, news, cx);
                }
            }
        }
    }

    // === Queries ===

    fn waiting(&self) -> usize {
        self.early.len() + self.entries.values().map(|entry| entry.waiters.len()).sum::<usize>()
    }

    fn recall(&mut self, id: AskId, ask: &RecallProcess, cx: &mut StepContext<Self>) {
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
        cx.reply(id, ProcessesAnswer::RecallProcess(answer));
    }

    fn stop_one(&mut self, id: AskId, ask: &StopProcess, cx: &mut StepContext<Self>) {
        let StopProcess { name, tag, grace } = ask;
        if !self.wait_for_end(name, *tag, Waiter::Stop(id), cx) {
            return;
        }
        let Some(entry) = self.entries.get_mut(name) else { return };
        if entry.is_only_intended() {
            self.withdraw(name, cx);
        } else {
            entry.ending = Some(entry.ending.map_or(*grace, |earlier| earlier.min(*grace)));
            make(SHORT, ProcessesCall::End { life: entry.life, grace: *grace }, cx);
        }
    }

    /// Registers a caller that waits for the end of a process. False if it was answered: it has ended, is unknown, or too many wait.
    fn wait_for_end(
        &mut self,
        name: &ProcessName,
        tag: Option<ProcessTag>,
        waiter: Waiter,
        cx: &mut StepContext<Self>,
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
            Waiter::Stop(id) => cx.reply(id, ProcessesAnswer::StopProcess(answer)),
            Waiter::End(id) => cx.reply(id, ProcessesAnswer::AwaitEnd(answer)),
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
        cx: &mut StepContext<Self>,
    ) {
        match (call, outcome) {
            (ProcessesCall::Sweep { .. }, Ok(ProcessesOutcome::Swept(Ok(_)))) => self.swept(cx),
            (ProcessesCall::Sweep { .. }, Ok(_) | Err(_)) => {
                cx.start_timer(ProcessesTimer::Sweep, cx.now() + SWEEP_PAUSE);
            }
            // It was made after everything before it was on disk, regardless of its result.
            (ProcessesCall::AwaitDisk { name, tag }, Ok(_) | Err(_)) => {
                self.on_disk(name, *tag, cx);
            }
            (ProcessesCall::AwaitEndings, outcome) => {
                if let Ok(ProcessesOutcome::Ended(ended)) = outcome {
                    ended.iter().for_each(|ended| self.child_ended(ended, cx));
                }
                let again = (ProcessesCall::AwaitEndings, ProcessesTimer::AwaitEndings);
                await_endings_again(outcome, again, cx);
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

    fn swept(&mut self, cx: &mut StepContext<Self>) {
        if self.sweeping != Sweeping::UnderWay {
            return;
        }
        self.sweeping = Sweeping::Swept;
        for (id, name, spec) in std::mem::take(&mut self.early) {
            self.launch(id, &name, spec, cx);
        }
        self.settle(cx);
    }

    /// Publishes that all leftovers are settled, when they are.
    pub(super) fn settle(&mut self, cx: &mut StepContext<Self>) {
        let is_settled = |entry: &Entry| entry.phase != ProcessPhase::Recalled;
        if self.sweeping == Sweeping::Swept && self.entries.values().all(is_settled) {
            self.sweeping = Sweeping::Settled;
            cx.publish(ProcessesNews::Settled);
        }
    }

    /// An actor that ended without final news has crashed. Its record finds the process, alive or dead.
    fn child_ended(&mut self, ended: &ChildEnded, cx: &mut StepContext<Self>) {
        let backoff = self.options.restart_backoff;
        let Some(entry) = self.entries.get_mut(&ended.name) else { return };
        if entry.life != ended.life {
            return;
        }
        entry.spec = None;
        entry.phase = ProcessPhase::Recalled;
        entry.has_said_ready = false;
        entry.since = cx.now();
        let pause = entry.restarts.failed(&backoff, cx.moment());
        cx.publish(ProcessesNews::Changed(entry.report()));
        cx.start_timer(ProcessesTimer::Restart(ended.name.clone()), cx.now() + pause);
    }

    fn elapsed(&mut self, timer: &ProcessesTimer, cx: &mut StepContext<Self>) {
        match timer {
            ProcessesTimer::AwaitEndings => await_news(ProcessesCall::AwaitEndings, cx),
            ProcessesTimer::Save => self.save(cx),
            ProcessesTimer::Restart(name) => self.start(name, cx),
            // A detached process has its record and no entry: the sweep would treat it as unknown.
            ProcessesTimer::Sweep if self.stopping.is_some() => {}
            ProcessesTimer::Sweep => self.sweep(cx),
            ProcessesTimer::StopDeadline => {
                // A process that has not ended keeps its record, and the next run of the host continues with it.
                self.save(cx);
                match self.left_behind() {
                    Some(left) => cx.fail(left),
                    None => cx.stop(),
                }
            }
        }
    }

    fn save(&mut self, cx: &mut StepContext<Self>) {
        self.is_saving = false;
        let behind = self.entries.values_mut().filter_map(|entry| {
            let is_behind = std::mem::take(&mut entry.is_behind);
            is_behind.then(|| entry.record.clone())
        });
        let records: Vec<ProcessRecord> = behind.collect();
        if !records.is_empty() {
            cx.record(ProcessesChange::Keep(records));
        }
    }

    // === The end of the host ===

    fn stop(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        self.stopping = Some(mode);
        for (id, name, _) in std::mem::take(&mut self.early) {
            self.refuse_stopping(id, &name, cx);
        }
        let intended = self.entries.iter().filter(|(_, entry)| entry.is_only_intended());
        for name in intended.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.withdraw(&name, cx);
        }
        for entry in self.entries.values() {
            make(SHORT, ProcessesCall::Stop { life: entry.life, mode }, cx);
        }
        cx.start_timer(ProcessesTimer::StopDeadline, cx.now() + self.stop_deadline());
        self.end_if_empty(cx);
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

    pub(super) fn end_if_empty(&self, cx: &mut StepContext<Self>) {
        if self.stopping.is_some() && self.entries.is_empty() {
            cx.stop();
        }
    }
}
