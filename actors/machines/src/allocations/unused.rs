//! Stops an allocation whose plugin serves volumes: the stop waits until these are released, or is refused (V13). While it waits, the
//! allocation is not prepared for another start, so that a stop keeps its place in the order of requests.

use std::collections::BTreeSet;
use std::time::Duration;

use super::messages::{AllocationsAnswer, StopAllocation, StopAllocationError};
use super::state::{
    Allocations, AllocationsCall, AllocationsChange, AllocationsOutcome, Entry, Leaving, Order,
};
use crate::allocation::{AllocationNews, AllocationPhase, Task};
use crate::kernel::{AskId, CallKey, CallLost, StepContext, StopMode};
use crate::vocabulary::{AllocationId, Health, Timestamp};
use crate::volumes::{AwaitUnused, AwaitUnusedError};

/// How much longer than its own timeout the wait for the volumes may take.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);
/// The shortest wait. A question with no wait does not refuse new claims.
const UNUSED_WITHIN_MIN: Duration = Duration::from_secs(1);

impl Allocations {
    /// Stops an allocation. If volumes may depend on it, waits first until the volumes of its plugin are unused.
    pub(super) fn stop(
        &mut self,
        (asked_at, id): (Timestamp, AskId),
        asked: &StopAllocation,
        cx: &mut StepContext<Self>,
    ) {
        let StopAllocation { allocation, even_if_used } = asked;
        let serving = self.entries.get(allocation).filter(|entry| !even_if_used && self.is_needed(entry));
        let Some(entry) = serving else {
            self.stop_at_once(allocation, cx);
            return self.pass_on(allocation, (asked_at, id), Order::Stop, cx);
        };
        // A stop that is repeated after a crash of the owner has waited already.
        let left = (asked_at + self.options.unused_within).since(cx.now());
        let within = left.max(UNUSED_WITHIN_MIN);
        let asked = AwaitUnused { plugin: entry.record.spec.plugin.clone(), within };
        self.waiting_stops.insert(id, allocation.clone());
        let deadline = within.saturating_add(ANSWER_MARGIN);
        cx.call(CallKey::default(), deadline, AllocationsCall::AwaitUnused { id, asked });
    }

    /// Whether volumes may depend on this allocation: it was registered, and no other allocation serves the plugin instead.
    fn is_needed(&self, entry: &Entry) -> bool {
        let types = entry.record.spec.role.plugin_types();
        let carries_on = |other: &Entry| {
            let of = &other.record.spec;
            of.allocation != entry.record.spec.allocation
                && of.plugin == entry.record.spec.plugin
                && types.iter().all(|plugin_type| of.role.plugin_types().contains(plugin_type))
                && other.record.is_registered
                && other.leaving == Leaving::No
                && other.status.health == Health::Healthy
        };
        let is_leaving = self.ending.is_some() || entry.leaving != Leaving::No;
        !is_leaving && entry.record.is_registered && !self.entries.values().any(carries_on)
    }

    pub(super) fn unused_answered(
        &mut self,
        id: AskId,
        outcome: &Result<AllocationsOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        // The stop continued without the answer.
        let Some(allocation) = self.waiting_stops.remove(&id) else { return };
        let is_needed = self.entries.get(&allocation).is_some_and(|entry| self.is_needed(entry));
        match refusal(&allocation, outcome).filter(|_| is_needed) {
            Some(error) => cx.reply(id, AllocationsAnswer::StopAllocation(Err(error))),
            None => {
                self.pass_on(&allocation, (cx.now(), id), Order::Stop, cx);
                // The other waiting stops want the same, and do not belong to a later start.
                self.stop_at_once(&allocation, cx);
            }
        }
    }

    /// Whether a stop of an allocation waits until the volumes of its plugin are released.
    pub(super) fn is_asked_to_stop(&self, allocation: &AllocationId) -> bool {
        self.waiting_stops.values().any(|of| of == allocation)
    }

    /// Stops an allocation without waiting any longer: its task has ended by itself, or it is stopped even if its plugin is used.
    pub(super) fn stop_at_once(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let waiting = self.waiting_stops.iter().filter(|(_, of)| *of == allocation);
        let ids: Vec<AskId> = waiting.map(|(id, _)| *id).collect();
        for id in ids {
            self.waiting_stops.remove(&id);
            self.pass_on(allocation, (cx.now(), id), Order::Stop, cx);
        }
    }

    /// Stops the waiting allocations that volumes no longer depend on, since another allocation serves the plugin instead.
    pub(super) fn stop_unneeded(&mut self, cx: &mut StepContext<Self>) {
        let is_needed = |allocation: &&AllocationId| {
            self.entries.get(*allocation).is_some_and(|entry| self.is_needed(entry))
        };
        let unneeded: BTreeSet<AllocationId> =
            self.waiting_stops.values().filter(|allocation| !is_needed(allocation)).cloned().collect();
        for allocation in unneeded {
            self.stop_at_once(&allocation, cx);
        }
    }

    /// The host ends: each waiting stop is carried out now, or the allocation is left in place.
    pub(super) fn end_waiting_stops(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        for (id, allocation) in std::mem::take(&mut self.waiting_stops) {
            match mode {
                StopMode::Stop => self.pass_on(&allocation, (cx.now(), id), Order::Stop, cx),
                StopMode::Detach => {
                    let reason = "the host detaches from it".to_owned();
                    let error = StopAllocationError::Unclear { allocation, reason };
                    cx.reply(id, AllocationsAnswer::StopAllocation(Err(error)));
                }
            }
        }
    }
}

impl Entry {
    /// Records that volumes may depend on it, so that this survives a crash of the owner.
    pub(super) fn note_registered(&mut self, news: &AllocationNews, cx: &mut StepContext<Allocations>) {
        let AllocationNews::Changed(status) = news else { return };
        let is_registered = status.phase == AllocationPhase::Registered && self.record.task == Task::Running;
        if is_registered && !self.record.is_registered {
            self.record.is_registered = true;
            let allocation = self.record.spec.allocation.clone();
            cx.persist(AllocationsChange::Keep(allocation, self.record.clone()));
        }
    }
}

/// Why an allocation may not be stopped.
fn refusal(
    allocation: &AllocationId,
    outcome: &Result<AllocationsOutcome, CallLost>,
) -> Option<StopAllocationError> {
    let allocation = allocation.clone();
    let reason = match outcome {
        Ok(AllocationsOutcome::Unused(Ok(Ok(())))) => return None,
        Ok(AllocationsOutcome::Unused(Ok(Err(in_use @ AwaitUnusedError::InUse { .. })))) => {
            return Some(StopAllocationError::Used { allocation, in_use: in_use.clone() });
        }
        Ok(AllocationsOutcome::Unused(Ok(Err(AwaitUnusedError::TooManyCallers(error))))) => error.to_string(),
        Ok(AllocationsOutcome::Unused(Err(error))) => error.to_string(),
        Ok(other) => format!("another answer came: {other:?}"),
        Err(lost) => lost.to_string(),
    };
    Some(StopAllocationError::Unclear { allocation, reason })
}
