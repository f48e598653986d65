//! Checks: the expectation, the observation, and whether they agree.

use crate::output::{Palette, Tone, harmless};

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Whether it is as expected.
    pub(super) holds: bool,
    /// The observation in words.
    pub(super) seen: String,
}

impl Look {
    pub(super) fn new(holds: bool, seen: impl Into<String>) -> Self {
        Self { holds, seen: seen.into() }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { holds: self.holds && other.holds, seen: format!("{}; {}", self.seen, other.seen) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// The expectation, as a statement.
    pub(super) expected: String,
    /// The last observation.
    pub(super) look: Look,
}

impl Check {
    /// Formats it with a tick or a cross.
    pub(super) fn shown(&self, palette: Palette) -> String {
        let (expected, seen) = (&self.expected, harmless(&self.look.seen));
        if self.look.holds {
            let tick = palette.paint(Tone::Good, "✓");
            return format!("  {tick} {expected}  {}", palette.paint(Tone::Faint, &format!("[{seen}]")));
        }
        let (cross, but) = (palette.paint(Tone::Bad, "✗"), palette.paint(Tone::Bad, "seen:"));
        format!("  {cross} expected: {expected}\n    {but}     {seen}")
    }
}

/// The results of all checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// The number that passed.
    pub(super) held: usize,
    /// The number that failed.
    pub(super) failed: usize,
}

impl Tally {
    pub(super) fn count(&mut self, check: &Check) {
        if check.look.holds { self.held += 1 } else { self.failed += 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(holds: bool) -> Check {
        Check { expected: "blue is active".to_owned(), look: Look::new(holds, "green is active") }
    }

    #[test]
    fn a_check_that_holds_gets_a_tick_and_one_that_does_not_a_cross_with_both_sides() {
        assert_eq!(check(true).shown(Palette::plain()), "  ✓ blue is active  [green is active]");
        assert_eq!(
            check(false).shown(Palette::plain()),
            "  ✗ expected: blue is active\n    seen:     green is active"
        );
    }

    #[test]
    fn the_tally_counts_both_ways() {
        let mut tally = Tally::default();
        [true, false, true].into_iter().for_each(|holds| tally.count(&check(holds)));
        assert_eq!(tally, Tally { held: 2, failed: 1 });
    }

    #[test]
    fn two_looks_hold_together_only_if_both_do() {
        assert!(Look::new(true, "a").and(Look::new(true, "b")).holds);
        let both = Look::new(true, "a").and(Look::new(false, "b"));
        assert_eq!(both, Look::new(false, "a; b"));
    }
}
