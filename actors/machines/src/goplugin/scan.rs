//! Finds the handshake line in the output of a plugin (D29, D33, D35, PRC-06).

use std::time::Duration;

use super::handshake::Handshake;
use super::handshake_error::{HandshakeError, StrayLines};
use super::handshake_line::{is_meant_as_handshake, read_line};
use super::terms::HandshakeTerms;

/// The limits of output before the handshake line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// The limit of lines.
    pub lines_max: usize,
    /// The limit of bytes, line endings included.
    pub bytes_max: usize,
}

impl Default for ScanLimits {
    /// A thousand lines and 64 KiB.
    fn default() -> Self {
        Self { lines_max: 1000, bytes_max: 64 * 1024 }
    }
}

/// Scans a plugin's standard output, line by line, until the handshake is found or refused.
///
/// A line that is not a handshake is skipped within the limits, and quoted in the error if no handshake comes: a warning of a library
/// or an empty line is not a reason to refuse a plugin. A line that is meant as a handshake and is refused ends the scan.
#[derive(Debug, Clone)]
pub struct HandshakeScan {
    terms: HandshakeTerms,
    limits: ScanLimits,
    stray: StrayLines,
}

impl HandshakeScan {
    /// A scan for a plugin that was started under these terms.
    #[must_use]
    pub fn new(terms: HandshakeTerms, limits: ScanLimits) -> Self {
        Self { terms, limits, stray: StrayLines::default() }
    }

    /// Processes the next line. `None`: it is other output, continue. Output after the handshake is not scanned, but must
    /// still be read, since otherwise the plugin blocks (D29).
    ///
    /// # Errors
    /// When the line is a refused handshake, or the limits are exceeded.
    pub fn take(&mut self, line: &str) -> Result<Option<Handshake>, HandshakeError> {
        if is_meant_as_handshake(line) {
            return read_line(&self.terms, line).map(Some);
        }
        self.stray.add(line);
        if self.stray.lines() > self.limits.lines_max || self.stray.bytes() > self.limits.bytes_max {
            let ScanLimits { lines_max, bytes_max } = self.limits;
            return Err(HandshakeError::TooMuchBefore { lines_max, bytes_max, stray: self.stray.clone() });
        }
        Ok(None)
    }

    /// The output so far that is not a handshake.
    #[must_use]
    pub const fn stray(&self) -> &StrayLines {
        &self.stray
    }

    /// The error of a plugin that ended, or closed its standard output, before its handshake line (D33).
    #[must_use]
    pub fn ended(self) -> HandshakeError {
        HandshakeError::Ended { stray: self.stray }
    }

    /// The error of a plugin after a handshake timeout (D11, D33).
    #[must_use]
    pub fn timed_out(self, waited: Duration) -> HandshakeError {
        HandshakeError::TimedOut { waited, stray: self.stray }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "1|2|unix|/run/p/plugin1|grpc|";

    fn scan() -> HandshakeScan {
        HandshakeScan::new(HandshakeTerms::nomad(None), ScanLimits::default())
    }

    #[test]
    fn a_plugin_that_prints_a_hundred_lines_first_is_understood_prc_06_d35() {
        let mut scan = scan();
        assert_eq!(scan.take(""), Ok(None), "an empty first line is no reason either");
        for number in 0..100 {
            assert_eq!(scan.take(&format!("warning {number}: a|b|c|d")), Ok(None));
        }
        let found = scan.take(LINE).expect("it is a handshake").expect("and found");
        assert_eq!(found.endpoint.to_string(), "unix:/run/p/plugin1");
    }

    #[test]
    fn a_plugin_that_ends_without_a_line_is_told_with_its_last_words_prc_06_d20_d33() {
        let mut scan = scan();
        for word in ["one", "two", "panic: no\u{1b}[2Jroom"] {
            assert_eq!(scan.take(word), Ok(None));
        }
        assert_eq!(scan.stray().last(), ["one", "two", "panic: no\\u{1b}[2Jroom"]);
        let error = scan.ended();
        assert!(error.is_transient());
        let told = error.to_string();
        assert!(
            told.contains(r#"it printed 3 other lines: "one" / "two" / "panic: no\u{1b}[2Jroom""#),
            "{told}"
        );
        assert!(told.contains("exit status"), "{told}");
    }

    #[test]
    fn a_plugin_that_ends_in_silence_is_told_as_the_same_failure_d33() {
        let told = scan().ended().to_string();
        assert!(
            told.contains("ended or closed its standard output") && told.contains("printed nothing else")
        );
    }

    #[test]
    fn a_plugin_that_stays_silent_is_told_with_the_time_it_had_d11_d33() {
        let error = scan().timed_out(Duration::from_secs(60));
        assert!(error.is_transient() && error.to_string().contains("within 60s"), "{error}");
    }

    #[test]
    fn one_that_prints_too_many_lines_or_bytes_is_given_up_with_the_last_of_them_prc_06() {
        let limits = ScanLimits { lines_max: 10, bytes_max: 1 << 20 };
        let mut scan = HandshakeScan::new(HandshakeTerms::nomad(None), limits);
        for number in 0..10 {
            assert_eq!(scan.take(&format!("line {number}")), Ok(None));
        }
        let told = scan.take("line 10").expect_err("one too many").to_string();
        assert!(told.contains("at most 10 lines"), "{told}");
        assert!(told.contains(r#"11 other lines, the last 8: "line 3" /"#) && told.contains(r#""line 10""#));

        let limits = ScanLimits { lines_max: 10, bytes_max: 100 };
        let mut scan = HandshakeScan::new(HandshakeTerms::nomad(None), limits);
        assert_eq!(scan.take(&"x".repeat(99)), Ok(None), "with its end that is as much as may be");
        assert_eq!((scan.stray().lines(), scan.stray().bytes()), (1, 100));
        let error = scan.take(&"x".repeat(1 << 20)).expect_err("too long");
        assert!(!error.is_transient() && error.to_string().len() < 2000, "{error}");
    }

    #[test]
    fn a_line_that_is_meant_as_a_handshake_is_refused_at_once_and_for_its_own_reason_prc_06() {
        let mut scan = scan();
        assert_eq!(scan.take("hello"), Ok(None));
        assert_eq!(
            scan.take("1|7|unix|/run/p/plugin1|grpc"),
            read_line(&HandshakeTerms::nomad(None), "1|7|unix|/run/p/plugin1|grpc").map(Some)
        );
        for line in ["1|x|pipe|/p|grpc", "x|2|pipe|/p|grpc", "1|2|unix"] {
            assert_eq!(scan.take(line), Ok(None), "one number, or too little, is no handshake: {line}");
        }
        assert!(matches!(scan.take("x|2|unix|/p|grpc"), Err(HandshakeError::CoreNotANumber { .. })));
        assert!(matches!(scan.take("1|2|pipe|/p|grpc"), Err(HandshakeError::UnknownNetwork { .. })));
    }
}
