//! The law of stops while volumes of a plugin may be in use (V13): which stops wait, and when they are carried out or refused.

use callboard_actors::allocation::Task;
use callboard_actors::allocations::{
    Allocations, AllocationsAnswer, AllocationsAsk, AllocationsCall, AllocationsOutcome, Order,
    StopAllocationError, TaskExited,
};
use callboard_actors::shell::{AskId, Effect, Input, StopMode};
use callboard_actors::vocabulary::{AllocationId, Health};

use super::super::law::Law;
use super::laws::{AllocationsLaws, is_answered};

impl AllocationsLaws {
    /// Whether volumes may depend on an allocation: it was registered, and no other one continues to serve its plugin.
    fn is_needed(&self, allocation: &AllocationId) -> bool {
        let Some(known) = self.known.get(allocation) else { return false };
        let types = known.spec.role.plugin_types();
        let carries_on = self.known.iter().any(|(name, other)| {
            let serves = |plugin_type| other.spec.role.plugin_types().contains(plugin_type);
            let is_same = other.spec.plugin == known.spec.plugin && types.iter().all(serves);
            let is_there = other.is_registered && other.task != Task::Leaving;
            name != allocation && is_same && is_there && other.health == Health::Healthy
        });
        known.is_registered && known.task != Task::Leaving && self.ending.is_none() && !carries_on
    }

    /// Whether a stop waits from now on. Records it.
    pub(super) fn waits(
        &mut self,
        id: AskId,
        allocation: &AllocationId,
        effects: &[Effect<Allocations>],
    ) -> bool {
        let awaits = |effect: &_| matches!(effect, Effect::Call { call: AllocationsCall::AwaitUnused { id: asker, .. }, .. } if *asker == id);
        let waits = effects.iter().any(awaits);
        if waits {
            self.waiting.insert(id, allocation.clone());
        }
        waits
    }

    /// A stop is carried out at once.
    pub(super) fn check_asked_stop(&mut self, ask: &AllocationsAsk) {
        if let AllocationsAsk::StopAllocation(stop) = ask
            && !stop.even_if_used
            && self.is_needed(&stop.allocation)
        {
            let what = format!("{} is stopped, and its volumes were not asked for", stop.allocation);
            self.verdict.violation(Law::V13, || what);
        }
    }

    /// Whether an order that prepares an allocation came after a stop of it that still waits.
    pub(super) fn is_behind_stop(&self, allocation: &AllocationId, ask: AskId, order: &Order) -> bool {
        let is_before = |(id, of): (&AskId, &AllocationId)| of == allocation && *id < ask;
        matches!(order, Order::Prepare | Order::Adopt) && self.waiting.iter().any(is_before)
    }

    /// Stops that have waited are carried out or refused.
    pub(super) fn end_waits(&mut self, input: &Input<Allocations>, effects: &[Effect<Allocations>]) {
        let is_detaching = matches!(input, Input::StopRequested(StopMode::Detach));
        if !is_detaching {
            self.check_refusals(effects);
        }
        self.waiting.retain(|id, _| !is_answered(*id, effects));
        let over: Vec<AskId> = match input {
            Input::Returned { call: AllocationsCall::AwaitUnused { id, .. }, outcome, .. } => {
                let is_clear = matches!(outcome, Ok(AllocationsOutcome::Unused(Ok(Ok(())))));
                let stopped = self.waiting.get(id).cloned();
                if let Some(allocation) = stopped.as_ref().filter(|of| !is_clear && self.is_needed(of)) {
                    let what = format!("{allocation} is stopped, and its volumes may be in use");
                    self.verdict.violation(Law::V13, || what);
                }
                // Other waiting stops are carried out with it.
                stopped.map_or_else(Vec::new, |allocation| self.waiting_of(&allocation))
            }
            Input::Asked { ask: AllocationsAsk::TaskExited(TaskExited { allocation, .. }), .. } => {
                self.waiting_of(allocation)
            }
            Input::Asked { id, ask: AllocationsAsk::StopAllocation(stop), .. }
                if !self.waiting.contains_key(id) =>
            {
                self.waiting_of(&stop.allocation)
            }
            // Another allocation may serve the plugin from now on.
            Input::Asked { ask: AllocationsAsk::AllocationReported(_), .. }
            | Input::Returned { call: AllocationsCall::Look { .. }, .. } => {
                let is_needed = |allocation: &AllocationId| self.is_needed(allocation);
                self.waiting.iter().filter(|(_, of)| !is_needed(of)).map(|(id, _)| *id).collect()
            }
            Input::StopRequested(StopMode::Stop) => self.waiting.keys().copied().collect(),
            Input::Resumed
            | Input::Asked { .. }
            | Input::Returned { .. }
            | Input::Elapsed(_)
            | Input::StopRequested(StopMode::Detach) => Vec::new(),
        };
        for id in over {
            let allocation = self.waiting.remove(&id);
            if let Some(known) = allocation.and_then(|allocation| self.known.get_mut(&allocation)) {
                known.takes(id, &Order::Stop);
                known.late.insert(id, false);
            }
        }
    }

    /// An allocation that no volume depends on is not kept from stopping.
    fn check_refusals(&mut self, effects: &[Effect<Allocations>]) {
        for effect in effects {
            let Effect::Reply(_, AllocationsAnswer::StopAllocation(Err(error))) = effect else { continue };
            let (StopAllocationError::Used { allocation, .. }
            | StopAllocationError::Unclear { allocation, .. }) = error
            else {
                continue;
            };
            if !self.is_needed(allocation) {
                let what = format!("{allocation} is not stopped, and nothing depends on it");
                self.verdict.violation(Law::V13, || what);
            }
        }
    }

    fn waiting_of(&self, allocation: &AllocationId) -> Vec<AskId> {
        self.waiting.iter().filter(|(_, of)| *of == allocation).map(|(id, _)| *id).collect()
    }
}
