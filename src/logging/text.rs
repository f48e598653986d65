//! Formats the fields of an event in a line for people: `message name=value name="text"`.

use std::error::Error;
use std::fmt::{self, Debug};

use callboard_actors::vocabulary::text::{bounded, escaped_but_tabs};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use super::VALUE_BYTES_MAX;

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
            // Without the backslashes of Rust's debug format: texts escaped on input must not be escaped twice.
            _ => self.put(field, &format!("\"{}\"", value.replace('"', "\\\""))),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, &with_sources(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, &format!("{value:?}"));
    }
}

pub(super) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
