//! Answers the host's calls on behalf of the driver and the machine's processes.

use std::time::Duration;

use callboard_actors::driver::{TaskEnd, TaskExit, TaskId};
use callboard_actors::drivers::NotDispensed;
use callboard_actors::tasks::{
    Asked, Found, Heard, KeptHandle, RunKey, Started, Swept, TasksCall, TasksOutcome, Trouble, Waited,
    found_without, is_proof, may_still_begin,
};
use callboard_actors::vocabulary::{AllocationId, Timestamp};

use super::environment::{Known, Standing};
use super::event::Question;
use super::host::Host;
use crate::Law;

impl Host {
    /// The open calls about runs, with the number of their task and whether they are due: the first of each kind.
    pub(super) fn questions(&self) -> Vec<(Question, u8, bool)> {
        let mut questions: Vec<(Question, u8, bool)> = Vec::new();
        for (number, call) in self.actor.calls() {
            let Some((question, task)) = self.question(call) else { continue };
            if !questions.iter().any(|(other, of, _)| (*other, *of) == (question, task)) {
                questions.push((question, task, self.is_due(number, call)));
            }
        }
        questions
    }

    fn question(&self, call: &TasksCall) -> Option<(Question, u8)> {
        let name = &call.run()?.name;
        let task = self.names.iter().position(|other| other == name)?;
        Some((Question::of(call)?, u8::try_from(task).unwrap_or(u8::MAX)))
    }

    /// Whether a start has reached a process that is still busy with it.
    pub(super) fn is_busy_with(&self, task: u8) -> bool {
        let Some((number, TasksCall::Start(run, _))) = self.open(Question::Start, task) else { return false };
        self.sent.contains(&number) && self.environment.works().iter().any(|work| work.run == run)
    }

    fn is_due(&self, number: u64, call: &TasksCall) -> bool {
        match call {
            // Time decides a start that waits for its driver.
            TasksCall::Start(run, _) => {
                self.sent.contains(&number) && !self.environment.works().iter().any(|work| work.run == *run)
            }
            TasksCall::Wait(run) => !self.environment.says_runs(&run.id),
            _ => true,
        }
    }

    /// The first open call of a kind about a task.
    fn open(&self, question: Question, task: u8) -> Option<(u64, TasksCall)> {
        let is_it = |call: &TasksCall| self.question(call) == Some((question, task));
        self.actor.calls().find(|(_, call)| is_it(call)).map(|(number, call)| (number, call.clone()))
    }

    /// Answers a call correctly.
    pub(super) fn answer(&mut self, now: Timestamp, question: Question, task: u8) {
        let Some((number, call)) = self.open(question, task) else { return };
        let outcome = match &call {
            TasksCall::Start(..) => {
                TasksOutcome::Started(Started::Unclear(Trouble::absent("the driver ended in StartTask")))
            }
            TasksCall::Recover(run, ..) => TasksOutcome::Recovered(self.recover(run)),
            TasksCall::Inspect(run) => TasksOutcome::Inspected(self.inspect(run)),
            TasksCall::ReplaceDriver(run) => TasksOutcome::DriverReplaced(self.replace(run)),
            TasksCall::Wait(run) => {
                let known = |exit| Waited { exit, recorded: None };
                TasksOutcome::Waited(self.wait(run).map(known))
            }
            TasksCall::Stop { run, .. } => TasksOutcome::StopTaken(self.stop(run)),
            TasksCall::Destroy(run) => TasksOutcome::Destroyed(self.destroy(run)),
            TasksCall::Sweep { run, driver, .. } => TasksOutcome::Swept(self.sweep(now, run, *driver)),
            _ => return,
        };
        self.returned(now, number, outcome);
    }

