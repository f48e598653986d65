//! The events of a simulated host, one at a time.

use std::fmt;

use callboard_actors::vocabulary::Timestamp;

use super::super::drivers::{Conduct, Order};
use super::super::instances::Behaviour;
use super::super::registry::Question;
use super::super::writes::Outcome;
use super::database::DatabaseDoing;
use super::disk::DiskTrouble;
use super::processes::ProcessesDoing;
use super::supervision::{FamilyDoing, write_family};
use super::volumes::{VolumeDoing, write_volume};
use super::workloads::{WorkloadDoing, WorkloadsDoing, write_workload, write_workloads};

/// An event and its time. Plugins and allocations are named by number, so that an event keeps its meaning when others are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The time.
    pub at: Timestamp,
    /// The event.
    pub what: EventKind,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An allocation registers, with contents of this kind.
    Register(u32, u8),
    /// An allocation deregisters.
    Deregister(u32),
    /// A client asks the registry a question.
    Ask(Question),
    /// A client wants to use a plugin.
    Dispense(u32),
    /// A client wants a look at a plugin.
    Check(u32),
    /// A client waits until an allocation has retired.
    AwaitRetired(u32),
    /// A client asks for the inventory of the node.
    TakeInventory,
    /// This number of the writes settle in this way.
    Settle(u32, Outcome),
    /// The next write will be refused at once.
    DiskFull,
    /// A fault of the disk begins, or ends.
    Disk(Option<DiskTrouble>),
    /// A commit has reached its time limit.
    DiskLate,
    /// The registry's store is read; true if that works.
    Load(bool),
    /// The registry's pause is over.
    Wake,
    /// The oldest identity check in flight returns.
    Checked(bool),
    /// The registry's notifications reach the instances.
    Feed,
    /// The notifications of the instances reach the inventory.
    InventoryFeed,
    /// A report of a plugin's instance reaches its supervisor.
    Report(u32),
    /// The endings of instances reach their supervisor.
    Endings,
    /// A plugin answers its call in flight in this way.
    Answer(u32, Behaviour),
    /// The due timers of the registry run.
    RegistryTimers,
    /// The due timers of the supervisor of the instances run.
    InstancesTimers,
    /// The due timers of the instance of a plugin run.
    InstanceTimers(u32),
    /// The due timers of the inventory run.
    InventoryTimers,
    /// The registry's next step will crash.
    CrashRegistry,
    /// The next step of the instances' supervisor will crash.
    CrashInstances,
    /// The next step of a plugin's instance will crash.
    CrashInstance(u32),
    /// The inventory's next step will crash.
    CrashInventory,
    /// A plugin's instance crashes.
    Fall(u32),
    /// The host is killed when this number of the registry's waiting writes, and of those of the owner of the processes, have
    /// reached the disk.
    KillHost(u32, u32),
    /// An event of the driver with this number.
    Driver(u32, DriverDoing),
    /// An event of the supervised allocation with this number.
    Workload(u32, WorkloadDoing),
    /// An event of the owner of the supervised allocations.
    Workloads(WorkloadsDoing),
    /// The endings of drivers and eventors reach their owner.
    DriversEndings,
    /// The due timers of the owner of the drivers run.
    DriversTimers,
    /// The next step of the drivers' owner will crash.
    CrashDrivers,
    /// An event of the processes that are launched beside the drivers.
    Processes(ProcessesDoing),
    /// An event of the database, if there is one.
    Database(DatabaseDoing),
    /// An event of the volume with this number.
    Volume(u32, VolumeDoing),
    /// An event of the supervisor with this number.
    Family(u8, FamilyDoing),
    /// The host is requested to stop and to leave in place what outlives it.
    Detach,
    /// The host is requested to stop.
    Stop,
    /// A host starts from what the last one left.
    Start,
}

/// An event of one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverDoing {
    /// The host gives an order for it.
    Order(Order),
    /// The host gives an order for one of its tasks.
    Task(u8, Order),
    /// A report of the driver reaches its owner.
    Mail,
    /// A message of its eventor reaches the owner.
    EventorMail,
    /// Its step in flight returns.
    Answer(Conduct),
    /// It is notified that its process has ended.
    HearEnd,
    /// The read of its eventor returns.
    Hear(Conduct),
    /// Its process exits by itself.
    Exit,
    /// One of its tasks has an event.
    Event(u8),
    /// The handlers of its tasks read.
    Read,
    /// Its due timers run.
    Timers,
    /// The due timers of its eventor run.
    EventorTimers,
    /// Its next step will crash.
    Crash,
    /// The next step of its eventor will crash.
    CrashEventor,
    /// Its actor crashes.
    Fall,
    /// Its eventor crashes.
    FallEventor,
}

