//! Plans the events of processes and their owner.

use callboard_actors::vocabulary::Timestamp;

use super::super::event::EventKind;
use super::super::faults::Fault;
use super::super::host_model::HostModel;
use super::super::processes::{ProcessDoing, ProcessesDoing};
use super::agenda::Planned;
use super::{Plan, micros};

impl Plan {
    pub(super) fn begin_processes(&mut self, host_model: &HostModel) {
        for number in 0..host_model.owned.processes() {
            let within = self.random.below(1_000_000);
            self.add(host_model.now + micros(within), Planned::ProcessTurn(number));
        }
    }

    /// A message about a process.
    pub(super) fn process_turn(&mut self, at: Timestamp, number: u32) -> EventKind {
        let pause = micros(100_000 + self.random.below(3_000_000));
        self.add(at + pause, Planned::ProcessTurn(number));
        let doing = match self.random.below(20) {
            0..=9 => ProcessDoing::Launch(u8::from(self.random.once_in(4))),
            10..=13 => ProcessDoing::End,
            14..=17 => ProcessDoing::Recall,
            _ => ProcessDoing::AwaitEnd,
        };
        EventKind::Processes(ProcessesDoing::Process(number, doing))
    }

    /// How long it takes until an event of the processes happens by itself, in microseconds.
    pub(super) fn pause_among_processes(&mut self, doing: ProcessesDoing) -> u64 {
        match doing {
            ProcessesDoing::Process(_, ProcessDoing::Act) if self.does(Fault::Slow, 20) => {
                1_000_000 + self.random.below(9_000_000)
            }
            ProcessesDoing::Process(_, ProcessDoing::Act) => 500 + self.random.below(40_000),
            ProcessesDoing::Settle(..) => 500 + self.random.below(4_000) + self.commit_waits(),
            ProcessesDoing::Sweep(_) => 1_000 + self.random.below(50_000),
            ProcessesDoing::Process(..)
            | ProcessesDoing::Endings
            | ProcessesDoing::Load(_)
            | ProcessesDoing::Timers
            | ProcessesDoing::Crash => 1 + self.random.below(1_500),
        }
    }

    /// The details of an event that happens by itself.
    pub(super) fn comes_of(&mut self, doing: ProcessesDoing, host_model: &HostModel) -> Option<EventKind> {
        let doing = match doing {
            ProcessesDoing::Process(number, ProcessDoing::Act) if self.does(Fault::Fail, 40) => {
                ProcessesDoing::Process(number, ProcessDoing::Fail)
            }
            ProcessesDoing::Settle(..) => {
                let (count, outcome) = self.commit(host_model.owned.model.waiting())?;
                ProcessesDoing::Settle(count, outcome)
            }
            ProcessesDoing::Sweep(_) => ProcessesDoing::Sweep(!self.does(Fault::Fail, 8)),
            ProcessesDoing::Load(_) => ProcessesDoing::Load(!self.does(Fault::Disk, 8)),
            other => other,
        };
        Some(EventKind::Processes(doing))
    }

    /// A fault of the processes.
    pub(super) fn processes_break(&mut self, host_model: &HostModel) -> Option<ProcessesDoing> {
        let processes = host_model.owned.processes();
        if processes == 0 {
            return None;
        }
        let number = self.random.place(processes);
        if self.does(Fault::Exit, 10) {
            return Some(ProcessesDoing::Process(number, ProcessDoing::Exit));
        }
        let is_owner = self.random.once_in(3);
        let crash = if is_owner {
            ProcessesDoing::Crash
        } else {
            ProcessesDoing::Process(number, ProcessDoing::Fall)
        };
        self.does(Fault::Crash, 16).then_some(crash)
    }
}
