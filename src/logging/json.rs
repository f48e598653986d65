//! Formats an event as one JSON object on one line. The keys, described in `docs/command-line.md`, are stable.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Debug};
use std::io;

use callboard_actors::vocabulary::text::{bounded, json_for_terminals};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::text::with_sources;
use super::{LINES_LOST, PLUGIN_FIELDS, VALUE_BYTES_MAX, timestamp};

/// Formats the fields of a span as an object, which [`JsonLines`] parses.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonFields;

impl<'writer> FormatFields<'writer> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        write!(writer, "{}", Value::Object(values(&fields)))
    }

    /// Merges fields that are recorded later.
    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        let mut all = read(&current.fields);
        all.extend(values(fields));
        current.fields = Value::Object(all).to_string();
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct JsonLines;

/// One line. The fields are ordered by importance to readers.
#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'static str,
    target: &'a str,
    message: Value,
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spans: Vec<Span>,
}

/// A span around the event; the outermost comes first.
#[derive(Serialize)]
struct Span {
    name: &'static str,
    fields: Map<String, Value>,
}

/// The line that reports how many lines before it were lost.
pub(super) fn lost_lines(lines: u64, error: &io::Error) -> String {
    let fields = [("error".to_owned(), error.to_string().into()), ("lines".to_owned(), lines.into())];
    let line = Line {
        timestamp: timestamp(),
        level: level(tracing::Level::WARN),
        target: "callboard::logging",
        message: LINES_LOST.into(),
        fields: fields.into_iter().collect(),
        spans: Vec::new(),
    };
    format!("{}\n", serde_json::to_string(&line).unwrap_or_default())
}

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = values(event);
        let message = fields.remove("message").unwrap_or_else(|| Value::from(""));
        let spans = context.event_scope().into_iter().flat_map(|scope| scope.from_root());
        let spans = spans.map(|span| {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>().map(|told| read(&told.fields));
            Span { name: span.name(), fields: fields.unwrap_or_default() }
        });
        let metadata = event.metadata();
        let (level, target) = (level(*metadata.level()), metadata.target());
        let line = Line { timestamp: timestamp(), level, target, message, fields, spans: spans.collect() };
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{}", json_for_terminals(&line))
    }
}

const fn level(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::TRACE => "trace",
        tracing::Level::DEBUG => "debug",
        tracing::Level::INFO => "info",
        tracing::Level::WARN => "warn",
        tracing::Level::ERROR => "error",
    }
}

fn read(object: &str) -> Map<String, Value> {
    serde_json::from_str(object).unwrap_or_default()
}

fn values(fields: &impl RecordFields) -> Map<String, Value> {
    let mut values = Values(BTreeMap::new());
    fields.record(&mut values);
    values.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

struct Values(BTreeMap<&'static str, Value>);

impl Values {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().strip_prefix("r#").unwrap_or(field.name()), value.into());
    }

    fn put_text(&mut self, field: &Field, text: &str) {
        let object = match field.name() {
            PLUGIN_FIELDS => serde_json::from_str::<Map<String, Value>>(text).ok(),
            _ => None,
        };
        match object {
            Some(object) => self.put(field, object),
            None if text.len() > VALUE_BYTES_MAX => self.put(field, bounded(text, VALUE_BYTES_MAX)),
            None => self.put(field, text),
        }
    }
}

impl Visit for Values {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put_text(field, &with_sources(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_text(field, &format!("{value:?}"));
    }
}
