//! The calls of allocations' supervisors to others, and the answers.

use callboard_actors::allocation::healths;
use callboard_actors::instances::{AwaitRetired, HealthOf, InstanceReport, Instances, InstancesAnswer};
use callboard_actors::registry::{Describe, Description, Registry, RegistryAnswer};
use callboard_actors::shell::{Ending, Machine, Message};

use super::super::super::law::Law;
use super::super::super::law_checker::NO_CALLER_WAITS;
use super::super::super::observed::Observed;
use super::super::super::stand_in::{Left, Refusal};
use super::*;

/// A call to the task or its files that has not returned.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) number: u64,
    pub(super) call: AllocationCall,
    /// The process that existed when the call was made.
    pub(super) process: u64,
    /// Whether directories were to be created for a task at whose socket an unexpected process listened.
    pub(super) is_taken: bool,
    /// Whether it never returns.
    pub(super) hangs: bool,
}

impl Pending {
    pub(super) fn is_removal(&self, number: u64) -> bool {
        self.number == number && self.call == AllocationCall::RemoveDirectory
    }
}

/// The questions about the health of one allocation, and the answers so far.
#[derive(Debug, Clone)]
pub(super) struct Round {
    number: u64,
    missing: usize,
    described: Vec<Description>,
    reports: Vec<InstanceReport>,
}

/// The supervisor that asked, the call, and its purpose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    place: usize,
    life: u64,
    number: u64,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Register,
    Deregister,
    Health,
    Retirement,
}

impl HostModel {
    /// Carries out the effects of a supervisor, or puts them in flight.
    pub(super) fn carry_workload(&mut self, place: usize) {
        self.workloads.mark_changed(place);
        let moment = self.moment();
        loop {
            let Some(held) = &mut self.workloads.all[place].slot else { return };
            if self.trace.is_some() {
                held.supervisor.begin_noting();
            }
            let left = held.supervisor.leaving(moment);
            if let Some(trace) = &mut self.trace {
                trace.extend(Observed::noted(&journal_name(place), &mut held.supervisor));
            }
            let steps = held.supervisor.steps();
            self.verdict.heard_of(held.supervisor.checker.verdict.broken());
            self.workloads.steps += steps - std::mem::replace(&mut held.counted, steps);
            if left.is_empty() {
                return;
            }
            for left in left {
                self.take_from_workload(place, left);
            }
        }
    }

    fn take_from_workload(&mut self, place: usize, left: Left<Allocation>) {
        self.note(|| Observed::left(&trace_name(place), &left));
        match left {
            Left::Answer(Some(call), answer) => self.supervisor_answers(place, call, &answer),
            // Its crash ends it, and its owner receives the refusal first.
            Left::Refused(call, refusal) => {
                self.supervisor_fails(place, call, refusal.into_error(Allocation::KIND));
            }
            Left::News(_, news) => {
                let workload = &mut self.workloads.all[place];
                let life = workload.slot.as_ref().map(|held| held.life);
                workload.news.extend(life.map(|life| (life, news)));
            }
            Left::Call { number, deadline, call } => self.workload_calls(place, number, deadline, call),
            Left::Ended(ending) => self.supervisor_ended(place, ending),
            Left::Answer(None, _) => self.violation(Law::Shell7, NO_CALLER_WAITS.to_owned()),
            Left::Snapshot(..) => {}
        }
    }

    /// Its supervisor ends by force.
    pub(super) fn supervisor_is_killed(&mut self, place: usize) {
        if self.workloads.all[place].slot.is_some() {
            self.note(|| Observed::killed(journal_name(place)));
            self.supervisor_ended(place, Ending::Killed);
        }
    }

    /// A supervisor that has removed everything has left no files, unless they could not be removed.
    fn supervisor_ended(&mut self, place: usize, ending: Ending) {
        let workload = &mut self.workloads.all[place];
        workload.forget_caller();
        let Some(held) = workload.slot.take() else { return };
        let is_in_order = ending == Ending::Normal;
        workload.has_left = is_in_order && !held.is_detached;
        workload.is_untidy |= !is_in_order;
        let is_left_over = workload.has_left && workload.around.has_directory && !workload.is_untidy;
        self.workloads.is_missed(place, *held, ending);
        if is_left_over {
            self.violation(Law::A4, "it has left, and its files are there".to_owned());
        }
    }

    // === Its questions ===

    fn workload_calls(&mut self, place: usize, number: u64, deadline: Duration, call: AllocationCall) {
        let until = self.now + deadline;
        let workload = &mut self.workloads.all[place];
        workload.deadlines.push((number, until, deadline));
        let life = workload.life;
        let is_of_registry = matches!(call, AllocationCall::Register(_) | AllocationCall::Deregister(_));
        workload.is_abandoned &= !is_of_registry;
        let asked = |what| Asked { place, life, number, what };
        match call {
            AllocationCall::Register(message) => self.workload_asks_registry(asked(What::Register), message),
            AllocationCall::Deregister(message) => {
                self.workload_asks_registry(asked(What::Deregister), message);
            }
            AllocationCall::AskHealth => self.workload_asks_health(asked(What::Health)),
            AllocationCall::AwaitRetired => {
                let allocation = workload.spec.allocation.clone();
                self.workload_asks_instances(asked(What::Retirement), AwaitRetired { allocation });
            }
            call => {
                let process = workload.around.process;
                let is_taken = workload.runs && call == AllocationCall::MakeDirectories(Listener::Refused);
                workload.calls.push(Pending { number, call, process, is_taken, hangs: false });
            }
        }
    }

