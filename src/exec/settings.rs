//! The operator's settings in the `plugin` block of the driver.

use callboard_proto::hclspec::Spec;
use serde::Deserialize;

use super::signals;
use crate::plugin::{Refusal, decode, schema};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// Whether tasks are accepted.
    pub(super) is_enabled: bool,
    /// Whether a task is killed when it exceeds its memory limit (T201).
    pub(super) limits_memory: bool,
    /// The default stop signal; the host may name another.
    pub(super) stop_signal: String,
    /// The speed of a core in MHz, if the host or the kernel reports it.
    pub(super) core_mhz: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { is_enabled: true, limits_memory: false, stop_signal: signals::INT.to_owned(), core_mhz: None }
    }
}

#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    memory_limit: Option<bool>,
    #[serde(default)]
    stop_signal: Option<String>,
}

pub(super) fn schema() -> Spec {
    schema::object([
        ("enabled", schema::optional("enabled", "bool")),
        ("memory_limit", schema::optional("memory_limit", "bool")),
        ("stop_signal", schema::optional("stop_signal", "string")),
    ])
}

/// Decodes the settings; they are empty without a block.
pub(super) fn read(msgpack: &[u8]) -> Result<Settings, Refusal> {
    let usual = Settings::default();
    if msgpack.is_empty() {
        return Ok(usual);
    }
    let written: Written = decode(msgpack)?;
    let stop_signal = written.stop_signal.unwrap_or_else(|| usual.stop_signal.clone());
    if signals::number(&stop_signal).is_none() {
        let told = format!("stop_signal: {stop_signal:?} is no signal; name one such as SIGTERM");
        return Err(Refusal::invalid(told).recoverable(false));
    }
    Ok(Settings {
        is_enabled: written.enabled.unwrap_or(usual.is_enabled),
        limits_memory: written.memory_limit.unwrap_or(usual.limits_memory),
        stop_signal,
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(written: &serde_json::Value) -> Result<Settings, Refusal> {
        read(&rmp_serde::to_vec_named(written).expect("it can be written"))
    }

    #[test]
    fn what_is_not_written_is_as_usual_t145() {
        let usual = Settings::default();
        assert_eq!((usual.is_enabled, usual.limits_memory, &*usual.stop_signal), (true, false, "SIGINT"));
        assert_eq!(read(&[]).expect("no block"), usual);
        let nothing = serde_json::json!({ "enabled": null, "memory_limit": null, "stop_signal": null });
        assert_eq!(of(&nothing).expect("an empty block"), usual);
    }

    #[test]
    fn what_is_written_counts_and_must_make_sense() {
        let written = serde_json::json!({ "enabled": false, "memory_limit": true, "stop_signal": "SIGTERM" });
        let stop_signal = "SIGTERM".to_owned();
        let settings = Settings { is_enabled: false, limits_memory: true, stop_signal, core_mhz: None };
        assert_eq!(of(&written).expect("it makes sense"), settings);
        let refused = of(&serde_json::json!({ "stop_signal": "SIGNAL" })).expect_err("none of this name");
        assert!(refused.to_string().contains("SIGTERM"), "{refused}");
    }
}
