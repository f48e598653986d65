//! The laws of the agent: no allocation is stopped for a replacement unless answers about health permit it (F16); processes that survive a
//! detaching host are not stopped (S3); each reported stop in progress has its limits, and asking again to stop what has ended is not
//! refused (S3).

use std::collections::BTreeSet;

use callboard_actors::agent::{
    Agent, AgentAnswer, AgentAsk, AgentCall, AgentNews, AgentOutcome, ClaimTrouble, StopBound, TaskError,
    TaskPhase, TaskReport,
};
use callboard_actors::allocations::{AllocationsNews, AllocationsView};
use callboard_actors::shell::{AskId, Effect, FeedItem, Input, StopMode};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::event::Who;
use crate::{Law, LawChecker, Left, Verdict};

/// Observes every step of the agent.
#[derive(Debug, Clone, Hash, Default)]
pub struct AgentLaws {
    /// The allocations that may be stopped: on request, for a restart or a replacement, or since their volumes were refused permanently.
    may_stop: BTreeSet<Who>,
    /// The replacement in progress, if there is one.
    replacement: Option<Replacement>,
    /// Whether processes survive the host.
    survives: bool,
    /// Whether the host detaches from them.
    is_detached: bool,
    /// Whether the host stops or detaches, and the allocations that have ended since then.
    is_leaving: bool,
    ended: BTreeSet<Who>,
    /// The violations found.
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, Hash)]
struct Replacement {
    asker: AskId,
    /// Whether it has started `new`.
    has_started: bool,
    until: Timestamp,
    /// Whether the timeout of `new` has elapsed, so that the health of `old` decides.
    is_missed: bool,
    /// Whether `old` is being stopped for it, since `new` has been healthy.
    completes: bool,
}

impl AgentLaws {
    pub(super) fn of(survives: bool) -> Self {
        Self { survives, ..Self::default() }
    }

    fn heard(&mut self, moment: Moment, input: &Input<Agent>, effects: &[Effect<Agent>]) {
        match input {
            Input::Asked { ask: AgentAsk::StopTask(stop), .. } => {
                self.may_stop.insert(Who::of(&stop.allocation));
            }
            Input::Asked { id, ask: AgentAsk::Replace(replace), .. } if self.replacement.is_none() => {
                let new = Who::New.id();
                let prepares_new =
                    |call: &AgentCall| matches!(call, AgentCall::Prepare(spec) if spec.allocation == new);
                self.replacement = Some(Replacement {
                    asker: *id,
                    has_started: calls(effects).any(prepares_new),
                    until: moment.now + replace.within,
                    is_missed: false,
                    completes: false,
                });
            }
            Input::Returned { call: AgentCall::AwaitHealthy(question), outcome, .. } => {
                let is_healthy = matches!(outcome, Ok(AgentOutcome::AwaitedHealthy(Ok(Ok(())))));
                self.health_known(moment, Who::of(&question.allocation), is_healthy);
            }
            Input::Returned {
                call: AgentCall::Claim { allocation, .. },
                outcome: Ok(AgentOutcome::Claimed(Err(ClaimTrouble { is_transient: false, .. }))),
                ..
            } => {
                self.may_stop.insert(Who::of(allocation));
            }
            Input::Returned { outcome: Ok(AgentOutcome::Followed(Ok(items))), .. } => {
                self.may_stop.extend(items.iter().filter_map(restarted));
            }
            Input::StopRequested(mode) if self.survives && *mode == StopMode::Detach => {
                (self.is_detached, self.is_leaving) = (true, true);
            }
            Input::StopRequested(StopMode::Stop | StopMode::Detach) => {
                self.is_leaving = true;
                self.may_stop.extend(Who::ALL);
            }
            _ => {}
        }
    }

    fn health_known(&mut self, moment: Moment, who: Who, is_healthy: bool) {
        let Some(replacement) = &mut self.replacement else { return };
        match (who, is_healthy) {
            (Who::New, true) => {
                replacement.completes = true;
                self.may_stop.insert(Who::Old);
            }
            (Who::New, false) => replacement.is_missed = moment.now >= replacement.until,
            (Who::Old, true) if replacement.is_missed && replacement.has_started => {
                self.may_stop.insert(Who::New);
            }
            (Who::Old, _) => {}
        }
    }

