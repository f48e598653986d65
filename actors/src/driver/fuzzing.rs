//! Decodes arbitrary bytes as the answers of a driver.

pub(crate) use super::client::fuzzing::answers;
