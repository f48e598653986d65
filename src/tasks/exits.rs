//! How a run of a task ended, as its driver tells it.

use callboard_actors::driver::client::{DriverClient, DriverError, TaskExit, TaskId, TaskStatus};

use super::host::{ENDLESS, QUICK};

/// Waits for the end of a run. A driver that does not know in the wait how it ended is asked for what it has recorded.
pub(super) async fn exit_of(client: &DriverClient, run: &TaskId) -> Result<TaskExit, DriverError> {
    let exit = client.wait_task(run, ENDLESS).await?;
    if exit.is_certain() {
        return Ok(exit);
    }
    Ok(recorded_or(exit, client.inspect_task(run, QUICK).await))
}

/// The exit that is recorded, or the one that was waited for and is not certain. In a stop, Nomad's `raw_exec` ends the process
/// through which it waits as soon as it has recorded the exit, and the wait may break off first.
fn recorded_or(waited: TaskExit, inspected: Result<TaskStatus, DriverError>) -> TaskExit {
    let recorded = inspected.ok().and_then(|status| status.exit);
    recorded.filter(TaskExit::is_certain).unwrap_or(waited)
}
