//! The routes of the plugins, as the instances report them.

use std::collections::BTreeSet;

use super::state::{InstancesItem, Plugin, Volumes, VolumesCall, VolumesOutcome, VolumesTimer};
use super::unused::ServedBy;
use crate::FeedItem;
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::kernel::{CallLost, StepContext, follow_on};
use crate::vocabulary::{Health, PluginKey, PluginName, PluginType};
use crate::volume::{ControllerRoute, NodeRoute, Route};

impl Volumes {
    pub(super) fn followed(
        &mut self,
        outcome: &Result<VolumesOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let again = (VolumesCall::Follow { afresh: false }, VolumesTimer::Refollow);
        follow_on(outcome, again, cx, |outcome, cx| match outcome {
            VolumesOutcome::Followed(Ok(items)) => {
                self.heard(items, cx);
                true
            }
            _ => false,
        });
    }

    /// Applies all items of the instances, and sends each route that has changed.
    fn heard(&mut self, items: &[InstancesItem], cx: &mut StepContext<Self>) {
        let mut touched = BTreeSet::new();
        for item in items {
            match item {
                FeedItem::Snapshot { view, .. } => touched.extend(self.replace_instances(view)),
                FeedItem::Change { news: InstancesNews::Reported(report), .. } => {
                    touched.extend(self.set_instance(&report.plugin, Some(report)));
                }
                FeedItem::Change { news: InstancesNews::Left(report), .. } => {
                    touched.extend(self.set_instance(&report.plugin, None));
                }
                // No work is routed to these instances, or nothing has changed.
                FeedItem::Change {
                    news: InstancesNews::Standby(_) | InstancesNews::Expected(_) | InstancesNews::Settled,
                    ..
                } => {}
                // A snapshot follows a lag.
                FeedItem::Lagged { .. } => {}
            }
        }
        for plugin in touched {
            self.update_route(&plugin, cx);
        }
    }

    fn replace_instances(&mut self, view: &InstancesView) -> BTreeSet<PluginName> {
        let mut touched: BTreeSet<_> = self.plugins.keys().cloned().collect();
        for plugin in self.plugins.values_mut() {
            (plugin.node, plugin.controller) = (None, None);
        }
        for report in &view.reports {
            touched.extend(self.set_instance(&report.plugin, Some(report)));
        }
        touched
    }

    /// Records the instance to which work is routed. Plugins without volumes are ignored.
    fn set_instance(&mut self, key: &PluginKey, report: Option<&InstanceReport>) -> Option<PluginName> {
        let half = match key.plugin_type {
            PluginType::CsiNode => |plugin: &mut Plugin, report| plugin.node = report,
            PluginType::CsiController => |plugin: &mut Plugin, report| plugin.controller = report,
            PluginType::Driver | PluginType::Device => return None,
        };
        half(self.plugins.entry(key.name.clone()).or_default(), report.cloned());
        Some(key.name.clone())
    }

    /// Sends the route of a plugin if it has changed.
    fn update_route(&mut self, name: &PluginName, cx: &mut StepContext<Self>) {
        let Some(plugin) = self.plugins.get_mut(name) else { return };
        let route = plugin.present_route();
        let is_new = route != plugin.route;
        let is_gone = plugin.node.is_none() && plugin.controller.is_none();
        plugin.route = route;
        // A plugin that fails for a moment, or with one half gone, is still about to leave.
        let former = self.leaving.get(name);
        let has_left = is_gone || former.is_some_and(|former| plugin.is_taken_over_from(*former));
        if has_left {
            self.stays(name, cx);
        }
        if is_new {
            self.send_route(name, cx);
        }
        if is_gone {
            self.plugins.remove(name);
        }
    }

    pub(super) fn send_route(&self, plugin: &PluginName, cx: &mut StepContext<Self>) {
        let route = self.plugins.get(plugin).map(|plugin| plugin.route.clone()).unwrap_or_default();
        self.call(VolumesCall::SetRoute { plugin: plugin.clone(), route }, cx);
    }
}

impl Plugin {
    /// The instances to which work is routed, healthy or not.
    pub(super) fn served_by(&self) -> ServedBy {
        [&self.node, &self.controller].map(|report| report.as_ref().map(|report| report.generation))
    }

    /// Whether an instance other than these serves a half of the plugin.
    pub(super) fn is_taken_over_from(&self, former: ServedBy) -> bool {
        let Route { node, controller } = &self.route;
        let present =
            [node.as_ref().map(|node| node.generation), controller.as_ref().map(|half| half.generation)];
        present.iter().zip(former).any(|(present, former)| {
            // If there was none, its first news may have arrived only now.
            former.is_some() && present.is_some() && *present != former
        })
    }

    /// Work is routed only to healthy instances (I2).
    fn present_route(&self) -> Route {
        let healthy = |report: &Option<InstanceReport>| {
            let report = report.as_ref().filter(|report| report.health == Health::Healthy)?;
            Some((report.generation, report.fingerprint.clone()?))
        };
        let node = healthy(&self.node).map(|(generation, found)| NodeRoute::new(generation, &found));
        let controller =
            healthy(&self.controller).map(|(generation, found)| ControllerRoute::new(generation, &found));
        Route { node, controller }
    }
}
