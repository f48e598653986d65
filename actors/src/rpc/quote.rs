//! Texts of plugins, made fit to be shown.

use std::fmt::Write;

/// Most bytes of a plugin's own text that an error carries, before escaping. What is longer is cut.
pub const TEXT_BYTES_MAX: usize = 512;

/// Takes a text that a plugin sent: cut to [`TEXT_BYTES_MAX`], with control characters escaped, so that it can neither
/// flood a log nor forge a line of it. A cut text says how long it was.
#[must_use]
pub fn quoted(text: &str) -> String {
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut shown = escaped(&text[..end]);
    if end < text.len() {
        write!(shown, "... ({} bytes in all)", text.len()).expect("a string takes every write");
    }
    shown
}

/// Takes a text whole, with control characters escaped as [`quoted`] does. For texts whose length has its own limit.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if may_be_shown(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_default());
        }
    }
    shown
}

/// Control characters move cursors and begin lines; the others listed turn the direction of what follows or divide lines.
fn may_be_shown(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_cannot_forge_a_line_of_a_log() {
        assert_eq!(quoted("no\nWARN all is well\u{1b}[2J"), "no\\nWARN all is well\\u{1b}[2J");
        assert_eq!(quoted("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_its_length() {
        let shown = quoted(&"ä".repeat(1000));
        assert_eq!(shown, format!("{}... (2000 bytes in all)", "ä".repeat(TEXT_BYTES_MAX / 2)));
        assert_eq!(quoted(&"x".repeat(TEXT_BYTES_MAX)), "x".repeat(TEXT_BYTES_MAX));
    }

    #[test]
    fn ordinary_words_of_any_language_stay_as_they_are() {
        assert_eq!(quoted("kein Platz auf »zpool«, 満杯"), "kein Platz auf »zpool«, 満杯");
    }
}
