//! Any bytes, as what a host keeps for the driver `exec`.

use super::record::DriverState;

/// Takes the bytes as the state that a driver finds its task again by.
///
/// # Panics
/// When what is read does not come back as it was.
pub(crate) fn states(data: &[u8]) {
    let Ok(state) = serde_json::from_slice::<DriverState>(data) else { return };
    let written = serde_json::to_vec(&state).expect("paths that came as text are text");
    assert_eq!(serde_json::from_slice::<DriverState>(&written).ok(), Some(state));
}
