//! The log of a plugin: one line of JSON per event on standard error, in the format that hosts parse (D72).
//!
//! ```text
//! {"@level":"info","@message":"told to stop","@module":"callboard::plugin","@timestamp":"2026-11-21T12:00:00.000000Z","why":"..."}
//! ```

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// The longest line in bytes; hosts split longer ones into pieces that are no longer JSON (D70).
const LINE_BYTES_MAX: usize = 60 * 1_024;

/// Logs to standard error, filtered by `RUST_LOG`, by default from `info`. A `tracing` subscriber that is already set stays.
pub fn log_to_host() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // The only possible error is that a subscriber is already set.
    let _ = Registry::default().with(HostLog.with_filter(filter)).try_init();
}

/// A `tracing` layer that writes lines which hosts parse. It never fails or panics: if the host dies, and with it the other
/// end of standard error, only the lines are lost (D86).
#[derive(Debug, Clone, Copy, Default)]
pub struct HostLog;

impl<S: Subscriber> Layer<S> for HostLog {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = line(event, SystemTime::now());
        line.push(b'\n');
        let _ = io::stderr().lock().write_all(&line);
    }
}

fn line(event: &Event<'_>, now: SystemTime) -> Vec<u8> {
    let mut fields = Fields(Map::new());
    event.record(&mut fields);
    let Fields(mut fields) = fields;
    let message = fields.remove("message").unwrap_or_else(|| Value::from(""));
    fields.insert("@message".to_owned(), message);
    fields.insert("@level".to_owned(), level(event.metadata().level()).into());
    fields.insert("@module".to_owned(), event.metadata().target().into());
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    fields.insert("@timestamp".to_owned(), timestamp(since_epoch).into());
    let line = Value::Object(fields).to_string().into_bytes();
    if line.len() <= LINE_BYTES_MAX { line } else { shortened(event, since_epoch) }
}

/// The replacement for an event that is too long.
fn shortened(event: &Event<'_>, since_epoch: Duration) -> Vec<u8> {
    serde_json::json!({
        "@message": "a line of the log is left out, since it is too long",
        "@level": level(event.metadata().level()),
        "@module": event.metadata().target(),
        "@timestamp": timestamp(since_epoch),
    })
    .to_string()
    .into_bytes()
}

const fn level(level: &Level) -> &'static str {
    match *level {
        Level::TRACE => "trace",
        Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
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
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

/// Formats a time as `2006-01-02T15:04:05.000000Z07:00`, in UTC.
fn timestamp(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let micros = since_epoch.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// The date this many days after 1 January 1970. Years are counted from 1 March, so that the leap day is the last of a year.
const fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn times_have_the_layout_that_hosts_read_d72() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000042Z"),
            (951_782_400, "2000-02-29T00:00:00.000042Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000042Z"),
            (1_795_262_400, "2026-11-21T12:00:00.000042Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000042Z"),
        ] {
            assert_eq!(timestamp(Duration::new(seconds, 42_000)), text);
        }
    }

    /// Keeps lines instead of writing them.
    struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().expect("no test panics").push(line(event, SystemTime::UNIX_EPOCH));
        }
    }

    #[test]
    fn an_event_becomes_one_line_of_json_with_its_fields_d72_d73() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let subscriber = Registry::default().with(Kept(lines.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(task = "a\nb", code = 3, is_new = true, "odd {}", "thing");
            tracing::error!("{}", "x".repeat(100_000));
        });
        let lines = lines.lock().expect("no test panics");
        let read: Value = serde_json::from_slice(&lines[0]).expect("JSON");
        assert_eq!(read["@level"], "warn");
        assert_eq!(read["@message"], "odd thing");
        assert_eq!(
            (&read["task"], &read["code"], &read["is_new"]),
            (&"a\nb".into(), &3.into(), &true.into())
        );
        assert!(!lines[0].contains(&b'\n'));
        assert!(lines[1].len() < LINE_BYTES_MAX, "a line that would be cut is left out");
        assert!(String::from_utf8_lossy(&lines[1]).contains("too long"));
    }
}