    fn done(&mut self, moment: Moment, effects: &[Effect<Agent>]) {
        for call in calls(effects) {
            match call {
                // It is started: earlier permissions to stop it concern another process.
                AgentCall::Prepare(spec) => {
                    self.may_stop.remove(&Who::of(&spec.allocation));
                }
                AgentCall::Withdraw { allocation, .. } | AgentCall::End { allocation, .. }
                    if !self.may_stop.contains(&Who::of(allocation)) =>
                {
                    let law = if self.is_detached { Law::S3 } else { Law::F16 };
                    self.verdict.violation(law, || {
                        format!(
                            "{allocation} is stopped without a request, and no answer about health permits it"
                        )
                    });
                }
                _ => {}
            }
        }
        for effect in effects {
            match effect {
                Effect::Reply(id, answer) => self.answered(*id, answer),
                Effect::Publish(AgentNews::TaskChanged(task)) => self.told(moment, task),
                _ => {}
            }
        }
    }

    /// The report about a task that stops or has stopped.
    fn told(&mut self, moment: Moment, task: &TaskReport) {
        let is_bounded =
            |bound: &StopBound| bound.by >= moment.now && bound.kill.is_none_or(|kill| kill <= bound.by);
        if task.phase == TaskPhase::Stopping && !task.stopping.as_ref().is_some_and(is_bounded) {
            self.verdict.violation(Law::S3, || format!("a stop is told without its limits: {task:?}"));
        }
        if self.is_leaving
            && matches!(task.phase, TaskPhase::Stopped | TaskPhase::Failed)
            && !task.ended.is_empty()
        {
            self.ended.insert(Who::of(&task.allocation));
        }
    }

    /// A caller can rely on the answer that `old` was not replaced.
    fn answered(&mut self, id: AskId, answer: &AgentAnswer) {
        if let AgentAnswer::StopTask(Err(TaskError::NotRunning { allocation, .. })) = answer
            && self.ended.contains(&Who::of(allocation))
        {
            let what = format!(
                "the stop of the host has ended {allocation}, and another request to stop it is refused"
            );
            self.verdict.violation(Law::S3, || what);
        }
        let Some(replacement) = self.replacement.take_if(|replacement| replacement.asker == id) else {
            return;
        };
        if let AgentAnswer::Replace(Err(error)) = answer
            && replacement.completes
        {
            let what = format!("old is stopped since new is healthy, and the caller is told: {error}");
            self.verdict.violation(Law::F16, || what);
        }
    }
}

/// The allocation whose process must be restarted.
fn restarted(item: &FeedItem<AllocationsNews, AllocationsView>) -> Option<Who> {
    match item {
        FeedItem::Change { news: AllocationsNews::RestartRequested { allocation, .. }, .. } => {
            Some(Who::of(allocation))
        }
        _ => None,
    }
}

fn calls(effects: &[Effect<Agent>]) -> impl Iterator<Item = &AgentCall> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Call { call, .. } => Some(call),
        _ => None,
    })
}

impl LawChecker<Agent> for AgentLaws {
    /// A replacement that is not decided yet is requested again and starts from the beginning.
    fn rebuilt(&mut self, _: Moment, _: &Agent) {
        // It surveys its processes, and stops the remaining ones again.
        self.ended.clear();
        self.replacement.take_if(|replacement| !replacement.completes);
    }

    fn stepped(&mut self, moment: Moment, input: &Input<Agent>, effects: &[Effect<Agent>], _: &Agent) {
        self.heard(moment, input, effects);
        self.done(moment, effects);
    }

    fn panicked(&mut self, input: &Input<Agent>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }

    fn left(&mut self, left: &Left<Agent>, is_durable: bool) {
        if !is_durable {
            self.verdict.violation(Law::Shell1, || {
                format!("{left:?} left before the write in front of it was on disk")
            });
        }
    }
}
