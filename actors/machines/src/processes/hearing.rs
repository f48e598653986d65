//! Handles the news of the process actors for their owner.

use super::launching::{await_disk, failed, refuse};
use super::messages::{NoSuchProcess, ProcessesAnswer, ProcessesNews, Recalled};
use super::state::{Entry, Processes, ProcessesChange, ProcessesTimer, Remembered, Waiter};
use crate::kernel::{Gate, StepContext};
use crate::process::{
    LaunchError, Over, ProcessEnding, ProcessName, ProcessNews, ProcessPhase, ProcessTag, Why,
};

impl Processes {
    pub(super) fn heard(&mut self, name: &ProcessName, news: &ProcessNews, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        match news {
            ProcessNews::Spawned(identity) => {
                entry.record.identity = Some(identity.clone());
                cx.record(ProcessesChange::Keep(vec![entry.record.clone()]));
                entry.turn(ProcessPhase::Spawned, cx);
            }
            ProcessNews::Ready { identity, handshake, is_adopted } => {
                entry.is_adopted = *is_adopted;
                entry.has_said_ready = true;
                // For a process that is found again this was written before.
                if !is_adopted {
                    entry.record.identity = Some(identity.clone());
                    entry.record.handshake.clone_from(handshake);
                    entry.record.is_ready = true;
                    cx.write(Gate::Promises, ProcessesChange::Keep(vec![entry.record.clone()]));
                }
                await_disk(&entry.record, cx);
            }
            ProcessNews::Stopping => entry.turn(ProcessPhase::Stopping, cx),
            ProcessNews::Clearing => entry.turn(ProcessPhase::Clearing, cx),
            ProcessNews::Read { positions, dropped } => {
                entry.record.positions = *positions;
                entry.dropped = *dropped;
                entry.is_behind = true;
                if !self.is_saving {
                    self.is_saving = true;
                    cx.start_timer(ProcessesTimer::Save, cx.now() + self.options.save_every);
                }
            }
            ProcessNews::Over(over) => self.over(name, over, cx),
        }
    }

    /// Its record on disk now contains that it is ready.
    pub(super) fn note_ready(&mut self, name: &ProcessName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.turn(ProcessPhase::Ready, cx);
        self.ready(name, cx);
        self.settle(cx);
    }

    /// Answers the waiting callers. A launch that came during the recall gets it, if it has the same spec.
    fn ready(&mut self, name: &ProcessName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Some(launched) = entry.launched() else { return };
        entry.restarts.reset();
        entry.waiters.retain(|waiter| match waiter {
            Waiter::Launch(id) => {
                cx.reply(*id, ProcessesAnswer::LaunchProcess(Ok(launched.clone())));
                false
            }
            Waiter::Recall(id) => {
                cx.reply(*id, ProcessesAnswer::RecallProcess(Ok(Recalled::Proven(launched.clone()))));
                false
            }
            Waiter::Stop(_) | Waiter::End(_) => true,
        });
        if let Some((id, spec)) = entry.next.take() {
            let answer = if entry.record.is_of(&spec) {
                Ok(launched)
            } else {
                Err(LaunchError::Occupied { name: name.clone(), pid: Some(launched.pid) })
            };
            cx.reply(id, ProcessesAnswer::LaunchProcess(answer));
        }
    }

    pub(super) fn over(&mut self, name: &ProcessName, over: &Over, cx: &mut StepContext<Self>) {
        let Some(mut entry) = self.entries.remove(name) else { return };
        match over {
            Over::NotStarted(error) => {
                cx.record(ProcessesChange::Forget(name.clone()));
                entry.turn(ProcessPhase::Ended, cx);
                let unknown = NoSuchProcess::Unknown { name: name.clone(), tag: Some(entry.record.tag) };
                let ended = Recalled::Ended { ending: None, reason: error.to_string() };
                entry.answer(error, &ended, &Err(unknown), cx);
            }
            Over::Ended { ending, why, diagnosis } => {
                cx.record(ProcessesChange::Forget(name.clone()));
                entry.turn(ProcessPhase::Ended, cx);
                self.remember(&entry, ending, why, cx);
                let past = self.remembered.back().expect("it was remembered just now");
                let (ending_told, reason) = (past.ending.clone().map(Box::new), past.reason.clone());
                let recalled = Recalled::Ended { ending: ending_told, reason };
                entry.answer(&failed(ending, why, diagnosis), &recalled, &Ok(ending.clone()), cx);
            }
            Over::Detached(positions) => {
                entry.record.positions = *positions;
                cx.record(ProcessesChange::Keep(vec![entry.record.clone()]));
                entry.leave(cx);
            }
            Over::Unsettled => entry.leave(cx),
        }
        if let Some((id, spec)) = entry.next.take() {
            self.launch(id, name, spec, cx);
        }
        self.settle(cx);
        self.end_if_empty(cx);
    }

    fn remember(&mut self, entry: &Entry, ending: &ProcessEnding, why: &Why, cx: &mut StepContext<Self>) {
        let (name, tag): (ProcessName, ProcessTag) = (entry.record.name.clone(), entry.record.tag);
        let (told, reason) = match why {
            Why::NotProven(reason) => {
                let reason = reason.clone();
                cx.publish(ProcessesNews::Retired { name: name.clone(), tag, reason: reason.clone() });
                (None, reason)
            }
            Why::Left(reason) => (Some(ending.clone()), reason.clone()),
            Why::Itself | Why::Asked | Why::TimedOut(_) | Why::Handshake(_) | Why::Program(_) => {
                (Some(ending.clone()), ending.to_string())
            }
        };
        if let Some(ending) = &told {
            cx.publish(ProcessesNews::Ended(ending.clone()));
        }
        if self.remembered.len() >= self.options.endings_max.max(1) {
            self.remembered.pop_front();
        }
        self.remembered.push_back(Remembered { name, tag, ending: told, reason });
    }
}

impl Entry {
    fn turn(&mut self, phase: ProcessPhase, cx: &mut StepContext<Processes>) {
        self.phase = phase;
        self.since = cx.now();
        cx.publish(ProcessesNews::Changed(self.report()));
    }

    /// Answers all callers that wait for a process that is over.
    fn answer(
        &mut self,
        error: &LaunchError,
        recalled: &Recalled,
        ended: &Result<ProcessEnding, NoSuchProcess>,
        cx: &mut StepContext<Processes>,
    ) {
        for waiter in std::mem::take(&mut self.waiters) {
            match waiter {
                Waiter::Launch(id) => refuse(id, error.clone(), cx),
                Waiter::Recall(id) => cx.reply(id, ProcessesAnswer::RecallProcess(Ok(recalled.clone()))),
                Waiter::Stop(id) => cx.reply(id, ProcessesAnswer::StopProcess(ended.clone())),
                Waiter::End(id) => cx.reply(id, ProcessesAnswer::AwaitEnd(ended.clone())),
            }
        }
    }

    /// Answers all callers when the host detaches from a process, or from one in an unknown state.
    fn leave(&mut self, cx: &mut StepContext<Processes>) {
        let (name, tag) = (self.record.name.clone(), Some(self.record.tag));
        let reason = "the host is stopping and lets go of it".to_owned();
        let recalled = Recalled::Ended { ending: None, reason };
        let unknown = Err(NoSuchProcess::Unknown { name: name.clone(), tag });
        self.answer(&LaunchError::Stopping { name }, &recalled, &unknown, cx);
    }
}
