//! The rows of orders on disk.
//!
//! Never add, remove or reorder fields or variants without a new schema.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parts::{CapabilityPart, Part, PathPart};
use super::row::{key, read_volume_key, row};
use super::step_parts::StepPart;
use super::{GrowArgs, Order, OrderRecord, VolumeKey};
use crate::csi::CapacityRange;
use crate::persister::{Record, Table};

/// The orders of volumes that are not done, by the key of the volume and their number.
pub const ORDER_TABLE: Table = Table("volume_orders");

/// A row of [`ORDER_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRow(pub(crate) OrderRecord);

row!(OrderRow, RecordPart, ORDER_TABLE);

pub(super) fn order_key(volume: &VolumeKey, number: u64) -> Vec<u8> {
    [&key(volume)[..], &number.to_be_bytes()].concat()
}

/// The volume of the row of an order; `None` if its key is damaged.
pub(crate) fn volume_of_order(key: &[u8]) -> Option<VolumeKey> {
    read_volume_key(key).map(|(volume, _)| volume)
}

#[derive(Serialize, Deserialize)]
struct RecordPart {
    number: u64,
    volume_id: String,
    order: OrderPart,
    capability: Option<CapabilityPart>,
    at_controller: StepPart<(), SizePart>,
    on_node: StepPart<GrowPart, ()>,
}

impl Part for RecordPart {
    type Of = OrderRecord;

    fn of(it: &OrderRecord) -> Self {
        let OrderRecord { number, volume_id, order, capability, at_controller, on_node } = it;
        Self {
            number: *number,
            volume_id: volume_id.clone(),
            order: Part::of(order),
            capability: Part::of(capability),
            at_controller: Part::of(at_controller),
            on_node: Part::of(on_node),
        }
    }

    fn read(self) -> Result<OrderRecord, String> {
        Ok(OrderRecord {
            number: self.number,
            volume_id: self.volume_id,
            order: self.order.read()?,
            capability: self.capability.read()?,
            at_controller: self.at_controller.read()?,
            on_node: self.on_node.read()?,
        })
    }
}

/// A size in bytes.
#[derive(Debug, Serialize, Deserialize)]
struct SizePart(u64);

impl Part for SizePart {
    type Of = u64;

    fn of(it: &u64) -> Self {
        Self(*it)
    }

    fn read(self) -> Result<u64, String> {
        Ok(self.0)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct RangePart {
    required_bytes: u64,
    limit_bytes: u64,
}

impl Part for RangePart {
    type Of = CapacityRange;

    fn of(it: &CapacityRange) -> Self {
        Self { required_bytes: it.required_bytes, limit_bytes: it.limit_bytes }
    }

    fn read(self) -> Result<CapacityRange, String> {
        let range = CapacityRange { required_bytes: self.required_bytes, limit_bytes: self.limit_bytes };
        range.check().map_err(|fault| fault.to_string())?;
        Ok(range)
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum OrderPart {
    Expand(RangePart),
    TakeSnapshot(String, BTreeMap<String, String>),
    DeleteSnapshot(String),
    Modify(BTreeMap<String, String>),
}

impl Part for OrderPart {
    type Of = Order;

    fn of(it: &Order) -> Self {
        match it {
            Order::Expand { range } => Self::Expand(Part::of(range)),
            Order::TakeSnapshot { name, parameters } => Self::TakeSnapshot(name.clone(), parameters.clone()),
            Order::DeleteSnapshot { snapshot_id } => Self::DeleteSnapshot(snapshot_id.clone()),
            Order::Modify { parameters } => Self::Modify(parameters.clone()),
        }
    }

    fn read(self) -> Result<Order, String> {
        Ok(match self {
            Self::Expand(range) => Order::Expand { range: range.read()? },
            Self::TakeSnapshot(name, parameters) => Order::TakeSnapshot { name, parameters },
            Self::DeleteSnapshot(snapshot_id) => Order::DeleteSnapshot { snapshot_id },
            Self::Modify(parameters) => Order::Modify { parameters },
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct GrowPart {
    volume_path: PathPart,
    staging_path: Option<PathPart>,
    range: RangePart,
    capability: CapabilityPart,
}

impl Part for GrowPart {
    type Of = GrowArgs;

    fn of(it: &GrowArgs) -> Self {
        Self {
            volume_path: Part::of(&it.volume_path),
            staging_path: Part::of(&it.staging_path),
            range: Part::of(&it.range),
            capability: Part::of(&it.capability),
        }
    }

    fn read(self) -> Result<GrowArgs, String> {
        Ok(GrowArgs {
            volume_path: self.volume_path.read()?,
            staging_path: self.staging_path.read()?,
            range: self.range.read()?,
            capability: self.capability.read()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::{expansion, volume_key};
    use super::*;
    use crate::persister::{decode, encode};

    #[test]
    fn an_order_comes_back_from_its_row_as_it_was_v5_v10() {
        let set = || BTreeMap::from([("iops".to_owned(), "9".to_owned())]);
        for order in [
            expansion(7).order,
            Order::TakeSnapshot { name: "nightly".to_owned(), parameters: set() },
            Order::DeleteSnapshot { snapshot_id: "s1".to_owned() },
            Order::Modify { parameters: set() },
        ] {
            let row = OrderRow(OrderRecord { order, ..expansion(7) });
            assert_eq!(decode::<OrderRow>(&encode(&row)).unwrap(), row);
        }
    }

    /// The encoding of this version. It must stay readable: a change of these bytes, in our code or in a library, needs a
    /// new schema and a migration.
    #[test]
    fn p2_orders_have_these_bytes_whatever_library_writes_them() {
        let bytes = b"\x01\x00\x07\x02id\x00\x08\n\x01\x12SINGLE_NODE_WRITER\x01\x03xfs\x01\tpw=sesame\x01g\x02\x04\t\x01\x00\
            \x02/t\x01\x00\x02/s\t\x00\x12SINGLE_NODE_WRITER\x01\x03xfs\x01\tpw=sesame\x01g\x04";
        let row = OrderRow(expansion(7));
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<OrderRow>(&bytes[..]).unwrap(), row);
    }

    #[test]
    fn rows_of_orders_lie_below_the_key_of_their_volume() {
        let volume = volume_key("d", "v");
        let key = order_key(&volume, 0x0102);
        assert_eq!(key, b"\0\x01d\0\x01v\0\0\0\0\0\0\x01\x02");
        assert_eq!(volume_of_order(&key), Some(volume));
        assert_eq!(volume_of_order(b"\0\x09d"), None);
    }

    #[test]
    fn an_order_that_no_message_may_place_is_refused_c052() {
        let mut record = expansion(7);
        record.order = Order::Expand { range: CapacityRange { required_bytes: 2, limit_bytes: 1 } };
        let told = decode::<OrderRow>(&encode(&OrderRow(record))).unwrap_err().to_string();
        assert!(told.contains("limit_bytes"), "{told}");
    }
}
