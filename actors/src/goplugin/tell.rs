//! Writes a plugin's line to our log.
//!
//! | field | content |
//! |---|---|
//! | `plugin` | the plugin |
//! | `module` | the name of its logger, hclog's `@module` |
//! | `caller` | the location in its code, hclog's `@caller` |
//! | `plugin_time` | the time by the plugin's clock, hclog's `@timestamp` |
//! | `plugin_fields` | all other fields, as the text of a JSON object |
//! | `fields_left_out` | the number of fields that were dropped |
//!
//! The field names of an event are static in tracing, so fields of a plugin cannot be event fields. Missing ones are left
//! out.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::{LineLevel, PluginLine};

macro_rules! say {
    ($level:ident, $plugin:expr, $line:expr, $told:expr) => {
        tracing::$level!(
            target: "callboard::plugin",
            plugin = %$plugin,
            module = $told.module,
            caller = $told.caller,
            plugin_time = $told.time,
            plugin_fields = $told.others().map(tracing::field::display),
            fields_left_out = (($line.fields_left_out > 0).then_some($line.fields_left_out)),
            "{}", $line.message
        )
    };
}

/// Logs a line of the plugin with this name, under the target `callboard::plugin`.
pub(crate) fn tell(plugin: &dyn Display, line: &PluginLine) {
    let told = Told::of(line);
    match line.level {
        LineLevel::Trace => say!(trace, plugin, line, told),
        LineLevel::Debug => say!(debug, plugin, line, told),
        LineLevel::Info => say!(info, plugin, line, told),
        LineLevel::Warn => say!(warn, plugin, line, told),
        LineLevel::Error => say!(error, plugin, line, told),
    }
}

#[derive(Debug, Default)]
struct Told<'a> {
    module: Option<&'a str>,
    caller: Option<&'a str>,
    time: Option<&'a str>,
    others: Vec<&'a (String, Value)>,
}

impl<'a> Told<'a> {
    fn of(line: &'a PluginLine) -> Self {
        let mut told = Self::default();
        for field in &line.fields {
            match (&*field.0, field.1.as_str()) {
                ("@module", Some(module)) => told.module = Some(module),
                ("@caller", Some(caller)) => told.caller = Some(caller),
                ("timestamp", Some(time)) if told.time.is_none() => told.time = Some(time),
                _ => told.others.push(field),
            }
        }
        told
    }

    /// The JSON text of the other fields; built only for lines that a subscriber wants.
    fn others(&self) -> Option<Value> {
        let others: Map<_, _> =
            self.others.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        (!others.is_empty()).then_some(Value::Object(others))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LineReader;
    use super::*;

    #[test]
    fn what_comes_with_a_line_is_told_under_our_names_or_as_one_object_d72() {
        let text = br#"{"@level":"info","@message":"m","@module":"a.b","@caller":"x.go:7","@timestamp":"2026-11-21T12:00:00.0Z","timestamp":"mine","n":{"k":[1,null]},"t":"\u001b"}"#;
        let line = LineReader::new().push(&[text.as_slice(), b"\n"].concat()).remove(0);
        let told = Told::of(&line);
        assert_eq!((told.module, told.caller), (Some("a.b"), Some("x.go:7")));
        assert_eq!(told.time, Some("2026-11-21T12:00:00.0Z"));
        let others = told.others().expect("there are others").to_string();
        assert_eq!(others, r#"{"n":{"k":[1,null]},"t":"\\u{1b}","timestamp":"mine"}"#);
        let plain = LineReader::new().push(b"[WARN] m\n").remove(0);
        assert_eq!(Told::of(&plain).others(), None);
    }
}