    /// Fails a call: an error occurs between host and driver.
    pub(super) fn trouble(&mut self, now: Timestamp, question: Question, task: u8) {
        let Some((number, call)) = self.open(question, task) else { return };
        if let TasksCall::Start(run, _) = call {
            self.environment.tried(run.name);
        }
        let trouble = Trouble::passing("no answer in time");
        let outcome = match question {
            Question::Start => TasksOutcome::Started(Started::Unclear(trouble)),
            Question::Recover => TasksOutcome::Recovered(Err(trouble)),
            Question::Inspect => TasksOutcome::Inspected(Err(trouble)),
            Question::Replace => TasksOutcome::DriverReplaced(Err(trouble)),
            Question::Wait => TasksOutcome::Waited(Err(trouble)),
            Question::Stop => TasksOutcome::StopTaken(Err(trouble)),
            Question::Destroy => TasksOutcome::Destroyed(Err(trouble)),
            Question::Sweep => TasksOutcome::Swept(Err(trouble)),
        };
        self.returned(now, number, outcome);
    }

    // === The driver's actions ===

    /// Starts whose wait for the driver has ended by this condition are never sent.
    pub(super) fn answer_waiting(&mut self, now: Timestamp, is_over: impl Fn(Timestamp) -> bool) {
        let in_vain = self.timeout.iter().filter(|(_, until)| is_over(**until)).map(|(number, _)| *number);
        for number in in_vain.collect::<Vec<_>>() {
            let started = Started::NotAsked(Trouble::absent("the driver is not there"));
            self.returned(now, number, TasksOutcome::Started(started));
        }
    }

    /// A launch of the driver is refused: no start waits for it.
    pub(super) fn refuse_launch(&mut self, now: Timestamp) {
        self.environment.is_refused = true;
        self.answer_waiting(now, |_| true);
    }

    pub(super) fn begin(&mut self, place: u8) {
        let Some(run) = self.environment.begin(usize::from(place)) else { return };
        if self.told.get(&run.name).is_some_and(|told| told.is_down()) {
            self.check_down(&run.name, "is told to be down");
        }
    }

    /// The driver finishes a start with this result, which is delivered if the call still waits.
    pub(super) fn finish(&mut self, now: Timestamp, place: u8, is_told: impl FnOnce(&RunKey) -> Started) {
        let Some(work) = self.environment.works().get(usize::from(place)) else { return };
        let started = is_told(&work.run);
        let is_started = matches!(started, Started::Runs(_));
        let Some(run) = self.environment.finish(usize::from(place), is_started) else { return };
        let is_it = |(number, call): &(u64, &TasksCall)| {
            self.sent.contains(number) && matches!(call, TasksCall::Start(other, _) if *other == run)
        };
        let waits = self.actor.calls().find(is_it).map(|(number, _)| number);
        if let Some(number) = waits {
            if matches!(started, Started::Refused(_)) {
                self.environment.refused.insert(run.name);
            }
            self.starts.insert(run.id, Asked::Answered);
            self.returned(now, number, TasksOutcome::Started(started));
        }
    }

    fn recover(&mut self, run: &RunKey) -> Result<(), Trouble> {
        let lives = self.environment.lives(&run.id) && self.environment.manner.recovers;
        let Some(process) = self.environment.serving_mut() else { return Err(absent()) };
        if process.knows.contains_key(&run.id) {
            return Ok(());
        }
        if lives {
            process.knows.insert(run.id.clone(), Known::Runs);
            return Ok(());
        }
        self.excused.insert(run.id.clone());
        Err(Trouble::lasting("the driver cannot recover it"))
    }

    fn inspect(&self, run: &RunKey) -> Result<Found, Trouble> {
        let Some(process) = self.environment.serving() else {
            let driver = run.driver.clone();
            let not_dispensed = match self.environment.is_refused {
                true => NotDispensed::Refused { driver, reason: "it is not there".to_owned() },
                false => NotDispensed::NotReady { driver, waited: Duration::ZERO },
            };
            return found_without(&not_dispensed, self.start_waits(run));
        };
        Ok(match process.knows.get(&run.id) {
            Some(Known::Runs) => Found::Running,
            Some(Known::Ended(code)) => Found::Exited(exit(*code)),
            None => Found::Nothing {
                words: "task not found".to_owned(),
                is_proof: is_proof(self.starts.get(&run.id).copied(), Some(process.identity())),
            },
        })
    }

    /// Ends the process, unless it can have no start of the run in progress. It may continue until it has ended.
    fn replace(&mut self, run: &RunKey) -> Result<(), Trouble> {
        let asked = self.starts.get(&run.id).copied();
        let Some(process) = self.environment.serving_mut() else { return Err(absent()) };
        if !is_proof(asked, Some(process.identity())) {
            process.standing = Standing::Doomed;
        }
        Ok(())
    }

