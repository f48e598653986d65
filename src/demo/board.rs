//! What the host shows: its status, kept up to date by what it tells of changes.

use std::collections::BTreeMap;

use callboard_proto::admin::v1::watch_response::News;
use callboard_proto::admin::v1::{AllocationStatus, GetStatusResponse, HostStatus, PluginStatus};

use super::check::Look;

/// The types under which a monolith is registered.
const HALVES: [&str; 2] = ["csi-controller", "csi-node"];

/// The status of a host as last told.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Board {
    host: HostStatus,
    plugins: BTreeMap<(String, String), PluginStatus>,
    allocations: BTreeMap<String, AllocationStatus>,
}

impl Board {
    /// Takes in what the host tells.
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Snapshot(status) => *self = Self::from(status),
            News::PluginChanged(plugin) => self.put(plugin),
            News::PluginLeft(left) => {
                self.plugins.remove(&(left.r#type, left.name));
            }
            News::AllocationChanged(allocation) => {
                self.allocations.insert(allocation.name.clone(), allocation);
            }
            // Nobody plays with a driver.
            News::DriverChanged(_) | News::DriverLeft(_) | News::TaskChanged(_) | News::TaskLeft(_) => {}
            // A snapshot follows, and replaces everything.
            News::Lagged(_) => {}
        }
    }

