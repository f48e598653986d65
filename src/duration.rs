//! Durations as text: `1500ms`, `2s`, `5m`, `1h`.

use std::time::Duration;

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no duration; write a whole number and a unit, as in 1500ms, 2s, 5m or 1h")]
pub struct MalformedDuration {
    text: String,
}

/// The units, in milliseconds. `ms` comes before its suffix `s`.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000)];

/// Parses a duration.
///
/// # Errors
/// If it is not a whole number with one of the units `ms`, `s`, `m` and `h`, or overflows.
pub fn parse_duration(text: &str) -> Result<Duration, MalformedDuration> {
    let read = UNITS.iter().find_map(|(unit, length_ms)| Some((text.strip_suffix(unit)?, length_ms)));
    read.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|(number, length_ms)| number.parse::<u64>().ok()?.checked_mul(*length_ms))
        .map(Duration::from_millis)
        .ok_or_else(|| MalformedDuration { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, milliseconds) in
            [("0s", 0), ("1500ms", 1500), ("2s", 2000), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "5", "s", "-1s", "+1s", "1.5s", "1 s", "1d", "1S", "99999999999999999999h"] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.to_string().contains("as in 1500ms"), "{error}");
        }
    }
}
