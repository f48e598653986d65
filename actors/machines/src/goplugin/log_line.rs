//! Parses what a plugin writes to standard error: hclog's JSON, tagged lines, panics, plain text (D70 to D77, LOG-02).

use std::fmt;

use serde_json::{Map, Value};

use super::lines::{LineSplitter, Part, Piece};
use crate::vocabulary::text::escaped_but_tabs as shown;

/// The limit of fields per line.
pub const FIELDS_MAX: usize = 64;

/// The tags at the beginning of a line that is not JSON (D74).
const TAGS: [(&str, LineLevel); 5] = [
    ("[TRACE]", LineLevel::Trace),
    ("[DEBUG]", LineLevel::Debug),
    ("[INFO]", LineLevel::Info),
    ("[WARN]", LineLevel::Warn),
    ("[ERROR]", LineLevel::Error),
];

/// The beginnings of fatal messages of a Go program (D74).
const LAST_WORDS: [&str; 2] = ["panic: ", "fatal error: "];

/// The log level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineLevel {
    /// Every step.
    Trace,
    /// Details for debugging; also every line without a level.
    Debug,
    /// Information.
    Info,
    /// A warning.
    Warn,
    /// An error, or the plugin is crashing.
    Error,
}

impl LineLevel {
    /// Parses a level in hclog's format, in any case and with surrounding space (D73).
    fn read(text: &str) -> Option<Self> {
        let levels = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];
        levels.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text.trim()))
    }

    /// Its name, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LineLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The format of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// hclog's JSON (D72).
    Json,
    /// A line with a tag (D74).
    Tagged,
    /// A panic, or a line after one (D74).
    LastWords,
    /// Anything else (D74).
    Plain,
}

/// One line of a plugin, safe for a log: control characters are escaped, so that it cannot forge other lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginLine {
    /// The log level.
    pub level: LineLevel,
    /// The message.
    pub message: String,
    /// The fields of hclog, ordered by name, with their JSON values. The time is under `timestamp`, the name of the logger
    /// under `@module`, the location in the plugin's code under `@caller`.
    pub fields: Vec<(String, Value)>,
    /// The number of fields over the limit, which were dropped.
    pub fields_left_out: usize,
    /// The format of the line.
    pub origin: Origin,
    /// The position in its line; a long line comes in pieces, each on its own (LOG-02).
    pub part: Part,
}

impl PluginLine {
    fn plain(level: LineLevel, text: &str, origin: Origin, part: Part) -> Self {
        Self { level, message: shown(text), fields: Vec::new(), fields_left_out: 0, origin, part }
    }
}

/// Parses the standard error of a plugin incrementally. It never fails: unknown text is returned as plain (D76).
#[derive(Debug, Clone, Default)]
pub struct LineReader {
    splitter: LineSplitter,
    has_panicked: bool,
}

impl LineReader {
    /// Creates a reader.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes and returns the lines that end in them. Empty lines are skipped.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<PluginLine> {
        let pieces = self.splitter.push(bytes);
        pieces.into_iter().filter_map(|piece| self.read(&piece)).collect()
    }

    /// Returns the last line, although it has no line ending: the stream has ended.
    pub fn finish(&mut self) -> Option<PluginLine> {
        let piece = self.splitter.finish()?;
        self.read(&piece)
    }

    /// The number of buffered bytes of an incomplete line. The position up to which a file was consumed excludes them.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.splitter.held_bytes()
    }

    /// Whether the plugin has panicked. From then on every line without a level is an error (D74).
    #[must_use]
    pub const fn has_panicked(&self) -> bool {
        self.has_panicked
    }

    fn read(&mut self, piece: &Piece) -> Option<PluginLine> {
        let text = piece.text();
        if text.trim().is_empty() {
            return None;
        }
        match piece.part {
            Part::Whole => Some(self.read_line(&text)),
            Part::First | Part::Middle | Part::Last => Some(self.as_it_is(&text, piece.part)),
        }
    }

    fn read_line(&mut self, text: &str) -> PluginLine {
        if let Some(object) = json_object(text) {
            return match read_json(object) {
                Some(line) => line,
                None => self.as_it_is(text, Part::Whole),
            };
        }
        if let Some((tag, level)) = TAGS.into_iter().find(|(tag, _)| text.starts_with(tag)) {
            return PluginLine::plain(level, text[tag.len()..].trim_start(), Origin::Tagged, Part::Whole);
        }
        self.has_panicked |= LAST_WORDS.iter().any(|words| text.starts_with(words));
        self.as_it_is(text, Part::Whole)
    }

    fn as_it_is(&self, text: &str, part: Part) -> PluginLine {
        match self.has_panicked {
            true => PluginLine::plain(LineLevel::Error, text, Origin::LastWords, part),
            false => PluginLine::plain(LineLevel::Debug, text, Origin::Plain, part),
        }
    }
}

fn json_object(text: &str) -> Option<Map<String, Value>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Parses an object in hclog's format. `None`: other JSON, or a marker that is not text, which has crashed other hosts (D76).
fn read_json(mut object: Map<String, Value>) -> Option<PluginLine> {
    let level = LineLevel::read(&text_of(object.remove("@level")?)?)?;
    let message = match object.remove("@message") {
        Some(message) => text_of(message)?,
        None => String::new(),
    };
    let time = match object.remove("@timestamp") {
        Some(time) => Some(text_of(time).filter(|time| is_timestamp(time))?),
        None => None,
    };
    let others = object.into_iter().map(|(name, value)| (shown(&name), shown_value(value)));
    let mut fields: Vec<_> =
        time.map(|time| ("timestamp".to_owned(), Value::String(time))).into_iter().chain(others).collect();
    let fields_left_out = fields.len().saturating_sub(FIELDS_MAX);
    fields.truncate(FIELDS_MAX);
    Some(PluginLine {
        level,
        message: shown(&message),
        fields,
        fields_left_out,
        origin: Origin::Json,
        part: Part::Whole,
    })
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A JSON value with all texts escaped.
fn shown_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(shown(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(shown_value).collect()),
        Value::Object(values) => {
            let values = values.into_iter().map(|(name, value)| (shown(&name), shown_value(value)));
            Value::Object(values.collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

/// Whether a text is like `2006-01-02T15:04:05.000000Z` or an offset such as `+07:00` (D72). The fraction has any length.
fn is_timestamp(text: &str) -> bool {
    const SECONDS: &str = "dddd-dd-ddTdd:dd:dd";
    let Some((seconds, rest)) = text.split_at_checked(SECONDS.len()) else { return false };
    let Some(rest) = rest.strip_prefix('.') else { return false };
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let zone_is_good =
        zone == "Z" || zone.strip_prefix(['+', '-']).is_some_and(|offset| has_form(offset, "dd:dd"));
    has_form(seconds, SECONDS) && zone.len() < rest.len() && zone_is_good
}

/// Whether a text matches this pattern: `d` matches a digit, any other character matches itself.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| if form == b'd' { byte.is_ascii_digit() } else { byte == form };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests;
