//! Orders: which are sent to their volumes, and what is learned from the answers.

use std::sync::Arc;

use super::messages::{ExpandVolume, VolumesAnswer};
use super::order_errors::OrderError;
use super::reasons::{NoAnswer, UnknownVolume};
use super::state::{KnownVolume, OrderKind, Purpose, Request, Volumes, VolumesChange};
use crate::kernel::{AskId, Effects};
use crate::vocabulary::{Moment, Timestamp};
use crate::volume::{self, Done, Expanded, Order, PlaceOrder, VolumeAsk, VolumeKey};

impl Volumes {
    pub(super) fn expand(
        &mut self,
        moment: Moment,
        (id, asked_at): (AskId, Timestamp),
        asked: &ExpandVolume,
        effects: &mut Effects<Self>,
    ) {
        let ExpandVolume { volume, capacity: range, within } = asked.clone();
        let bytes = self.known.get(&volume).and_then(|known| known.capacity_bytes).unwrap_or_default();
        let most = if range.limit_bytes > 0 { range.limit_bytes } else { range.required_bytes };
        let is_smaller = most < bytes;
        let admitted = self.admit_order(&volume).and_then(|()| match is_smaller {
            true => Err(OrderError::Smaller { volume: volume.clone(), capacity_bytes: bytes }),
            false => Ok(()),
        });
        if let Err(error) = admitted {
            effects.reply(id, VolumesAnswer::ExpandVolume(Err(error)));
            return;
        }
        let ask = VolumeAsk::PlaceOrder(PlaceOrder { order: Order::Expand { range }, within });
        let purpose = Purpose::Order(id, OrderKind::Expand);
        self.submit(moment, &volume, Request { purpose, until: asked_at + within, ask }, effects);
    }

    /// Whether anything may be ordered of a volume. Whether this can be is up to the volume.
    fn admit_order(&self, key: &VolumeKey) -> Result<(), OrderError> {
        if self.stop.is_some() {
            return Err(OrderError::Stopping { volume: key.clone() });
        }
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        if !self.entries.contains_key(key) {
            self.check_stays(key, &known.spec.plugin)?;
        }
        Ok(self.room_for(&known.spec.plugin, self.config.options.waiting_max / 2)?)
    }

    /// A volume has answered an order.
    pub(super) fn ordered(
        &self,
        (id, kind): (AskId, OrderKind),
        answer: Result<Result<Done, volume::OrderError>, NoAnswer>,
        effects: &mut Effects<Self>,
    ) {
        let result = answer.map_err(OrderError::from).and_then(|done| done.map_err(OrderError::from));
        effects.reply(
            id,
            match kind {
                OrderKind::Expand => {
                    VolumesAnswer::ExpandVolume(result.map(|Done::Expanded(expanded)| expanded))
                }
            },
        );
    }

    /// A volume is known to be this large, as its plugin has answered. It never becomes smaller.
    /// True if that is news.
    pub(super) fn has_expanded(
        &mut self,
        key: &VolumeKey,
        bytes: Option<u64>,
        effects: &mut Effects<Self>,
    ) -> bool {
        let Some(known) = self.known.get(key).filter(|known| known.capacity_bytes < bytes) else {
            return false;
        };
        let known = Arc::new(KnownVolume { capacity_bytes: bytes, ..KnownVolume::clone(known) });
        self.known.insert(key.clone(), known.clone());
        effects.persist(VolumesChange::Keep(known));
        true
    }

    /// The same, from the answer to its order.
    pub(super) fn learn_size(&mut self, key: &VolumeKey, done: &Done, effects: &mut Effects<Self>) {
        let Done::Expanded(Expanded { capacity_bytes, .. }) = done;
        if self.has_expanded(key, *capacity_bytes, effects) {
            self.publish(key, effects);
        }
    }
}
