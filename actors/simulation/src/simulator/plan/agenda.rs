//! What can be planned, and which of it only once at a time.

use super::super::database::DatabaseDoing;
use super::super::event::{DriverDoing, EventKind};
use super::super::processes::ProcessesDoing;
use super::super::supervision::FamilyDoing;
use super::super::volumes::VolumeDoing;
use super::super::workloads::{WorkloadDoing, WorkloadsDoing};
use super::drivers::DriverTurn;
use super::supervision::FamilyTurn;

/// Something that is planned. What exactly comes of it is decided when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Planned {
    /// An allocation does something.
    Act(u32),
    /// The host speaks of a supervised allocation again, before it has its answer.
    Hurry(u32),
    /// A question is asked.
    Question,
    /// Something breaks.
    Break,
    /// Nothing is wrong with the disk any more.
    DiskSound,
    /// A commit that was under way when something became wrong with the disk has had its time.
    DiskLate,
    /// What is planned only once at a time.
    Of(Once),
    /// A report of a plugin's instance arrives.
    Report(u32),
    /// An identity check comes back.
    Checked,
    /// A plugin meets a call.
    Answer(u32),
    /// A message about the process of this number.
    ProcessTurn(u32),
    /// Something of the driver of this number.
    Driver(u32, DriverTurn),
    /// Something of the volume of this number.
    Volume(u32),
    /// Something of the supervisors.
    Family(FamilyTurn),
}

/// What is planned once at a time.
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

/// As which of these it is planned, if it is planned once at a time.
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
