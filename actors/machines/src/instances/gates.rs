//! Waits until an allocation has been healthy for a while: the gate of a rolling replacement (F16).

use super::messages::{AwaitHealthy, AwaitHealthyError, InstancesAnswer};
use super::state::{Instances, InstancesTimer};
use crate::kernel::{AskId, StepContext};
use crate::supervisor::ChildState;
use crate::vocabulary::{AllocationId, Health, Timestamp};

/// A caller that waits until an allocation has been healthy for a while.
#[derive(Debug, Clone, Hash)]
pub(super) struct Gate {
    awaited: AwaitHealthy,
    since: Timestamp,
}

impl Instances {
    pub(super) fn health_awaited(
        &mut self,
        id: AskId,
        asked_at: Timestamp,
        awaited: &AwaitHealthy,
        cx: &mut StepContext<Self>,
    ) {
        let refused = if self.is_stopping {
            Some(AwaitHealthyError::Stopping { allocation: awaited.allocation.clone() })
        } else if self.waiting() >= self.options.waiting_max {
            Some(AwaitHealthyError::TooMany { waiting: self.waiting() })
        } else {
            None
        };
        if let Some(error) = refused {
            return cx.reply(id, InstancesAnswer::AwaitHealthy(Err(error)));
        }
        self.gates.insert(id, Gate { awaited: awaited.clone(), since: asked_at });
        self.check_gate(id, cx);
    }

    /// Checks all gates of an allocation, whose health has changed.
    pub(super) fn check_gates(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let gates = self.gates.iter().filter(|(_, gate)| gate.awaited.allocation == *allocation);
        for id in gates.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.check_gate(id, cx);
        }
    }

    /// Answers a caller if its allocation has been healthy for long enough, or its timeout is over.
    pub(super) fn check_gate(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        let Some(Gate { awaited, since }) = self.gates.get(&id) else { return };
        let until = *since + awaited.within;
        let due = self.healthy_since(awaited).map(|healthy| healthy + awaited.healthy_for);
        let next = due.as_ref().map_or(until, |due| until.min(*due));
        if next > cx.now() {
            return cx.start_timer(InstancesTimer::Gate(id), next);
        }
        let reason = match due {
            Ok(due) if due <= cx.now() => None,
            Ok(_) => Some(format!("it has not been healthy for {:?} yet", awaited.healthy_for)),
            Err(reason) => Some(reason),
        };
        let (allocation, waited) = (awaited.allocation.clone(), cx.now().since(*since));
        let not_healthy = |reason| AwaitHealthyError::NotHealthy { allocation, reason, waited };
        cx.cancel_timer(InstancesTimer::Gate(id));
        cx.reply(id, InstancesAnswer::AwaitHealthy(reason.map(not_healthy).map_or(Ok(()), Err)));
        self.gates.remove(&id);
    }

    /// Since when all these plugins of an allocation are healthy, or why one is not.
    fn healthy_since(&self, awaited: &AwaitHealthy) -> Result<Timestamp, String> {
        let (allocation, mut latest) = (&awaited.allocation, Timestamp::default());
        for plugin in &awaited.plugins {
            let entry = self.entries.get(&(plugin.clone(), allocation.clone()));
            let entry = entry.ok_or_else(|| format!("{allocation} is not registered as {plugin}"))?;
            match (entry.child.state(), &entry.report.health) {
                (ChildState::Running(_), Health::Healthy) => latest = latest.max(entry.report.since),
                (_, Health::Unhealthy { reason }) => {
                    return Err(format!("{allocation} is unhealthy as {plugin}: {reason}"));
                }
                (_, health) => return Err(format!("{allocation} is {} as {plugin}", health.as_str())),
            }
        }
        Ok(latest)
    }

    /// Answers all callers that wait at a gate: the host is stopping.
    pub(super) fn close_gates(&mut self, cx: &mut StepContext<Self>) {
        for (id, gate) in std::mem::take(&mut self.gates) {
            cx.cancel_timer(InstancesTimer::Gate(id));
            let error = AwaitHealthyError::Stopping { allocation: gate.awaited.allocation };
            cx.reply(id, InstancesAnswer::AwaitHealthy(Err(error)));
        }
    }
}
