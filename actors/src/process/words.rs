//! The last words of a process: the end of its output, and its panic trace if there is one (LOG-01).

use std::collections::VecDeque;

use crate::vocabulary::text::escaped_but_tabs;

const LINES_MAX: usize = 64;
pub(super) const LINE_BYTES_MAX: usize = 2_048;
const TRACE_BYTES_MAX: usize = 32 * 1_024;

#[derive(Debug, Default)]
pub(super) struct Words {
    lines: VecDeque<String>,
    trace: Option<String>,
}

impl Words {
    /// Adds the next line, without its line ending.
    pub(super) fn push(&mut self, line: &[u8]) {
        let text = escaped_but_tabs(&String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]));
        self.follow_trace(&text);
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(text);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    pub(super) fn trace(&self) -> Option<String> {
        self.trace.clone()
    }

    /// A trace begins with a panic and ends with the next regular log line: the process has survived then.
    fn follow_trace(&mut self, text: &str) {
        if begins_trace(text) {
            self.trace = Some(text.to_owned());
        } else if is_logged(text) {
            self.trace = None;
        } else if let Some(trace) = self.trace.as_mut().filter(|trace| trace.len() < TRACE_BYTES_MAX) {
            trace.push('\n');
            trace.push_str(text);
        }
    }
}

fn begins_trace(text: &str) -> bool {
    let is_go = text.starts_with("panic: ") || text.starts_with("fatal error: ");
    is_go || (text.starts_with("thread '") && text.contains(" panicked at "))
}

fn is_logged(text: &str) -> bool {
    text.starts_with("{\"")
        || text.starts_with('[') && text[1..].starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_a_panic_is_kept_as_one_log_01() {
        let mut words = Words::default();
        for line in ["[INFO] hello", "panic: no pool", "", "goroutine 1 [running]:", "main.main()"] {
            words.push(line.as_bytes());
        }
        assert_eq!(words.trace().as_deref(), Some("panic: no pool\n\ngoroutine 1 [running]:\nmain.main()"));
        words.push(b"[WARN] recovered");
        assert_eq!(words.trace(), None);
        words.push(b"thread 'main' panicked at src/main.rs:1:2:");
        words.push(b"no space");
        assert_eq!(words.trace().as_deref(), Some("thread 'main' panicked at src/main.rs:1:2:\nno space"));
    }

    #[test]
    fn last_words_keep_their_tabs_and_move_no_terminal_log_01() {
        let mut words = Words::default();
        words.push(b"\tmain.go:7\x1b[2J\x07\r");
        assert_eq!(words.lines(), ["\tmain.go:7\\u{1b}[2J\\u{7}\\r"]);
    }

    #[test]
    fn endless_last_words_take_little_room_log_01() {
        let mut words = Words::default();
        words.push(b"panic: \xff\x1b[31m");
        for _ in 0..10_000 {
            words.push(&[b'x'; 4_000]);
        }
        assert_eq!(words.lines().len(), LINES_MAX);
        assert!(words.trace().is_some_and(|trace| trace.len() <= TRACE_BYTES_MAX + LINE_BYTES_MAX + 1));
    }

    #[test]
    fn a_trace_that_is_full_takes_no_more_log_01() {
        let mut words = Words::default();
        words.push(format!("panic: {}", "x".repeat(LINE_BYTES_MAX - 7)).as_bytes());
        for _ in 1..TRACE_BYTES_MAX / LINE_BYTES_MAX {
            words.push(&[b'x'; LINE_BYTES_MAX - 1]);
        }
        words.push(b"more");
        assert_eq!(words.trace().map(|trace| trace.len()), Some(TRACE_BYTES_MAX));
    }

    #[test]
    fn what_only_looks_like_a_panic_begins_no_trace_log_01() {
        let mut words = Words::default();
        for line in ["thread 'worker' started", "it panicked at noon", "panicking"] {
            words.push(line.as_bytes());
        }
        assert_eq!(words.trace(), None);
        words.push(b"fatal error: all goroutines are asleep");
        assert_eq!(words.trace().as_deref(), Some("fatal error: all goroutines are asleep"));
    }
}
