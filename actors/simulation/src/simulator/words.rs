//! A history in the words of a message script, as far as a script has words for it.

use std::collections::BTreeSet;

use callboard_actors::registry::Register;

use super::super::allocation::Reply;
use super::super::drivers::{Conduct, Order};
use super::super::volume::Answered;
use super::super::writes::Outcome;
use super::Simulation;
use super::database::DatabaseDoing;
use super::disk::DiskTrouble;
use super::drivers::is_unnumbered;
use super::event::{DriverDoing, Event, Happening, plugin_text};
use super::processes::{ProcessDoing, ProcessesDoing};
use super::roles::Cast;
use super::supervision::FamilyDoing;
use super::volumes::VolumeDoing;
use super::workloads::{HEALTH_TIMEOUT, WorkloadDoing, WorkloadOrder, Workloads, WorkloadsDoing};

/// What a script says of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saying {
    /// These lines.
    Lines(Vec<String>),
    /// Nothing: it happens of itself, in an order that no script can force.
    OfItself,
    /// Nothing: no verb says it.
    Unsayable,
}

/// A history in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// What there is before a host starts.
    pub before: Vec<String>,
    /// What each event comes to.
    pub sayings: Vec<(Event, Saying)>,
}

impl Simulation {
    /// Puts a history into the words of a message script.
    #[must_use]
    pub fn tell(&self, history: &[Event]) -> Told {
        let mut teller = Teller {
            cast: Cast::new(self.plugins, self.allocations),
            drivers: BTreeSet::new(),
            tasks: BTreeSet::new(),
            wanted: BTreeSet::new(),
            allocations: BTreeSet::new(),
            running: BTreeSet::new(),
            left: BTreeSet::new(),
        };
        for event in history {
            teller.meets(event.what);
        }
        teller.wanted.clone_from(&teller.drivers);
        let mut before = teller.before();
        before.push("host start".to_owned());
        before.extend(teller.wishes());
        let sayings = history.iter().map(|event| (*event, teller.say(event.what))).collect();
        Told { before, sayings }
    }
}

struct Teller {
    cast: Cast,
    drivers: BTreeSet<u32>,
    tasks: BTreeSet<(u32, u8)>,
    wanted: BTreeSet<u32>,
    allocations: BTreeSet<u32>,
    /// Whose tasks run, as far as their host was told.
    running: BTreeSet<u32>,
    /// Whose outlived their host and were not prepared again. That a kill of the host takes some of them along, no history says.
    left: BTreeSet<u32>,
}

fn line(text: String) -> Saying {
    Saying::Lines(vec![text])
}

impl Teller {
    fn meets(&mut self, what: Happening) {
        match what {
            Happening::Register(who, _) | Happening::Workload(who, WorkloadDoing::Order(_)) => {
                self.allocations.insert(who);
            }
            Happening::Driver(number, doing) => {
                self.drivers.insert(number);
                if let DriverDoing::Task(task, _) | DriverDoing::Event(task) = doing {
                    self.tasks.insert((number, task));
                }
            }
            _ => {}
        }
    }

    /// The plugins and drivers of the world.
    fn before(&self) -> Vec<String> {
        let plugin = |who: &u32| {
            let register = self.cast.registering(*who, 0);
            match &register.provider {
                Some(provider) => format!("plugin a{who} name={provider}"),
                None => format!("plugin a{who}"),
            }
        };
        let driver = |number: &u32| {
            let positions = if is_unnumbered(*number) { " positions=no" } else { "" };
            format!("driver d{number}{positions}")
        };
        self.allocations.iter().map(plugin).chain(self.drivers.iter().map(driver)).collect()
    }

    /// What a host says at its start.
    fn wishes(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.wanted.iter().map(|number| format!("add-driver d{number}")).collect();
        let handled = self.tasks.iter().filter(|(number, _)| self.wanted.contains(number));
        lines.extend(handled.map(|(number, task)| format!("watch-task d{number} t{task} main")));
        lines
    }

