//! Finds out how driver processes ended that interrupted a call.

use std::time::Duration;

use callboard_actors::driver::PROCESS_ENDED;
use callboard_actors::drivers::{Drivers, ListDrivers};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::DriverName;

/// How many times to check for the ending of a process, and the pause between two checks.
const ENDING_LOOKS: u32 = 40;
const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// The ending of a driver process that has just interrupted a call: its connection breaks before its ending is known. The ending includes
/// its last output.
pub(super) async fn ending_of(drivers: &Address<Drivers>, driver: &DriverName) -> Option<String> {
    for _ in 0..ENDING_LOOKS {
        let reports = drivers.ask(ListDrivers).await.ok()?;
        let report = reports.into_iter().find(|report| report.name == *driver)?;
        if report.reason.starts_with(PROCESS_ENDED) {
            return Some(report.reason);
        }
        tokio::time::sleep(ENDING_PAUSE).await;
    }
    None
}
