//! How a run of a task ended, as its driver tells it.

use callboard_actors::driver::client::{DriverClient, DriverError, TaskExit, TaskId};

use super::host::{ENDLESS, QUICK};
use super::{Trouble, Waited, passing};

/// Waits for the end of a run. A driver that does not know in the wait how it ended is asked for what it has recorded as well.
pub(super) async fn exit_of(client: &DriverClient, run: &TaskId) -> Result<Waited, DriverError> {
    let exit = client.wait_task(run, ENDLESS).await?;
    let recorded = match exit.is_certain() {
        true => None,
        false => client.inspect_task(run, QUICK).await.ok().and_then(|status| status.exit),
    };
    Ok(Waited { exit, recorded })
}

/// How a run ended that its driver has recorded as over. That it was a success, the wait has to say: a record does not tell errors.
pub(super) async fn confirmed(
    client: &DriverClient,
    run: &TaskId,
    recorded: TaskExit,
) -> Result<TaskExit, Trouble> {
    if !recorded.is_success() {
        return Ok(recorded);
    }
    let exit = client.wait_task(run, QUICK).await.map_err(|error| passing(&error))?;
    Ok(Waited { exit, recorded: Some(recorded) }.end(false).clone())
}
