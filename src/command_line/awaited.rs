//! Logs what a stop of the host waits for.

use std::time::Duration;

use callboard_actors::shell::Clock;
use callboard_actors::vocabulary::milliseconds;

use crate::admin;
use crate::host::Host;

/// Logs what a stop waits for.
pub(super) async fn tell_awaited(host: &Host) {
    let now = Clock::system().now();
    for awaited in admin::awaited(&admin::host_tree(host).await, now) {
        let within_ms = |at: u64| {
            let at = (at > 0).then(|| Duration::from_millis(at));
            at.map(|at| milliseconds(at.saturating_sub(now.since_epoch())))
        };
        let (stops_within_ms, kills_within_ms) =
            (within_ms(awaited.until_unix_ms), within_ms(awaited.kill_unix_ms));
        let (waits_for, state) = (awaited.name, awaited.message);
        tracing::info!(waits_for, state, kills_within_ms, stops_within_ms, "still stopping");
    }
}
