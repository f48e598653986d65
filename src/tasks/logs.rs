//! The logs of tasks: their place, and the lifecycle of their collection.

use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::allocdir::Layout;
use callboard_actors::driver::{DriverCapabilities, FsIsolation};
use callboard_actors::logmon::{Collection, LogPaths, LogSpec, Logs};
use callboard_actors::vocabulary::{AllocationId, TaskName};

use super::Trouble;
use crate::config::TaskLogs;

/// The timeout to drain a task's pipes after its end (T069).
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How a task's output is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// Through pipes of this host.
    Pipes(Collection),
    /// The driver gets no destination for it.
    Nowhere,
}

/// Decided by the configuration and by the driver's capabilities (TH003).
fn destination(logs: TaskLogs, capabilities: &DriverCapabilities) -> Destination {
    let is_off = logs.is_disabled || capabilities.disable_log_collection;
    if !is_off {
        return Destination::Pipes(Collection::Keep(logs.retention));
    }
    // A driver with the isolation `unveil` ignores the given paths and opens pipes in the allocation's directory (T065).
    match capabilities.fs_isolation {
        FsIsolation::Unveil => Destination::Pipes(Collection::Discard),
        FsIsolation::None | FsIsolation::Chroot | FsIsolation::Image => Destination::Nowhere,
    }
}

/// Creates the pipes of a task and starts their readers, before its driver starts it (TH001). Its directories exist.
pub(super) async fn open(
    logs: &Logs,
    name: &AllocationId,
    layout: &Layout,
    config: TaskLogs,
    capabilities: &DriverCapabilities,
) -> Result<LogPaths, Trouble> {
    let collection = match destination(config, capabilities) {
        Destination::Pipes(collection) => collection,
        Destination::Nowhere => {
            let nowhere = PathBuf::from("/dev/null");
            return Ok(LogPaths { stdout: nowhere.clone(), stderr: nowhere });
        }
    };
    // Tasks may write below the directory of all allocations.
    let root = layout.allocation_dir.parent().unwrap_or(&layout.allocation_dir);
    let spec = LogSpec {
        key: name.to_string(),
        name: name.to_string(),
        root: root.to_owned(),
        directory: layout.log_dir.strip_prefix(root).unwrap_or(&layout.log_dir).to_owned(),
        collection,
    };
    logs.open(spec).await.map_err(|error| {
        let reason = format!("its logs cannot be collected: {error}");
        Trouble { is_transient: error.is_transient(), ..Trouble::passing(reason) }
    })
}

/// Drains the pipes of an ended task, and removes them.
pub(super) async fn close(logs: &Logs, name: &AllocationId) {
    if let Err(error) = logs.close(name.as_str(), DRAIN_TIMEOUT).await {
        tracing::warn!(task = %name, %error, "cannot close the logs of an ended task");
    }
}

/// Forgets the place of a task's logs.
pub(super) async fn forget(logs: &Logs, name: &TaskName) {
    if let Err(error) = logs.forget(name.as_str()).await {
        tracing::warn!(task = %name, %error, "cannot delete the record of a task's log directory");
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::MountSupport;
    use callboard_actors::logmon::Retention;

    use super::*;

    fn capable(fs_isolation: FsIsolation, disable_log_collection: bool) -> DriverCapabilities {
        DriverCapabilities {
            send_signals: true,
            exec: true,
            fs_isolation,
            network_modes: vec![],
            must_create_network: false,
            mounts: MountSupport::Any,
            disable_log_collection,
            dynamic_workload_users: false,
        }
    }

    #[test]
    fn logs_that_are_not_collected_go_nowhere_but_exec2_gets_pipes_th003_t061_t065() {
        let usual = TaskLogs::default();
        let disabled = TaskLogs { is_disabled: true, ..usual };
        let keep = Destination::Pipes(Collection::Keep(Retention::default()));
        assert_eq!(destination(usual, &capable(FsIsolation::Image, false)), keep);
        assert_eq!(destination(usual, &capable(FsIsolation::Image, true)), Destination::Nowhere);
        assert_eq!(destination(disabled, &capable(FsIsolation::Chroot, false)), Destination::Nowhere);
        let discard = Destination::Pipes(Collection::Discard);
        assert_eq!(destination(disabled, &capable(FsIsolation::Unveil, false)), discard);
        assert_eq!(destination(usual, &capable(FsIsolation::Unveil, true)), discard);
    }
}
