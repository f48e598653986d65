//! What a stop of the host waits for, in its log.

use std::time::Duration;

use callboard_actors::shell::Clock;

use crate::admin;
use crate::host::Host;

/// Logs what a stop waits for.
pub(super) async fn tell_awaited(host: &Host) {
    let now = Clock::system().now();
    for awaited in admin::awaited(&admin::host_tree(host).await, now) {
        // Where no time is given, the actor above it has one.
        let until = Some(awaited.until_unix_ms).filter(|until| *until > 0).map(Duration::from_millis);
        let at_most_s = until.map(|until| until.saturating_sub(now.since_epoch()).as_secs());
        let (waits_for, state) = (awaited.name, awaited.message);
        tracing::info!(waits_for, state, at_most_s, "stopping still");
    }
}
