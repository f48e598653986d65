//! The news of a supervisor as sentences. They have no lines: a crash and a restart are reported by the actor itself.

use callboard_actors::shell::Ending;
use callboard_actors::supervisor::{ShutdownReport, StopOutcome, SupervisorNews};

/// A piece of news as a sentence.
pub(super) fn sentence(news: &SupervisorNews) -> Option<String> {
    Some(match news {
        SupervisorNews::ChildStarted { restarts: 0, .. } | SupervisorNews::ChildStopped(_) => return None,
        SupervisorNews::ChildStarted { name, restarts } => format!("{name} runs again, restart {restarts}"),
        SupervisorNews::ChildStartFailed { name, reason } => format!("{name} did not start: {reason}"),
        SupervisorNews::ChildEnded { name, ending } => format!("{name} fell: {}", self::ending(ending)),
        SupervisorNews::ChildRestarting { name, .. } => format!("{name} is started again after a pause"),
        SupervisorNews::Escalated { reason } => format!("gives up: {reason}"),
    })
}

/// How everything stopped, without how long it took.
pub(crate) fn stopped(report: &ShutdownReport) -> String {
    let children = report.children.iter().map(|child| match &child.ending {
        StopOutcome::Stopped => child.name.clone(),
        other => format!("{} ({other})", child.name),
    });
    format!("stopped: {}", children.collect::<Vec<_>>().join(", "))
}

/// How an actor ended.
pub(crate) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Normal => "in order".to_owned(),
        Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_) | Ending::Killed => {
            ending.to_string()
        }
    }
}
