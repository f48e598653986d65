//! How temporary instances are launched, asked and ended.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::refusal::Refusal;
use super::state::{ProbeOrder, Told};
use crate::goplugin::Handshake;
use crate::process::{ProcessName, ProcessSpec};

/// Launches, asks and ends temporary instances: through the owner of the processes, or as a test wants it.
pub trait Launcher: 'static {
    /// Launches a process and waits for its handshake. After an error nothing of it may be left.
    fn launch(
        &self,
        name: ProcessName,
        spec: ProcessSpec,
    ) -> LocalBoxFuture<'static, Result<Handshake, Refusal>>;

    /// Asks a plugin who it is, and, if it told, to end itself.
    fn ask(
        &self,
        handshake: Handshake,
        order: ProbeOrder,
    ) -> LocalBoxFuture<'static, Result<Box<Told>, Refusal>>;

    /// Ends a process and waits until nothing is left of it. Gives back how it ended, if it did so before it was told to.
    fn end(&self, name: ProcessName, grace: Duration) -> LocalBoxFuture<'static, Option<String>>;
}
