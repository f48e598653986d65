//! Converts a history to a message script, except events without a verb.

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
use super::event::{DriverDoing, Event, EventKind, plugin_text};
use super::names::Names;
use super::processes::{ProcessDoing, ProcessesDoing};
use super::supervision::FamilyDoing;
use super::volumes::VolumeDoing;
use super::workloads::{HEALTH_TIMEOUT, WorkloadDoing, WorkloadOrder, Workloads, WorkloadsDoing};

/// The script text of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptText {
    /// These lines.
    Lines(Vec<String>),
    /// No lines: it happens by itself, in an order that no script can force.
    Automatic,
    /// No lines: it has no verb.
    NoVerb,
}

/// A history as script text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryScript {
    /// The lines before a host starts.
    pub before: Vec<String>,
    /// The text of each event.
    pub events: Vec<(Event, ScriptText)>,
}

impl Simulation {
    /// Converts a history to a message script.
    #[must_use]
    pub fn to_script(&self, history: &[Event]) -> HistoryScript {
        let mut writer = ScriptWriter {
            names: Names::new(self.plugins, self.allocations),
            drivers: BTreeSet::new(),
            tasks: BTreeSet::new(),
            wanted: BTreeSet::new(),
            allocations: BTreeSet::new(),
            running: BTreeSet::new(),
            left: BTreeSet::new(),
        };
        for event in history {
            writer.meets(event.what);
        }
        writer.wanted.clone_from(&writer.drivers);
        let mut before = writer.before();
        before.push("host start".to_owned());
        before.extend(writer.wishes());
        let events = history.iter().map(|event| (*event, writer.text_of(event.what))).collect();
        HistoryScript { before, events }
    }
}

struct ScriptWriter {
    names: Names,
    drivers: BTreeSet<u32>,
    tasks: BTreeSet<(u32, u8)>,
    wanted: BTreeSet<u32>,
    allocations: BTreeSet<u32>,
    /// The allocations whose tasks run, as reported to their host.
    running: BTreeSet<u32>,
    /// The allocations whose tasks outlived their host and were not prepared again. No history records which of them a kill ends.
    left: BTreeSet<u32>,
}

fn line(text: String) -> ScriptText {
    ScriptText::Lines(vec![text])
}

