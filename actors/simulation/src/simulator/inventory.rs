//! The inventory of a simulated host: its effects, and the feeds that it follows.

use callboard_actors::inventory::{InventoryCall, InventoryConfig, InventoryOptions, Source};
use callboard_actors::vocabulary::Moment;

use super::super::instances::NoDisk;
use super::super::inventory::InventoryLaws;
use super::super::law::Law;
use super::super::law_checker::NO_CALLER_WAITS;
use super::super::observed::Observed;
use super::super::stand_in::{Left, Rules, StandIn};
use super::host_model::{HostModel, InventoryActor};

pub(super) fn new_inventory() -> InventoryActor {
    let options = InventoryOptions::default();
    let laws = InventoryLaws::new(options.clone());
    let config = InventoryConfig::new(options, []);
    StandIn::begin(config, NoDisk, laws, Rules::default())
}

impl HostModel {
    pub(super) fn dispatch_inventory(&mut self) {
        let mut left = Vec::new();
        if self.inventory.is_loading() {
            self.inventory_follow = None;
            self.inventory.loaded(self.moment(), ());
        }
        self.inventory.take_left(&mut left);
        if let Some(trace) = &mut self.trace {
            trace.extend(Observed::noted("inventory", &mut self.inventory));
        }
        for left in left {
            self.note(|| Observed::left_to("inventory", &left, |_| true));
            match left {
                Left::Answer(Some(asker), _) | Left::Refused(asker, _) => self.answered(asker),
                Left::Answer(None, _) => self.violation(Law::Shell7, NO_CALLER_WAITS.to_owned()),
                Left::Call { number, call, .. } => self.inventory_calls(number, &call),
                Left::News(..) | Left::Snapshot(..) | Left::Ended(_) => {}
            }
        }
    }

    /// Timers that were due meanwhile run at their time, also in a history without the event of that.
    pub(super) fn catch_up_inventory(&mut self) {
        let present = self.moment();
        while let Some(due) = self.inventory.next_timer().filter(|due| *due < present.now) {
            self.inventory.timers_due(Moment { now: due, ..present });
            self.dispatch_inventory();
        }
    }

    fn inventory_calls(&mut self, number: u64, call: &InventoryCall) {
        let InventoryCall::Follow { source: Source::Instances, afresh } = *call else {
            unreachable!("without drivers no actor is asked for them")
        };
        self.inventory_follow = Some(number);
        if afresh {
            self.inventory_inbox.clear();
            self.inventory_is_owed = true;
            self.instances_model.subscribe(self.moment());
            self.dispatch_instances();
        }
    }
}
