//! Random names.

use std::io;

use callboard_actors::process::random_bytes;

pub(crate) fn hex<const BYTES: usize>() -> io::Result<String> {
    Ok(callboard_actors::vocabulary::hex(&random_bytes::<BYTES>()?))
}
