//! Formats how long a caller waited, for errors.

use std::time::Duration;

/// The time that a caller has waited, to be appended to what it waited for; empty if it was answered at once.
#[must_use]
pub fn told_wait(time: Duration) -> String {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // More digits are not informative.
    let shown = if milliseconds < 1_000 { milliseconds } else { milliseconds / 100 * 100 };
    match shown {
        0 => String::new(),
        _ => format!(" (waited {:?})", Duration::from_millis(shown)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_as_people_read_it_and_none_is_not_told() {
        assert_eq!(told_wait(Duration::from_micros(900)), "");
        assert_eq!(told_wait(Duration::from_micros(7_900)), " (waited 7ms)");
        assert_eq!(told_wait(Duration::from_micros(30_001_234)), " (waited 30s)");
        assert_eq!(told_wait(Duration::from_millis(1_560)), " (waited 1.5s)");
    }
}
