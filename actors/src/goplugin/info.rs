//! The identity of a plugin, and its configuration message (D102).

use std::fmt;

use callboard_proto::base;

use crate::rpc::{Fault, Problem};
use crate::vocabulary::text::quoted;
use crate::vocabulary::{PluginName, PluginType};

/// The limit of API versions that a plugin may offer.
pub const API_VERSIONS_MAX: usize = 32;
/// The length limit of a version, in bytes: a plugin's own or one of its API.
pub const VERSION_BYTES_MAX: usize = 128;

const RULE: &str = "D102";

/// The identity of a plugin: checked and within limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// A driver or a device plugin.
    pub plugin_type: PluginType,
    /// Its name.
    pub name: PluginName,
    /// Its own version, as it writes it.
    pub version: String,
    /// The API versions that it supports, as it writes them and in its order; at least one.
    pub api_versions: Vec<String>,
}

impl PluginInfo {
    /// Checks an answer. A name that is not a valid path component, an unknown type and a version that is empty or contains
    /// blanks are faults of the plugin.
    pub(super) fn of_wire(answer: base::PluginInfoResponse) -> Result<Self, Fault> {
        let plugin_type = plugin_type(answer.r#type)?;
        let name =
            PluginName::new(&answer.name).map_err(|error| malformed("name", &error.to_string(), "a name"))?;
        let version = version("plugin_version", answer.plugin_version)?;
        let offered = answer.plugin_api_versions;
        match offered.len() {
            0 => return Err(fault("plugin_api_versions", Problem::Empty)),
            count if count > API_VERSIONS_MAX => {
                let expected = "at most 32 versions";
                return Err(malformed("plugin_api_versions", &format!("{count} versions"), expected));
            }
            _ => (),
        }
        let api_versions: Result<_, _> =
            offered.into_iter().map(|text| self::version("plugin_api_versions", text)).collect();
        Ok(Self { plugin_type, name, version, api_versions: api_versions? })
    }
}

fn plugin_type(number: i32) -> Result<PluginType, Fault> {
    match base::PluginType::try_from(number) {
        Ok(base::PluginType::Driver) => Ok(PluginType::Driver),
        Ok(base::PluginType::Device) => Ok(PluginType::Device),
        Ok(base::PluginType::Unknown) | Err(_) => {
            Err(malformed("type", &number.to_string(), "2 (driver) or 3 (device)"))
        }
    }
}

fn version(field: &'static str, text: String) -> Result<String, Fault> {
    if text.is_empty() {
        return Err(fault(field, Problem::Empty));
    }
    if text.len() > VERSION_BYTES_MAX {
        return Err(fault(field, Problem::TooLong { bytes: text.len(), limit: VERSION_BYTES_MAX }));
    }
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text);
    }
    Err(malformed(field, &text, "a version such as v0.1.0, without blanks"))
}

fn malformed(field: &'static str, text: &str, expected: &'static str) -> Fault {
    fault(field, Problem::Malformed { excerpt: quoted(text), expected })
}

const fn fault(field: &'static str, problem: Problem) -> Fault {
    Fault { rule: RULE, field, problem }
}

/// The configuration message for a plugin. Its debug output does not show the configuration, which may hold secrets.
#[derive(Clone, PartialEq)]
pub struct PluginConfig {
    /// The configuration, decoded by the plugin's schema and encoded as msgpack (D113).
    pub msgpack: Vec<u8>,
    /// Facts about the host.
    pub nomad: Option<base::NomadConfig>,
    /// The negotiated API version, one of those that the plugin offered.
    pub api_version: String,
}

impl PluginConfig {
    pub(super) fn into_wire(self) -> base::SetConfigRequest {
        base::SetConfigRequest {
            msgpack_config: self.msgpack,
            nomad_config: self.nomad,
            plugin_api_version: self.api_version,
        }
    }
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clone().into_wire().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, version: &str, api_versions: usize) -> base::PluginInfoResponse {
        base::PluginInfoResponse {
            r#type: base::PluginType::Driver.into(),
            plugin_api_versions: vec!["v0.1.0".to_owned(); api_versions],
            plugin_version: version.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn what_a_plugin_is_told_is_shown_without_its_configuration_sec_06() {
        let config = PluginConfig { msgpack: vec![199; 7], nomad: None, api_version: "v0.1.0".to_owned() };
        let shown = format!("{config:?}");
        assert!(shown.contains("v0.1.0") && !shown.contains("199"), "{shown}");
    }

    #[test]
    fn what_a_plugin_says_of_itself_is_read_or_refused_to_the_last_of_its_limits() {
        let longest = "v".repeat(VERSION_BYTES_MAX);
        let info = PluginInfo::of_wire(answer("exec", &longest, API_VERSIONS_MAX)).unwrap();
        assert_eq!(
            (info.plugin_type, info.name.as_str(), info.version),
            (PluginType::Driver, "exec", longest.clone())
        );
        assert_eq!(info.api_versions.len(), API_VERSIONS_MAX);
        for (name, version, api_versions) in [
            ("exec", &*longest, API_VERSIONS_MAX + 1),
            ("exec", "1.0", 0),
            ("exec", &format!("{longest}v"), 1),
            ("exec", &format!("{longest}vv"), 1),
            ("exec", "", 1),
            ("exec", "1 0", 1),
            ("a/b", "1.0", 1),
        ] {
            assert!(PluginInfo::of_wire(answer(name, version, api_versions)).is_err(), "{name} {version}");
        }
        let device =
            base::PluginInfoResponse { r#type: base::PluginType::Device.into(), ..answer("a", "1", 1) };
        assert_eq!(PluginInfo::of_wire(device).unwrap().plugin_type, PluginType::Device);
        assert!(PluginInfo::of_wire(base::PluginInfoResponse { r#type: 9, ..answer("a", "1", 1) }).is_err());
    }
}
