//! How the processes of drivers ended that broke off a call.

use std::time::Duration;

use callboard_actors::driver::PROCESS_ENDED;
use callboard_actors::drivers::{Drivers, ListDrivers};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::DriverName;

/// How often it is looked whether it is known how a process ended, and the pause between two looks.
const ENDING_LOOKS: u32 = 40;
const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// How the process of a driver ended that has just broken off a call: its connection breaks before its end is known, and what it
/// said last is known with its end.
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
