//! Reads the lines of a script one by one, and finds the position of a mistake in the message of the script parser.

use std::borrow::Cow;
use std::path::Path;

use super::error::ScriptError;

/// The form of every script, for error messages.
pub(super) const SHAPE: &str =
    "a script is lines of a verb and its words, then `---`, then what came of them up to an empty line";

/// The text with `---` after its last lines, if it is missing: then no responses are recorded for them.
pub(super) fn completed(text: &str) -> Cow<'_, str> {
    let (mut is_told, mut is_open) = (false, false);
    for line in text.lines() {
        if is_told {
            is_told = !line.is_empty();
        } else if line == "---" {
            (is_told, is_open) = (true, false);
        } else {
            is_open |= !line.trim().is_empty() && !line.starts_with('#');
        }
    }
    match is_open {
        true if text.ends_with('\n') => Cow::Owned(format!("{text}---\n")),
        true => Cow::Owned(format!("{text}\n---\n")),
        false => Cow::Borrowed(text),
    }
}

/// Converts a message of goldenscript into an error. It names lines only in its text: `... at line 3: ...` for a verb, and `parse error at
/// line 3 column 5 for Tag:` for a malformed line.
pub(super) fn mistake(path: &Path, text: &str, said: &str) -> ScriptError {
    let path = path.to_owned();
    if let Some((verb, came)) =
        said.strip_prefix("expected command '").and_then(|said| said.split_once("' to fail at line "))
    {
        let (line, came) = came.split_once(", succeeded with: ").unwrap_or((came, ""));
        let reason = format!("`{verb}` was expected to be a mistake, but returned: {}", came.trim_end());
        return ScriptError::Mistake { path, line: line.parse().unwrap_or(1), reason };
    }
    let (before, after) = said.split_once("at line ").unwrap_or(("", said));
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let line = after[..digits].parse().unwrap_or(1);
    let rest = after[digits..].trim_start_matches(':').trim();
    if !before.starts_with("parse error") {
        return ScriptError::Mistake { path, line, reason: rest.to_owned() };
    }
    // There is no text after the last line.
    let stands = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default();
    let shown = readable(stands.trim());
    let reason = if stands.starts_with('\u{feff}') {
        "the script begins with a byte order mark; save it without one".to_owned()
    } else if shown.is_empty() {
        format!("the script ends here inside of a line; {SHAPE}")
    } else if stands.starts_with(char::is_whitespace) {
        format!("a line begins with its verb, and this one with a blank: {shown}; {SHAPE}")
    } else {
        format!(
            "this is no line of a script: {shown}; a word that begins otherwise than with a letter, a digit or `_`, or has other signs than these, `-`, `.`, `/` and `@`, needs quotes, and {SHAPE}"
        )
    };
    ScriptError::Mistake { path, line, reason }
}

/// A line escaped for a terminal.
fn readable(line: &str) -> String {
    callboard_actors::vocabulary::text::escaped(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a mistake, and the beginning of its reason.
    fn told(text: &str, said: &str) -> (u32, String) {
        match mistake(Path::new("a"), text, said) {
            ScriptError::Mistake { line, reason, .. } => (line, reason.split(';').next().unwrap().to_owned()),
            error => panic!("{error}"),
        }
    }

    #[test]
    fn a_mistake_has_its_line_and_shows_what_stands_there() {
        let text = "one\n\nthree *\n---\nok\n";
        let ends = "the script ends here inside of a line";
        let parse = |line: u32| told(text, &format!("parse error at line {line} column 5 for Tag: ..."));
        assert_eq!(parse(3), (3, "this is no line of a script: three *".to_owned()));
        assert_eq!(parse(5), (5, "this is no line of a script: ok".to_owned()));
        assert_eq!(parse(6), (6, ends.to_owned()), "behind the last line");
        assert_eq!(parse(2), (2, ends.to_owned()), "nothing stands there");
        let verb = told(text, "command one failed at line 12: there is no such verb");
        assert_eq!(verb, (12, "there is no such verb".to_owned()));
        assert_eq!(told(text, "no input"), (1, "no input".to_owned()), "no line is said");
        let surprise = told(text, "expected command 'list' to fail at line 7, succeeded with: none\n");
        assert_eq!(surprise, (7, "`list` was expected to be a mistake, but returned: none".to_owned()));
    }

    #[test]
    fn last_lines_of_which_nothing_is_written_down_are_told_to_have_no_outcome_yet() {
        for (text, whole) in [
            ("list", "list\n---\n"),
            ("list\n", "list\n---\n"),
            ("list\n---\n", "list\n---\n"),
            ("list\n---\nnone\nlist\n", "list\n---\nnone\nlist\n"),
            ("list\r\n---\r\nnone\r\n\r\nlist\r\n", "list\r\n---\r\nnone\r\n\r\nlist\r\n---\n"),
            ("list\n---\nnone\n\n# no more\n\n", "list\n---\nnone\n\n# no more\n\n"),
            ("", ""),
        ] {
            assert_eq!(completed(text), whole, "{text:?}");
        }
    }
}
