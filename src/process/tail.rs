//! The last lines of a process's output.

use std::sync::{Arc, Mutex, PoisonError};

use callboard_actors::process::last_words;
use callboard_actors::vocabulary::text::bounded;

/// The number of bytes kept.
const KEPT_BYTES: usize = 1_024;
/// The longest line that is reported, in bytes.
const WORDS_BYTES_MAX: usize = 240;

/// The end of an output: written by the reading thread, and read when the process has ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..surplus);
    }

    /// The last lines that are not blank, joined into one and escaped for display.
    pub(super) fn last_words(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        last_words(lines.map(|line| bounded(line, WORDS_BYTES_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_that_say_something_are_kept_in_little_room() {
        let tail = Tail::default();
        assert_eq!(tail.last_words(), None);
        for _ in 0..10_000 {
            tail.push(b"a line like many\n");
        }
        tail.push("panic: \u{1b}[31mno space\n\n  \n".as_bytes());
        assert_eq!(
            tail.last_words().as_deref(),
            Some("a line like many | a line like many | panic: \\u{1b}[31mno space")
        );
        assert!(tail.0.lock().expect("no test panics").len() <= KEPT_BYTES);
    }
}
