//! Determines how a run of a task ended, as its driver reports it.

use callboard_actors::driver::client::{DriverClient, DriverError, TaskExit, TaskId};

use super::host::{ENDLESS, QUICK};
use super::{Trouble, Waited, passing};

/// Waits for the end of a run. If the driver's answer to the wait does not report how the run ended, its record is requested as well.
pub(super) async fn exit_of(client: &DriverClient, run: &TaskId) -> Result<Waited, DriverError> {
    let exit = client.wait_task(run, ENDLESS).await?;
    let recorded = match exit.is_certain() {
        true => None,
        false => client.inspect_task(run, QUICK).await.ok().and_then(|status| status.exit),
    };
    Ok(Waited { exit, recorded })
}

/// How a run ended that its driver has recorded as over. The wait must confirm a success: a record does not report errors.
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