/// The name of the plugin with this number.
pub(in super::super) fn plugin_text(plugin: u32) -> String {
    let kind = if plugin.is_multiple_of(2) { "csi-controller" } else { "csi-node" };
    format!("{kind}/p{}", plugin / 2)
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<28} # {}.{:06}",
            self.what.to_string(),
            self.at.since_epoch().as_secs(),
            self.at.since_epoch().subsec_micros()
        )
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(who, 0) => write!(f, "register a{who}"),
            Self::Register(who, kind) => write!(f, "register a{who} kind={kind}"),
            Self::Deregister(who) => write!(f, "deregister a{who}"),
            Self::Ask(question) => question.fmt(f),
            Self::Dispense(plugin) => write!(f, "dispense {}", plugin_text(*plugin)),
            Self::Check(plugin) => write!(f, "check {}", plugin_text(*plugin)),
            Self::AwaitRetired(who) => write!(f, "await-retired a{who}"),
            Self::TakeInventory => f.write_str("inventory"),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "write-fails {count}"),
            Self::Settle(count, Outcome::FailedButWritten) => write!(f, "write-fails-but-is-there {count}"),
            Self::DiskFull => f.write_str("refuse-next-write"),
            Self::Disk(Some(trouble)) => write!(f, "disk {trouble}"),
            Self::Disk(None) => f.write_str("disk sound"),
            Self::DiskLate => f.write_str("disk late"),
            Self::Load(true) => f.write_str("load"),
            Self::Load(false) => f.write_str("load-fails"),
            Self::Wake => f.write_str("wake"),
            Self::Checked(true) => f.write_str("proven"),
            Self::Checked(false) => f.write_str("not-proven"),
            Self::Feed => f.write_str("deliver registry-news"),
            Self::InventoryFeed => f.write_str("deliver instances-news"),
            Self::Report(instance) => write!(f, "deliver report i{instance}"),
            Self::Endings => f.write_str("deliver endings"),
            Self::Answer(instance, behaviour) => write!(f, "answer i{instance} {}", behaviour.as_str()),
            Self::RegistryTimers => f.write_str("due registry"),
            Self::InstancesTimers => f.write_str("due instances"),
            Self::InstanceTimers(instance) => write!(f, "due i{instance}"),
            Self::InventoryTimers => f.write_str("due inventory"),
            Self::CrashRegistry => f.write_str("crash registry"),
            Self::CrashInstances => f.write_str("crash instances"),
            Self::CrashInstance(instance) => write!(f, "crash i{instance}"),
            Self::CrashInventory => f.write_str("crash inventory"),
            Self::Fall(instance) => write!(f, "kill i{instance}"),
            Self::KillHost(reached, 0) => write!(f, "kill-host written={reached}"),
            Self::KillHost(reached, processes) => {
                write!(f, "kill-host written={reached} processes={processes}")
            }
            Self::Driver(number, doing) => write_driver(f, *number, *doing),
            Self::Workload(who, doing) => write_workload(f, *who, *doing),
            Self::Workloads(doing) => write_workloads(f, *doing),
            Self::DriversEndings => f.write_str("deliver drivers-endings"),
            Self::DriversTimers => f.write_str("due drivers"),
            Self::CrashDrivers => f.write_str("crash drivers"),
            Self::Processes(doing) => doing.fmt(f),
            Self::Database(doing) => write!(f, "{doing}"),
            Self::Volume(number, doing) => write_volume(f, *number, *doing),
            Self::Family(number, doing) => write_family(f, *number, *doing),
            Self::Detach => f.write_str("detach"),
            Self::Stop => f.write_str("stop"),
            Self::Start => f.write_str("start"),
        }
    }
}

fn write_driver(f: &mut fmt::Formatter<'_>, number: u32, doing: DriverDoing) -> fmt::Result {
    match doing {
        DriverDoing::Order(order) => write!(f, "{} d{number}", order.as_str()),
        DriverDoing::Task(task, order) => write!(f, "{} d{number} t{task} main", order.as_str()),
        DriverDoing::Mail => write!(f, "deliver report d{number}"),
        DriverDoing::EventorMail => write!(f, "deliver eventor-news d{number}"),
        DriverDoing::Answer(conduct) => write!(f, "answer d{number} {}", conduct.as_str()),
        DriverDoing::HearEnd => write!(f, "deliver end d{number}"),
        DriverDoing::Hear(conduct) => write!(f, "stream d{number} {}", conduct.as_str()),
        DriverDoing::Exit => write!(f, "kill d{number}"),
        DriverDoing::Event(task) => write!(f, "event d{number} t{task} main happened"),
        DriverDoing::Read => write!(f, "read d{number}"),
        DriverDoing::Timers => write!(f, "due d{number}"),
        DriverDoing::EventorTimers => write!(f, "due eventor d{number}"),
        DriverDoing::Crash => write!(f, "crash d{number}"),
        DriverDoing::CrashEventor => write!(f, "crash eventor d{number}"),
        DriverDoing::Fall => write!(f, "fall d{number}"),
        DriverDoing::FallEventor => write!(f, "fall eventor d{number}"),
    }
}
