//! Records the calls that a plugin receives, in a deterministic order.
//!
//! Two instances read the two halves of a monolith at the same time, each over a connection of its own, and no time passes meanwhile. So
//! the plugin receives their calls in the order in which the kernel woke its tasks. They are shown one connection after the other, and work
//! that began when one half had been read is shown after both.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// The number of a connection that a plugin has accepted, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionNumber(pub(super) u64);

/// The half of a plugin that a connection reads, known from the first call that only one half has. The order is the order of their calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    Controller,
    Node,
}

impl Half {
    fn of(call: &str) -> Option<Self> {
        match call {
            "ControllerGetCapabilities" => Some(Self::Controller),
            "NodeGetCapabilities" => Some(Self::Node),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Called {
    at: Instant,
    name: &'static str,
    /// The connection of a call that reads the plugin's identity and state. Other calls are in the order of arrival.
    reader: Option<ConnectionNumber>,
}

/// The calls since they were last taken.
#[derive(Debug, Default)]
pub(super) struct Calls {
    called: Vec<Called>,
    halves: BTreeMap<ConnectionNumber, Half>,
}

impl Calls {
    /// Records a call with a deterministic order.
    pub(super) fn add(&mut self, name: &'static str) {
        self.called.push(Called { at: Instant::now(), name, reader: None });
    }

    /// Records a call that reads the plugin's identity and state.
    pub(super) fn add_read(&mut self, name: &'static str, reader: ConnectionNumber) {
        self.called.push(Called { at: Instant::now(), name, reader: Some(reader) });
        if let Some(half) = Half::of(name) {
            // A node half may ask for the capabilities of the controller too (C146).
            self.halves.entry(reader).or_insert(half);
        }
    }

    /// All calls since the last request for them. Reading calls of the same instant are ordered by half and then by connection, and come
    /// before the calls that arrived between them.
    pub(super) fn take(&mut self) -> Vec<&'static str> {
        let mut called = std::mem::take(&mut self.called);
        let is_read = |call: &Called| call.reader.is_some();
        for at_once in called.chunk_by_mut(|one, next| one.at == next.at) {
            let Some(first) = at_once.iter().position(is_read) else { continue };
            let behind = at_once.iter().rposition(is_read).map_or(first, |last| last + 1);
            at_once[first..behind].sort_by_key(|call| {
                let half = call.reader.and_then(|reader| self.halves.get(&reader));
                (!is_read(call), half, call.reader)
            });
        }
        called.into_iter().map(|called| called.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROLLER: [&str; 4] =
        ["GetPluginInfo", "GetPluginCapabilities", "Probe", "ControllerGetCapabilities"];
    const NODE: [&str; 5] =
        ["GetPluginInfo", "GetPluginCapabilities", "Probe", "NodeGetCapabilities", "NodeGetInfo"];

    /// Every interleaving of the calls of two halves.
    fn interleavings(
        controller: &[&'static str],
        node: &[&'static str],
    ) -> Vec<Vec<(ConnectionNumber, &'static str)>> {
        let next = |mine: &[&'static str], number, rest: Vec<Vec<_>>| {
            let begin = move |mut calls: Vec<_>| {
                calls.insert(0, (ConnectionNumber(number), mine[0]));
                calls
            };
            rest.into_iter().map(begin).collect::<Vec<_>>()
        };
        let (mut all, is_last) = (Vec::new(), controller.is_empty() && node.is_empty());
        if !controller.is_empty() {
            all.extend(next(controller, 2, interleavings(&controller[1..], node)));
        }
        if !node.is_empty() {
            all.extend(next(node, 1, interleavings(controller, &node[1..])));
        }
        if is_last { vec![Vec::new()] } else { all }
    }

    /// Both halves, read one after the other between one call and others.
    fn read_between(first: &'static str, behind: [&'static str; 2]) -> Vec<&'static str> {
        [first].into_iter().chain(CONTROLLER).chain(NODE).chain(behind).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_halves_of_a_monolith_are_shown_one_after_the_other_whichever_read_first() {
        let all = interleavings(&CONTROLLER, &NODE);
        assert_eq!(all.len(), 126);
        for reads in all {
            let mut calls = Calls::default();
            // The allocation probes before it registers, and work begins when the plugin has been read.
            calls.add_read("Probe", ConnectionNumber(0));
            for (reader, name) in reads {
                calls.add_read(name, reader);
            }
            calls.add("NodeStageVolume");
            calls.add("ControllerUnpublishVolume");
            let work = ["NodeStageVolume", "ControllerUnpublishVolume"];
            assert_eq!(calls.take(), read_between("Probe", work));
            assert_eq!(calls.take(), Vec::<&str>::new());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_begins_when_one_half_has_been_read_is_shown_behind_both() {
        let mut calls = Calls::default();
        calls.add("NodeUnpublishVolume");
        CONTROLLER.iter().for_each(|name| calls.add_read(name, ConnectionNumber(2)));
        calls.add("ControllerExpandVolume");
        NODE.iter().for_each(|name| calls.add_read(name, ConnectionNumber(1)));
        calls.add("NodeExpandVolume");
        let work = ["ControllerExpandVolume", "NodeExpandVolume"];
        assert_eq!(calls.take(), read_between("NodeUnpublishVolume", work));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_different_times_stay_in_their_order() {
        let mut calls = Calls::default();
        for reader in [1, 2, 1] {
            calls.add_read(
                if reader == 1 { "NodeGetCapabilities" } else { "ControllerGetCapabilities" },
                ConnectionNumber(reader),
            );
            tokio::time::advance(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(calls.take(), ["NodeGetCapabilities", "ControllerGetCapabilities", "NodeGetCapabilities"]);
        // The half is known from earlier calls over its connection.
        calls.add_read("Probe", ConnectionNumber(1));
        calls.add_read("ControllerGetCapabilities", ConnectionNumber(1));
        calls.add_read("Probe", ConnectionNumber(2));
        assert_eq!(calls.take(), ["Probe", "Probe", "ControllerGetCapabilities"]);
    }
}
