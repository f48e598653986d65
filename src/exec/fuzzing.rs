//! Feeds arbitrary bytes to the decoder of the driver's state, which a host stores for the driver `exec`.

use super::record::DriverState;

/// Decodes the bytes as the state by which a driver recovers its task.
///
/// # Panics
/// If a decoded state does not survive a round trip.
pub(crate) fn states(data: &[u8]) {
    let Ok(state) = serde_json::from_slice::<DriverState>(data) else { return };
    let written = serde_json::to_vec(&state).expect("paths that came as text are text");
    assert_eq!(serde_json::from_slice::<DriverState>(&written).ok(), Some(state));
}
