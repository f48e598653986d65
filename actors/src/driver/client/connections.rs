//! The lines to all drivers, where leases and eventors find them.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::event_stream::EventStream;
use super::line::{Line, LineEnd};
use super::questions::DriverClient;
use crate::driver::EventPosition;
use crate::goplugin::PluginEndpoint;
use crate::lease::{LeasedCalls, counts};
use crate::vocabulary::{DriverName, Generation};

/// The open connections of all drivers: at most one of each. Clones share them; it can be used from any thread.
#[derive(Debug, Clone, Default)]
pub struct DriverConnections {
    open: Arc<Mutex<HashMap<DriverName, Arc<Line>>>>,
}

impl DriverConnections {
    fn open_ones(&self) -> MutexGuard<'_, HashMap<DriverName, Arc<Line>>> {
        // Nothing panics while it is locked.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, driver: &DriverName) -> Option<Arc<Line>> {
        self.open_ones().get(driver).cloned()
    }

    /// Adds the connection of a driver, in the place of a former one.
    pub(in crate::driver) fn open(&self, line: Line) -> OpenLine {
        let line = Arc::new(line);
        self.open_ones().insert(line.driver.clone(), Arc::clone(&line));
        OpenLine { connections: self.clone(), line }
    }

    /// A client of this generation of a driver. `None` if its connection has ended, or it is not configured.
    #[must_use]
    pub fn lease(&self, driver: &DriverName, generation: Generation) -> Option<DriverClient> {
        let line = self.line(driver).filter(|line| line.generation == generation)?;
        line.gate.lend().then(|| DriverClient::of(line))
    }

    /// The leases of a driver and its calls in flight. Nothing if it has no connection.
    #[must_use]
    pub fn calls_of(&self, driver: &DriverName) -> LeasedCalls {
        self.line(driver).map_or_else(LeasedCalls::default, |line| counts(&line.gate))
    }

    /// The endpoint at which a driver listens. `None` if it has no connection.
    #[must_use]
    pub fn endpoint_of(&self, driver: &DriverName) -> Option<PluginEndpoint> {
        self.line(driver).map(|line| line.endpoint.clone())
    }

    /// Opens the stream of task events of this generation of a driver, after a position or from the beginning. Only the eventor opens
    /// it; two readers of one stream would each receive a part of it.
    pub(crate) fn task_events(
        &self,
        driver: &DriverName,
        generation: Generation,
        after: Option<&EventPosition>,
    ) -> Option<EventStream> {
        let line = self.line(driver).filter(|line| line.generation == generation)?;
        Some(EventStream::open(line, after))
    }
}

/// The connection of a driver, open for leases until this is dropped.
#[derive(Debug)]
pub(in crate::driver) struct OpenLine {
    connections: DriverConnections,
    line: Arc<Line>,
}

impl OpenLine {
    pub(in crate::driver) fn generation(&self) -> Generation {
        self.line.generation
    }

    /// Leases may be given from now on: it is configured.
    pub(in crate::driver) fn lend(&self) {
        self.line.gate.set_lendable(true);
    }

    /// Whether leases can be had.
    pub(in crate::driver) fn may_lend(&self) -> bool {
        self.line.gate.may_lend()
    }

    /// Closes it: no call begins over it from now on, and calls that only watch are cut (SHD-03). All other calls may end within the
    /// timeout; then they are cut as well, and that is logged.
    pub(in crate::driver) fn hang_up(
        &self,
        end: LineEnd,
        within: Duration,
    ) -> impl Future<Output = ()> + use<> {
        let line = Arc::clone(&self.line);
        line.gate.close(end.clone());
        if within.is_zero() {
            line.gate.cut(end.clone());
        }
        async move {
            let drained = poll_fn(|context| line.gate.poll_drained(context));
            if timeout(within, drained).await.is_err() {
                let calls = line.gate.cut(end.clone());
                if calls > 0 {
                    let Line { driver, generation, .. } = &*line;
                    let reason = end.reason;
                    tracing::warn!(%driver, generation = generation.get(), calls, reason, "calls to a driver were aborted");
                }
            }
        }
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        let mut open = self.connections.open_ones();
        if open.get(&self.line.driver).is_some_and(|present| Arc::ptr_eq(present, &self.line)) {
            open.remove(&self.line.driver);
        }
        drop(open);
        let reason = "the connection was given up".to_owned();
        self.line.gate.cut(LineEnd { is_worth_retrying: true, reason });
    }
}
