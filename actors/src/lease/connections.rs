//! Keeps the open connections of all instances for leases.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use super::clients::Lease;
use super::gate::{ConnectionEnd, Gate};
use super::{LeasedCalls, RetireCause};
use crate::rpc::Channel;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::vocabulary::{AllocationId, CsiFingerprint, Generation, PluginKey};

/// The state that all leases of one connection share.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) plugin: PluginKey,
    pub(super) allocation: AllocationId,
    pub(super) generation: Generation,
    pub(super) channel: Channel,
    pub(super) answer_bytes_max: usize,
    pub(super) gate: Arc<Gate<ConnectionEnd>>,
    host_stops: Arc<AtomicBool>,
}

impl Leased {
    /// The reason that it takes no more calls, given the end of its connection. A stop of the host takes precedence.
    pub(super) fn end(&self, of_connection: ConnectionEnd) -> ConnectionEnd {
        match self.host_stops.load(Ordering::Relaxed) {
            true => ConnectionEnd::Retired(RetireCause::HostStops),
            false => of_connection,
        }
    }
}

/// The leases and calls in flight of a connection.
pub(crate) fn counts<E: Clone>(gate: &Gate<E>) -> LeasedCalls {
    LeasedCalls { leases: gate.leases(), in_flight: gate.calls() }
}

/// A connection serves one generation of a plugin, and no other connection serves it.
type Served = (PluginKey, Generation);

/// The open connections of all instances. Clones share them; it can be used from any thread. It lives as long as the host, and so longer
/// than an owner of the instances that its supervisor restarts.
#[derive(Debug, Clone, Default)]
pub struct Connections {
    open: Arc<Mutex<HashMap<Served, Arc<Leased>>>>,
    /// Whether an instance was started, by any owner.
    had_instances: Arc<AtomicBool>,
    host_stops: Arc<AtomicBool>,
}

impl Connections {
    fn open_ones(&self) -> MutexGuard<'_, HashMap<Served, Arc<Leased>>> {
        // Nothing panics while it is locked.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the host is stopping: from now on each error of a lease states that a new lease cannot help. Nothing else changes.
    pub fn host_stops(&self) {
        self.host_stops.store(true, Ordering::Relaxed);
    }

    /// Notes that an instance was started, which may connect.
    pub(crate) fn instance_started(&self) {
        self.had_instances.store(true, Ordering::Relaxed);
    }

    /// Whether any instance was started so far: an owner that begins now assigns each plugin another generation (I2).
    pub(crate) fn had_instances(&self) -> bool {
        self.had_instances.load(Ordering::Relaxed)
    }

    /// Adds the connection of an instance, in place of an earlier one.
    pub(crate) fn open(
        &self,
        (plugin, allocation, generation): (PluginKey, AllocationId, Generation),
        channel: Channel,
        answer_bytes_max: usize,
        gate: Arc<Gate<ConnectionEnd>>,
    ) -> OpenConnection {
        let host_stops = Arc::clone(&self.host_stops);
        let leased = Leased { plugin, allocation, generation, channel, answer_bytes_max, gate, host_stops };
        let leased = Arc::new(leased);
        self.open_ones().insert((leased.plugin.clone(), generation), Arc::clone(&leased));
        OpenConnection { connections: self.clone(), leased }
    }

    /// A lease of this generation of a plugin. `None` if its connection has ended, or its plugin is not healthy.
    #[must_use]
    pub fn lease(
        &self,
        plugin: &PluginKey,
        generation: Generation,
        fingerprint: &Arc<CsiFingerprint>,
    ) -> Option<Lease> {
        let leased = self.open_ones().get(&(plugin.clone(), generation)).cloned();
        leased.filter(|leased| leased.gate.lend()).map(|leased| Lease::new(leased, Arc::clone(fingerprint)))
    }

    /// The number of leases of a generation of a plugin and of its calls in flight. Zero if it has no connection.
    #[must_use]
    pub fn calls_of(&self, plugin: &PluginKey, generation: Generation) -> LeasedCalls {
        let leased = self.open_ones().get(&(plugin.clone(), generation)).cloned();
        leased.map_or_else(LeasedCalls::default, |leased| counts(&leased.gate))
    }

    /// The numbers for all connections to each allocation, including those that are about to end.
    #[must_use]
    pub fn calls_by_allocation(&self) -> BTreeMap<AllocationId, LeasedCalls> {
        let all: Vec<_> = self.open_ones().values().map(Arc::clone).collect();
        let mut calls = BTreeMap::<_, LeasedCalls>::new();
        for leased in all {
            let of_it = calls.entry(leased.allocation.clone()).or_default();
            *of_it = [*of_it, counts(&leased.gate)].into_iter().sum();
        }
        calls
    }
}

/// The connection of an instance, open for leases until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    connections: Connections,
    leased: Arc<Leased>,
}

impl OpenConnection {
    pub(crate) fn gate(&self) -> &Arc<Gate<ConnectionEnd>> {
        &self.leased.gate
    }
}

impl Drop for OpenConnection {
    /// Ends it: calls in flight are cut, and the plugin sees the connection close, even if leases are still held.
    fn drop(&mut self) {
        let Leased { plugin, generation, allocation, gate, channel, .. } = &*self.leased;
        let mut open = self.connections.open_ones();
        let served = (plugin.clone(), *generation);
        if open.get(&served).is_some_and(|present| Arc::ptr_eq(present, &self.leased)) {
            open.remove(&served);
        }
        drop(open);
        let calls = gate.cut(ConnectionEnd::Closed);
        channel.close();
        if calls > 0 {
            tracing::warn!(
                %plugin, %allocation, generation = generation.get(), calls,
                "calls were aborted: their connection was closed"
            );
        }
    }
}
