//! The processes of a simulated host, and their owner.

mod doing;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use self::doing::name_text;
pub use self::doing::{ProcessDoing, ProcessesDoing};
use callboard_actors::process::{Executable, Lifetime, ProcessName, ProcessSpec};
use callboard_actors::processes::{LaunchProcess, Processes, RecallProcess, StopProcess};
use callboard_actors::shell::StopMode;

use super::super::processes::ProcessesModel;
use super::super::tamper::Tamper;
use super::super::writes::Outcome;
use super::disk::DiskTrouble;
use super::event::EventKind;
use super::host_model::{HostModel, HostPhase, Signal};

/// One in this many processes is bound to its host.
const BOUND_EVERY: u32 = 3;
/// How many events of the processes happen by themselves within a second without faults, at most.
const CALM_MAX: u32 = 1_000;

/// The two different launches under one name.
#[derive(Debug, Clone)]
struct Program {
    name: ProcessName,
    specs: [Arc<ProcessSpec>; 2],
}

/// The possible launches, and the owner of the launched processes.
#[derive(Debug, Clone)]
pub(super) struct OwnedProcesses {
    programs: Rc<[Program]>,
    pub(super) model: ProcessesModel,
    /// The mode in which the host ends.
    mode: StopMode,
}

impl OwnedProcesses {
    pub(super) fn new(processes: u32, tamper: Option<Rc<dyn Tamper<Processes>>>) -> Self {
        Self {
            programs: (0..processes).map(program).collect(),
            model: ProcessesModel::vacant(tamper),
            mode: StopMode::Stop,
        }
    }

    /// How many processes may exist at once.
    pub(super) fn processes(&self) -> u32 {
        u32::try_from(self.programs.len()).unwrap_or(u32::MAX)
    }

    fn number_of(&self, name: &ProcessName) -> Option<u32> {
        (0..).zip(self.programs.iter()).find(|(_, program)| program.name == *name).map(|(number, _)| number)
    }
}

fn program(number: u32) -> Program {
    let spec = |kind: &str| {
        let mut spec = ProcessSpec::new(Executable::at("/bin/worker"));
        spec.arguments = vec![kind.to_owned()];
        if number % BOUND_EVERY != 1 {
            spec.lifetime = Lifetime::Surviving;
        }
        Arc::new(spec)
    };
    let name = ProcessName::new(name_text(number)).expect("a letter and digits are a name");
    Program { name, specs: ["0", "1"].map(spec) }
}

impl HostModel {
    pub(super) fn processes_do(&mut self, doing: ProcessesDoing) {
        let (now, model) = (self.now, &mut self.owned.model);
        match doing {
            ProcessesDoing::Process(number, doing) => self.process_does(number, doing),
            ProcessesDoing::Endings => model.deliver_endings(now),
            ProcessesDoing::Sweep(is_done) => model.sweep(now, is_done),
            ProcessesDoing::Settle(count, outcome) => self.settle_processes(count, outcome),
            ProcessesDoing::Load(true) if self.disk == Some(DiskTrouble::Hangs) => {}
            ProcessesDoing::Load(true) => model.load(now),
            ProcessesDoing::Load(false) => model.load_fails(now),
            ProcessesDoing::Timers => model.time_passes(now),
            ProcessesDoing::Crash => model.crash(),
        }
        self.plan_processes();
    }

    fn settle_processes(&mut self, count: u32, outcome: Outcome) {
        if self.disk_takes() {
            self.owned.model.settle(self.now, count as usize, outcome);
            if outcome == Outcome::Written {
                self.disk_has_taken();
            }
        }
    }

    fn process_does(&mut self, number: u32, doing: ProcessDoing) {
        let OwnedProcesses { programs, model, .. } = &mut self.owned;
        let Some(Program { name, specs }) = programs.get(number as usize) else { return };
        let (now, is_up) = (self.now, self.phase == HostPhase::Running);
        match doing {
            ProcessDoing::Launch(kind) if is_up => {
                let spec = Arc::clone(&specs[usize::from(kind) % specs.len()]);
                model.ask(now, LaunchProcess { name: name.clone(), spec });
            }
            ProcessDoing::End if is_up => {
                let grace = Duration::from_secs(5);
                model.ask(now, StopProcess { name: name.clone(), tag: None, grace });
            }
            ProcessDoing::Recall if is_up => model.ask(now, RecallProcess { name: name.clone() }),
            ProcessDoing::AwaitEnd if is_up => model.await_end(now, name),
            // A host that ends sends no requests.
            ProcessDoing::Launch(_) | ProcessDoing::End | ProcessDoing::Recall | ProcessDoing::AwaitEnd => {}
            ProcessDoing::Act => model.act_of(name, false),
            ProcessDoing::Fail => model.act_of(name, true),
            ProcessDoing::Mail => model.deliver_of(now, name),
            ProcessDoing::Exit => model.exits(name),
            ProcessDoing::Fall => model.falls(name),
        }
    }

    // === The lifecycle of a host ===

    /// The owner of the processes is requested to stop, after all actors that use processes. True when it has ended.
    pub(super) fn stop_processes(&mut self) -> bool {
        let (now, model) = (self.now, &mut self.owned.model);
        if !model.is_stopping() {
            model.request_stop(now, self.owned.mode);
            self.plan_processes();
        }
        let has_ended = self.owned.model.has_ended();
        if has_ended {
            self.owned.model.check_end(now);
        }
        has_ended
    }

    pub(super) const fn processes_will_stop(&mut self, mode: StopMode) {
        self.owned.mode = mode;
    }

    pub(super) fn dispatch_processes(&mut self) {
        if let (Some(told), Some(trace)) = (&mut self.owned.model.told, &mut self.trace) {
            trace.append(told);
        }
    }

    /// Plans the possible and the due events of the processes.
    pub(super) fn plan_processes(&mut self) {
        let OwnedProcesses { model, .. } = &mut self.owned;
        for (name, is_busy, is_speaking) in model.take_changed() {
            let Some(number) = self.owned.number_of(&name) else { continue };
            let doings = [(is_busy, ProcessDoing::Act), (is_speaking, ProcessDoing::Mail)];
            for (_, doing) in doings.into_iter().filter(|(is_ready, _)| *is_ready) {
                let doing = ProcessesDoing::Process(number, doing);
                self.signals.push(Signal::Ready(EventKind::Processes(doing)));
            }
        }
        let model = &self.owned.model;
        let ready = [
            (model.is_loading(), ProcessesDoing::Load(true)),
            (model.waiting() > 0, ProcessesDoing::Settle(1, Outcome::Written)),
            (model.is_sweeping(), ProcessesDoing::Sweep(true)),
            (model.has_endings(), ProcessesDoing::Endings),
        ];
        let due = model.due();
        for (_, doing) in ready.into_iter().filter(|(is_ready, _)| *is_ready) {
            self.signals.push(Signal::Ready(EventKind::Processes(doing)));
        }
        if let Some(at) = due {
            self.signals.push(Signal::Due(EventKind::Processes(ProcessesDoing::Timers), at));
        }
    }

    /// One second without faults among the processes.
    pub(super) fn calm_processes(&mut self) {
        let (now, model) = (self.now, &mut self.owned.model);
        model.time_passes(now);
        for _ in 0..CALM_MAX {
            if !model.go_on(now) {
                break;
            }
        }
    }
}
