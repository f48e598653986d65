//! Sanitises texts from outside for display: the only sanitiser of this program.
//!
//! The output of a plugin or a task, or the name of a file, may contain line breaks that forge a line of a log, escape sequences that a
//! terminal executes, marks that change the direction of the following text, and megabytes. Every such text passes one of these
//! functions on its way to an error, a log, a terminal, a picture or a page:
//!
//! | function | for |
//! |---|---|
//! | [`quoted`] | a plugin's words inside of an error: one line, at most [`TEXT_BYTES_MAX`] bytes |
//! | [`bounded`] | the same with a limit of its own |
//! | [`escaped`] | one line, complete, where the length is limited elsewhere |
//! | [`escaped_but_tabs`] | the same, with tabs left as they are: they order a stack trace |
//! | [`escaped_lines`] | a text of several lines that keeps its line breaks: for files and pages, never for a log |
//! | [`from_bytes`] | bytes that may not be UTF-8, as [`bounded`] |
//! | [`json_for_terminals`] | JSON: the same characters, escaped in a way that a reader of JSON undoes |
//!
//! They are idempotent: a sanitised text is not changed by another pass. So a caller need not know whether another
//! caller has already sanitised it. A backslash of the text itself is therefore left alone, and a text can look as if it had been escaped.

use std::fmt::Write;

/// The maximum bytes of an outside text in an error. A longer text is cut.
pub const TEXT_BYTES_MAX: usize = 512;

/// The mark where a text is cut.
const CUT: &str = "...";

/// Sanitises a text to one line of at most [`TEXT_BYTES_MAX`] bytes. A cut text includes its original length.
#[must_use]
pub fn quoted(text: &str) -> String {
    bounded(text, TEXT_BYTES_MAX)
}

/// Sanitises a text to one line of at most so many bytes, escapes and the note of a cut included. A cut text includes its original
/// length; it is cut between characters, and never within an escape. The middle is left out: many errors end with their cause.
#[must_use]
pub fn bounded(text: &str, bytes_max: usize) -> String {
    let note = format!(" ({} bytes in all)", text.len());
    let room = bytes_max.saturating_sub(CUT.len() + note.len());
    let end_room = room / 3;
    let (mut shown, mut cut) = (String::with_capacity(text.len().min(bytes_max)), 0);
    for character in text.chars() {
        push(&mut shown, character);
        if shown.len() <= room - end_room {
            cut = shown.len();
        } else if shown.len() > bytes_max {
            shown.truncate(cut);
            shown.extend([CUT, &end_of(text, end_room), &note]);
            // If there is not even room for the note, the note is cut.
            shown.truncate(bytes_max);
            break;
        }
    }
    shown
}

/// The last characters of a text that fit.
fn end_of(text: &str, room: usize) -> String {
    let (mut pieces, mut length) = (Vec::new(), 0);
    for character in text.chars().rev() {
        let mut piece = String::new();
        push(&mut piece, character);
        length += piece.len();
        if length > room {
            break;
        }
        pieces.push(piece);
    }
    pieces.into_iter().rev().collect()
}

/// Sanitises bytes like [`bounded`]. Bytes that are not UTF-8 are shown as U+FFFD.
#[must_use]
pub fn from_bytes(bytes: &[u8], bytes_max: usize) -> String {
    bounded(&String::from_utf8_lossy(bytes), bytes_max)
}

/// Sanitises a complete text to one line. For texts whose length has its own limit.
#[must_use]
pub fn escaped(text: &str) -> String {
    escaped_except(text, &[])
}

/// Sanitises a complete text to one line, and keeps its tabs.
#[must_use]
pub fn escaped_but_tabs(text: &str) -> String {
    escaped_except(text, &['\t'])
}

/// Sanitises a complete text, and keeps its tabs and line breaks: for places where its lines cannot be mistaken for others.
#[must_use]
pub fn escaped_lines(text: &str) -> String {
    escaped_except(text, &['\t', '\n'])
}

/// Sanitises a JSON text. Characters that a terminal would execute can occur only within strings, where they become `\uXXXX`:
/// a reader of JSON gets exactly the same values.
#[must_use]
pub fn json_for_terminals(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            _ if is_harmless(character) => shown.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(shown, "\\u{unit:04x}").expect("a string takes every write");
                }
            }
        }
    }
    shown
}

