//! Handles orders: decides which ones are sent to their volumes, and learns from the answers.

use std::sync::Arc;

use super::messages::{
    CreateSnapshot, DeleteSnapshot, ExpandVolume, ModifyVolume, VolumesAnswer, VolumesAsk,
};
use super::order_errors::OrderError;
use super::purposes::{OrderKind, Purpose, Request};
use super::reasons::{NoAnswer, UnknownVolume};
use super::state::{KnownVolume, Volumes, VolumesChange};
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::Timestamp;
use crate::volume::{self, Done, Expanded, Order, PlaceOrder, VolumeAsk, VolumeKey};

impl Volumes {
    pub(super) fn expand(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &ExpandVolume,
        cx: &mut StepContext<Self>,
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
            cx.reply(id, OrderKind::Expand.refusal(error));
            return;
        }
        let ask = VolumeAsk::PlaceOrder(PlaceOrder { order: Order::Expand { range }, within });
        let purpose = Purpose::Order(id, OrderKind::Expand);
        self.submit(&volume, Request { purpose, until: asked_at + within, ask }, cx);
    }

    /// Handles orders that do not concern the size of their volume.
    pub(super) fn order(&mut self, who: (AskId, Timestamp), ask: &VolumesAsk, cx: &mut StepContext<Self>) {
        let (volume, kind, order, within) = match ask.clone() {
            VolumesAsk::CreateSnapshot(CreateSnapshot { volume, name, parameters, within }) => {
                (volume, OrderKind::TakeSnapshot, Order::TakeSnapshot { name, parameters }, within)
            }
            VolumesAsk::DeleteSnapshot(DeleteSnapshot { volume, snapshot_id, within }) => {
                (volume, OrderKind::DeleteSnapshot, Order::DeleteSnapshot { snapshot_id }, within)
            }
            VolumesAsk::ModifyVolume(ModifyVolume { volume, parameters, within }) => {
                (volume, OrderKind::Modify, Order::Modify { parameters }, within)
            }
            // The others are not orders of this kind.
            _ => return,
        };
        if let Some(Err(error)) = order.snapshot_name().map(|name| self.admit_snapshot(&volume, name)) {
            cx.reply(who.0, kind.refusal(error));
            return;
        }
        self.place_order(who, (&volume, kind), PlaceOrder { order, within }, cx);
    }

    /// Sends such an order to its volume.
    pub(super) fn place_order(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        (volume, kind): (&VolumeKey, OrderKind),
        placed: PlaceOrder,
        cx: &mut StepContext<Self>,
    ) {
        if let Err(error) = self.admit_order(volume) {
            cx.reply(id, kind.refusal(error));
            return;
        }
        let until = asked_at + placed.within;
        let ask = VolumeAsk::PlaceOrder(placed);
        self.submit(volume, Request { purpose: Purpose::Order(id, kind), until, ask }, cx);
    }

    /// Whether anything may be ordered of a volume. The volume decides about this order.
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
        (volume, id, kind): (&VolumeKey, AskId, OrderKind),
        answer: Result<Result<Done, volume::OrderError>, NoAnswer>,
        cx: &mut StepContext<Self>,
    ) {
        let result = answer.map_err(OrderError::from).and_then(|done| done.map_err(OrderError::from));
        cx.reply(id, kind.answer(volume, result));
    }

    /// Records the size of a volume, as its plugin has answered it. It never becomes smaller.
    /// True if that is new.
    pub(super) fn learn_capacity(
        &mut self,
        key: &VolumeKey,
        bytes: Option<u64>,
        cx: &mut StepContext<Self>,
    ) -> bool {
        let Some(known) = self.known.get(key).filter(|known| known.capacity_bytes < bytes) else {
            return false;
        };
        let known = Arc::new(KnownVolume { capacity_bytes: bytes, ..KnownVolume::clone(known) });
        self.known.insert(key.clone(), known.clone());
        cx.persist(VolumesChange::Keep(known));
        true
    }

    /// Records the size of a volume from the answer to its order.
    pub(super) fn learn_size(&mut self, key: &VolumeKey, done: &Done, cx: &mut StepContext<Self>) {
        let Done::Expanded(Expanded { capacity_bytes, .. }) = done else { return };
        if self.learn_capacity(key, *capacity_bytes, cx) {
            self.publish(key, cx);
        }
    }
}

impl OrderKind {
    /// The answer of this volume, in the message type of its caller.
    fn answer(self, volume: &VolumeKey, result: Result<Done, OrderError>) -> VolumesAnswer {
        match (self, result) {
            (Self::Expand, Ok(Done::Expanded(expanded))) => VolumesAnswer::ExpandVolume(Ok(expanded)),
            (Self::TakeSnapshot, Ok(Done::SnapshotTaken(snapshot))) => {
                VolumesAnswer::CreateSnapshot(Ok(snapshot))
            }
            (Self::DeleteSnapshot, Ok(_)) => VolumesAnswer::DeleteSnapshot(Ok(())),
            (Self::Modify, Ok(_)) => VolumesAnswer::ModifyVolume(Ok(())),
            (Self::TakeGroup, Ok(Done::GroupTaken(group))) => VolumesAnswer::CreateGroupSnapshot(Ok(group)),
            (Self::DeleteGroup, Ok(_)) => VolumesAnswer::DeleteGroupSnapshot(Ok(())),
            (kind @ (Self::Expand | Self::TakeSnapshot | Self::TakeGroup), Ok(_)) => {
                kind.refusal(NoAnswer::silent(volume, "its reply does not match the order").into())
            }
            (kind, Err(error)) => kind.refusal(error),
        }
    }

    /// The error, in the message type of its caller.
    pub(super) const fn refusal(self, error: OrderError) -> VolumesAnswer {
        match self {
            Self::Expand => VolumesAnswer::ExpandVolume(Err(error)),
            Self::TakeSnapshot => VolumesAnswer::CreateSnapshot(Err(error)),
            Self::TakeGroup => VolumesAnswer::CreateGroupSnapshot(Err(error)),
            Self::DeleteGroup => VolumesAnswer::DeleteGroupSnapshot(Err(error)),
            Self::DeleteSnapshot => VolumesAnswer::DeleteSnapshot(Err(error)),
            Self::Modify => VolumesAnswer::ModifyVolume(Err(error)),
        }
    }
}
