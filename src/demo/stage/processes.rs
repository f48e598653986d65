//! The processes of plugins and tasks, and what is left of them.

use std::time::Duration;

use tokio::time::Instant;

use super::{Stage, TIMEOUT};
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::process_watcher::ProcessWatcher;

impl Stage {
    /// Watches all present processes of plugins and tasks.
    pub(in crate::demo) fn watch_all(&mut self) -> Result<(), DemoError> {
        for (name, pid) in self.scene.status.processes() {
            if !self.watchers.iter().any(|watcher| watcher.pid == pid) {
                self.watchers.push(ProcessWatcher::of(&name, pid)?);
            }
        }
        Ok(())
    }

    /// Checks that these watched processes still run.
    pub(in crate::demo) async fn go_on(&self, pids: &[u32]) -> Look {
        let mut ended = Vec::new();
        for watcher in self.watchers.iter().filter(|watcher| pids.contains(&watcher.pid)) {
            if watcher.ends_within(Duration::ZERO).await {
                ended.push(format!("process {} of {} has ended", watcher.pid, watcher.name));
            }
        }
        let told = pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match ended.is_empty() {
            true => Look::new(true, format!("processes {told}")),
            false => Look::new(false, ended.join(", ")),
        }
    }

    /// Waits for the end of a watched process.
    pub(in crate::demo) async fn has_ended(&self, pid: u32) -> Look {
        let Some(watcher) = self.watchers.iter().find(|watcher| watcher.pid == pid) else {
            return Look::new(false, format!("process {pid} was never seen"));
        };
        let holds = watcher.ends_within(TIMEOUT).await;
        Look::new(
            holds,
            format!("process {pid} of {} {}", watcher.name, if holds { "is gone" } else { "is there" }),
        )
    }

    /// Checks that no socket is left in the directory of the demo.
    pub(in crate::demo) fn no_socket(&self) -> Result<Look, DemoError> {
        let sockets = self.workspace.sockets()?;
        let seen = match sockets.as_slice() {
            [] => "none".to_owned(),
            left => left.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
        };
        Ok(Look::new(sockets.is_empty(), seen))
    }

    /// Checks that every watched process has ended, or names the others.
    pub(in crate::demo) async fn all_ended(&self) -> Look {
        let given_up = Instant::now() + TIMEOUT;
        let mut left = Vec::new();
        for watcher in &self.watchers {
            if !watcher.ends_within(given_up.saturating_duration_since(Instant::now())).await {
                left.push(format!("process {} of {}", watcher.pid, watcher.name));
            }
        }
        match left.is_empty() {
            true => Look::new(true, format!("all {} that were seen have ended", self.watchers.len())),
            false => Look::new(false, format!("still there: {}", left.join(", "))),
        }
    }
}
