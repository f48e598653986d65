//! Follows a stop of the host: what has ended, what is waited for, and until when.

use std::time::Duration;

use callboard_actors::shell::{AskError, FeedItem, StopMode, StopStep};
use callboard_actors::supervisor::{ChildEnding, SupervisorNews, TreeNode};
use callboard_actors::vocabulary::{AllocationId, Timestamp};
use callboard_proto::admin::v1 as wire;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;

use super::convert::{self, unix_ms};
use crate::host::Host;

/// How many endings may wait in the queue.
const QUEUE: usize = 1_024;
/// An actor that ends with its host is reported as ended within this time.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);

/// A stop of the host in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopping {
    /// When it began.
    pub since: Timestamp,
    /// Whether what survives a host is left running.
    pub mode: StopMode,
    /// The endings, in their order.
    pub ended: Vec<ChildEnding>,
}

impl Stopping {
    /// Records what ends in a host that is being stopped, until the host has ended.
    pub async fn follow(self, host: &Host, progress: &watch::Sender<Option<Self>>) {
        progress.send_replace(Some(self));
        let Ok(mut news) = host.supervisor().subscribe("callboard run", QUEUE) else { return };
        while let Some(item) = news.next().await {
            if let FeedItem::Change { news: SupervisorNews::ChildStopped(ending), .. } = item {
                progress.send_modify(|stopping| {
                    stopping.iter_mut().for_each(|stopping| stopping.ended.push(ending.clone()));
                });
            }
        }
    }

    fn steps(&self) -> Vec<StopStep> {
        self.ended.iter().flat_map(|child| child.steps("host")).collect()
    }

    /// The stop of the host, if it explains why an actor does not run; `None` if that has another reason.
    pub(super) async fn that_ended(told: &watch::Receiver<Option<Self>>, error: &AskError) -> Option<Self> {
        let (AskError::NotRunning { actor }, mut told) = (error, told.clone()) else { return None };
        told.borrow().as_ref()?;
        let has_ended =
            |stopping: &Option<Self>| stopping.as_ref().is_some_and(|one| one.end_of(actor).is_some());
        timeout(ENDING_TIMEOUT, told.wait_for(has_ended)).await.ok()?.ok()?.clone()
    }

    /// How an actor of the host ended, if it has ended.
    pub(super) fn end_of(&self, actor: &str) -> Option<String> {
        let ended = self.ended.iter().find(|child| child.name == actor);
        ended.map(|child| format!("it has ended, since the host is stopping: {}", child.ending))
    }

    /// The stopped parts of an allocation or a task whose actor has ended.
    pub(super) fn stopped(&self, name: &AllocationId) -> Result<Vec<wire::ChildEnding>, Status> {
        let is_of_it = |step: &StopStep| step.what.split_once('/').is_some_and(|(_, of)| of == name.as_str());
        let steps: Vec<_> = self.steps().iter().filter(|step| is_of_it(step)).map(convert::step).collect();
        if steps.is_empty() {
            let text = format!("{name} does not run: the host is stopping");
            return Err(Status::failed_precondition(text));
        }
        Ok(steps)
    }

    /// The progress of the stop, with the actors in the tree that are still stopping their processes.
    pub(super) fn status(&self, tree: &TreeNode, now: Timestamp) -> wire::Stopping {
        let still_stops = |actor: &&TreeNode| is_stopping(actor) && self.end_of(&actor.name).is_none();
        let parts = tree.children.iter().filter(still_stops).flat_map(|actor| actor.children.iter().rev());
        let ended = self.steps().into_iter().chain(parts.flat_map(|part| part.ended.clone()));
        wire::Stopping {
            since_unix_ms: unix_ms(self.since),
            detach: self.mode == StopMode::Detach,
            ended: ended.map(|step| convert::step(&step)).collect(),
            waits_for: awaited(tree, now),
        }
    }
}

/// Whether a node is being stopped; its health may follow in the text.
fn is_stopping(node: &TreeNode) -> bool {
    node.state.split(", ").next() == Some("stopping")
}

/// What a stopping host waits for: its actors that are being stopped, each with what it stops itself. What has no limit of its own has the
/// limit of its actor.
#[must_use]
pub fn awaited(tree: &TreeNode, now: Timestamp) -> Vec<wire::Awaited> {
    let at = |within: Option<Duration>| within.map_or(0, |within| unix_ms(now + within));
    let mut awaited = Vec::new();
    for actor in tree.children.iter().filter(|actor| is_stopping(actor)) {
        awaited.push(wire::Awaited {
            name: format!("{}/{}", tree.name, actor.name),
            message: actor.message.clone(),
            until_unix_ms: at(actor.stops_within),
            kill_unix_ms: 0,
        });
        awaited.extend(actor.children.iter().filter(|part| is_stopping(part)).map(|part| wire::Awaited {
            name: format!("{}/{}", part.kind, part.name),
            message: part.message.clone(),
            until_unix_ms: at(part.stops_within.or(actor.stops_within)),
            kill_unix_ms: at(part.kills_within),
        }));
    }
    awaited
}

#[cfg(test)]
mod tests {
    use callboard_actors::supervisor::StopOutcome;

    use super::*;

    fn node(name: &str, state: &str, children: Vec<TreeNode>) -> TreeNode {
        let (name, state, kind) = (name.to_owned(), state.to_owned(), "task".to_owned());
        TreeNode { name, state, kind, children, ..TreeNode::default() }
    }

    #[test]
    fn what_is_waited_for_is_named_with_its_time_and_what_has_ended_is_not() {
        let web = TreeNode { message: "ending process 7".to_owned(), ..node("web", "stopping", vec![]) };
        let agent = node("agent", "stopping", vec![web, node("db", "stopped", vec![])]);
        let agent = TreeNode { stops_within: Some(Duration::from_secs(5)), ..agent };
        let tree = node(
            "host",
            "stopping",
            vec![node("registry", "running", vec![]), agent, node("tasks", "ended", vec![])],
        );
        let awaited = awaited(&tree, Timestamp::from_epoch(Duration::from_secs(1)));
        let told: Vec<_> = awaited.iter().map(|a| (&*a.name, &*a.message, a.until_unix_ms)).collect();
        assert_eq!(told, [("host/agent", "", 6_000), ("task/web", "ending process 7", 6_000)]);
    }

    #[test]
    fn who_stops_what_has_ended_already_hears_how_it_ended() {
        let step = |what: &str| StopStep {
            what: what.to_owned(),
            ending: "exit code 0".to_owned(),
            took: Duration::ZERO,
            is_left: false,
        };
        let below = vec![step("allocation/a"), step("process/a"), step("process/ab")];
        let ending = ChildEnding {
            name: "agent".to_owned(),
            ending: StopOutcome::Stopped,
            below,
            took: Duration::ZERO,
        };
        let stopping = Stopping { since: Timestamp::default(), mode: StopMode::Stop, ended: vec![ending] };
        let name = |name: &str| AllocationId::new(name).expect("a good name");
        let told = stopping.stopped(&name("a")).expect("it has ended");
        let told: Vec<_> = told.iter().map(|ending| &*ending.child).collect();
        assert_eq!(told, ["allocation/a", "process/a"]);
        assert_eq!(
            stopping.stopped(&name("c")).expect_err("it did not run").message(),
            "c does not run: the host is stopping"
        );
        assert!(stopping.end_of("agent").is_some() && stopping.end_of("registry").is_none());
    }
}
