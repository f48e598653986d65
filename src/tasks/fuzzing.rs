//! Feeds arbitrary bytes to the decoders of task records: those of the host, and the decoder of the driver `exec`.

use std::fmt::Debug;

use callboard_actors::persister::{Record, decode, encode};

use super::row::{LogRow, StateRow};

/// Decodes the data as the record that its first byte selects.
///
/// # Panics
/// If a decoded record does not survive a round trip, or a decode error has no message.
pub(crate) fn records(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 3 {
        0 => row::<StateRow>(bytes),
        1 => row::<LogRow>(bytes),
        _ => crate::exec::fuzzing::states(bytes),
    }
}

fn row<R: Record + PartialEq + Debug>(bytes: &[u8]) {
    match decode::<R>(bytes) {
        Ok(record) => {
            let written = encode(&record);
            assert_eq!(decode::<R>(&written).as_ref(), Ok(&record), "a record does not come back as it was");
            assert_eq!(encode(&record), written, "a record has two forms");
        }
        Err(error) => {
            let told = error.to_string();
            assert!((1..=4_096).contains(&told.len()), "an error of {} bytes", told.len());
        }
    }
}
