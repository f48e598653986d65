//! Reads the lines of a script one by one, and finds the place of a mistake in what the reader of scripts says of it.

use std::path::Path;

use super::error::ScriptError;

/// What every script looks like, for those who lost their way.
pub(super) const SHAPE: &str =
    "a script is lines of a verb and its words, then `---`, then what came of them up to an empty line";

/// Makes an error of what goldenscript said. It names lines in its texts only: `... at line 3: ...` for a verb, and
/// `parse error at line 3 column 5 for Tag:` for a line that is none.
pub(super) fn mistake(path: &Path, text: &str, said: &str) -> ScriptError {
    let path = path.to_owned();
    let (before, after) = said.split_once("at line ").unwrap_or(("", said));
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let line = after[..digits].parse().unwrap_or(1);
    let rest = after[digits..].trim_start_matches(':').trim();
    if !before.starts_with("parse error") {
        return ScriptError::Mistake { path, line, reason: rest.to_owned() };
    }
    let lines = text.lines().count();
    let is_at_end = usize::try_from(line).is_ok_and(|line| line > lines);
    let shown = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim();
    let reason = if is_at_end || shown.is_empty() {
        format!(
            "the script ends here without `---` and what came of its last lines, or inside of quotes; {SHAPE}"
        )
    } else {
        format!(
            "this is no line of a script: {shown}; a word that begins otherwise than with a letter, a digit or `_`, or has other signs than these, `-`, `.`, `/` and `@`, needs quotes, and {SHAPE}"
        )
    };
    ScriptError::Mistake { path, line, reason }
}
