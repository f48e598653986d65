//! Checks: what was expected, what was seen, and whether that is the same.

use crate::output::{Palette, Tone, harmless};

/// What one look at the stage shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Whether it is as expected.
    pub(super) holds: bool,
    /// What is seen.
    pub(super) seen: String,
}

impl Look {
    pub(super) fn new(holds: bool, seen: impl Into<String>) -> Self {
        Self { holds, seen: seen.into() }
    }

    /// Both looks in one.
    pub(super) fn and(self, other: Self) -> Self {
        Self { holds: self.holds && other.holds, seen: format!("{}; {}", self.seen, other.seen) }
    }
}

/// One check of a chapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// What was to be seen, as a statement.
    pub(super) expected: String,
    /// What was seen in the end.
    pub(super) look: Look,
}

impl Check {
    /// A tick or a cross, with what was expected and what was seen.
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

/// How all checks together came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// So many held.
    pub(super) held: usize,
    /// So many did not.
    pub(super) failed: usize,
}

impl Tally {
    /// Counts one check.
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
