//! What can happen in a simulated host, one thing at a time.

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

/// One thing that happens, and when. Plugins and allocations are named by number, so that an event means the same when others
/// are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: EventKind,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An allocation registers, with contents of this kind.
    Register(u32, u8),
    /// An allocation deregisters.
    Deregister(u32),
    /// A client asks the registry something.
    Ask(Question),
    /// A client wants to use a plugin.
    Dispense(u32),
    /// A client wants a look at a plugin.
    Check(u32),
    /// A client waits until an allocation has retired.
    AwaitRetired(u32),
    /// A client asks what the node offers.
    TakeInventory,
    /// So many writes settle in this way.
    Settle(u32, Outcome),
    /// The next write will be refused at once.
    DiskFull,
    /// The disk goes wrong for a while, or nothing is wrong with it any more.
    Disk(Option<DiskTrouble>),
    /// A commit has been under way for as long as one may be.
    DiskLate,
    /// The registry's store is read; true if that works.
    Load(bool),
    /// The registry's pause is over.
    Wake,
    /// The oldest identity check under way comes back.
    Checked(bool),
    /// The registry's news reach the instances.
    Feed,
    /// The news of the instances reach the inventory.
    InventoryFeed,
    /// A report of a plugin's instance reaches its supervisor.
    Report(u32),
    /// Word of ended instances reaches their supervisor.
    Endings,
    /// A plugin meets the call that is under way to it.
    Answer(u32, Behaviour),
    /// What is due in the registry.
    RegistryTimers,
    /// What is due in the supervisor of the instances.
    InstancesTimers,
    /// What is due in the instance of a plugin.
    InstanceTimers(u32),
    /// What is due in the inventory.
    InventoryTimers,
    /// The registry's next step will crash.
    CrashRegistry,
    /// The next step of the instances' supervisor will crash.
    CrashInstances,
    /// The next step of a plugin's instance will crash.
    CrashInstance(u32),
    /// The inventory's next step will crash.
    CrashInventory,
    /// A plugin's instance falls.
    Fall(u32),
    /// The host is killed when so many of the registry's waiting writes, and of those of the owner of the processes, have
    /// reached the disk.
    KillHost(u32, u32),
    /// Something of the driver of this number.
    Driver(u32, DriverDoing),
    /// Something of the supervised allocation of this number.
    Workload(u32, WorkloadDoing),
    /// Something of the owner of the supervised allocations.
    Workloads(WorkloadsDoing),
    /// Word of ended drivers and eventors reaches their owner.
    DriversEndings,
    /// What is due in the owner of the drivers.
    DriversTimers,
    /// The next step of the drivers' owner will crash.
    CrashDrivers,
    /// Something of the processes that are launched beside the drivers.
    Processes(ProcessesDoing),
    /// Something of the database, where there is one.
    Database(DatabaseDoing),
    /// Something of the volume of this number.
    Volume(u32, VolumeDoing),
    /// Something of the supervisor of this number.
    Family(u8, FamilyDoing),
    /// The host is requested to stop, and to leave in place what outlives it.
    Detach,
    /// The host is requested to stop.
    Stop,
    /// A host starts on what the last one left.
    Start,
}

/// What can happen of one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverDoing {
    /// The host says something about it.
    Order(Order),
    /// The host says something about one of its tasks.
    Task(u8, Order),
    /// What the driver reported reaches its owner.
    Mail,
    /// What its eventor said reaches the owner.
    EventorMail,
    /// The step that it has under way comes back.
    Answer(Conduct),
    /// It hears that its process has ended.
    HearEnd,
    /// Its eventor hears of its stream.
    Hear(Conduct),
    /// Its process ends of itself.
    Exit,
    /// Something happens to one of its tasks.
    Event(u8),
    /// The handlers of its tasks read.
    Read,
    /// What is due in it.
    Timers,
    /// What is due in its eventor.
    EventorTimers,
    /// Its next step will crash.
    Crash,
    /// The next step of its eventor will crash.
    CrashEventor,
    /// Its actor falls.
    Fall,
    /// Its eventor falls.
    FallEventor,
}

/// How the plugin of this number is written.
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
