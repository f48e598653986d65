//! The stored settings of a driver: a task may outlive its driver's configuration, and only that driver can end it.

use std::time::Duration;

use super::config::DriverProgram;

/// The settings that a driver was run with. Environment and configuration are not stored, since both may hold secrets (P6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDriver {
    /// Its program.
    pub program: DriverProgram,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The required digest of its program (SEC-07).
    pub sha256: Option<[u8; 32]>,
    /// Whether its process outlives its host.
    pub survives: bool,
    /// The grace period of its end.
    pub stop_grace: Duration,
    /// The timeout of its handshake.
    pub start_timeout: Duration,
    /// Whether it had an environment or a configuration: without them it would not be the same driver.
    pub had_more: bool,
}
