//! Shows the difference between two texts.

use std::path::Path;

use similar::TextDiff;

/// How many equal lines are shown around a difference.
const AROUND: usize = 3;

/// The difference between the recorded and the actual responses, as a unified diff; empty if there is none.
#[must_use]
pub fn diff(path: &Path, recorded: &str, came: &str) -> String {
    let name = path.display();
    let diff = TextDiff::from_lines(recorded, came);
    let (before, after) = (format!("{name} (recorded)"), format!("{name} (came back)"));
    diff.unified_diff().context_radius(AROUND).header(&before, &after).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_differ_in_nothing_and_others_show_their_lines() {
        let path = Path::new("a");
        assert_eq!(diff(path, "x\n", "x\n"), "");
        let shown = diff(path, "x\ny\n", "x\nz\n");
        assert!(
            shown.contains("-y\n+z\n") && shown.starts_with("--- a (recorded)\n+++ a (came back)\n"),
            "{shown}"
        );
    }
}
