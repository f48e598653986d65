//! The laws of the inventory.

use std::collections::BTreeMap;

use super::law::Law;
use super::witness::{Verdict, Witness};
use crate::inventory::{FirstSummary, Inventory, InventoryAnswer, InventoryNews, InventoryOptions, Offer};
use crate::shell::{Effect, Input};
use crate::vocabulary::{Moment, PluginKey, Timestamp};

/// Sees everything that the inventory does.
#[derive(Debug, Clone)]
pub struct InventoryLaws {
    options: InventoryOptions,
    begun: Timestamp,
    has_told_first: bool,
    offers: BTreeMap<PluginKey, Offer>,
    /// What is found of it.
    pub(in super::super) verdict: Verdict,
}

impl InventoryLaws {
    /// Nothing has happened yet.
    #[must_use]
    pub const fn new(options: InventoryOptions) -> Self {
        Self {
            options,
            begun: Timestamp::from_epoch(std::time::Duration::ZERO),
            has_told_first: false,
            offers: BTreeMap::new(),
            verdict: Verdict::NONE,
        }
    }

    fn told(&mut self, moment: Moment, news: &InventoryNews) {
        match news {
            InventoryNews::First(offers, summary) => self.told_first(moment, offers, summary),
            InventoryNews::Changed(offer) => {
                let known = self.offers.insert(offer.plugin.clone(), offer.clone());
                if known.as_ref() == Some(offer) {
                    self.verdict.cry(Law::Scl5, || format!("the same is told of {} twice", offer.plugin));
                }
                self.must_come_after_first(&offer.plugin);
            }
            InventoryNews::Removed(offer) => {
                if self.offers.remove(&offer.plugin).is_none() {
                    self.verdict.cry(Law::N1, || format!("{} is removed and was not offered", offer.plugin));
                }
                self.must_come_after_first(&offer.plugin);
            }
        }
    }

    fn must_come_after_first(&mut self, plugin: &PluginKey) {
        if !self.has_told_first {
            self.verdict.cry(Law::N1, || format!("word of {plugin} comes before the first fingerprints"));
        }
    }

    fn told_first(&mut self, moment: Moment, offers: &[Offer], summary: &FirstSummary) {
        if self.has_told_first {
            self.verdict.cry(Law::N1, || "the first fingerprints are told a second time".to_owned());
        }
        let waited = moment.now.since(self.begun);
        if waited > self.options.first_wait {
            self.verdict.cry(Law::N1, || format!("the first fingerprints come after {waited:?}"));
        }
        let FirstSummary { healthy, unhealthy, undetected, no_answer } = summary;
        let unhealthy = unhealthy.iter().map(|(plugin, _)| plugin);
        let mut named: Vec<&PluginKey> =
            healthy.iter().chain(unhealthy).chain(undetected).chain(no_answer).collect();
        let count = named.len();
        named.sort_unstable();
        named.dedup();
        let is_named = |offer: &Offer| named.binary_search(&&offer.plugin).is_ok();
        if named.len() != count || !offers.iter().all(is_named) {
            self.verdict
                .cry(Law::N2, || format!("the first summary does not name each plugin once: {summary:?}"));
        }
        self.has_told_first = true;
        self.offers = offers.iter().map(|offer| (offer.plugin.clone(), offer.clone())).collect();
    }

    fn answered(&mut self, answer: &InventoryAnswer) {
        let view = match answer {
            InventoryAnswer::TakeInventory(view) | InventoryAnswer::AwaitFirst(view) => view,
        };
        // That one is being restarted, or serves again as it did before, is shown and no news.
        let is_told = |(shown, told): (&Offer, &Offer)| {
            let Offer { restarting, generation, since, .. } = *told;
            Offer { restarting, generation, since, ..shown.clone() } == *told
        };
        let is_whole = view.offers.len() == self.offers.len();
        if self.has_told_first && !(is_whole && view.offers.iter().zip(self.offers.values()).all(is_told)) {
            self.verdict.cry(Law::N1, || "what is shown on request is not what was told".to_owned());
        }
    }
}

impl Witness<Inventory> for InventoryLaws {
    fn rebuilt(&mut self, moment: Moment, _machine: &Inventory) {
        let verdict = std::mem::take(&mut self.verdict);
        *self = Self { verdict, begun: moment.now, ..Self::new(self.options) };
    }

    fn stepped(
        &mut self,
        moment: Moment,
        _input: &Input<Inventory>,
        effects: &[Effect<Inventory>],
        _machine: &Inventory,
    ) {
        for effect in effects {
            match effect {
                Effect::Publish(news) => self.told(moment, news),
                Effect::Reply(_, answer) => self.answered(answer),
                Effect::Call { .. } | Effect::StartTimer(..) | Effect::CancelTimer(_) | Effect::Stop(_) => {}
                Effect::Persist(never) => match *never {},
            }
        }
    }

    fn panicked(&mut self, input: &Input<Inventory>) {
        self.verdict.cry(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
