//! Converts the news of an actor into lines.

use std::fmt::Display;

use super::line::{Line, Participant};

/// Converts the news of one actor into lines. It keeps the state that distinguishes a change from a repetition.
pub(super) trait NewsLines {
    /// The news of the actor.
    type News: 'static;
    /// Its view.
    type View: 'static;

    /// Takes the initial state, and returns its lines.
    fn begin(&mut self, view: &Self::View) -> Vec<Line>;

    /// The lines for one piece of news.
    fn lines_of(&mut self, news: &Self::News) -> Vec<Line>;
}

/// The line that reports missing lines.
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

/// A list of names.
pub(crate) fn joined<T: Display>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
