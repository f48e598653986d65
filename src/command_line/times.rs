//! Formats times and durations for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time limits of a stop: when its process is killed, and when the whole stop ends.
pub(super) fn bounds(kill: Option<Duration>, end: Option<Duration>) -> impl Iterator<Item = String> {
    let kill = kill.map(|left| match left {
        Duration::ZERO => "SIGKILL is due".to_owned(),
        left => format!("SIGKILL in {}", span(left)),
    });
    kill.into_iter().chain(end.map(|left| format!("stops within {}", span(left))))
}

/// How long ago something was, in the largest unit that says something.
pub(super) fn ago(unix_ms: u64) -> String {
    span(since_epoch().saturating_sub(Duration::from_millis(unix_ms)))
}

/// How long ago something was, or how soon it will be.
pub(super) fn when(unix_ms: u64) -> String {
    match left_until(unix_ms) {
        Duration::ZERO => format!("{} ago", ago(unix_ms)),
        left => format!("in {}", span(left)),
    }
}

/// The last event of something, and in how much time it is started again if it waits for that.
pub(super) fn with_due(event: &str, due_unix_ms: u64) -> String {
    match due_unix_ms {
        0 => event.to_owned(),
        due => format!("{event} in {}", span(left_until(due))),
    }
}

/// The time left until then.
pub(super) fn left_until(unix_ms: u64) -> Duration {
    Duration::from_millis(unix_ms).saturating_sub(since_epoch())
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

pub(super) fn span(span: Duration) -> String {
    match span.as_secs() {
        0..60 => format!("{}s", span.as_secs()),
        60..3_600 => format!("{}m {}s", span.as_secs() / 60, span.as_secs() % 60),
        3_600..86_400 => format!("{}h {}m", span.as_secs() / 3_600, span.as_secs() % 3_600 / 60),
        _ => format!("{}d {}h", span.as_secs() / 86_400, span.as_secs() % 86_400 / 3_600),
    }
}

/// The time of day, in UTC.
pub(super) fn time_of_day(unix_ms: u64) -> String {
    let (seconds, milliseconds) = (unix_ms / 1_000 % 86_400, unix_ms % 1_000);
    format!("{:02}:{:02}:{:02}.{milliseconds:03}Z", seconds / 3_600, seconds % 3_600 / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_are_short() {
        let spans = [5, 65, 3_700, 90_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["5s", "1m 5s", "1h 1m", "1d 1h"]);
        let now = u64::try_from(since_epoch().as_millis()).unwrap();
        let (a_day_and_an_hour, slack) = (90_000_000, 1_800_000);
        let (past, future) = (now - a_day_and_an_hour - slack, now + a_day_and_an_hour + slack);
        assert_eq!([when(past), when(future)], ["1d 1h ago", "in 1d 1h"]);
        assert_eq!(time_of_day(86_400_000 + 3_661_007), "01:01:01.007Z");
    }

    #[test]
    fn a_stop_tells_when_its_process_is_killed_and_when_it_has_ended_at_the_latest() {
        let told = |kill, end| bounds(kill, end).collect::<Vec<_>>().join(", ");
        let [zero, short, long] = [0, 3, 100].map(|seconds| Some(Duration::from_secs(seconds)));
        assert_eq!(told(short, long), "SIGKILL in 3s, stops within 1m 40s");
        assert_eq!(told(zero, short), "SIGKILL is due, stops within 3s");
        assert_eq!((told(None, short), told(None, None)), ("stops within 3s".to_owned(), String::new()));
    }
}
