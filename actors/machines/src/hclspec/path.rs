//! Paths in a configuration or a schema.

use std::fmt;

const KEY_CHARACTERS_MAX: usize = 64;

/// A path from the root. It is a linked list on the stack of a recursive walk; errors keep its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Place(usize),
}

impl<'a> Path<'a> {
    pub(super) const fn root(name: &'a str) -> Self {
        Self { above: None, step: Step::Key(name) }
    }

    pub(super) const fn key<'b>(&'b self, key: &'b str) -> Path<'b>
    where
        'a: 'b,
    {
        Path { above: Some(self), step: Step::Key(key) }
    }

    pub(super) const fn place<'b>(&'b self, place: usize) -> Path<'b>
    where
        'a: 'b,
    {
        Path { above: Some(self), step: Step::Place(place) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.above, self.step) {
            (None, Step::Key(root)) => f.write_str(root),
            (None, Step::Place(place)) => write!(f, "[{place}]"),
            (Some(above), Step::Key(key)) => f.write_str(&path_below(&above.to_string(), key)),
            (Some(above), Step::Place(place)) => write!(f, "{above}[{place}]"),
        }
    }
}

/// The path of a key in the table at a path, in the format of [`super::ConfigError::path`]. For maps of paths.
#[must_use]
pub fn path_below(path: &str, key: &str) -> String {
    if is_plain(key) {
        return format!("{path}.{key}");
    }
    let shown: String = key.chars().take(KEY_CHARACTERS_MAX).collect();
    let more = if shown.len() < key.len() { "..." } else { "" };
    format!("{path}[{shown:?}{more}]")
}

fn is_plain(key: &str) -> bool {
    let mut characters = key.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && key.len() <= KEY_CHARACTERS_MAX
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_quoted_where_it_could_be_mistaken_and_cut_where_it_is_long() {
        let root = Path::root("config");
        let shown = |key: &str| root.key(key).to_string();
        for plain in ["a", "_a", "a-1", "a_b", "A9"] {
            assert_eq!(shown(plain), format!("config.{plain}"));
        }
        for odd in ["", "9a", "-a", "a b", "a.b", "\u{e4}"] {
            assert_eq!(shown(odd), format!("config[{odd:?}]"));
        }
        let longest = "k".repeat(KEY_CHARACTERS_MAX);
        assert_eq!(shown(&longest), format!("config.{longest}"));
        assert_eq!(shown(&format!("{longest}k")), format!("config[\"{longest}\"...]"));
        assert_eq!(root.key("a").place(2).key("b").to_string(), "config.a[2].b");
    }
}
