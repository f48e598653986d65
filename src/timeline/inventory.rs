//! The lines of the inventory.

use callboard_actors::inventory::{FirstSummary, InventoryNews, InventoryView, Offer};

use super::line::{Line, Participant};
use super::news_lines::{NewsLines, grouped};

/// Converts the news of the inventory into lines.
#[derive(Debug, Default)]
pub(super) struct InventoryTeller;

impl NewsLines for InventoryTeller {
    type News = InventoryNews;
    type View = InventoryView;

    fn begin(&mut self, _: &InventoryView) -> Vec<Line> {
        Vec::new()
    }

    fn lines_of(&mut self, news: &InventoryNews) -> Vec<Line> {
        let line = match news {
            InventoryNews::First(..) => {
                Line::new(Participant::Inventory, Participant::Everyone, sentence(news))
            }
            InventoryNews::Changed(offer) => of(offer, "this node offers it", Some(offer.health.to_string())),
            InventoryNews::Removed(offer) => of(offer, "this node no longer offers it", None),
            // The volumes report each use themselves.
            InventoryNews::VolumesUsed { .. } => return Vec::new(),
        };
        vec![line]
    }
}

fn of(offer: &Offer, message: &str, health: Option<String>) -> Line {
    let message = health.map_or_else(|| message.to_owned(), |health| format!("{message}, {health}"));
    let line = Line::new(Participant::Inventory, Participant::Everyone, message).of_plugin(&offer.plugin);
    let line = line.of_generation(offer.generation);
    match &offer.allocation {
        Some(allocation) => line.of_allocation(allocation),
        None => line,
    }
}

/// One piece of news as a complete sentence, for message scripts and their subscribers.
pub(super) fn sentence(news: &InventoryNews) -> String {
    match news {
        InventoryNews::First(_, summary) => format!("first inventory: {}", self::summary(summary)),
        InventoryNews::Changed(offer) => format!("offers {}", self::offer(offer)),
        InventoryNews::Removed(offer) => format!("offers {} no more", offer.plugin),
        InventoryNews::VolumesUsed { plugin, in_use } => format!("volumes of {plugin} in use: {in_use}"),
    }
}

/// The result of the first wait.
pub(crate) fn summary(summary: &FirstSummary) -> String {
    let FirstSummary { healthy, unhealthy, undetected, no_answer, missing } = summary;
    let grouped = grouped(healthy, unhealthy, undetected, no_answer);
    let missing: Vec<_> =
        missing.iter().map(|(plugin, allocation)| format!("{plugin} of {allocation}")).collect();
    if missing.is_empty() { grouped } else { format!("{grouped}; missing: {}", missing.join(", ")) }
}

/// One offer of the node.
pub(crate) fn offer(offer: &Offer) -> String {
    let restarting = if offer.restarting { ", restarting" } else { "" };
    let of = offer.allocation.as_ref().map(|allocation| format!(" of {allocation}")).unwrap_or_default();
    format!("{}{of}, {}{restarting}", offer.plugin, offer.health)
}

#[cfg(test)]
mod tests {
    use callboard_actors::vocabulary::{
        AllocationId, Generation, Health, PluginKey, PluginName, PluginType, Timestamp,
    };

    use super::*;

    fn offer(health: Health) -> Offer {
        Offer {
            plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
            allocation: Some(AllocationId::new("blue").unwrap()),
            generation: Generation::new(2),
            health,
            since: Timestamp::default(),
            fingerprint: None,
            restarting: false,
            remarks: vec![],
        }
    }

    #[test]
    fn the_first_inventory_is_counted_and_each_change_is_told_of_its_plugin() {
        let told = |news: InventoryNews| {
            let lines = InventoryTeller.lines_of(&news);
            let [line] = &lines[..] else { panic!("{lines:?}") };
            let about = line.plugin.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} → {}: {} ({about})", line.from, line.to, line.message)
        };
        let healthy = offer(Health::Healthy);
        let summary = FirstSummary { healthy: vec![healthy.plugin.clone()], ..FirstSummary::default() };
        let news = [
            InventoryNews::First(vec![], FirstSummary::default()),
            InventoryNews::First(vec![healthy.clone()], summary),
            InventoryNews::Changed(offer(Health::Unhealthy { reason: "no pool".to_owned() })),
            InventoryNews::Removed(healthy),
        ];
        let expected = [
            "inventory → everyone: first inventory: nothing ()",
            "inventory → everyone: first inventory: healthy csi-node/zfs ()",
            "inventory → everyone: this node offers it, unhealthy: no pool (csi-node/zfs)",
            "inventory → everyone: this node no longer offers it (csi-node/zfs)",
        ];
        assert_eq!(news.map(told), expected);
    }
}
