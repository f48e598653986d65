//! The real state: the driver's process with its knowledge, and the living copies of tasks.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::driver::{DriverReport, DriverStage, ServingProcess, TaskId};
use callboard_actors::process::ProcessTag;
use callboard_actors::tasks::RunKey;
use callboard_actors::vocabulary::{AllocationId, DriverName, Timestamp};

use super::event::Manner;
use crate::{Law, Verdict};

/// The exit code of a killed copy.
const KILLED: i32 = 137;

/// A living copy of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) name: AllocationId,
    pub(super) run: TaskId,
}

/// A start that the driver has in progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    pub(super) run: RunKey,
    pub(super) has_begun: bool,
}

/// The knowledge of a process of the driver about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Runs,
    Ended(i32),
}

/// The host's relation to a process of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Left by an earlier run of the host, and not yet reattached by this one.
    Left,
    /// It accepts requests.
    Serves,
    /// It is about to end, and accepts no more requests.
    Doomed,
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    tag: u8,
    pub(super) is_adopted: bool,
    pub(super) standing: Standing,
    pub(super) works: Vec<Work>,
    pub(super) knows: BTreeMap<TaskId, Known>,
}

#[derive(Debug, Clone)]
pub(super) struct Environment {
    pub(super) manner: Manner,
    pub(super) process: Option<Process>,
    launched: u8,
    has_launched: bool,
    /// Whether its last launch was refused: there is no process, and none remained of an earlier run of the host.
    pub(super) is_refused: bool,
    pub(super) copies: Vec<Copied>,
    /// The exit code of the last copy of each task that ended by itself.
    pub(super) exits: BTreeMap<AllocationId, i32>,
    /// How many starts of each task were sent to the driver, or have an unknown outcome.
    pub(super) tried: BTreeMap<AllocationId, u64>,
    /// The tasks whose start the driver has refused.
    pub(super) refused: BTreeSet<AllocationId>,
    pub(super) verdict: Verdict,
}

impl Environment {
    pub(super) const fn new(manner: Manner) -> Self {
        Self {
            manner,
            process: None,
            launched: 0,
            has_launched: false,
            is_refused: false,
            copies: Vec::new(),
            exits: BTreeMap::new(),
            tried: BTreeMap::new(),
            refused: BTreeSet::new(),
            verdict: Verdict::NONE,
        }
    }

    /// A start of a task was sent, or has an unknown outcome.
    pub(super) fn tried(&mut self, name: AllocationId) {
        *self.tried.entry(name).or_default() += 1;
    }

    // === The present state ===

    /// The process that accepts requests.
    pub(super) fn serving(&self) -> Option<&Process> {
        self.process.as_ref().filter(|process| process.standing == Standing::Serves)
    }

    pub(super) fn serving_mut(&mut self) -> Option<&mut Process> {
        self.process.as_mut().filter(|process| process.standing == Standing::Serves)
    }

    pub(super) fn works(&self) -> &[Work] {
        self.process.as_ref().map_or(&[], |process| &process.works)
    }

    pub(super) fn living(&self, name: &AllocationId) -> usize {
        self.copies.iter().filter(|copied| copied.name == *name).count()
    }

    pub(super) fn lives(&self, run: &TaskId) -> bool {
        self.copies.iter().any(|copied| copied.run == *run)
    }

    /// Whether the driver reports a run as running.
    pub(super) fn says_runs(&self, run: &TaskId) -> bool {
        self.serving().is_some_and(|process| process.knows.get(run) == Some(&Known::Runs))
    }

    /// The report of the owner of the drivers about the driver, reduced to the fields that its tasks need.
    pub(super) fn report(&self, name: &DriverName, now: Timestamp) -> DriverReport {
        let is_there = |process: &&Process| process.standing != Standing::Left;
        let mut report = DriverReport::of_nothing_yet(name.clone(), now);
        report.pid = self.process.as_ref().filter(is_there).map(|process| process.tag.into());
        report.launches = self.has_launched.into();
        if self.is_refused {
            report.stage = DriverStage::Refused;
        }
        report
    }

    // === Events of the driver ===

    pub(super) fn launch(&mut self) {
        self.launched += 1;
        (self.has_launched, self.is_refused) = (true, false);
        self.process = Some(Process {
            tag: self.launched,
            is_adopted: false,
            standing: Standing::Serves,
            works: Vec::new(),
            knows: BTreeMap::new(),
        });
    }

    /// The host reattaches the process that its earlier run has left.
    pub(super) fn find(&mut self) {
        if let Some(process) = &mut self.process {
            process.standing = Standing::Serves;
        }
    }

    pub(super) fn die(&mut self) {
        self.process = None;
        if self.manner.carries {
            self.copies.clear();
        }
    }

    pub(super) fn next_run(&mut self) {
        (self.has_launched, self.is_refused) = (false, false);
        if let Some(process) = &mut self.process {
            process.is_adopted = true;
            process.standing = match process.standing {
                Standing::Left | Standing::Serves if self.manner.survives => Standing::Left,
                Standing::Left | Standing::Serves | Standing::Doomed => Standing::Doomed,
            };
        }
    }

    // === Events of tasks ===

    pub(super) fn begin(&mut self, place: usize) -> Option<RunKey> {
        let work = self.process.as_mut()?.works.get_mut(place)?;
        work.has_begun = true;
        let run = work.run.clone();
        if self.living(&run.name) > 0 {
            let copies = &self.copies;
            self.verdict.violation(Law::T1, || format!("{} begins, and there live {copies:?}", run.id));
        }
        self.copies.push(Copied { name: run.name.clone(), run: run.id.clone() });
        Some(run)
    }

    /// The driver finishes a start.
    pub(super) fn finish(&mut self, place: usize, is_started: bool) -> Option<RunKey> {
        let process = self.process.as_mut()?;
        let work = (place < process.works.len()).then(|| process.works.remove(place))?;
        if is_started {
            let lives = self.copies.iter().any(|copied| copied.run == work.run.id);
            let known = if lives { Known::Runs } else { Known::Ended(KILLED) };
            process.knows.insert(work.run.id.clone(), known);
        }
        Some(work.run)
    }

    pub(super) fn exit(&mut self, name: &AllocationId, code: i32) {
        if let Some(place) = self.copies.iter().position(|copied| copied.name == *name) {
            let run = self.copies.remove(place).run;
            self.exits.insert(name.clone(), code);
            self.note_end(&run, code);
        }
    }

    /// Kills every copy of a run. Returns whether there was one.
    pub(super) fn kill(&mut self, run: &TaskId) -> bool {
        let before = self.copies.len();
        self.copies.retain(|copied| copied.run != *run);
        self.note_end(run, KILLED);
        self.copies.len() < before
    }

    fn note_end(&mut self, run: &TaskId, code: i32) {
        let known = self.process.as_mut().and_then(|process| process.knows.get_mut(run));
        if let Some(known @ Known::Runs) = known {
            *known = Known::Ended(code);
        }
    }
}

impl Process {
    /// Its identity as the host knows it.
    pub(super) const fn identity(&self) -> ServingProcess {
        ServingProcess { tag: ProcessTag::new([self.tag; 16]), is_adopted: self.is_adopted }
    }
}