impl ScriptWriter {
    fn meets(&mut self, what: EventKind) {
        match what {
            EventKind::Register(who, _) | EventKind::Workload(who, WorkloadDoing::Order(_)) => {
                self.allocations.insert(who);
            }
            EventKind::Driver(number, doing) => {
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
            let register = self.names.registering(*who, 0);
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

    /// The requests of a host at its start.
    fn wishes(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.wanted.iter().map(|number| format!("add-driver d{number}")).collect();
        let handled = self.tasks.iter().filter(|(number, _)| self.wanted.contains(number));
        lines.extend(handled.map(|(number, task)| format!("watch-task d{number} t{task} main")));
        lines
    }

    fn text_of(&mut self, what: EventKind) -> ScriptText {
        match what {
            EventKind::Register(who, kind) => line(register(&self.names.registering(who, kind), who, kind)),
            EventKind::Deregister(who) => {
                let plugins = self.names.deregistering(who).plugins;
                let plugins: Vec<String> = plugins.iter().map(ToString::to_string).collect();
                line(format!("deregister a{who} {}", plugins.join(" ")))
            }
            EventKind::Ask(question) => line(question.to_string()),
            EventKind::Dispense(plugin) => line(format!("dispense {} within=10s", plugin_text(plugin))),
            EventKind::Check(plugin) => line(format!("check {}", plugin_text(plugin))),
            EventKind::AwaitRetired(who) => line(format!("retired a{who}")),
            EventKind::TakeInventory => line("inventory".to_owned()),
            EventKind::Disk(Some(trouble @ (DiskTrouble::Full | DiskTrouble::ReadOnly))) => {
                line(format!("disk {trouble}"))
            }
            EventKind::Disk(None) => line("disk mended".to_owned()),
            EventKind::CrashRegistry => line("crash registry".to_owned()),
            EventKind::CrashInstances => line("crash instances".to_owned()),
            EventKind::CrashInventory => line("crash inventory".to_owned()),
            EventKind::KillHost(..) => line("host kill".to_owned()),
            EventKind::Stop => {
                self.running.clear();
                line("host stop".to_owned())
            }
            EventKind::Detach => line("host detach".to_owned()),
            EventKind::Start => {
                self.left = std::mem::take(&mut self.running);
                let mut lines = vec!["host start".to_owned()];
                lines.extend(self.wishes());
                ScriptText::Lines(lines)
            }
            EventKind::Driver(number, doing) => self.text_of_driver(number, doing),
            EventKind::Processes(doing) => text_of_processes(doing),
            EventKind::Database(doing) => text_of_database(doing),
            EventKind::Family(_, FamilyDoing::Return(_, Reply::Good) | FamilyDoing::Timers) => {
                ScriptText::Automatic
            }
            EventKind::Volume(_, doing) => text_of_volume(doing),
            EventKind::Workload(who, doing) => self.text_of_workload(who, doing),
            EventKind::Workloads(WorkloadsDoing::Crash) => line("crash allocations".to_owned()),
            EventKind::Workloads(WorkloadsDoing::Fall) => line("end allocations".to_owned()),
            EventKind::Wake
            | EventKind::Settle(_, Outcome::Written)
            | EventKind::Load(true)
            | EventKind::Checked(true)
            | EventKind::Feed
            | EventKind::InventoryFeed
            | EventKind::Report(_)
            | EventKind::Endings
            | EventKind::Answer(_, super::super::instances::Behaviour::Well)
            | EventKind::RegistryTimers
            | EventKind::InstancesTimers
            | EventKind::InstanceTimers(_)
            | EventKind::InventoryTimers
            | EventKind::Workloads(WorkloadsDoing::Endings | WorkloadsDoing::Due)
            | EventKind::DriversEndings
            | EventKind::DriversTimers => ScriptText::Automatic,
            EventKind::DiskFull
            | EventKind::Disk(Some(DiskTrouble::Slow | DiskTrouble::Hangs))
            | EventKind::DiskLate
            | EventKind::Settle(_, Outcome::Failed | Outcome::FailedButWritten)
            | EventKind::Load(false)
            | EventKind::Checked(false)
            | EventKind::Answer(..)
            | EventKind::CrashInstance(_)
            | EventKind::CrashDrivers
            | EventKind::Family(..)
            | EventKind::Fall(_) => ScriptText::NoVerb,
        }
    }

    fn text_of_workload(&mut self, who: u32, doing: WorkloadDoing) -> ScriptText {
        match doing {
            WorkloadDoing::Order(WorkloadOrder::Prepare) => {
                // A task that outlived its host listens already.
                let verb = if self.left.remove(&who) { "adopt" } else { "prepare" };
                let (plugin, role) = Workloads::workload(&self.names, who);
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
            | WorkloadDoing::Due => ScriptText::Automatic,
            WorkloadDoing::Crash => line(format!("crash allocation a{who}")),
            WorkloadDoing::Fall => line(format!("end allocation a{who}")),
            WorkloadDoing::Meet(..) | WorkloadDoing::Die => ScriptText::NoVerb,
        }
    }

    fn text_of_driver(&mut self, number: u32, doing: DriverDoing) -> ScriptText {
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
            | DriverDoing::EventorTimers => ScriptText::Automatic,
            DriverDoing::Answer(_)
            | DriverDoing::Crash
            | DriverDoing::CrashEventor
            | DriverDoing::Fall
            | DriverDoing::FallEventor => ScriptText::NoVerb,
        }
    }
}

fn text_of_processes(doing: ProcessesDoing) -> ScriptText {
    match doing {
        ProcessesDoing::Crash => line("crash processes".to_owned()),
        ProcessesDoing::Process(_, ProcessDoing::Act | ProcessDoing::Mail)
        | ProcessesDoing::Endings
        | ProcessesDoing::Sweep(true)
        | ProcessesDoing::Settle(_, Outcome::Written)
        | ProcessesDoing::Load(true)
        | ProcessesDoing::Timers => ScriptText::Automatic,
        // Only drivers have processes in a script.
        ProcessesDoing::Process(..)
        | ProcessesDoing::Sweep(false)
        | ProcessesDoing::Settle(..)
        | ProcessesDoing::Load(false) => ScriptText::NoVerb,
    }
}

/// The volumes of a simulation have plugins of their own, which no script has.
fn text_of_volume(doing: VolumeDoing) -> ScriptText {
    match doing {
        VolumeDoing::Answer(Answered::Ok)
        | VolumeDoing::Settle(Outcome::Written)
        | VolumeDoing::Load
        | VolumeDoing::Allow
        | VolumeDoing::Timers => ScriptText::Automatic,
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
        | VolumeDoing::Crash => ScriptText::NoVerb,
    }
}

/// No script can describe which page of a disk was synced when.
fn text_of_database(doing: DatabaseDoing) -> ScriptText {
    match doing {
        DatabaseDoing::Commit(_, None) | DatabaseDoing::Tell | DatabaseDoing::Load(None) => {
            ScriptText::Automatic
        }
        DatabaseDoing::Kill { .. } => line("host kill".to_owned()),
        DatabaseDoing::Commit(_, Some(_)) | DatabaseDoing::Load(Some(_)) => ScriptText::NoVerb,
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
