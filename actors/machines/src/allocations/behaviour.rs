//! Dispatches the inputs of the owner of the allocations.

use std::collections::BTreeMap;
use std::time::Duration;

use super::messages::{
    AdoptAllocation, AllocationDescription, AllocationReported, AllocationsAnswer, AllocationsAsk,
    AllocationsNews, AllocationsView, PrepareAllocation, TaskExited, TaskStarted,
};
use super::state::{
    Allocations, AllocationsCall, AllocationsChange, AllocationsImage, AllocationsOptions,
    AllocationsOutcome, AllocationsTimer, Entry, Order,
};
use crate::allocation::{AllocationNews, AllocationStatus};
use crate::kernel::{
    AskId, CallKey, CallLost, Input, Machine, StepContext, Vitals, await_endings_again, await_news,
};
use crate::vocabulary::{AllocationId, Attempt, Generation, Moment, Timestamp};

/// The deadline of calls that do not wait.
const AT_ONCE_DEADLINE: Duration = Duration::from_secs(10);

impl Machine for Allocations {
    const KIND: &'static str = "allocations";
    type Config = AllocationsOptions;
    type Image = AllocationsImage;
    type Ask = AllocationsAsk;
    type Answer = AllocationsAnswer;
    type Call = AllocationsCall;
    type Outcome = AllocationsOutcome;
    type Timer = AllocationsTimer;
    type Change = AllocationsChange;
    type News = AllocationsNews;
    type View = AllocationsView;

    fn restore(options: &AllocationsOptions, image: AllocationsImage, moment: Moment) -> Self {
        let AllocationsImage { records, last_life } = image;
        let entries = records.into_iter().map(|(id, record)| (id, Entry::new(record, moment))).collect();
        Self { options: options.clone(), entries, last_life, ending: None, waiting_stops: BTreeMap::new() }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.resumed(cx),
            Input::Asked { id, asked_at, ask } => self.asked((*asked_at, *id), ask, cx),
            Input::Returned { key, call, outcome } => {
                self.returned(key.attempt, call, outcome, cx);
            }
            Input::Elapsed(AllocationsTimer::AwaitEndings) => await_endings(cx),
            Input::Elapsed(AllocationsTimer::Restart(allocation)) => self.restart(allocation, cx),
            Input::Elapsed(AllocationsTimer::ReportWait(allocation)) => self.report_wait_over(allocation, cx),
            Input::Elapsed(AllocationsTimer::StopDeadline) => self.stop_deadline_passed(cx),
            Input::StopRequested(mode) => self.end_all(*mode, cx),
        }
        if self.ending.is_some() && self.entries.is_empty() {
            cx.stop();
        }
    }

    fn view(&self) -> AllocationsView {
        AllocationsView { allocations: self.list() }
    }
}

impl Allocations {
    /// Recovers after its own crash: living supervisors continue, the others are restarted.
    fn resumed(&mut self, cx: &mut StepContext<Self>) {
        await_endings(cx);
        for (allocation, entry) in &self.entries {
            let life = entry.record.life;
            let config = Box::new(entry.birth(&self.options));
            make(life, AllocationsCall::Start { life, config }, cx);
            make(life, AllocationsCall::Look { allocation: allocation.clone(), life }, cx);
        }
    }

    fn asked(&mut self, said: (Timestamp, AskId), ask: &AllocationsAsk, cx: &mut StepContext<Self>) {
        let (_, id) = said;
        match ask {
            AllocationsAsk::PrepareAllocation(PrepareAllocation { spec }) => {
                self.prepare(said, spec, Order::Prepare, cx);
            }
            AllocationsAsk::AdoptAllocation(AdoptAllocation { spec }) => {
                self.prepare(said, spec, Order::Adopt, cx);
            }
            AllocationsAsk::TaskStarted(TaskStarted { allocation }) => {
                self.pass_on(allocation, said, Order::Start, cx);
            }
            AllocationsAsk::TaskExited(TaskExited { allocation, how }) => {
                self.pass_on(allocation, said, Order::Exit(how.clone()), cx);
                self.stop_at_once(allocation, cx);
            }
            AllocationsAsk::StopAllocation(asked) => self.stop(said, asked, cx),
            AllocationsAsk::ListAllocations(_) => {
                cx.reply(id, AllocationsAnswer::ListAllocations(self.list()));
            }
            AllocationsAsk::DescribeAllocations(_) => {
                make(Attempt::default(), AllocationsCall::Describe(id), cx);
            }
            AllocationsAsk::AllocationReported(reported) => {
                self.reported(reported, cx);
                cx.reply(id, AllocationsAnswer::AllocationReported(()));
            }
        }
    }

