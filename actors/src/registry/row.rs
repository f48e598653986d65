//! The rows of registrations on disk. Rows are not domain types: bytes from disk are validated like any external input.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Stored;
use crate::persister::{DecodeError, Record, Table, decode_payload};
use crate::vocabulary::{
    AllocationId, FailoverPolicy, Generation, PluginKey, PluginName, PluginType, Registration,
    RegistrationNumber, RunNumber, SocketPath, Timestamp,
};

/// Registrations, by their number in big-endian order. New ones are appended, and loading returns them in order.
pub const REGISTRATION_TABLE: Table = Table("registrations");

/// A row of [`REGISTRATION_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationRow(pub(super) Stored);

impl Record for RegistrationRow {
    const TABLE: Table = REGISTRATION_TABLE;
    const SCHEMA: u16 = 2;

    /// Schema 1 had no policy.
    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        if schema != 1 {
            return Err(DecodeError::UnknownSchema { schema });
        }
        let former = decode_payload::<Layout<String, BTreeMap<String, String>>>(payload)?;
        read(former, None).map_err(|reason| DecodeError::Malformed { reason })
    }
}

pub(super) fn key(number: RegistrationNumber) -> Vec<u8> {
    number.get().to_be_bytes().to_vec()
}

/// The layout of a row, up to its policy, which is a text. Times are microseconds since the Unix epoch; generation 0 means never confirmed, and 0 in
/// `active_since_us` means not active under this generation.
#[derive(Serialize, Deserialize)]
struct Layout<S, O> {
    number: u64,
    plugin_type: S,
    plugin: S,
    allocation: S,
    socket: S,
    provider: Option<S>,
    version: Option<S>,
    options: O,
    since_us: u64,
    confirmed_in: u64,
    generation: u64,
    active_since_us: u64,
}

fn micros(timestamp: Timestamp) -> u64 {
    u64::try_from(timestamp.since_epoch().as_micros()).unwrap_or(u64::MAX)
}

const fn timestamp(micros: u64) -> Timestamp {
    Timestamp::from_epoch(Duration::from_micros(micros))
}

impl Serialize for RegistrationRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Stored { number, registration, since, confirmed_in, generation, active_since } = &self.0;
        let Registration { plugin, allocation, socket, provider, version, options, policy } = &**registration;
        let layout: Layout<&str, &BTreeMap<String, String>> = Layout {
            number: number.get(),
            plugin_type: plugin.plugin_type.as_str(),
            plugin: plugin.name.as_str(),
            allocation: allocation.as_str(),
            socket: socket.as_str(),
            provider: provider.as_deref(),
            version: version.as_deref(),
            options,
            since_us: micros(*since),
            confirmed_in: confirmed_in.get(),
            generation: generation.get(),
            active_since_us: active_since.map_or(0, micros),
        };
        (layout, policy.as_ref().map(ToString::to_string)).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RegistrationRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (layout, policy) =
            <(Layout<String, BTreeMap<String, String>>, Option<String>)>::deserialize(deserializer)?;
        read(layout, policy.as_deref()).map_err(D::Error::custom)
    }
}

