//! The lines of the instances.

use std::collections::BTreeMap;

use callboard_actors::instances::{InstanceReport, InstancesNews, InstancesView};
use callboard_actors::vocabulary::{Generation, Health, PluginKey};

use super::line::{Line, Participant};
use super::news_lines::{NewsLines, joined};

/// Converts the news of the instances into lines.
#[derive(Debug, Default)]
pub(super) struct InstancesTeller {
    known: BTreeMap<PluginKey, (Generation, Health)>,
}

impl NewsLines for InstancesTeller {
    type News = InstancesNews;
    type View = InstancesView;

    fn begin(&mut self, view: &InstancesView) -> Vec<Line> {
        let known =
            |report: &InstanceReport| (report.plugin.clone(), (report.generation, report.health.clone()));
        self.known = view.reports.iter().map(known).collect();
        Vec::new()
    }

    fn lines_of(&mut self, news: &InstancesNews) -> Vec<Line> {
        match news {
            // The disk has reported each of them.
            InstancesNews::Expected(_) => Vec::new(),
            InstancesNews::Reported(report) => self.reported(report),
            InstancesNews::Standby(report) => standby(report),
            InstancesNews::Left(report) => {
                self.known.remove(&report.plugin);
                let message = "the connection is closed";
                vec![of(report, Line::new(Participant::Instances, Participant::Everyone, message))]
            }
            InstancesNews::Settled => {
                vec![Line::new(
                    Participant::Instances,
                    Participant::Everyone,
                    "all that was known before is accounted for",
                )]
            }
        }
    }
}

impl InstancesTeller {
    /// The lines for a new generation, and for a changed health.
    fn reported(&mut self, report: &InstanceReport) -> Vec<Line> {
        let now = (report.generation, report.health.clone());
        let before = self.known.insert(report.plugin.clone(), now);
        let is_same_generation =
            before.as_ref().is_some_and(|(generation, _)| *generation == report.generation);
        if is_same_generation && before.is_some_and(|(_, health)| health == report.health) {
            return Vec::new();
        }
        let process = Participant::Process(report.allocation.clone());
        let begun = Line::new(Participant::Instances, process.clone(), "who are you, and what can you do?");
        let answered = match &report.health {
            Health::Starting => None,
            Health::Healthy => Some(match &report.fingerprint {
                Some(fingerprint) => {
                    format!("healthy: {} {}", fingerprint.identity.provider, fingerprint.identity.version)
                }
                None => "healthy".to_owned(),
            }),
            Health::Unhealthy { reason } => Some(format!("unhealthy: {reason}")),
            Health::Gone => {
                let message = "retire: nothing is routed to you any more";
                return vec![of(report, Line::new(Participant::Instances, process, message))];
            }
        };
        let answered = answered.map(|message| Line::new(process, Participant::Instances, message));
        let begun = (!is_same_generation).then_some(begun);
        begun.into_iter().chain(answered).map(|line| of(report, line)).collect()
    }
}

/// The lines for the health of a standby.
fn standby(report: &InstanceReport) -> Vec<Line> {
    let process = Participant::Process(report.allocation.clone());
    let line = match &report.health {
        Health::Starting => return Vec::new(),
        Health::Healthy => Line::new(process, Participant::Instances, "healthy, stands by"),
        Health::Unhealthy { reason } => {
            Line::new(process, Participant::Instances, format!("unhealthy, stands by: {reason}"))
        }
        Health::Gone => Line::new(Participant::Instances, process, "retire: you stand by no more"),
    };
    vec![of(report, line)]
}

fn of(report: &InstanceReport, line: Line) -> Line {
    line.of_plugin(&report.plugin).of_allocation(&report.allocation).of_generation(report.generation)
}

/// One piece of news as a complete sentence, for message scripts and their subscribers.
pub(super) fn sentence(news: &InstancesNews) -> String {
    match news {
        InstancesNews::Expected(plugins) => format!("awaits {}", joined(plugins)),
        InstancesNews::Reported(report) => self::report(report),
        InstancesNews::Standby(report) if report.health == Health::Gone => self::report(report),
        InstancesNews::Standby(report) => format!("{}, stands by", self::report(report)),
        InstancesNews::Left(report) => format!("{} of {} left", report.plugin, report.allocation),
        InstancesNews::Settled => "all that was known before is accounted for".to_owned(),
    }
}

/// The known facts about an instance.
pub(crate) fn report(report: &InstanceReport) -> String {
    let InstanceReport { plugin, allocation, generation, health, fingerprint, remarks, .. } = report;
    let identity = fingerprint.as_ref().filter(|_| *health == Health::Healthy).map_or(String::new(), |f| {
        format!(", {} {}", f.identity.provider, f.identity.version).trim_end().to_owned()
    });
    let remarks = remarks.iter().map(|remark| format!("; {remark}")).collect::<String>();
    format!("{plugin} of {allocation} @{generation} is {health}{identity}{remarks}")
}

#[cfg(test)]
mod tests {
    use callboard_actors::vocabulary::{
        AllocationId, Fitness, PluginName, PluginType, SocketPath, Timestamp,
    };

    use super::*;

    fn report(generation: u64, health: Health) -> InstancesNews {
        InstancesNews::Reported(reported(generation, health))
    }

    fn reported(generation: u64, health: Health) -> InstanceReport {
        InstanceReport {
            plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
            allocation: AllocationId::new("blue").unwrap(),
            socket: SocketPath::new("/run/a.sock").unwrap(),
            generation: Generation::new(generation),
            health,
            fitness: Fitness::Unproven,
            since: Timestamp::default(),
            fingerprint: None,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn who_begins_to_listen_hears_nothing_of_what_is_known_and_all_that_changes() {
        let mut teller = InstancesTeller::default();
        let view = InstancesView { reports: vec![reported(2, Health::Healthy)], ..InstancesView::default() };
        assert_eq!(teller.begin(&view), []);
        assert_eq!(teller.lines_of(&report(2, Health::Healthy)), []);
        let gone = teller.lines_of(&report(2, Health::Gone));
        let [gone] = &gone[..] else { panic!("{gone:?}") };
        let told = ("process blue".to_owned(), "retire: nothing is routed to you any more");
        assert_eq!((gone.to.to_string(), &*gone.message), told);
        assert_eq!(gone.generation, Some(Generation::new(2)));
        teller.lines_of(&InstancesNews::Left(reported(2, Health::Gone)));
        assert_eq!(teller.lines_of(&report(2, Health::Healthy)).len(), 2, "it has left, and begins anew");
    }

    #[test]
    fn a_generation_begins_and_answers_and_a_repetition_is_not_told() {
        let mut teller = InstancesTeller::default();
        let mut told = |news: InstancesNews| -> Vec<String> {
            teller.lines_of(&news).iter().map(|line| line.message.clone()).collect()
        };
        let nothing = Vec::<String>::new();
        assert_eq!(told(report(2, Health::Starting)), ["who are you, and what can you do?"]);
        assert_eq!(told(report(2, Health::Starting)), nothing);
        assert_eq!(told(report(2, Health::Healthy)), ["healthy"]);
        let unhealthy = Health::Unhealthy { reason: "Probe: refused".to_owned() };
        assert_eq!(told(report(2, unhealthy)), ["unhealthy: Probe: refused"]);
        assert_eq!(told(report(4, Health::Healthy)), ["who are you, and what can you do?", "healthy"]);
    }
}
