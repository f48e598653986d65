//! How a run of a task ended, as its driver tells it.

use callboard_actors::driver::client::{DriverClient, DriverError, TaskId};

use super::Waited;
use super::host::{ENDLESS, QUICK};

/// Waits for the end of a run. A driver that does not know in the wait how it ended is asked for what it has recorded as well.
pub(super) async fn exit_of(client: &DriverClient, run: &TaskId) -> Result<Waited, DriverError> {
    let exit = client.wait_task(run, ENDLESS).await?;
    let recorded = match exit.is_certain() {
        true => None,
        false => client.inspect_task(run, QUICK).await.ok().and_then(|status| status.exit),
    };
    Ok(Waited { exit, recorded })
}
