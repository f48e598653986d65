//! Reads the answers of a driver. A malformed answer is refused with a message, and never replaced by a default.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use callboard_proto::drivers as wire;

use crate::driver::NetworkMode;
use crate::vocabulary::Timestamp;

mod driver;
mod events;
mod tasks;

pub(in crate::driver) use driver::{capabilities, fingerprint};
pub(super) use events::event;
pub(super) use tasks::{created_network, exec_exit, executed, inspected, started, stats, waited};

/// Longest text of a driver that is kept, in bytes; longer text is cut, and control characters of terminals are escaped.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// The error in an answer.
pub(super) type Fault = String;

fn unknown<T>(field: &str, number: i32) -> Result<T, Fault> {
    Err(format!("{field} is {number}, which the protocol does not know"))
}

fn sorted(map: HashMap<String, String>) -> BTreeMap<String, String> {
    map.into_iter().collect()
}

fn timestamp(field: &str, at: Option<prost_types::Timestamp>) -> Result<Option<Timestamp>, Fault> {
    let Some(at) = at else { return Ok(None) };
    // For an unknown time, Go writes the zero of its own time, which lies before the epoch.
    let Ok(seconds) = u64::try_from(at.seconds) else { return Ok(None) };
    let nanos = u32::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let nanos = nanos.ok_or_else(|| format!("{field} has {} nanoseconds", at.nanos))?;
    Ok(Some(Timestamp::from_epoch(Duration::new(seconds, nanos))))
}

fn network_mode(mode: i32) -> Result<NetworkMode, Fault> {
    use wire::network_isolation_spec::NetworkIsolationMode as Mode;
    match Mode::try_from(mode) {
        Ok(Mode::Host) => Ok(NetworkMode::Host),
        Ok(Mode::Group) => Ok(NetworkMode::Group),
        Ok(Mode::Task) => Ok(NetworkMode::Task),
        Ok(Mode::None) => Ok(NetworkMode::None),
        Err(_) => unknown("network isolation mode", mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_to_the_nanosecond_and_one_before_the_epoch_is_none() {
        let read = |seconds, nanos| timestamp("at", Some(prost_types::Timestamp { seconds, nanos }));
        let at = |seconds, nanos| Some(Timestamp::from_epoch(Duration::new(seconds, nanos)));
        assert_eq!(read(7, 999_999_999), Ok(at(7, 999_999_999)));
        assert_eq!(read(0, 0), Ok(at(0, 0)));
        assert_eq!(read(-62_135_596_800, 0), Ok(None));
        assert_eq!(read(7, 1_000_000_000), Err("at has 1000000000 nanoseconds".to_owned()));
        assert_eq!(read(7, -1), Err("at has -1 nanoseconds".to_owned()));
        assert_eq!(timestamp("at", None), Ok(None));
    }
}