    fn say(&mut self, what: Happening) -> Saying {
        match what {
            Happening::Register(who, kind) => line(register(&self.cast.registering(who, kind), who, kind)),
            Happening::Deregister(who) => {
                let plugins = self.cast.deregistering(who).plugins;
                let plugins: Vec<String> = plugins.iter().map(ToString::to_string).collect();
                line(format!("deregister a{who} {}", plugins.join(" ")))
            }
            Happening::Ask(question) => line(question.to_string()),
            Happening::Dispense(plugin) => line(format!("dispense {} within=10s", plugin_text(plugin))),
            Happening::Check(plugin) => line(format!("check {}", plugin_text(plugin))),
            Happening::AwaitRetired(who) => line(format!("retired a{who}")),
            Happening::TakeInventory => line("inventory".to_owned()),
            Happening::Disk(Some(trouble @ (DiskTrouble::Full | DiskTrouble::ReadOnly))) => {
                line(format!("disk {trouble}"))
            }
            Happening::Disk(None) => line("disk mended".to_owned()),
            Happening::CrashRegistry => line("crash registry".to_owned()),
            Happening::CrashInstances => line("crash instances".to_owned()),
            Happening::CrashInventory => line("crash inventory".to_owned()),
            Happening::KillHost(..) => line("host kill".to_owned()),
            Happening::Stop => {
                self.running.clear();
                line("host stop".to_owned())
            }
            Happening::Detach => line("host detach".to_owned()),
            Happening::Start => {
                self.left = std::mem::take(&mut self.running);
                let mut lines = vec!["host start".to_owned()];
                lines.extend(self.wishes());
                Saying::Lines(lines)
            }
            Happening::Driver(number, doing) => self.say_of_driver(number, doing),
            Happening::Processes(doing) => say_of_processes(doing),
            Happening::Database(doing) => say_of_database(doing),
            Happening::Family(_, FamilyDoing::Return(_, Reply::Good) | FamilyDoing::Timers) => {
                Saying::OfItself
            }
            Happening::Volume(_, doing) => say_of_volume(doing),
            Happening::Workload(who, doing) => self.say_of_workload(who, doing),
            Happening::Workloads(WorkloadsDoing::Crash) => line("crash allocations".to_owned()),
            Happening::Workloads(WorkloadsDoing::Fall) => line("end allocations".to_owned()),
            Happening::Wake
            | Happening::Settle(_, Outcome::Written)
            | Happening::Load(true)
            | Happening::Checked(true)
            | Happening::Feed
            | Happening::InventoryFeed
            | Happening::Report(_)
            | Happening::Endings
            | Happening::Answer(_, super::super::instances::Behaviour::Well)
            | Happening::RegistryTimers
            | Happening::InstancesTimers
            | Happening::InstanceTimers(_)
            | Happening::InventoryTimers
            | Happening::Workloads(WorkloadsDoing::Endings | WorkloadsDoing::Due)
            | Happening::DriversEndings
            | Happening::DriversTimers => Saying::OfItself,
            Happening::DiskFull
            | Happening::Disk(Some(DiskTrouble::Slow | DiskTrouble::Hangs))
            | Happening::DiskLate
            | Happening::Settle(_, Outcome::Failed | Outcome::FailedButWritten)
            | Happening::Load(false)
            | Happening::Checked(false)
            | Happening::Answer(..)
            | Happening::CrashInstance(_)
            | Happening::CrashDrivers
            | Happening::Family(..)
            | Happening::Fall(_) => Saying::Unsayable,
        }
    }

    fn say_of_workload(&mut self, who: u32, doing: WorkloadDoing) -> Saying {
        match doing {
            WorkloadDoing::Order(WorkloadOrder::Prepare) => {
                // What outlived its host listens already.
                let verb = if self.left.remove(&who) { "adopt" } else { "prepare" };
                let (plugin, role) = Workloads::workload(&self.cast, who);
                let within = HEALTH_TIMEOUT.as_secs();
                line(format!("{verb} a{who} {plugin} role={} timeout={within}s", role.as_str()))
            }
            WorkloadDoing::Order(order) => {
                if order == WorkloadOrder::Start {
                    self.running.insert(who);
                } else {
                    self.running.remove(&who);
                }
                line(format!("{} a{who}", order.as_str()))
            }
            WorkloadDoing::Meet(_, Reply::Good)
            | WorkloadDoing::Deliver
            | WorkloadDoing::Answer
            | WorkloadDoing::News
            | WorkloadDoing::Due => Saying::OfItself,
            WorkloadDoing::Crash => line(format!("crash allocation a{who}")),
            WorkloadDoing::Fall => line(format!("end allocation a{who}")),
            WorkloadDoing::Meet(..) | WorkloadDoing::Die => Saying::Unsayable,
        }
    }

