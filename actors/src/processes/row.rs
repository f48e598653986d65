//! The row of a process record on disk. Bytes from disk are validated like any external input.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::goplugin::Handshake;
use crate::persister::{Record, Table};
use crate::process::{FileId, Identity, Lifetime, Positions, ProcessName, ProcessRecord, ProcessTag, Reach};
use crate::vocabulary::Timestamp;

/// Processes, by name.
pub const PROCESS_TABLE: Table = Table("processes");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessRow(pub(super) ProcessRecord);

impl Record for ProcessRow {
    const TABLE: Table = PROCESS_TABLE;
    const SCHEMA: u16 = 1;
}

pub(super) fn key(name: &ProcessName) -> Vec<u8> {
    name.as_str().as_bytes().to_vec()
}

/// The layout of a row. Durations are microseconds, times are microseconds since the Unix epoch.
#[derive(Serialize, Deserialize)]
struct Layout {
    name: String,
    tag: [u8; 16],
    is_surviving: bool,
    ends_everything: bool,
    spec_digest: [u8; 32],
    stop_grace_us: u64,
    output_kept_bytes: u64,
    started_at_us: u64,
    identity: Option<IdentityLayout>,
    is_ready: bool,
    handshake: Option<Handshake>,
    output_position: u64,
    errors_position: u64,
}

#[derive(Serialize, Deserialize)]
struct IdentityLayout {
    pid: u32,
    started_ticks: u64,
    boot_id: String,
    device_and_inode: Option<(u64, u64)>,
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl Serialize for ProcessRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = &self.0;
        let identity = record.identity.as_ref().map(|identity| IdentityLayout {
            pid: identity.pid,
            started_ticks: identity.started_ticks,
            boot_id: identity.boot_id.clone(),
            device_and_inode: identity.executable.map(|file| (file.device, file.inode)),
        });
        let layout = Layout {
            name: record.name.as_str().to_owned(),
            tag: record.tag.bytes(),
            is_surviving: record.lifetime == Lifetime::Surviving,
            ends_everything: record.reach == Reach::Everything,
            spec_digest: record.spec_digest,
            stop_grace_us: micros(record.stop_grace),
            output_kept_bytes: record.output_kept_bytes,
            started_at_us: micros(record.started_at.since_epoch()),
            identity,
            is_ready: record.is_ready,
            handshake: record.handshake.clone(),
            output_position: record.positions.output,
            errors_position: record.positions.errors,
        };
        layout.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ProcessRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let layout = Layout::deserialize(deserializer)?;
        let identity = layout.identity.map(|identity| Identity {
            pid: identity.pid,
            started_ticks: identity.started_ticks,
            boot_id: identity.boot_id,
            executable: identity.device_and_inode.map(|(device, inode)| FileId { device, inode }),
        });
        Ok(Self(ProcessRecord {
            name: ProcessName::new(&layout.name).map_err(D::Error::custom)?,
            tag: ProcessTag::new(layout.tag),
            lifetime: if layout.is_surviving { Lifetime::Surviving } else { Lifetime::Bound },
            reach: if layout.ends_everything { Reach::Everything } else { Reach::Group },
            spec_digest: layout.spec_digest,
            stop_grace: Duration::from_micros(layout.stop_grace_us),
            output_kept_bytes: layout.output_kept_bytes,
            started_at: Timestamp::from_epoch(Duration::from_micros(layout.started_at_us)),
            identity,
            is_ready: layout.is_ready,
            handshake: layout.handshake,
            positions: Positions { output: layout.output_position, errors: layout.errors_position },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goplugin::PluginEndpoint;
    use crate::persister::{decode, encode};
    use crate::process::{Executable, ProcessSpec};

    #[test]
    fn rows_lie_by_the_names_of_their_processes() {
        assert_eq!(key(&ProcessName::new("driver-exec").unwrap()), b"driver-exec");
    }

    fn intent(lifetime: Lifetime, reach: Reach) -> ProcessRecord {
        let mut spec = ProcessSpec::new(Executable::at("/bin/true"));
        (spec.lifetime, spec.reach) = (lifetime, reach);
        let now = Timestamp::from_epoch(Duration::from_micros(7));
        ProcessRecord::intent(ProcessName::new("a").unwrap(), ProcessTag::new([5; 16]), &spec, now)
    }

    fn ready() -> ProcessRecord {
        let mut ready = intent(Lifetime::Surviving, Reach::Everything);
        ready.identity = Some(Identity {
            pid: 4,
            started_ticks: 5,
            boot_id: "b".to_owned(),
            executable: Some(FileId { device: 1, inode: 2 }),
        });
        ready.is_ready = true;
        ready.handshake = Some(Handshake { app_version: 2, endpoint: PluginEndpoint::Unix("/run/p".into()) });
        ready.positions = Positions { output: 8, errors: 9 };
        ready
    }

    #[test]
    fn a_record_comes_back_from_its_row_as_it_was() {
        for record in [intent(Lifetime::Bound, Reach::Group), ready()] {
            assert_eq!(decode::<ProcessRow>(&encode(&ProcessRow(record.clone()))).unwrap().0, record);
        }
    }

    /// The encoding of this version. It must stay readable: a change of these bytes, in our code or in a library, needs a
    /// new schema and a migration.
    #[test]
    fn p2_processes_have_these_bytes_whatever_library_writes_them() {
        let on_a_port = PluginEndpoint::Tcp("127.0.0.1:10000".parse().unwrap());
        let on_a_port = Handshake { app_version: 2, endpoint: on_a_port };
        let mut without_digest = ready();
        without_digest.spec_digest = [6; 32];
        let (row, bytes) = (
            ProcessRow(without_digest.clone()),
            b"\x01\x00\x01a\x05\x05\x05\x05\x05\x05\
            \x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x01\x01\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\
            \x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\
            \xfc@KL\x00\xfc\x00\x00\x80\x00\x07\x01\x04\x05\x01b\x01\x01\x02\x01\x01\x02\x00\x06/run/p\
            \x08\t",
        );
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<ProcessRow>(bytes).unwrap(), row);
        let (row, bytes) = (
            ProcessRow(ProcessRecord { handshake: Some(on_a_port), ..without_digest }),
            b"\
            \x01\x00\x01a\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x01\x01\x06\
            \x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\
            \x06\x06\x06\x06\x06\x06\x06\x06\x06\xfc@KL\x00\xfc\x00\x00\x80\x00\x07\x01\x04\x05\x01b\
            \x01\x01\x02\x01\x01\x02\x01\x00\x7f\x00\x00\x01\xfb\x10\'\x08\t",
        );
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<ProcessRow>(bytes).unwrap(), row);
    }
}