fn escaped_except(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match kept.contains(&character) {
            true => shown.push(character),
            false => push(&mut shown, character),
        }
    }
    shown
}

fn push(shown: &mut String, character: char) {
    match is_harmless(character) {
        true => shown.push(character),
        false => shown.extend(character.escape_default()),
    }
}

/// Whether a character has no side effect on its surroundings. Control characters (C0, DEL, C1) move cursors and begin
/// lines; others divide lines, change the direction of the following text, or are invisible. The two joiners (U+200C and
/// U+200D) are harmless: ordinary words of several languages need them.
#[must_use]
pub const fn is_harmless(character: char) -> bool {
    !matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{2028}' | '\u{2029}'
        | '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plugin_cannot_forge_a_line_of_a_log_log_02() {
        assert_eq!(quoted("no\nWARN all is well\u{1b}[2J"), "no\\nWARN all is well\\u{1b}[2J");
        assert_eq!(quoted("a\u{202e}b\u{2066}c\u{61c}"), "a\\u{202e}b\\u{2066}c\\u{61c}");
        assert_eq!(quoted("\u{85}\u{9b}31m\u{7f}"), "\\u{85}\\u{9b}31m\\u{7f}");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_its_length() {
        let shown = quoted(&"ä".repeat(1000));
        assert_eq!(shown, format!("{}...{} (2000 bytes in all)", "ä".repeat(163), "ä".repeat(81)));
        let told = quoted(&format!("resize2fs failed: {}: permission denied", "x".repeat(1000)));
        assert!(told.starts_with("resize2fs failed: xxx"), "{told}");
        assert!(told.ends_with("xxx: permission denied (1037 bytes in all)"), "{told}");
        assert_eq!(quoted(&"x".repeat(TEXT_BYTES_MAX)), "x".repeat(TEXT_BYTES_MAX));
        assert_eq!(quoted(&"\u{1b}".repeat(1000)).matches("\\u{1b}").count(), 81);
        assert_eq!(bounded("a long word", 5), "... (");
        assert_eq!((bounded("", 0), bounded("a", 0)), (String::new(), String::new()));
    }

    #[test]
    fn ordinary_words_of_any_language_stay_as_they_are() {
        for words in ["kein Platz auf »zpool«, 満杯", "می‌خواهم", "👩‍🔧", "C:\\new\\table"]
        {
            assert_eq!(quoted(words), words);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(from_bytes(b"\xff\xfe ok\r\n", 64), "\u{fffd}\u{fffd} ok\\r\\n");
    }

    #[test]
    fn tabs_and_line_breaks_are_left_only_where_they_are_wanted() {
        let text = "a\tb\nc\u{1b}";
        assert_eq!(escaped(text), "a\\tb\\nc\\u{1b}");
        assert_eq!(escaped_but_tabs(text), "a\tb\\nc\\u{1b}");
        assert_eq!(escaped_lines(text), "a\tb\nc\\u{1b}");
    }

    #[test]
    fn a_reader_of_json_gets_what_was_written_and_a_terminal_obeys_nothing() {
        let value = serde_json::json!({ "a\u{9b}": ["\u{1b}[2J\n\t\"\\", "\u{202e}\u{e0041}ü\u{7f}"] });
        let shown = json_for_terminals(&serde_json::to_string_pretty(&value).unwrap());
        assert!(shown.chars().all(|c| c == '\n' || is_harmless(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    proptest! {
        #[test]
        fn what_was_made_fit_stays_as_it_is_log_02(text in "\\PC*|(?s:.){0,600}", limit in 0_usize..700) {
            let shown = bounded(&text, limit);
            prop_assert!(shown.len() <= limit && shown.chars().all(is_harmless));
            prop_assert_eq!(bounded(&shown, limit), shown);
            for shown_by in [escaped, escaped_but_tabs, escaped_lines, quoted, json_for_terminals] {
                let shown = shown_by(&text);
                prop_assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || is_harmless(c)));
                prop_assert_eq!(shown_by(&shown), shown);
            }
        }

        #[test]
        fn bytes_of_any_kind_become_one_line(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let shown = from_bytes(&bytes, TEXT_BYTES_MAX);
            prop_assert!(shown.len() <= TEXT_BYTES_MAX && shown.chars().all(is_harmless));
        }
    }
}