    fn say_of_driver(&mut self, number: u32, doing: DriverDoing) -> Saying {
        match doing {
            DriverDoing::Order(order) => {
                match order {
                    Order::Add => self.wanted.insert(number),
                    Order::Remove => self.wanted.remove(&number),
                    Order::Restart | Order::Dispense | Order::Announce | Order::Handle | Order::Forget => {
                        false
                    }
                };
                let within = if order == Order::Dispense { " within=5s" } else { "" };
                line(format!("{} d{number}{within}", order.as_str()))
            }
            DriverDoing::Task(task, order) => line(format!("{} d{number} t{task} main", order.as_str())),
            DriverDoing::Event(task) => line(format!("event d{number} t{task} main happened")),
            DriverDoing::Exit => line(format!("kill d{number}")),
            DriverDoing::Hear(Conduct::Refuses) => line(format!("break d{number} events")),
            DriverDoing::Hear(Conduct::IsSilent) => line(format!("break d{number} events code=UNAVAILABLE")),
            DriverDoing::Mail
            | DriverDoing::EventorMail
            | DriverDoing::Answer(Conduct::Well)
            | DriverDoing::Hear(_)
            | DriverDoing::HearEnd
            | DriverDoing::Read
            | DriverDoing::Timers
            | DriverDoing::EventorTimers => Saying::OfItself,
            DriverDoing::Answer(_)
            | DriverDoing::Crash
            | DriverDoing::CrashEventor
            | DriverDoing::Fall
            | DriverDoing::FallEventor => Saying::Unsayable,
        }
    }
}

fn say_of_processes(doing: ProcessesDoing) -> Saying {
    match doing {
        ProcessesDoing::Crash => line("crash processes".to_owned()),
        ProcessesDoing::Process(_, ProcessDoing::Act | ProcessDoing::Mail)
        | ProcessesDoing::Endings
        | ProcessesDoing::Sweep(true)
        | ProcessesDoing::Settle(_, Outcome::Written)
        | ProcessesDoing::Load(true)
        | ProcessesDoing::Timers => Saying::OfItself,
        // Only drivers have processes in a script.
        ProcessesDoing::Process(..)
        | ProcessesDoing::Sweep(false)
        | ProcessesDoing::Settle(..)
        | ProcessesDoing::Load(false) => Saying::Unsayable,
    }
}

/// The volumes of a simulation have plugins of their own, which no script has.
fn say_of_volume(doing: VolumeDoing) -> Saying {
    match doing {
        VolumeDoing::Answer(Answered::Ok)
        | VolumeDoing::Settle(Outcome::Written)
        | VolumeDoing::Load
        | VolumeDoing::Allow
        | VolumeDoing::Timers => Saying::OfItself,
        VolumeDoing::Claim(_)
        | VolumeDoing::Release(_)
        | VolumeDoing::Create
        | VolumeDoing::Delete
        | VolumeDoing::Force
        | VolumeDoing::Answer(_)
        | VolumeDoing::PullAway(_)
        | VolumeDoing::Hang(_)
        | VolumeDoing::Heal
        | VolumeDoing::TakeOver
        | VolumeDoing::Confirm(_)
        | VolumeDoing::Settle(_)
        | VolumeDoing::Crash => Saying::Unsayable,
    }
}

/// Which page of a disk was synced when, no script can say.
fn say_of_database(doing: DatabaseDoing) -> Saying {
    match doing {
        DatabaseDoing::Commit(_, None) | DatabaseDoing::Tell | DatabaseDoing::Load(None) => Saying::OfItself,
        DatabaseDoing::Kill { .. } => line("host kill".to_owned()),
        DatabaseDoing::Commit(_, Some(_)) | DatabaseDoing::Load(Some(_)) => Saying::Unsayable,
    }
}

fn register(said: &Register, who: u32, kind: u8) -> String {
    let plugins: Vec<String> = said.plugins.iter().map(ToString::to_string).collect();
    let mut text = format!("register a{who} {} option.kind={kind}", plugins.join(" "));
    if let Some(provider) = &said.provider {
        text.push_str(&format!(" provider={provider}"));
    }
    text
}
