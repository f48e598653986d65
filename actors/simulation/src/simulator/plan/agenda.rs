//! The planned events, and those that are planned only once at a time.

use super::super::database::DatabaseDoing;
use super::super::event::{DriverDoing, EventKind};
use super::super::processes::ProcessesDoing;
use super::super::supervision::FamilyDoing;
use super::super::volumes::VolumeDoing;
use super::super::workloads::{WorkloadDoing, WorkloadsDoing};
use super::drivers::DriverTurn;
use super::supervision::FamilyTurn;

/// A planned event. Its details are decided when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Planned {
    /// An allocation acts.
    Act(u32),
    /// The host sends another message about a supervised allocation before it has its answer.
    Hurry(u32),
    /// A question is asked.
    Question,
    /// A fault happens.
    Break,
    /// The fault of the disk ends.
    DiskSound,
    /// A commit that was in flight when a fault of the disk began has reached its time limit.
    DiskLate,
    /// An event that is planned only once at a time.
    Of(Once),
    /// A report of a plugin's instance arrives.
    Report(u32),
    /// An identity check returns.
    Checked,
    /// A plugin answers a call.
    Answer(u32),
    /// A message about the process with this number.
    ProcessTurn(u32),
    /// An event of the driver with this number.
    Driver(u32, DriverTurn),
    /// An event of the volume with this number.
    Volume(u32),
    /// An event of the supervisors.
    Family(FamilyTurn),
}

/// An event that is planned once at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Once {
    Settle,
    Load,
    Feed,
    Endings,
    InventoryFeed,
    Wake,
    Registry,
    Instances,
    Inventory,
    Instance(u32),
    Driver(u32, DriverDoing),
    Workload(u32, WorkloadDoing),
    Workloads(WorkloadsDoing),
    DriversEndings,
    Drivers,
    Processes(ProcessesDoing),
    Volume(u32, VolumeDoing),
    Family(u8, FamilyDoing),
    Start,
    Tell,
}

/// The key of an event that is planned once at a time.
pub(super) const fn once_of(what: EventKind) -> Option<Once> {
    Some(match what {
        EventKind::Settle(..) => Once::Settle,
        EventKind::Load(_) => Once::Load,
        EventKind::Feed => Once::Feed,
        EventKind::Endings => Once::Endings,
        EventKind::InventoryFeed => Once::InventoryFeed,
        EventKind::Wake => Once::Wake,
        EventKind::RegistryTimers => Once::Registry,
        EventKind::InstancesTimers => Once::Instances,
        EventKind::InventoryTimers => Once::Inventory,
        EventKind::InstanceTimers(plugin) => Once::Instance(plugin),
        EventKind::Driver(driver, doing) => Once::Driver(driver, doing),
        EventKind::Workload(who, doing) => Once::Workload(who, doing),
        EventKind::Workloads(doing) => Once::Workloads(doing),
        EventKind::DriversEndings => Once::DriversEndings,
        EventKind::DriversTimers => Once::Drivers,
        EventKind::Processes(doing) => Once::Processes(doing),
        EventKind::Volume(number, doing) => Once::Volume(number, doing),
        EventKind::Family(number, doing) => Once::Family(number, doing),
        EventKind::Start => Once::Start,
        EventKind::Database(DatabaseDoing::Tell) => Once::Tell,
        _ => return None,
    })
}
