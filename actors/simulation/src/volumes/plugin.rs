//! The plugin of the volumes, as the instances report it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use callboard_actors::instances::{InstanceReport, InstancesNews, InstancesView};
use callboard_actors::shell::FeedItem;
use callboard_actors::vocabulary::{
    AllocationId, CsiFingerprint, Fitness, Generation, Health, Identity, NodeCapability, NodeInfo, PluginKey,
    PluginName, PluginType, SocketPath, Timestamp, Topology,
};
use callboard_machines::volume::{NodeRoute, Route};
use callboard_machines::volumes::InstancesItem;

use super::event::PluginWord;

/// The node half of a plugin, and the reports about it that have not arrived.
#[derive(Debug, Clone, Hash)]
pub(super) struct PluginModel {
    report: Option<InstanceReport>,
    generations: u64,
    published: u64,
    limit: u64,
    inbox: VecDeque<InstancesItem>,
    follow: Option<u64>,
}

impl PluginModel {
    /// A plugin that serves.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            report: Some(report(1, limit)),
            generations: 1,
            published: 0,
            limit,
            inbox: VecDeque::new(),
            follow: None,
        }
    }

    /// The present route to it.
    pub(super) fn route(&self) -> Route {
        route_to(self.report.as_ref())
    }

    pub(super) fn may_say(&self, word: PluginWord) -> bool {
        let health = self.report.as_ref().map(|report| &report.health);
        match word {
            PluginWord::Serves => health != Some(&Health::Healthy),
            PluginWord::Ails | PluginWord::TakesOver => health == Some(&Health::Healthy),
            PluginWord::Leaves => health.is_some(),
        }
    }

    pub(super) fn say(&mut self, word: PluginWord) {
        let report = match (word, self.report.take()) {
            (PluginWord::Serves, Some(report)) => InstanceReport { health: Health::Healthy, ..report },
            (PluginWord::Serves | PluginWord::TakesOver, _) => {
                self.generations += 1;
                report(self.generations, self.limit)
            }
            (PluginWord::Ails, Some(report)) => {
                InstanceReport { health: Health::Unhealthy { reason: "it fails".to_owned() }, ..report }
            }
            (PluginWord::Leaves, Some(report)) => {
                let report = InstanceReport { health: Health::Gone, ..report };
                return self.publish(InstancesNews::Left(report));
            }
            (PluginWord::Ails | PluginWord::Leaves, None) => return,
        };
        self.report = Some(report.clone());
        self.publish(InstancesNews::Reported(report));
    }

    fn publish(&mut self, news: InstancesNews) {
        self.published += 1;
        self.inbox.push_back(FeedItem::Change { number: self.published, news });
    }

    fn snapshot(&self) -> InstancesItem {
        let view = InstancesView { reports: self.report.iter().cloned().collect(), ..Default::default() };
        FeedItem::Snapshot { number: self.published, view }
    }

    // === The subscription of the owner ===

    pub(super) fn follow(&mut self, call: u64, afresh: bool) {
        self.follow = Some(call);
        if afresh {
            self.inbox.clear();
            self.inbox.push_back(self.snapshot());
        }
    }

    /// The machine of the owner was rebuilt, and does not follow yet.
    pub(super) const fn forget(&mut self) {
        self.follow = None;
    }

    pub(super) fn has_news(&self) -> bool {
        !self.inbox.is_empty()
    }

    pub(super) const fn is_followed(&self) -> bool {
        self.follow.is_some()
    }

    /// The call that is answered with all reports.
    pub(super) fn deliver(&mut self) -> Option<(u64, Vec<InstancesItem>)> {
        Some((self.follow.take()?, self.inbox.drain(..).collect()))
    }

    /// The call that is cut off.
    pub(super) const fn lose(&mut self) -> Option<u64> {
        self.follow.take()
    }

    pub(super) fn lag(&mut self) {
        self.inbox.clear();
        self.inbox.extend([FeedItem::Lagged { missed: 1 }, self.snapshot()]);
    }
}

/// The route to the instance of a report: only healthy instances have a route.
pub(super) fn route_to(report: Option<&InstanceReport>) -> Route {
    let healthy = report.filter(|report| report.health == Health::Healthy);
    let node = healthy.and_then(|report| {
        let fingerprint = report.fingerprint.as_ref()?;
        Some(NodeRoute::new(report.generation, fingerprint))
    });
    Route { node, controller: None }
}

/// The plugin's name.
pub(super) fn plugin() -> PluginName {
    PluginName::new("p").expect("it is a name")
}

/// The topology of this node.
pub(super) fn here() -> Topology {
    BTreeMap::from([("zone".to_owned(), "here".to_owned())])
}

fn report(generation: u64, limit: u64) -> InstanceReport {
    let max_volumes = Some(limit).filter(|limit| *limit > 0);
    let fingerprint = CsiFingerprint {
        identity: Identity { provider: "p".into(), version: "1".into(), manifest: BTreeMap::new() },
        plugin: Vec::new(),
        expansion: Vec::new(),
        controller: None,
        group_controller: None,
        node: Some(vec![NodeCapability::StageUnstageVolume]),
        node_info: Some(NodeInfo { node_id: "n1".to_owned(), max_volumes, topology: Some(here()) }),
    };
    InstanceReport {
        plugin: PluginKey::new(PluginType::CsiNode, plugin()),
        allocation: AllocationId::new("plugin-1").expect("it is an id"),
        socket: SocketPath::new("/run/p.sock").expect("it is short and absolute"),
        generation: Generation::new(generation),
        health: Health::Healthy,
        since: Timestamp::default(),
        fitness: Fitness::Fit,
        fingerprint: Some(Arc::new(fingerprint)),
        remarks: Vec::new(),
    }
}
