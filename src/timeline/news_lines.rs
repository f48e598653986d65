//! How the news of an actor become lines.

use std::fmt::Display;

use super::line::{Line, Participant};

/// Turns the news of one actor into lines. It remembers what it needs to tell a change from a repetition.
pub(super) trait NewsLines {
    /// What the actor says.
    type News: 'static;
    /// What it holds.
    type View: 'static;

    /// Takes in how things stand, and tells what of it is worth a line.
    fn begin(&mut self, view: &Self::View) -> Vec<Line>;

    /// Tells one piece of news.
    fn lines_of(&mut self, news: &Self::News) -> Vec<Line>;
}

/// The line for lines that are not there.
pub(super) fn missing(missed: u64) -> Line {
    Line::new(
        Participant::Timeline,
        Participant::You,
        format!("{missed} lines are missing here: too many at once"),
    )
}

pub(super) fn grouped<T: Display>(
    healthy: &[T],
    unhealthy: &[(T, String)],
    undetected: &[T],
    silent: &[T],
) -> String {
    let unhealthy: Vec<_> = unhealthy.iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
    let all = [
        ("healthy", joined(healthy)),
        ("unhealthy", joined(&unhealthy)),
        ("undetected", joined(undetected)),
        ("no answer from", joined(silent)),
    ];
    let parts = all.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<_> = parts.map(|(what, names)| format!("{what} {names}")).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// Names in a row.
pub(crate) fn joined<T: Display>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
