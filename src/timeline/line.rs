//! One line of the timeline.

use std::fmt;

use callboard_actors::vocabulary::{AllocationId, DriverName, Generation, PluginKey, PluginName, Timestamp};
use callboard_proto::admin::v1 as wire;

/// A sender or receiver of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Participant {
    /// The user who types commands.
    You,
    /// The agent, which runs the processes of the configuration.
    Agent,
    /// The supervisor of one allocation.
    Allocation(AllocationId),
    /// The process of one allocation.
    Process(AllocationId),
    /// The owner of the registrations, which chooses the active ones.
    Registry,
    /// The owner of the instances, which call the active plugins.
    Instances,
    /// The owner of what this node offers.
    Inventory,
    /// The owner of the volumes.
    Volumes,
    /// A plugin, whichever process serves it.
    Plugin(PluginName),
    /// The owner of the drivers.
    Drivers,
    /// One driver.
    Driver(DriverName),
    /// The owner of the tasks that run through drivers.
    Tasks,
    /// One such task.
    Task(AllocationId),
    /// An actor, by its own name.
    Actor(String),
    /// All subscribers.
    Everyone,
    /// The database.
    Disk,
    /// The timeline itself, if it has a message of its own.
    Timeline,
}

impl fmt::Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::You => f.pad("you"),
            Self::Agent => f.pad("agent"),
            Self::Allocation(allocation) => f.pad(&format!("allocation {allocation}")),
            Self::Process(allocation) => f.pad(&format!("process {allocation}")),
            Self::Registry => f.pad("registry"),
            Self::Instances => f.pad("instances"),
            Self::Inventory => f.pad("inventory"),
            Self::Volumes => f.pad("volumes"),
            Self::Plugin(plugin) => f.pad(&format!("plugin {plugin}")),
            Self::Drivers => f.pad("drivers"),
            Self::Driver(driver) => f.pad(&format!("driver {driver}")),
            Self::Tasks => f.pad("tasks"),
            Self::Task(task) => f.pad(&format!("task {task}")),
            Self::Actor(name) => f.pad(name),
            Self::Everyone => f.pad("everyone"),
            Self::Disk => f.pad("disk"),
            Self::Timeline => f.pad("timeline"),
        }
    }
}

/// A message from one participant to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The sender.
    pub(crate) from: Participant,
    /// The receiver.
    pub(crate) to: Participant,
    /// The message.
    pub(crate) message: String,
    /// The plugin that it is about.
    pub(crate) plugin: Option<PluginKey>,
    /// The allocation that it is about.
    pub(crate) allocation: Option<AllocationId>,
    /// The generation that it is about.
    pub(crate) generation: Option<Generation>,
    /// The participant whose fate it reports, and that fate.
    pub(crate) fate: Option<(Participant, wire::Fate)>,
    /// The state of a gate that it reports, and the write of the gate.
    pub(crate) gate: Option<(wire::Gate, u64)>,
    /// The actor and the number of the step that it follows from.
    pub(crate) step: Option<(String, u64)>,
    /// The active registration of a plugin before and after.
    pub(crate) active: Option<(Option<Participant>, Option<Participant>)>,
}

impl Line {
    /// A line without a subject.
    #[must_use]
    pub(crate) fn new(from: Participant, to: Participant, message: impl Into<String>) -> Self {
        Self {
            from,
            to,
            message: message.into(),
            plugin: None,
            allocation: None,
            generation: None,
            fate: None,
            gate: None,
            step: None,
            active: None,
        }
    }

    /// The same line, about a plugin.
    #[must_use]
    pub(crate) fn of_plugin(mut self, plugin: &PluginKey) -> Self {
        self.plugin = Some(plugin.clone());
        self
    }

    /// The same line, about an allocation.
    #[must_use]
    pub(crate) fn of_allocation(mut self, allocation: &AllocationId) -> Self {
        self.allocation = Some(allocation.clone());
        self
    }

    /// The same line, about a generation.
    #[must_use]
    pub(crate) const fn of_generation(mut self, generation: Generation) -> Self {
        self.generation = Some(generation);
        self
    }

    /// The same line, about the fate of an actor.
    #[must_use]
    pub(crate) fn of_fate(mut self, of: Participant, fate: wire::Fate) -> Self {
        self.fate = Some((of, fate));
        self
    }

    /// The same line, about a gate that waits for a write.
    #[must_use]
    pub(crate) const fn of_gate(mut self, gate: wire::Gate, write: u64) -> Self {
        self.gate = Some((gate, write));
        self
    }

    /// The same line, as the consequence of a step of an actor.
    #[must_use]
    pub(crate) fn of_step(mut self, actor: &str, step: u64) -> Self {
        self.step = Some((actor.to_owned(), step));
        self
    }

    /// The same line, about the active registration of a plugin.
    #[must_use]
    pub(crate) fn of_active(mut self, before: Option<Participant>, now: Option<Participant>) -> Self {
        self.active = Some((before, now));
        self
    }

    /// The line in its wire form: the `number`th of its stream, received at this time.
    #[must_use]
    pub(crate) fn said(self, number: u64, at: Timestamp) -> wire::Said {
        let (whose_fate, fate) = match self.fate {
            Some((of, fate)) => (of.to_string(), fate),
            None => (String::new(), wire::Fate::Unspecified),
        };
        let (gate, write) = self.gate.unwrap_or((wire::Gate::Unspecified, 0));
        let (actor, step) = self.step.unwrap_or_default();
        let [active_before, active_now] = self.active.map_or([None, None], |(before, now)| [before, now]);
        let name = |voice: Option<Participant>| voice.map(|voice| voice.to_string()).unwrap_or_default();
        wire::Said {
            number,
            at_unix_ms: u64::try_from(at.since_epoch().as_millis()).unwrap_or(u64::MAX),
            from: self.from.to_string(),
            to: self.to.to_string(),
            message: self.message,
            plugin: self.plugin.map(|plugin| plugin.to_string()).unwrap_or_default(),
            allocation: self.allocation.map(|allocation| allocation.to_string()).unwrap_or_default(),
            generation: self.generation.unwrap_or_default().get(),
            whose_fate,
            fate: fate.into(),
            gate: gate.into(),
            write,
            actor,
            step,
            goes_on: false,
            active_before: name(active_before),
            active_now: name(active_now),
        }
    }
}
