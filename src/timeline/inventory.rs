//! The lines of the inventory.

use callboard_actors::inventory::{FirstSummary, InventoryNews, InventoryView, Offer};

use super::line::{Line, Voice};
use super::merge::Rank;
use super::retell::Retell;

/// Retells what the inventory says.
#[derive(Debug, Default)]
pub(super) struct InventoryTeller;

impl Retell for InventoryTeller {
    type News = InventoryNews;
    type View = InventoryView;

    fn begin(&mut self, _: &InventoryView) -> Vec<(Rank, Line)> {
        Vec::new()
    }

    fn retell(&mut self, news: &InventoryNews) -> Vec<(Rank, Line)> {
        let line = match news {
            InventoryNews::First(offers, summary) => {
                let message = format!("first inventory: {}", first(offers, summary));
                Line::new(Voice::Inventory, Voice::Everyone, message)
            }
            InventoryNews::Changed(offer) => of(offer, "this node offers it", Some(offer.health.to_string())),
            InventoryNews::Removed(offer) => of(offer, "this node offers it no more", None),
        };
        vec![(Rank::Inventory, line)]
    }
}

fn first(offers: &[Offer], summary: &FirstSummary) -> String {
    if offers.is_empty() {
        return "no plugin yet".to_owned();
    }
    format!(
        "{} healthy, {} unhealthy, {} undetected, {} without an answer",
        summary.healthy.len(),
        summary.unhealthy.len(),
        summary.undetected.len(),
        summary.no_answer.len(),
    )
}

fn of(offer: &Offer, message: &str, health: Option<String>) -> Line {
    let message = health.map_or_else(|| message.to_owned(), |health| format!("{message}, {health}"));
    Line::new(Voice::Inventory, Voice::Everyone, message)
        .of_plugin(&offer.plugin)
        .of_allocation(&offer.allocation)
        .of_generation(offer.generation)
}
