//! The tree of everything that runs, with the program at its root.

use std::time::Duration;

use callboard_actors::shell::AskError;
use callboard_actors::supervisor::TreeNode;
use tokio::time::timeout;

use crate::host::Host;

/// How long the host may take, which asks its own actors.
const HOST_DEADLINE: Duration = Duration::from_secs(4);

/// All actors of the program, with what they do as far as they say so.
pub(super) async fn tree(host: &Host) -> TreeNode {
    let actors = match timeout(HOST_DEADLINE, host.tree()).await {
        Ok(Ok(tree)) => tree,
        Ok(Err(error @ AskError::NotRunning { .. })) => silent(host, "not running", error.to_string()),
        Ok(Err(error)) => silent(host, "not answering", error.to_string()),
        Err(_elapsed) => silent(host, "not answering", format!("no answer within {HOST_DEADLINE:?}")),
    };
    TreeNode {
        name: "callboard".to_owned(),
        kind: "program".to_owned(),
        // It does what its host does.
        state: actors.state.clone(),
        message: format!("pid {}", std::process::id()),
        children: vec![actors],
        ..TreeNode::default()
    }
}

fn silent(host: &Host, state: &str, message: String) -> TreeNode {
    let (name, kind) = (host.supervisor().name().to_owned(), "supervisor".to_owned());
    TreeNode { name, kind, state: state.to_owned(), message, ..TreeNode::default() }
}