    fn workload_asks_registry<Q: Message<Registry>>(&mut self, asked: Asked, message: Q) {
        let asker = self.question_registry(message);
        self.workloads.asked.insert(asker, asked);
    }

    fn workload_asks_instances<Q: Message<Instances>>(&mut self, asked: Asked, message: Q) {
        let (asker, moment) = (self.next_asker(), self.moment());
        self.workloads.asked.insert(asker, asked);
        self.instances_model.ask(moment, asker, message.into_ask());
    }

    /// As the neighbours of a supervisor in production: each plugin is described, and the instances are asked.
    fn workload_asks_health(&mut self, asked: Asked) {
        let workload = &mut self.workloads.all[asked.place];
        let (plugins, allocation) = (workload.spec.plugins(), workload.spec.allocation.clone());
        let missing = plugins.len() + 1;
        let (described, reports) = (Vec::new(), Vec::new());
        workload.round = Some(Round { number: asked.number, missing, described, reports });
        for plugin in plugins {
            self.workload_asks_registry(asked, Describe { plugin });
        }
        self.workload_asks_instances(asked, HealthOf { allocation });
    }

    // === The answers ===

    /// The registry has answered, or refused. Ignored if no supervisor asked.
    pub(in super::super) fn registry_told(&mut self, asker: u64, told: Result<&RegistryAnswer, Refusal>) {
        let Some(asked) = self.workloads.asked.remove(&asker) else { return };
        self.workload_is_told(asked, || match told {
            Ok(RegistryAnswer::Register(registered)) => {
                Word::Outcome(AllocationOutcome::Registered(Ok(registered.clone())))
            }
            Ok(RegistryAnswer::Deregister(gone)) => {
                Word::Outcome(AllocationOutcome::Deregistered(Ok(gone.clone())))
            }
            Ok(RegistryAnswer::Describe(described)) => Word::Described((**described).clone()),
            Ok(other) => unreachable!("a supervisor asks for nothing that is answered {other:?}"),
            Err(refusal) => Word::Outcome(asked.what.refused(Registry::KIND, refusal)),
        });
    }

    /// The instances have answered, or crashed over it.
    pub(in super::super) fn instances_told(&mut self, asker: u64, told: Option<&InstancesAnswer>) {
        let Some(asked) = self.workloads.asked.remove(&asker) else { return };
        self.workload_is_told(asked, || match told {
            Some(InstancesAnswer::AwaitRetired(retired)) => {
                Word::Outcome(AllocationOutcome::Retired(Ok(retired.clone())))
            }
            Some(InstancesAnswer::HealthOf(reports)) => Word::Reported(reports.clone()),
            Some(other) => unreachable!("a supervisor asks for nothing that is answered {other:?}"),
            None => Word::Outcome(asked.what.refused(Instances::KIND, Refusal::Crashed)),
        });
    }

    /// The answer is put in flight, if the supervisor that asked still lives.
    fn workload_is_told(&mut self, asked: Asked, word: impl FnOnce() -> Word) {
        let Asked { place, life, number, what } = asked;
        let workload = &mut self.workloads.all[place];
        if workload.life != life {
            return;
        }
        let of_round = workload.round.as_mut().filter(|round| round.number == number);
        let outcome = match (word(), of_round) {
            (Word::Described(described), Some(round)) => {
                round.described.push(described);
                workload.close_round()
            }
            (Word::Reported(reports), Some(round)) => {
                round.reports = reports;
                workload.close_round()
            }
            (Word::Outcome(outcome), Some(_)) => {
                workload.round = None;
                Some(outcome)
            }
            (Word::Outcome(outcome), None) if what != What::Health => Some(outcome),
            // An answer of a round that is over.
            (Word::Described(_) | Word::Reported(_) | Word::Outcome(_), None) => None,
        };
        if let Some(outcome) = outcome {
            workload.arrivals.push_back((number, outcome));
            self.workloads.changed.push(place);
        }
    }
}

/// The name of the allocation at this place in a trace.
fn trace_name(place: usize) -> String {
    format!("a{}", Workloads::number(u32::try_from(place).unwrap_or(u32::MAX)))
}

/// The name of its supervisor in the journal of a host.
fn journal_name(place: usize) -> String {
    format!("allocation {}", trace_name(place))
}

/// An answer of an actor.
enum Word {
    Described(Description),
    Reported(Vec<InstanceReport>),
    Outcome(AllocationOutcome),
}

impl Workload {
    /// One more answer of the round has arrived; the result of the round if it was the last one.
    fn close_round(&mut self) -> Option<AllocationOutcome> {
        let round = self.round.as_mut()?;
        round.missing -= 1;
        let Round { described, reports, .. } = self.round.take_if(|round| round.missing == 0)?;
        Some(AllocationOutcome::Health(Ok(healths(&self.spec.allocation, &described, &reports))))
    }
}

impl What {
    /// The outcome when it is refused.
    fn refused(self, kind: &str, refusal: Refusal) -> AllocationOutcome {
        let error = refusal.into_error(kind);
        match self {
            Self::Register => AllocationOutcome::Registered(Err(error)),
            Self::Deregister => AllocationOutcome::Deregistered(Err(error)),
            Self::Health => AllocationOutcome::Health(Err(error)),
            Self::Retirement => AllocationOutcome::Retired(Err(error)),
        }
    }
}