    fn put(&mut self, plugin: PluginStatus) {
        self.plugins.insert((plugin.r#type.clone(), plugin.name.clone()), plugin);
    }

    /// How many times a host has been started on this directory.
    pub(super) const fn run(&self) -> u64 {
        self.host.run
    }

    /// The process of an allocation, if it has one.
    pub(super) fn pid(&self, allocation: &str) -> Option<u32> {
        self.allocations.get(allocation).map(|found| found.pid).filter(|pid| *pid != 0)
    }

    /// All processes of allocations, with their names.
    pub(super) fn processes(&self) -> Vec<(String, u32)> {
        self.allocations
            .values()
            .map(|found| (found.name.clone(), found.pid))
            .filter(|(_, pid)| *pid != 0)
            .collect()
    }

    /// How often an allocation was started again.
    pub(super) fn restarts(&self, allocation: &str) -> u64 {
        self.allocations.get(allocation).map_or(0, |found| found.restarts)
    }

    /// What the process and the supervisor of an allocation do: such as `running` and `registered`.
    pub(super) fn allocation(&self, allocation: &str) -> (&str, &str) {
        self.allocations.get(allocation).map_or(("", ""), |found| (&found.task_state, &found.state))
    }

    /// The generation that serves each half of a plugin, controller first; 0 where there is none.
    pub(super) fn generations(&self, plugin: &str) -> [u64; 2] {
        HALVES.map(|half| self.half(half, plugin).map_or(0, |found| found.generation))
    }

    /// Whether both halves of a plugin are served in good health by `active`, with exactly these standing by in this order.
    pub(super) fn serves(&self, plugin: &str, active: &str, standby: &[&str]) -> Look {
        let is_so = |half: &PluginStatus| {
            half.active_allocation == active
                && half.standby_allocations == standby
                && half.health == "healthy"
                && half.provisional_allocations.is_empty()
        };
        let holds = HALVES.iter().all(|half| self.half(half, plugin).is_some_and(is_so));
        Look::new(holds, self.describe(plugin))
    }

    /// Whether both halves of a plugin are served in good health by `active`, with exactly these standing by in this order,
    /// leaving out who is known from before a restart and is not back.
    pub(super) fn serves_confirmed(&self, plugin: &str, active: &str, standby: &[&str]) -> Look {
        let is_so = |half: &PluginStatus| {
            let is_back = |name: &&String| !half.provisional_allocations.contains(name);
            half.active_allocation == active
                && half.health == "healthy"
                && half.standby_allocations.iter().filter(is_back).eq(standby)
        };
        let holds = HALVES.iter().all(|half| self.half(half, plugin).is_some_and(is_so));
        Look::new(holds, self.describe(plugin))
    }

    /// Whether both halves of a plugin know exactly these from before a restart, and none is active.
    pub(super) fn awaits(&self, plugin: &str, provisional: &[&str]) -> Look {
        let is_so = |half: &PluginStatus| {
            let mut known = half.provisional_allocations.clone();
            known.sort();
            half.active_allocation.is_empty() && known == provisional
        };
        let holds = HALVES.iter().all(|half| self.half(half, plugin).is_some_and(is_so));
        Look::new(holds, self.describe(plugin))
    }

    fn half(&self, half: &str, plugin: &str) -> Option<&PluginStatus> {
        self.plugins.get(&(half.to_owned(), plugin.to_owned()))
    }

    /// A plugin in a few words: once if both halves agree, else each half.
    pub(super) fn describe(&self, plugin: &str) -> String {
        let [controller, node] =
            HALVES.map(|half| self.half(half, plugin).map_or("unknown".to_owned(), described));
        if controller == node { controller } else { format!("controller: {controller}; node: {node}") }
    }
}

impl From<GetStatusResponse> for Board {
    fn from(status: GetStatusResponse) -> Self {
        let mut board = Self { host: status.host.unwrap_or_default(), ..Self::default() };
        status.plugins.into_iter().for_each(|plugin| board.put(plugin));
        board.allocations = status.allocations.into_iter().map(|found| (found.name.clone(), found)).collect();
        board
    }
}

fn described(half: &PluginStatus) -> String {
    let list = |names: &[String]| names.join(", ");
    let mut words = match (half.active_allocation.as_str(), half.reason.as_str()) {
        ("", _) => vec!["nobody active".to_owned()],
        (active, "") => vec![format!("{active} active"), half.health.clone()],
        (active, reason) => vec![format!("{active} active"), format!("{} ({reason})", half.health)],
    };
    if !half.standby_allocations.is_empty() {
        words.push(format!("standby {}", list(&half.standby_allocations)));
    }
    if !half.provisional_allocations.is_empty() {
        words.push(format!("not confirmed: {}", list(&half.provisional_allocations)));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use callboard_proto::admin::v1::{Lagged, PluginLeft};

    use super::*;

    fn half(plugin_type: &str, active: &str, standby: &[&str], generation: u64) -> PluginStatus {
        PluginStatus {
            r#type: plugin_type.to_owned(),
            name: "hostpath".to_owned(),
            health: "healthy".to_owned(),
            active_allocation: active.to_owned(),
            standby_allocations: standby.iter().map(ToString::to_string).collect(),
            generation,
            ..PluginStatus::default()
        }
    }

    fn board() -> Board {
        Board::from(GetStatusResponse {
            host: Some(HostStatus { run: 7, ..HostStatus::default() }),
            plugins: vec![
                half("csi-controller", "green", &["blue"], 3),
                half("csi-node", "green", &["blue"], 4),
            ],
            allocations: vec![AllocationStatus { name: "blue".to_owned(), pid: 11, ..Default::default() }],
            ..GetStatusResponse::default()
        })
    }

    #[test]
    fn a_plugin_is_served_only_when_both_halves_are() {
        let mut board = board();
        assert_eq!(
            board.serves("hostpath", "green", &["blue"]),
            Look::new(true, "green active, healthy, standby blue")
        );
        assert!(!board.serves("hostpath", "green", &[]).holds);
        board.hear(News::PluginChanged(half("csi-node", "blue", &[], 6)));
        let look = board.serves("hostpath", "green", &["blue"]);
        let seen = "controller: green active, healthy, standby blue; node: blue active, healthy";
        assert_eq!(look, Look::new(false, seen));
        assert_eq!(board.generations("hostpath"), [3, 6]);
    }

    #[test]
    fn who_is_known_from_before_is_awaited_and_serves_nothing() {
        let mut board = board();
        for plugin_type in HALVES {
            let mut restored = half(plugin_type, "", &["green", "blue"], 0);
            restored.provisional_allocations = vec!["green".to_owned(), "blue".to_owned()];
            board.hear(News::PluginChanged(restored));
        }
        assert!(board.awaits("hostpath", &["blue", "green"]).holds);
        assert!(!board.awaits("hostpath", &["blue"]).holds);
        assert!(!board.serves("hostpath", "", &["green", "blue"]).holds);
    }

    #[test]
    fn changes_are_heard_and_a_snapshot_replaces_everything() {
        let mut board = board();
        assert_eq!((board.run(), board.pid("blue"), board.pid("green")), (7, Some(11), None));
        board.hear(News::PluginLeft(PluginLeft {
            r#type: "csi-node".to_owned(),
            name: "hostpath".to_owned(),
        }));
        assert_eq!(board.generations("hostpath"), [3, 0]);
        board.hear(News::Lagged(Lagged { missed: 3 }));
        board.hear(News::Snapshot(GetStatusResponse::default()));
        assert_eq!(board, Board::default());
    }
}
