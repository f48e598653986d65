//! Decodes arbitrary bytes as a plugin's schema and a configuration for it.

use callboard_proto::hclspec as wire;
use prost::Message;

use super::{Config, ConfigErrors, ERRORS_MAX, Number, Schema, Value, schema_from_wire};
use crate::fuzzing::check_told;

/// The separator between schema and configuration: it never occurs in UTF-8.
const BETWEEN: u8 = 0xff;

/// The bytes before the first `0xff` are the plugin's schema, those after the last are the configuration, as HCL or as TOML.
///
/// # Panics
/// When a schema or a configuration is refused without its path; when there are too many errors; or when the result is no
/// valid msgpack.
pub(crate) fn schemas(data: &[u8]) {
    let schema = data.split(|byte| *byte == BETWEEN).next().unwrap_or_default();
    let text = data.rsplit(|byte| *byte == BETWEEN).next().unwrap_or_default();
    let schema = wire::Spec::decode(schema).ok().and_then(|spec| match schema_from_wire(&spec) {
        Ok(schema) => Some(schema),
        Err(error) => {
            check_told(&error);
            assert!(error.path.starts_with("schema"), "{}", error.path);
            None
        }
    });
    let schema = schema.unwrap_or_else(Schema::nothing);
    let Ok(text) = std::str::from_utf8(text) else { return };
    taken(&schema, Config::from_hcl(text));
    if let Ok(table) = toml::from_str(text) {
        taken(&schema, Config::from_toml(&table));
    }
}

fn taken(schema: &Schema, config: Result<Config, ConfigErrors>) {
    match config.and_then(|config| schema.decode(&config)) {
        Ok(value) => {
            let bytes = value.to_msgpack();
            assert!(bytes.len() < 16 << 20, "{} bytes of msgpack", bytes.len());
            let mut rest = &bytes[..];
            read_back(&value, &mut rest);
            assert!(rest.is_empty(), "{} bytes of msgpack are left over", rest.len());
        }
        Err(errors) => {
            assert!((1..=ERRORS_MAX).contains(&errors.errors().len()));
            assert!(errors.untold() == 0 || errors.errors().len() == ERRORS_MAX);
            for error in errors.errors() {
                assert!(error.path.starts_with("config"), "{}", error.path);
                assert!(!error.problem.to_string().is_empty());
            }
        }
    }
}

/// Asserts that these bytes begin with this value, and skips it.
fn read_back(value: &Value, bytes: &mut &[u8]) {
    use rmp::decode;
    match value {
        Value::Null => decode::read_nil(bytes).expect("nil"),
        Value::Bool(bool) => assert_eq!(decode::read_bool(bytes).expect("a bool"), *bool),
        Value::Number(Number::Integer(integer)) => {
            assert_eq!(decode::read_int::<i64, _>(bytes).expect("a whole number"), *integer);
        }
        Value::Number(Number::Float(float)) => {
            assert!(float.is_finite());
            assert_eq!(decode::read_f64(bytes).expect("a float").to_bits(), float.to_bits());
        }
        Value::String(text) => read_text(text, bytes),
        Value::List(values) => {
            assert_eq!(decode::read_array_len(bytes).expect("a list") as usize, values.len());
            values.iter().for_each(|value| read_back(value, bytes));
        }
        Value::Map(entries) => {
            assert_eq!(decode::read_map_len(bytes).expect("a map") as usize, entries.len());
            for (key, value) in entries {
                read_text(key, bytes);
                read_back(value, bytes);
            }
        }
    }
}

fn read_text(text: &str, bytes: &mut &[u8]) {
    let length = rmp::decode::read_str_len(bytes).expect("a text") as usize;
    let (read, rest) = bytes.split_at(length);
    assert_eq!(read, text.as_bytes());
    *bytes = rest;
}