fn read(
    layout: Layout<String, BTreeMap<String, String>>,
    policy: Option<&str>,
) -> Result<RegistrationRow, String> {
    let plugin_type = PluginType::from_str(&layout.plugin_type).map_err(|error| error.to_string())?;
    let plugin = PluginName::new(&layout.plugin).map_err(|error| error.to_string())?;
    let registration = Registration {
        plugin: PluginKey::new(plugin_type, plugin),
        allocation: AllocationId::new(&layout.allocation).map_err(|error| error.to_string())?,
        socket: SocketPath::new(&layout.socket).map_err(|error| error.to_string())?,
        provider: layout.provider.map(Arc::from),
        version: layout.version.map(Arc::from),
        options: Arc::new(layout.options),
        policy: policy.map(FailoverPolicy::from_str).transpose().map_err(|error| error.to_string())?,
    };
    Ok(RegistrationRow(Stored {
        number: RegistrationNumber::new(layout.number),
        registration: Arc::new(registration),
        since: timestamp(layout.since_us),
        confirmed_in: RunNumber::new(layout.confirmed_in),
        generation: Generation::new(layout.generation),
        active_since: Some(layout.active_since_us).filter(|since| *since != 0).map(timestamp),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persister::{decode, encode};

    fn stored() -> Stored {
        Stored {
            number: RegistrationNumber::new(7),
            registration: Arc::new(Registration {
                policy: None,
                plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
                allocation: AllocationId::new("a1").unwrap(),
                socket: SocketPath::new("/run/csi.sock").unwrap(),
                provider: Some("zfs.example".into()),
                version: None,
                options: Arc::new(BTreeMap::from([("rack".to_owned(), "7".to_owned())])),
            }),
            since: Timestamp::from_epoch(Duration::from_micros(1_000_001)),
            confirmed_in: RunNumber::new(3),
            generation: Generation::new(9),
            active_since: Some(Timestamp::from_epoch(Duration::from_micros(2))),
        }
    }

    #[test]
    fn a_registration_comes_back_from_its_row_as_it_was() {
        let row = RegistrationRow(stored());
        assert_eq!(decode::<RegistrationRow>(&encode(&row)).unwrap(), row);
        let never_active = RegistrationRow(Stored { active_since: None, ..stored() });
        assert_eq!(decode::<RegistrationRow>(&encode(&never_active)).unwrap(), never_active);
        let mut with_policy = stored();
        Arc::make_mut(&mut with_policy.registration).policy = Some(FailoverPolicy::Newest);
        let with_policy = RegistrationRow(with_policy);
        assert_eq!(decode::<RegistrationRow>(&encode(&with_policy)).unwrap(), with_policy);
    }

    /// The encoding of this version. It must stay readable: a change of these bytes, in our code or in a library, needs a
    /// new schema and a migration.
    #[test]
    fn p2_registrations_have_these_bytes_whatever_library_writes_them() {
        let (row, bytes) = (
            RegistrationRow(stored()),
            b"\x02\x00\x07\x08csi-node\x03zfs\x02a1\r/run/cs\
            i.sock\x01\x0bzfs.example\x00\x01\x04rack\x017\xfcAB\x0f\x00\x03\t\x02\x00",
        );
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<RegistrationRow>(bytes).unwrap(), row);
        let of_schema_1 = b"\x01\x00\x07\x08csi-node\x03zfs\x02a1\r/run/cs\
            i.sock\x01\x0bzfs.example\x00\x01\x04rack\x017\xfcAB\x0f\x00\x03\t\x02";
        assert_eq!(decode::<RegistrationRow>(of_schema_1).unwrap(), row);
    }

    #[test]
    fn rows_lie_in_the_order_of_their_numbers_r2() {
        assert_eq!(key(RegistrationNumber::new(0x0102)), [0, 0, 0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn a_row_that_says_what_no_message_may_say_is_refused_r9() {
        let layout: Layout<&str, &BTreeMap<String, String>> = Layout {
            number: 1,
            plugin_type: "csi-node",
            plugin: "../../etc",
            allocation: "a1",
            socket: "/run/csi.sock",
            provider: None,
            version: None,
            options: &BTreeMap::new(),
            since_us: 0,
            confirmed_in: 0,
            generation: 0,
            active_since_us: 0,
        };
        struct Forged<'a>(Layout<&'a str, &'a BTreeMap<String, String>>);
        impl Serialize for Forged<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                (&self.0, None::<String>).serialize(serializer)
            }
        }
        impl<'de> Deserialize<'de> for Forged<'_> {
            fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
                Err(D::Error::custom("it is only written"))
            }
        }
        impl Record for Forged<'_> {
            const TABLE: Table = REGISTRATION_TABLE;
            const SCHEMA: u16 = RegistrationRow::SCHEMA;
        }
        let error = decode::<RegistrationRow>(&encode(&Forged(layout))).unwrap_err();
        assert!(error.to_string().contains("would leave its directory"), "{error}");
    }
}
