//! Builds the tree from the state of the supervisor and the descriptions of its children.

use std::time::Duration;

use super::messages::{SupervisorAnswer, TreeNode};
use super::state::{
    Call, ChildPhase, ChildSeen, ClosingCause, Describing, Phase, RestartStep, Supervisor, WAITERS_MAX,
};
use crate::kernel::{AskId, CallKey, Machine, StepContext, Vitals};
use crate::vocabulary::Generation;

/// The extra time of the call that queries all children, beyond the children's own timeout.
const DESCRIBE_MARGIN: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Callers that ask while a query is pending share its answer; a caller over the limit gets the tree without descriptions.
    pub(super) fn describe(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        match &mut self.describing {
            Some(describing) if describing.askers.len() < WAITERS_MAX => describing.askers.push(id),
            Some(_) => cx.reply(id, SupervisorAnswer::DescribeTree(self.tree(None, &[]))),
            None => {
                let key = self.next_key(Generation::default());
                let within = self.plan.spec.describe_deadline;
                self.describing = Some(Describing { key, askers: vec![id] });
                let deadline = within.saturating_add(DESCRIBE_MARGIN);
                cx.call(key, deadline, Call::DescribeChildren { within });
            }
        }
    }

    pub(super) fn described(
        &mut self,
        key: CallKey,
        own: Option<Vitals>,
        children: &[ChildSeen],
        cx: &mut StepContext<Self>,
    ) {
        if self.describing.as_ref().is_some_and(|describing| describing.key == key) {
            self.answer_describers(own, children, cx);
        }
    }

    pub(super) fn answer_describers(
        &mut self,
        own: Option<Vitals>,
        children: &[ChildSeen],
        cx: &mut StepContext<Self>,
    ) {
        let Some(describing) = self.describing.take() else { return };
        let tree = self.tree(own, children);
        for id in describing.askers {
            cx.reply(id, SupervisorAnswer::DescribeTree(tree.clone()));
        }
    }

    /// The tree; for children without a description it shows the state known to the supervisor.
    pub(super) fn tree(&self, own: Option<Vitals>, seen: &[ChildSeen]) -> TreeNode {
        let (state, message) = self.own_state();
        let child = |child| self.child_node(child, seen.get(child).unwrap_or(&ChildSeen::default()));
        TreeNode {
            name: self.plan.name.clone(),
            kind: Self::KIND.to_owned(),
            state: state.to_owned(),
            restarts: 0,
            crashes: own.map(|vitals| vitals.crashes),
            mailbox_depth: own.map(|vitals| vitals.mailbox_depth),
            message,
            stops_within: None,
            kills_within: None,
            ended: Vec::new(),
            children: (0..self.children.len()).map(child).collect(),
        }
    }

    fn own_state(&self) -> (&'static str, String) {
        match &self.phase {
            Phase::FindingChildren { .. } | Phase::Opening => ("starting", String::new()),
            Phase::Open => ("running", String::new()),
            Phase::Closing(closing) => match &closing.cause {
                ClosingCause::Asked => ("stopping", String::new()),
                ClosingCause::StartFailed { child, reason } => {
                    ("stopping", format!("{child} did not start: {reason}"))
                }
                ClosingCause::Escalated { reason } => ("stopping", reason.clone()),
            },
        }
    }

    fn child_node(&self, child: usize, seen: &ChildSeen) -> TreeNode {
        let described = seen.description.as_ref();
        let spec = self.spec_of(child);
        let state = &self.children[child];
        // For a child that runs, its own report is more precise.
        let silence = described.and_then(|description| description.silence.as_ref());
        let silence = silence.filter(|_| matches!(state.phase, ChildPhase::Running { .. }));
        let state_shown = if silence.is_some() { "not answering" } else { self.child_state(child) };
        TreeNode {
            name: spec.name.clone(),
            kind: spec.kind.clone(),
            state: state_shown.to_owned(),
            restarts: state.restarts,
            crashes: described.map(|description| description.vitals.crashes),
            mailbox_depth: described.map(|description| description.vitals.mailbox_depth),
            message: match &state.phase {
                ChildPhase::Stuck { reason } => reason.clone(),
                ChildPhase::Unseen
                | ChildPhase::Waiting
                | ChildPhase::Starting { .. }
                | ChildPhase::Running { .. }
                | ChildPhase::Stopping { .. }
                | ChildPhase::Ended
                | ChildPhase::Closed => {
                    let fall = state.fall.as_ref().map(|fall| &fall.reason);
                    silence.or(fall).cloned().unwrap_or_default()
                }
            },
            stops_within: seen.stops_within,
            kills_within: None,
            ended: Vec::new(),
            children: described.map_or_else(Vec::new, |description| description.children.clone()),
        }
    }

    fn child_state(&self, child: usize) -> &'static str {
        match self.children[child].phase {
            ChildPhase::Unseen => "unknown",
            ChildPhase::Waiting if self.is_pausing(child) => "waiting to be restarted",
            ChildPhase::Waiting => "waiting to be started",
            ChildPhase::Starting { .. } => "starting",
            ChildPhase::Running { .. } => "running",
            ChildPhase::Stopping { .. } => "stopping",
            ChildPhase::Ended | ChildPhase::Closed => "ended",
            ChildPhase::Stuck { .. } => "stuck",
        }
    }

    fn is_pausing(&self, child: usize) -> bool {
        self.group_restarts
            .iter()
            .any(|group| group.step == RestartStep::Pausing && group.members.contains(&child))
    }
}
