//! Builds the tree of everything that runs, with the program at its root.

use std::time::Duration;

use callboard_actors::shell::{AskError, Machine};
use callboard_actors::supervisor::{Supervisor, TreeNode};
use tokio::time::timeout;

use crate::host::Host;

/// How long an actor of this program may take to describe itself, the same as for actors of the host.
pub(super) const DESCRIBE_DEADLINE: Duration = Duration::from_secs(1);
/// How long the host may take to ask its own actors.
const HOST_DEADLINE: Duration = Duration::from_secs(4);

/// All actors of the program, with the states that they report.
pub(super) async fn tree(host: &Host) -> TreeNode {
    let actors = self::host(host).await;
    TreeNode {
        name: "callboard".to_owned(),
        kind: "program".to_owned(),
        // The program has the state of its host.
        state: actors.state.clone(),
        message: format!("pid {}", std::process::id()),
        children: vec![actors],
        ..TreeNode::default()
    }
}

/// The actors of the host.
pub async fn host(host: &Host) -> TreeNode {
    match answered(HOST_DEADLINE, host.tree()).await {
        Ok(tree) => tree,
        Err((state, message)) => TreeNode {
            name: host.supervisor().name().to_owned(),
            kind: Supervisor::KIND.to_owned(),
            state: state.to_owned(),
            message,
            ..TreeNode::default()
        },
    }
}

/// An answer, or the state of an actor that gave no answer, and the reason.
pub(super) async fn answered<T>(
    within: Duration,
    answer: impl Future<Output = Result<T, AskError>>,
) -> Result<T, (&'static str, String)> {
    match timeout(within, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error @ AskError::NotRunning { .. })) => Err(("not running", error.to_string())),
        Ok(Err(
            error @ (AskError::Busy { .. }
            | AskError::Crashed { .. }
            | AskError::NotDurable { .. }
            | AskError::NotWritten { .. }),
        )) => Err(("not answering", error.to_string())),
        Err(_elapsed) => Err(("not answering", format!("no answer within {within:?}"))),
    }
}