    fn wait(&mut self, run: &RunKey) -> Result<TaskExit, Trouble> {
        let Some(process) = self.environment.serving() else { return Err(absent()) };
        match process.knows.get(&run.id) {
            Some(Known::Ended(code)) => {
                // A run that was to stop, or could not be recovered, has not ended by itself.
                if self.excused.insert(run.id.clone()) {
                    self.heard.insert(run.id.clone());
                }
                Ok(exit(*code))
            }
            Some(Known::Runs) | None => Err(Trouble::passing("task not found")),
        }
    }

    fn stop(&mut self, run: &RunKey) -> Result<(), Trouble> {
        let Some(process) = self.environment.serving() else { return Err(absent()) };
        if process.knows.contains_key(&run.id) {
            self.end_copy(&run.name, &run.id, "stopped");
        }
        Ok(())
    }

    fn destroy(&mut self, run: &RunKey) -> Result<(), Trouble> {
        let Some(process) = self.environment.serving() else { return Err(absent()) };
        let known = process.knows.get(&run.id).copied();
        if known.is_some() {
            self.end_copy(&run.name, &run.id, "destroyed");
        }
        let is_wanted = self.wants.get(&run.name) == Some(&Some(true)) && self.ends.is_none();
        let is_heard = self.heard.contains(&run.id);
        if let (true, Some(Known::Ended(code))) = (is_wanted && is_heard, known)
            && !self.actor.store.holds_end_of(&run.name, &run.id)
        {
            let what = || {
                format!("{} ended with {code}, which its driver is to forget before it is on disk", run.id)
            };
            self.verdict.violation(Law::Shell1, what);
        }
        if let Some(process) = self.environment.serving_mut() {
            process.knows.remove(&run.id);
        }
        self.starts.remove(&run.id);
        Ok(())
    }

    /// Kills the copies of the task that really live, unless the driver may still begin a start of it.
    fn sweep(&mut self, now: Timestamp, run: &RunKey, heard: Heard) -> Result<Swept, Trouble> {
        if heard == Heard::NothingOfStart {
            let report = self.environment.report(&run.driver, now);
            let waits = || self.start_waits(run).then(|| "its start waits for its driver".to_owned());
            if let Some(reason) = may_still_begin(Some(&report)).or_else(waits) {
                return Err(Trouble::passing(reason));
            }
        }
        let found = self.environment.copies.iter().filter(|copied| copied.name == run.name);
        let found: Vec<TaskId> = found.map(|copied| copied.run.clone()).collect();
        found.iter().for_each(|copy| self.end_copy(&run.name, copy, "swept away"));
        let words = if found.is_empty() { "no process of it was left" } else { "killed what was left of it" };
        Ok(Swept { has_killed: !found.is_empty(), words: words.to_owned(), unreleased: None })
    }

    /// Whether a start of a run waits for its driver.
    fn start_waits(&self, run: &RunKey) -> bool {
        let is_start = |call: &TasksCall| matches!(call, TasksCall::Start(other, _) if other == run);
        self.actor.calls().any(|(number, call)| is_start(call) && !self.sent.contains(&number))
    }

    /// Kills a copy on behalf of the host.
    fn end_copy(&mut self, name: &AllocationId, run: &TaskId, how: &str) {
        let is_wanted = self.wants.get(name) == Some(&Some(true)) && self.ends.is_none();
        let is_held = self.actor.store.has_held(run) && !self.excused.contains(run);
        if is_wanted && is_held && self.environment.lives(run) && self.environment.says_runs(run) {
            self.verdict.violation(Law::T4, || format!("{run} is {how}, which is wanted and runs"));
        }
        self.environment.kill(run);
    }
}

fn absent() -> Trouble {
    Trouble::absent("the driver is not there")
}

fn exit(code: i32) -> TaskExit {
    TaskExit { end: TaskEnd::Exited(code), oom_killed: false }
}

/// The driver's handle of a run.
pub(super) fn handle(run: &RunKey) -> Box<KeptHandle> {
    let bytes = run.id.as_str().as_bytes();
    Box::new(KeptHandle::new(bytes, bytes, ""))
}
