//! Formats the fields of an event in a line for people: `message name=value name="text"`.

use std::error::Error;
use std::fmt::{self, Debug};
use std::io;

use callboard_actors::vocabulary::text::{bounded, escaped_but_tabs};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use super::{LINES_LOST, PLUGIN_FIELDS, VALUE_BYTES_MAX, timestamp};

/// Escapes values, so that none can begin a line or send a terminal control sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut values = Values { writer, is_first: true, result: Ok(()) };
        fields.record(&mut values);
        values.result
    }
}

/// The line that reports how many lines before it were lost.
pub(super) fn lost_lines(lines: u64, error: &io::Error) -> String {
    let (timestamp, error) = (timestamp(), quoted(&error.to_string()));
    format!("{timestamp}  WARN callboard::logging: {LINES_LOST} lines={lines} error={error}\n")
}

struct Values<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl Values<'_> {
    fn put(&mut self, field: &Field, value: &str) {
        if self.result.is_ok() {
            self.result = self.write(field.name(), value);
        }
    }

    /// A value that is not a string in Rust, such as an error or the debug format of a type, may still have several words.
    fn put_value(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" | PLUGIN_FIELDS => self.put(field, value),
            _ if has_an_end(value) => self.put(field, value),
            _ => self.put(field, &quoted(value)),
        }
    }

    fn write(&mut self, name: &str, value: &str) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            write!(self.writer, "{}=", name.strip_prefix("r#").unwrap_or(name))?;
        }
        // Most values are short, and keep their tabs.
        match value.len() > VALUE_BYTES_MAX {
            true => self.writer.write_str(&bounded(value, VALUE_BYTES_MAX)),
            false => self.writer.write_str(&escaped_but_tabs(value)),
        }
    }
}

impl Visit for Values<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.put(field, value),
            _ => self.put(field, &quoted(value)),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put_value(field, &with_sources(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_value(field, &format!("{value:?}"));
    }
}

/// Without the backslashes of Rust's debug format: texts escaped on input must not be escaped twice.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\\\""))
}

/// Whether the end of a value is visible: it is a word, or a quoted text.
fn has_an_end(value: &str) -> bool {
    let is_in_quotes = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
    let is_word = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '"');
    is_in_quotes || is_word
}

pub(super) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn it_is_seen_where_each_value_of_an_event_ends() {
        let written = Written::default();
        let kept = written.clone();
        let plain = tracing_subscriber::fmt().with_ansi(false).without_time().with_target(false);
        let subscriber = plain.fmt_fields(TextFields).with_writer(move || kept.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let (exit, plugin) = ("signal 9 (SIGKILL)", "csi-node/zfs");
            let error = &io::Error::other("no \"pool\"") as &dyn Error;
            tracing::info!(pid = 7, %exit, %plugin, name = "a b", none = %"", spoken = ?"x y", error, "it ended");
        });
        let expected = concat!(
            " INFO it ended pid=7 exit=\"signal 9 (SIGKILL)\" plugin=csi-node/zfs name=\"a b\" none=\"\" ",
            "spoken=\"x y\" error=\"no \\\"pool\\\"\"\n"
        );
        assert_eq!(String::from_utf8(written.0.lock().unwrap().clone()).unwrap(), expected);
    }
}