    // === Outcomes of calls ===

    fn returned(
        &mut self,
        life: Attempt,
        call: &AllocationsCall,
        outcome: &Result<AllocationsOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        match call {
            AllocationsCall::AwaitEndings => {
                let again = (AllocationsCall::AwaitEndings, AllocationsTimer::AwaitEndings);
                await_endings_again(outcome, again, cx);
                if let Ok(AllocationsOutcome::Ended(ended)) = outcome {
                    ended.iter().for_each(|ended| self.supervisor_ended(ended, cx));
                }
            }
            AllocationsCall::Describe(id) => {
                let vitals = |allocation: &AllocationId| match outcome {
                    Ok(AllocationsOutcome::Described(vitals)) => vitals.get(allocation).copied(),
                    Ok(_) | Err(_) => None,
                };
                let described = self.describe(vitals);
                cx.reply(*id, AllocationsAnswer::DescribeAllocations(described));
            }
            AllocationsCall::Tell { allocation, ask, .. } if self.is_current(allocation, life) => {
                match outcome {
                    Ok(AllocationsOutcome::Told(answer)) => {
                        self.told(allocation, *ask, answer, cx);
                    }
                    // It is stuck, since all its own limits have expired: its successor receives the order again.
                    Ok(_) | Err(_) => self.kill(allocation, cx),
                }
            }
            // A status of an earlier life is stale.
            AllocationsCall::Look { allocation, .. } => {
                if let Ok(AllocationsOutcome::Seen(Ok(status))) = outcome {
                    let news = AllocationNews::Changed(status.clone());
                    let allocation = allocation.clone();
                    self.reported(&AllocationReported { allocation, life, news }, cx);
                }
            }
            AllocationsCall::AwaitUnused { id, .. } => self.unused_answered(*id, outcome, cx),
            // These calls have no result, or belong to an earlier life.
            AllocationsCall::Tell { .. }
            | AllocationsCall::Start { .. }
            | AllocationsCall::End { .. }
            | AllocationsCall::Kill { .. } => {}
        }
    }

    fn is_current(&self, allocation: &AllocationId, life: Attempt) -> bool {
        self.entries.get(allocation).is_some_and(|entry| entry.record.life == life)
    }

    fn reported(&mut self, reported: &AllocationReported, cx: &mut StepContext<Self>) {
        let AllocationReported { allocation, life, news } = reported;
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        if entry.record.life != *life {
            return;
        }
        entry.note_registered(news, cx);
        cx.publish(match news {
            AllocationNews::Changed(status) => {
                entry.status = status.clone();
                AllocationsNews::Changed(status.clone())
            }
            AllocationNews::Task(event) => AllocationsNews::Task(event.clone()),
            AllocationNews::RestartRequested { reason } => AllocationsNews::RestartRequested {
                allocation: allocation.clone(),
                task: entry.record.spec.task.clone(),
                reason: reason.clone(),
            },
        });
        self.stop_unneeded(cx);
    }

    // === Queries ===

    fn list(&self) -> Vec<AllocationStatus> {
        self.entries.values().map(|entry| entry.status.clone()).collect()
    }

    fn describe(&self, vitals: impl Fn(&AllocationId) -> Option<Vitals>) -> Vec<AllocationDescription> {
        let described = self.entries.iter().map(|(allocation, entry)| AllocationDescription {
            status: entry.status.clone(),
            crashes: entry.crashes,
            given_up: entry.given_up.clone(),
            vitals: vitals(allocation),
        });
        described.collect()
    }
}

fn await_endings(cx: &mut StepContext<Allocations>) {
    await_news(AllocationsCall::AwaitEndings, cx);
}

/// Makes a call with a short deadline.
pub(super) fn make(life: Attempt, call: AllocationsCall, cx: &mut StepContext<Allocations>) {
    let key = CallKey { generation: Generation::default(), attempt: life };
    cx.call(key, AT_ONCE_DEADLINE, call);
}
