//! The record of a driver's settings, and how these are derived from its configuration.

use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::persister::{Record, Table};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KeptDriver;
use crate::config::{DriverConfig, DriverProgram};

impl From<&DriverConfig> for KeptDriver {
    fn from(driver: &DriverConfig) -> Self {
        Self {
            program: driver.program.clone(),
            arguments: driver.arguments.clone(),
            sha256: driver.sha256,
            survives: driver.survives,
            stop_grace: driver.stop_grace,
            start_timeout: driver.start_timeout,
            had_more: !driver.environment.is_empty() || !driver.config.is_empty(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptRow(pub(super) KeptDriver);

impl Record for KeptRow {
    const TABLE: Table = Table("task-drivers");
    const SCHEMA: u16 = 1;
}

/// The layout of a row. Durations are in microseconds.
#[derive(Serialize, Deserialize)]
struct KeptLayout {
    program: ProgramLayout,
    arguments: Vec<String>,
    sha256: Option<[u8; 32]>,
    survives: bool,
    stop_grace_us: u64,
    start_timeout_us: u64,
    had_more: bool,
}

#[derive(Serialize, Deserialize)]
enum ProgramLayout {
    Plugin(String),
    Internal(String),
    Command(PathBuf),
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl Serialize for KeptRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = &self.0;
        let layout = KeptLayout {
            program: match kept.program.clone() {
                DriverProgram::Plugin(file) => ProgramLayout::Plugin(file),
                DriverProgram::Internal(name) => ProgramLayout::Internal(name),
                DriverProgram::Command(path) => ProgramLayout::Command(path),
            },
            arguments: kept.arguments.clone(),
            sha256: kept.sha256,
            survives: kept.survives,
            stop_grace_us: micros(kept.stop_grace),
            start_timeout_us: micros(kept.start_timeout),
            had_more: kept.had_more,
        };
        layout.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KeptRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let layout = KeptLayout::deserialize(deserializer)?;
        Ok(Self(KeptDriver {
            program: match layout.program {
                ProgramLayout::Plugin(file) => DriverProgram::Plugin(file),
                ProgramLayout::Internal(name) => DriverProgram::Internal(name),
                ProgramLayout::Command(path) => DriverProgram::Command(path),
            },
            arguments: layout.arguments,
            sha256: layout.sha256,
            survives: layout.survives,
            stop_grace: Duration::from_micros(layout.stop_grace_us),
            start_timeout: Duration::from_micros(layout.start_timeout_us),
            had_more: layout.had_more,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use callboard_actors::persister::{decode, encode};

    use super::*;
    use crate::config::Config;

    fn kept(text: &str) -> KeptDriver {
        let text = format!("data_dir = '/d'\nplugin_dir = '/p'\n[[driver]]\n{text}");
        KeptDriver::from(&Config::parse(Path::new("host.toml"), &text).unwrap().drivers[0])
    }

    #[test]
    fn how_a_driver_was_run_comes_back_from_its_row_as_it_was() {
        for text in
            ["name = 'exec'", "name = 'raw'\nsurvives = false", "name = 'sh'\ncommand = ['/bin/sh', '-c']"]
        {
            let row = KeptRow(kept(text));
            assert_eq!(decode::<KeptRow>(&encode(&row)).unwrap(), row);
        }
    }

    /// The bytes that this version writes. They must stay readable: a change, even by a library, needs a schema and a
    /// migration.
    #[test]
    fn p2_drivers_have_these_bytes_whatever_library_writes_them() {
        let digest = format!("name = 'exec'\nsha256 = '{}'", "07".repeat(32));
        let rows: [(&str, &[u8]); 3] = [
            (
                &digest,
                b"\x01\x00\x01\x04exec\x00\x01\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\
                \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x01\
                \xfc@KL\x00\xfc\x00\x87\x93\x03\x00",
            ),
            (
                "name = 'raw'\nplugin = 'raw'\nsurvives = false",
                b"\x01\x00\x00\x03raw\x00\x00\x00\xfc@KL\
                \x00\xfc\x00\x87\x93\x03\x00",
            ),
            (
                "name = 'sh'\ncommand = ['/bin/sh', '-c']",
                b"\x01\x00\x02\x07/bin/sh\x01\x02-c\x00\x01\
                \xfc@KL\x00\xfc\x00\x87\x93\x03\x00",
            ),
        ];
        for (text, bytes) in rows {
            let row = KeptRow(kept(text));
            assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
            assert_eq!(decode::<KeptRow>(bytes).unwrap(), row);
        }
    }

    #[test]
    fn neither_environment_nor_configuration_of_a_driver_is_kept_p6() {
        let with = kept("name = 'raw'\nenv = { TOKEN = 'canary-7' }\nconfig = { token = 'canary-8' }");
        assert!(with.had_more && !kept("name = 'raw'").had_more);
        assert!(kept("name = 'raw'\nenv = { A = 'b' }").had_more);
        assert!(kept("name = 'raw'\nconfig = { a = 1 }").had_more);
        let row = encode(&KeptRow(with));
        assert!(!row.windows(7).any(|window| window == b"canary-"));
    }
}
