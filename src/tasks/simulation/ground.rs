//! What really is: the process of the driver with what it knows, and the copies of tasks that live.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::driver::client::{ServingProcess, TaskId};
use callboard_actors::process::ProcessTag;
use callboard_actors::simulation::{Law, Verdict};
use callboard_actors::vocabulary::AllocationId;

use super::super::calls::RunKey;
use super::event::Manner;

/// The exit code of what was killed.
const KILLED: i32 = 137;

/// One copy of a task that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) name: AllocationId,
    pub(super) run: TaskId,
}

/// A start that the driver has under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    pub(super) run: RunKey,
    /// Whether a copy was begun.
    pub(super) has_begun: bool,
}

/// What a process of the driver knows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Runs,
    Ended(i32),
}

/// How the host has a process of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// An earlier run of the host has left it, and this one has yet to find it.
    Left,
    /// It can be spoken to.
    Serves,
    /// It is to end, and is not spoken to any more.
    Doomed,
}

/// A process of the driver.
#[derive(Debug, Clone)]
pub(super) struct Process {
    tag: u8,
    pub(super) is_adopted: bool,
    pub(super) standing: Standing,
    pub(super) works: Vec<Work>,
    pub(super) knows: BTreeMap<TaskId, Known>,
}

/// The driver and the copies of its tasks.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    pub(super) manner: Manner,
    pub(super) process: Option<Process>,
    launched: u8,
    /// Whether this run of the host has launched a process.
    has_launched: bool,
    pub(super) copies: Vec<Copied>,
    /// How the last copy of each task ended that did so by itself.
    pub(super) exits: BTreeMap<AllocationId, i32>,
    /// The tasks that the driver has said no to.
    pub(super) refused: BTreeSet<AllocationId>,
    pub(super) verdict: Verdict,
}

impl Ground {
    pub(super) const fn new(manner: Manner) -> Self {
        Self {
            manner,
            process: None,
            launched: 0,
            has_launched: false,
            copies: Vec::new(),
            exits: BTreeMap::new(),
            refused: BTreeSet::new(),
            verdict: Verdict::NONE,
        }
    }

    // === What is there ===

    /// The process that can be spoken to.
    pub(super) fn serving(&self) -> Option<&Process> {
        self.process.as_ref().filter(|process| process.standing == Standing::Serves)
    }

    pub(super) fn serving_mut(&mut self) -> Option<&mut Process> {
        self.process.as_mut().filter(|process| process.standing == Standing::Serves)
    }

    /// The starts that are under way.
    pub(super) fn works(&self) -> &[Work] {
        self.process.as_ref().map_or(&[], |process| &process.works)
    }

    /// How many copies of a task live.
    pub(super) fn living(&self, name: &AllocationId) -> usize {
        self.copies.iter().filter(|copied| copied.name == *name).count()
    }

    /// Whether a copy of a run lives.
    pub(super) fn lives(&self, run: &TaskId) -> bool {
        self.copies.iter().any(|copied| copied.run == *run)
    }

    /// Whether the driver says that a run runs.
    pub(super) fn says_runs(&self, run: &TaskId) -> bool {
        self.serving().is_some_and(|process| process.knows.get(run) == Some(&Known::Runs))
    }

    /// Whether a process that was told to start a run may still begin it, as far as the host can tell: it has one, or it cannot
    /// say whether an earlier run has left one, since it has launched none so far.
    pub(super) fn may_still_begin(&self) -> bool {
        match &self.process {
            Some(Process { standing: Standing::Serves | Standing::Doomed, .. }) => true,
            Some(Process { standing: Standing::Left, .. }) | None => !self.has_launched,
        }
    }

    // === What happens to the driver ===

    pub(super) fn launch(&mut self) {
        self.launched += 1;
        self.has_launched = true;
        self.process = Some(Process {
            tag: self.launched,
            is_adopted: false,
            standing: Standing::Serves,
            works: Vec::new(),
            knows: BTreeMap::new(),
        });
    }

    /// The process that an earlier run of the host has left is found again.
    pub(super) fn find(&mut self) {
        if let Some(process) = &mut self.process {
            process.standing = Standing::Serves;
        }
    }

    /// The process dies, with all that it had under way.
    pub(super) fn die(&mut self) {
        self.process = None;
        if self.manner.carries {
            self.copies.clear();
        }
    }

    /// Another run of the host begins.
    pub(super) fn next_run(&mut self) {
        self.has_launched = false;
        if let Some(process) = &mut self.process {
            process.is_adopted = true;
            process.standing = match process.standing {
                Standing::Left | Standing::Serves if self.manner.survives => Standing::Left,
                Standing::Left | Standing::Serves | Standing::Doomed => Standing::Doomed,
            };
        }
    }

    // === What happens to tasks ===

    /// The driver begins a copy.
    pub(super) fn begin(&mut self, place: usize) -> Option<RunKey> {
        let work = self.process.as_mut()?.works.get_mut(place)?;
        work.has_begun = true;
        let run = work.run.clone();
        if self.living(&run.name) > 0 {
            let copies = &self.copies;
            self.verdict.cry(Law::T1, || format!("{} begins, and there live {copies:?}", run.id));
        }
        self.copies.push(Copied { name: run.name.clone(), run: run.id.clone() });
        Some(run)
    }

    /// The driver is done with a start.
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

    /// The copy of a task ends by itself.
    pub(super) fn exit(&mut self, name: &AllocationId, code: i32) {
        if let Some(place) = self.copies.iter().position(|copied| copied.name == *name) {
            let run = self.copies.remove(place).run;
            self.exits.insert(name.clone(), code);
            self.note_end(&run, code);
        }
    }

    /// Every copy of a run is killed. Says whether there was one.
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
    /// As the host knows it.
    pub(super) const fn identity(&self) -> ServingProcess {
        ServingProcess { tag: ProcessTag::new([self.tag; 16]), is_adopted: self.is_adopted }
    }
}
