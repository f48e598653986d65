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
    // Behind the last line nothing stands either.
    let shown = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim();
    let reason = if shown.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a mistake, and how its reason begins.
    fn told(text: &str, said: &str) -> (u32, String) {
        match mistake(Path::new("a"), text, said) {
            ScriptError::Mistake { line, reason, .. } => (line, reason.split(';').next().unwrap().to_owned()),
            error => panic!("{error}"),
        }
    }

    #[test]
    fn a_mistake_has_its_line_and_shows_what_stands_there() {
        let text = "one\n\nthree *\n---\nok\n";
        let ends = "the script ends here without `---` and what came of its last lines, or inside of quotes";
        let parse = |line: u32| told(text, &format!("parse error at line {line} column 5 for Tag: ..."));
        assert_eq!(parse(3), (3, "this is no line of a script: three *".to_owned()));
        assert_eq!(parse(5), (5, "this is no line of a script: ok".to_owned()));
        assert_eq!(parse(6), (6, ends.to_owned()), "behind the last line");
        assert_eq!(parse(2), (2, ends.to_owned()), "nothing stands there");
        let verb = told(text, "command one failed at line 12: there is no such verb");
        assert_eq!(verb, (12, "there is no such verb".to_owned()));
        assert_eq!(told(text, "no input"), (1, "no input".to_owned()), "no line is said");
    }
}
