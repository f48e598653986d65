//! The interface to launch, probe and end temporary instances.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::{ProbeOrder, Refusal, Told};
use crate::goplugin::Handshake;
use crate::process::{ProcessName, ProcessSpec};

/// Launches, probes and ends temporary instances: through the owner of the processes, or a fake in tests.
pub trait Launcher: 'static {
    /// Launches a process and waits for its handshake. On an error no part of it may be left.
    fn launch(
        &self,
        name: ProcessName,
        spec: ProcessSpec,
    ) -> LocalBoxFuture<'static, Result<Handshake, Refusal>>;

    /// Queries the identity of a plugin and, on success, asks it to shut down.
    fn ask(
        &self,
        handshake: Handshake,
        order: ProbeOrder,
    ) -> LocalBoxFuture<'static, Result<Box<Told>, Refusal>>;

    /// Ends a process and waits until nothing is left of it. Returns how it ended, if it ended by itself before.
    fn end(&self, name: ProcessName, grace: Duration) -> LocalBoxFuture<'static, Option<String>>;
}
