//! Lays out the texts of a picture: breaks them into lines that fit between two columns, and shortens them if necessary.

use super::model::Mark;

/// The maximum number of letters in a line of a text.
pub(super) const LINE_LETTERS_MAX: usize = 34;
/// The maximum number of shown letters of a text; a tooltip shows the whole text.
const TEXT_LETTERS_MAX: usize = 92;
/// The maximum number of letters of a name in a head.
const HEAD_LETTERS_MAX: usize = 22;
/// How many letters at the end of a shortened name are kept.
const ENDING_LETTERS: usize = 9;
/// The width of a letter of the usual size: the maximum on average.
const LETTER: f64 = 6.7;

/// A text in its displayed form.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Label {
    /// Its lines, each with its subject at the end.
    pub(super) lines: Vec<(String, String)>,
    /// The whole text, if the lines do not have all of it.
    pub(super) whole: Option<String>,
}

impl Label {
    /// The label of a mark at a column or between two columns.
    pub(super) fn of(mark: &Mark) -> Self {
        match mark {
            Mark::Message { text, about, .. } | Mark::Sign { text, about, .. } => Self::new(text, about),
            Mark::GateCloses { write, .. } => Self::new(&format!("write {write}"), ""),
            Mark::GateOpens { .. } => Self::new("on disk", ""),
            Mark::Chapter(_)
            | Mark::Pause(_)
            | Mark::Time(_)
            | Mark::Active { .. }
            | Mark::GatesFall { .. } => Self::default(),
        }
    }

    fn new(text: &str, about: &str) -> Self {
        let (shown, shown_about) = (cut(text), shortened(about, LINE_LETTERS_MAX));
        let is_whole = shown == text && shown_about == about;
        let mut lines: Vec<(String, String)> =
            broken(&shown).into_iter().map(|line| (line, String::new())).collect();
        if !shown_about.is_empty() {
            match lines.last_mut() {
                Some((last, of)) if letters(last) + 2 + letters(&shown_about) <= LINE_LETTERS_MAX => {
                    *of = shown_about;
                }
                Some(_) | None => lines.push((String::new(), shown_about)),
            }
        }
        let space = if about.is_empty() { "" } else { "  " };
        Self { lines, whole: (!is_whole).then(|| format!("{text}{space}{about}")) }
    }

    /// Its maximum width.
    pub(super) fn width(&self) -> f64 {
        let width = |(text, about): &(String, String)| {
            let space = if text.is_empty() || about.is_empty() { 0 } else { 2 };
            width_of(letters(text) + space + letters(about), LETTER)
        };
        self.lines.iter().map(width).fold(0.0, f64::max)
    }
}

/// The maximum width of a text.
pub(super) fn text_width(text: &str) -> f64 {
    width_of(letters(text), LETTER)
}

/// The width of this many letters of this width.
pub(super) fn width_of(letters: usize, letter: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "texts are short")]
    let letters = letters as f64;
    letters * letter
}

pub(super) fn letters(text: &str) -> usize {
    text.chars().count()
}

/// A text of limited length.
pub(super) fn cut(text: &str) -> String {
    if letters(text) <= TEXT_LETTERS_MAX {
        return text.to_owned();
    }
    text.chars().take(TEXT_LETTERS_MAX - 1).chain(['…']).collect()
}

/// A name of limited length: of a longer name the beginning and the end are kept.
fn shortened(name: &str, most: usize) -> String {
    let count = letters(name);
    if count <= most {
        return name.to_owned();
    }
    let beginning: String = name.chars().take(most - 1 - ENDING_LETTERS).collect();
    let ending: String = name.chars().skip(count - ENDING_LETTERS).collect();
    format!("{beginning}…{ending}")
}

/// The names for heads: shortened, unless two would look the same.
pub(super) fn heads(names: &[&str]) -> Vec<String> {
    let short: Vec<String> = names.iter().map(|name| shortened(name, HEAD_LETTERS_MAX)).collect();
    let is_alone = |head: &String| short.iter().filter(|other| *other == head).count() == 1;
    let each = names.iter().zip(&short);
    each.map(|(name, head)| if is_alone(head) { head.clone() } else { (*name).to_owned() }).collect()
}

/// A text in lines of limited length, broken between words where possible.
fn broken(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        let has_room = line.is_empty() || letters(&line) + 1 + rest.len() <= LINE_LETTERS_MAX;
        if !has_room {
            lines.push(std::mem::take(&mut line));
        } else if !line.is_empty() {
            line.push(' ');
        }
        while rest.len() > LINE_LETTERS_MAX {
            let after = rest.split_off(LINE_LETTERS_MAX);
            lines.push(rest.into_iter().collect());
            rest = after;
        }
        line.extend(rest);
    }
    lines.push(line);
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_it_is_too_long_and_says_so() {
        let text = |letters| "ü".repeat(letters);
        assert_eq!(cut(&text(92)), text(92));
        assert_eq!(cut(&text(93)), text(91) + "…");
        assert_eq!(Label::new("short", "").whole, None);
        assert_eq!(Label::new(&text(93), "zfs").whole, Some(text(93) + "  zfs"));
    }

    #[test]
    fn a_text_is_broken_between_words_and_a_word_only_if_it_has_no_room_alone() {
        let lines =
            |text: &str| Label::new(text, "").lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(lines("thirty-four letters fit into a line"), ["thirty-four letters fit into a", "line"]);
        assert_eq!(lines("and thirty-four letters fill a line"), ["and thirty-four letters fill a", "line"]);
        assert_eq!(lines(&"x".repeat(70)), ["x".repeat(34), "x".repeat(34), "xx".to_owned()]);
        assert_eq!(lines(&format!("a {} b", "x".repeat(35))), ["a", &"x".repeat(34), "x b"]);
        assert_eq!(lines(""), [""; 0]);
    }

    #[test]
    fn what_a_text_is_about_stands_at_its_end_or_below_it() {
        let label = Label::new("active: a → b", "csi-node/zfs @2");
        assert_eq!(label.lines, [("active: a → b".to_owned(), "csi-node/zfs @2".to_owned())]);
        assert_eq!(format!("{:.1}", label.width()), "201.0", "30 letters of 6.7");
        let label = Label::new("active: a-long-name → b", "csi-node/zfs @2");
        let expected = [("active: a-long-name → b", ""), ("", "csi-node/zfs @2")];
        assert_eq!(label.lines, expected.map(|(text, about)| (text.to_owned(), about.to_owned())));
        let about = "csi-node/a-plugin-with-a-very-long-name @2";
        let label = Label::new("", about);
        assert_eq!(label.lines[0].1, "csi-node/a-plugin-with-a…g-name @2");
        assert_eq!(label.whole, Some(format!("  {about}")));
    }

    #[test]
    fn names_in_heads_are_shortened_unless_they_would_look_the_same() {
        let names =
            ["registry", "allocation 0123456789-abcdef", "process of-a-plugin-0", "process of-a-plugin-00"];
        let expected =
            ["registry", "allocation 0…89-abcdef", "process of-a-plugin-0", "process of-a-plugin-00"];
        assert_eq!(heads(&names), expected);
        let alike = ["allocation one-0123456789", "allocation own-0123456789"];
        assert_eq!(heads(&alike), alike);
    }
}
