//! Keeps the last events of plugins, allocations, drivers and volumes with their times, as their actors reported them: a few of each, in
//! memory. Events of tasks are kept with the tasks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::drivers::DriversNews;
use callboard_actors::instances::{InstanceReport, InstancesNews};
use callboard_actors::shell::{Address, Clock, FeedItem, Machine};
use callboard_actors::vocabulary::text::bounded;
use callboard_actors::volumes::VolumesNews;
use callboard_proto::admin::v1 as wire;
use tokio::task::JoinHandle;

use super::convert::unix_ms;
use crate::agent::{Agent, AgentNews};
use crate::config::volume_words;
use crate::host::Host;
use crate::timeline;

/// How many events of each subject are kept.
const KEPT_MAX: usize = 10;
/// The longest text of an event, in bytes.
const TEXT_BYTES_MAX: usize = 500;
/// How many news of an actor may wait in the queue.
const UNREAD_MAX: usize = 1_024;

/// The subject of an event: `allocation`, `driver`, `volume`, or the type of a plugin, and its name.
type Subject = (&'static str, String);

/// The events. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Events(Arc<Mutex<BTreeMap<Subject, VecDeque<wire::TaskEvent>>>>);

/// Records events until it is dropped.
#[derive(Debug)]
pub struct EventLog {
    pub(super) events: Events,
    listening: Vec<JoinHandle<()>>,
}

impl Events {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<Subject, VecDeque<wire::TaskEvent>>> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event; a repeated event is only counted.
    fn note(&self, subject: Subject, text: &str, at: u64) {
        let text = bounded(text, TEXT_BYTES_MAX);
        let mut kept = self.kept();
        let events = kept.entry(subject).or_default();
        match events.back_mut() {
            Some(last) if last.text == text => {
                last.last_unix_ms = at;
                last.count += 1;
            }
            _ => {
                if events.len() == KEPT_MAX {
                    events.pop_front();
                }
                events.push_back(wire::TaskEvent { text, first_unix_ms: at, last_unix_ms: at, count: 1 });
            }
        }
    }

    fn of(&self, kind: &str, name: &str) -> Vec<wire::TaskEvent> {
        let kept = self.kept();
        let found = kept.iter().find(|((known, of), _)| *known == kind && of == name);
        found.map(|(_, events)| events.iter().cloned().collect()).unwrap_or_default()
    }

    /// Adds the events of everything with this name, and of what belongs to it.
    pub(super) fn tell(&self, name: &str, status: &mut wire::GetStatusResponse) {
        for plugin in status.plugins.iter_mut().filter(|plugin| plugin.name == name) {
            plugin.events = self.of(&plugin.r#type, name);
        }
        let is_of = |one: &&mut wire::AllocationStatus| one.name == name || one.plugin == name;
        for allocation in status.allocations.iter_mut().filter(is_of) {
            allocation.events = self.of("allocation", &allocation.name);
        }
        for driver in status.drivers.iter_mut().filter(|driver| driver.name == name) {
            driver.events = self.of("driver", name);
        }
        for volume in status.volumes.iter_mut().filter(|volume| volume_words::is_named(&volume.name, name)) {
            volume.events = self.of("volume", &volume.name);
        }
    }

    fn agent_told(&self, news: &AgentNews, at: u64) {
        let AgentNews::TaskChanged(task) = news;
        self.note(("allocation", task.allocation.to_string()), &task.last_event, at);
    }

    fn instances_told(&self, news: &InstancesNews, at: u64) {
        let (report, standing) = match news {
            InstancesNews::Reported(report) | InstancesNews::Left(report) => (report, ""),
            InstancesNews::Standby(report) => (report, ", which stands by,"),
            InstancesNews::Expected(_) | InstancesNews::Settled => return,
        };
        let InstanceReport { plugin, allocation, generation, health, .. } = report;
        let text = format!("{allocation}{standing} is {health}, generation {generation}");
        self.note((plugin.plugin_type.as_str(), plugin.name.to_string()), &text, at);
    }

    fn drivers_told(&self, news: &DriversNews, at: u64) {
        let (name, text) = match news {
            DriversNews::Reported(report) | DriversNews::Left(report) => {
                let reason = if report.reason.is_empty() { "" } else { ": " };
                let text = format!("{}, {}{reason}{}", report.stage, report.health, report.reason);
                (&report.name, text)
            }
            DriversNews::EventsInterrupted { driver, error, .. } => {
                (driver, format!("its stream of task events ended: {error}"))
            }
            DriversNews::DeadLetters { driver, count, .. } => {
                (driver, format!("{count} of its task events reached no handler"))
            }
        };
        self.note(("driver", name.to_string()), &text, at);
    }

    /// Records the news of volumes. A forgotten volume no longer has events: there may be many such volumes.
    fn volumes_told(&self, news: &VolumesNews, at: u64) {
        let key = match news {
            VolumesNews::Changed(report) => &report.volume.spec.key,
            VolumesNews::OrderFailed { volume, .. } | VolumesNews::ClaimFailed { volume, .. } => volume,
            VolumesNews::Forced(forced) => &forced.volume,
            VolumesNews::Forgotten(key) => {
                self.kept().remove(&("volume", key.to_string()));
                return;
            }
        };
        self.note(("volume", key.to_string()), &timeline::volume_event(news), at);
    }
}

impl EventLog {
    /// Subscribes to all actors with events. Must be called before they start, so that no event is missed.
    #[must_use]
    pub fn begin(host: &Host, agent: &Address<Agent>) -> Self {
        let events = Events::default();
        let [of_agent, instances, drivers, volumes] = std::array::from_fn(|_| events.clone());
        let listening = vec![
            follow(agent.clone(), move |news, at| of_agent.agent_told(news, at)),
            follow(host.instances().clone(), move |news, at| instances.instances_told(news, at)),
            follow(host.drivers().clone(), move |news, at| drivers.drivers_told(news, at)),
            follow(host.volumes().clone(), move |news, at| volumes.volumes_told(news, at)),
        ];
        Self { events, listening }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
    }
}

/// Records the news of an actor, and of its next incarnation; the state before the subscription is not news.
fn follow<M: Machine>(address: Address<M>, note: impl Fn(&M::News, u64) + 'static) -> JoinHandle<()> {
    // Subscribes now, not only when the task is first polled.
    let mut feed = address.subscribe_early("events", UNREAD_MAX);
    actix_rt::spawn(async move {
        loop {
            while let Some(item) = feed.next().await {
                if let FeedItem::Change { news, .. } = item {
                    note(&news, unix_ms(Clock::system().now()));
                }
            }
            feed = address.subscribe_early("events", UNREAD_MAX);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_of_the_last_events_are_kept_and_the_same_is_counted() {
        let events = Events::default();
        let subject = || ("allocation", "a".to_owned());
        for number in 0..20 {
            events.note(subject(), &format!("event {}", number / 2), number);
        }
        events.note(subject(), &"x".repeat(10_000), 20);
        events.note(("driver", "a".to_owned()), "healthy", 21);
        let mut status = wire::GetStatusResponse::default();
        status.allocations.push(wire::AllocationStatus { name: "a".to_owned(), ..Default::default() });
        status.allocations.push(wire::AllocationStatus { name: "b".to_owned(), ..Default::default() });
        events.tell("a", &mut status);
        let told = &status.allocations[0].events;
        assert_eq!(told.len(), KEPT_MAX);
        let expected =
            wire::TaskEvent { text: "event 1".to_owned(), first_unix_ms: 2, last_unix_ms: 3, count: 2 };
        assert_eq!(told[0], expected);
        assert!(told[KEPT_MAX - 1].text.len() < 600);
        assert_eq!(status.allocations[1].events, []);
    }
}
