//! The law of the gate of a rolling replacement: it opens only for an allocation that has been healthy for the whole time (F16).

use std::collections::BTreeMap;

use callboard_actors::instances::{AwaitHealthy, InstanceReport};
use callboard_actors::shell::AskId;
use callboard_actors::vocabulary::{Health, Timestamp};

use super::model::Place;

/// The time since which each registration is healthy without a break, and the callers that wait for it.
#[derive(Debug, Clone, Hash)]
pub(super) struct Gates {
    healthy: BTreeMap<Place, Timestamp>,
    waiting: BTreeMap<AskId, AwaitHealthy>,
}

impl Gates {
    pub(super) const fn new() -> Self {
        Self { healthy: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    pub(super) fn asked(&mut self, id: AskId, awaited: &AwaitHealthy) {
        self.waiting.insert(id, awaited.clone());
    }

    /// An instance has reported.
    pub(super) fn reported(&mut self, report: &InstanceReport) {
        let place = (report.plugin.clone(), report.allocation.clone());
        if report.health == Health::Healthy {
            self.healthy.entry(place).or_insert(report.since);
        } else {
            self.healthy.remove(&place);
        }
    }

    /// An instance retires or has ended.
    pub(super) fn ended(&mut self, place: &Place) {
        self.healthy.remove(place);
    }

    /// A gate opens. Returns the violation, if there is one.
    pub(super) fn opened(&mut self, id: AskId, now: Timestamp) -> Option<String> {
        let awaited = self.waiting.remove(&id)?;
        let is_open = |plugin: &&_| {
            let since = self.healthy.get(&(<_>::clone(*plugin), awaited.allocation.clone()));
            since.is_some_and(|since| *since + awaited.healthy_for <= now)
        };
        let closed = awaited.plugins.iter().find(|plugin| !is_open(plugin))?;
        let (allocation, span) = (&awaited.allocation, awaited.healthy_for);
        Some(format!("the gate opens, and {closed} of {allocation} has not been healthy for {span:?}"))
    }
}
