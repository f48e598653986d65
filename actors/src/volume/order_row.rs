//! The rows of orders on disk.
//!
//! Never add, remove or reorder fields or variants without a new schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parts::{CapabilityPart, KeyPart, Part, PathPart};
use super::row::{key, row};
use super::step_parts::StepPart;
use super::{GroupMember, GroupOrder, GrowArgs, Order, OrderRecord, VolumeKey};
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
    TakeGroup(GroupPart),
    DeleteGroup(String, BTreeSet<String>),
}

impl Part for OrderPart {
    type Of = Order;

    fn of(it: &Order) -> Self {
        match it {
            Order::Expand { range } => Self::Expand(Part::of(range)),
            Order::TakeSnapshot { name, parameters } => Self::TakeSnapshot(name.clone(), parameters.clone()),
            Order::DeleteSnapshot { snapshot_id } => Self::DeleteSnapshot(snapshot_id.clone()),
            Order::Modify { parameters } => Self::Modify(parameters.clone()),
            Order::TakeGroup(group) => Self::TakeGroup(Part::of(&**group)),
            Order::DeleteGroup { group_snapshot_id, snapshot_ids } => {
                Self::DeleteGroup(group_snapshot_id.clone(), snapshot_ids.clone())
            }
        }
    }

    fn read(self) -> Result<Order, String> {
        Ok(match self {
            Self::Expand(range) => Order::Expand { range: range.read()? },
            Self::TakeSnapshot(name, parameters) => Order::TakeSnapshot { name, parameters },
            Self::DeleteSnapshot(snapshot_id) => Order::DeleteSnapshot { snapshot_id },
            Self::Modify(parameters) => Order::Modify { parameters },
            Self::TakeGroup(group) => Order::TakeGroup(Arc::new(group.read()?)),
            Self::DeleteGroup(group_snapshot_id, snapshot_ids) => {
                Order::DeleteGroup { group_snapshot_id, snapshot_ids }
            }
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct MemberPart {
    volume: KeyPart,
    volume_id: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct GroupPart {
    name: String,
    members: Vec<MemberPart>,
    parameters: BTreeMap<String, String>,
}

impl Part for GroupPart {
    type Of = GroupOrder;

    fn of(it: &GroupOrder) -> Self {
        let member = |member: &GroupMember| MemberPart {
            volume: Part::of(&member.volume),
            volume_id: member.volume_id.clone(),
        };
        let members = it.members.iter().map(member).collect();
        Self { name: it.name.clone(), members, parameters: it.parameters.clone() }
    }

    fn read(self) -> Result<GroupOrder, String> {
        let member = |MemberPart { volume, volume_id }| -> Result<GroupMember, String> {
            Ok(GroupMember { volume: volume.read()?, volume_id })
        };
        let members = self.members.into_iter().map(member).collect::<Result<_, _>>()?;
        let group = GroupOrder { name: self.name, members, parameters: self.parameters };
        group.check().map_err(|fault| fault.to_string())?;
        Ok(group)
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
    use super::super::{Intent, Step};
    use super::*;
    use crate::persister::{decode, encode};
    use crate::vocabulary::Generation;

    #[test]
    fn an_order_comes_back_from_its_row_as_it_was_v5_v10() {
        let set = || BTreeMap::from([("iops".to_owned(), "9".to_owned())]);
        for order in [
            expansion(7).order,
            Order::TakeSnapshot { name: "nightly".to_owned(), parameters: set() },
            Order::DeleteSnapshot { snapshot_id: "s1".to_owned() },
            Order::Modify { parameters: set() },
            Order::TakeGroup(Arc::new(group())),
            delete_group(),
        ] {
            let row = OrderRow(OrderRecord { order, ..expansion(7) });
            assert_eq!(decode::<OrderRow>(&encode(&row)).unwrap(), row);
        }
    }

    fn group() -> GroupOrder {
        let member =
            |name: &str| GroupMember { volume: volume_key("d", name), volume_id: format!("id-{name}") };
        let parameters = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
        GroupOrder { name: "weekly".to_owned(), members: vec![member("a"), member("b")], parameters }
    }

    fn delete_group() -> Order {
        let snapshot_ids = BTreeSet::from(["s1".to_owned(), "s2".to_owned()]);
        Order::DeleteGroup { group_snapshot_id: "g1".to_owned(), snapshot_ids }
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

    /// The same for each other order: in flight, and without the fields of expansions.
    #[test]
    fn p2_every_kind_of_order_has_these_bytes_whatever_library_writes_them() {
        let set = || BTreeMap::from([("iops".to_owned(), "9".to_owned())]);
        let snapshot_id = "s1".to_owned();
        for (order, bytes) in [
            (Order::TakeSnapshot { name: "nightly".to_owned(), parameters: set() }, &b"\x01\x00\x07\x02id\x01\x07nightly\x01\x04iops\x019\x00\x01\x04\x00"[..]),
            (Order::DeleteSnapshot { snapshot_id }, b"\x01\x00\x07\x02id\x02\x02s1\x00\x01\x04\x00"),
            (Order::Modify { parameters: set() }, b"\x01\x00\x07\x02id\x03\x01\x04iops\x019\x00\x01\x04\x00"),
            (Order::TakeGroup(Arc::new(group())), b"\x01\x00\x07\x02id\x04\x06weekly\x02\x01d\x01a\x04id-a\x01d\x01b\x04id-b\x01\x01k\x01v\x00\x01\x04\x00"),
            (delete_group(), b"\x01\x00\x07\x02id\x05\x02g1\x02\x02s1\x02s2\x00\x01\x04\x00"),
        ] {
            let at_controller = Step::GoingUp(Intent { args: (), generation: Generation::new(4) });
            let (number, volume_id) = (7, "id".to_owned());
            let on_node = Step::Down;
            let row =
                OrderRow(OrderRecord { number, volume_id, order, capability: None, at_controller, on_node });
            assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
            assert_eq!(decode::<OrderRow>(bytes).unwrap(), row);
        }
    }

    #[test]
    fn rows_of_orders_lie_below_the_key_of_their_volume() {
        let key = order_key(&volume_key("d", "v"), 0x0102);
        assert_eq!(key, b"\0\x01d\0\x01v\0\0\0\0\0\0\x01\x02");
    }

    #[test]
    fn an_order_that_no_message_may_place_is_refused_c052() {
        let mut record = expansion(7);
        record.order = Order::Expand { range: CapacityRange { required_bytes: 2, limit_bytes: 1 } };
        let told = decode::<OrderRow>(&encode(&OrderRow(record))).unwrap_err().to_string();
        assert!(told.contains("limit_bytes"), "{told}");
        let nameless = Order::TakeGroup(Arc::new(GroupOrder { name: String::new(), ..group() }));
        let row = OrderRow(OrderRecord { order: nameless, ..expansion(7) });
        assert!(decode::<OrderRow>(&encode(&row)).unwrap_err().to_string().contains("name is empty"));
    }
}
