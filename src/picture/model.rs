//! The model of a picture.

use std::time::Duration;

/// How a message is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrow {
    /// A message: a solid line.
    Said,
    /// An answer: a dashed line.
    Answered,
}

/// The kind of a sign on the line of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It notifies all subscribers.
    News,
    /// It crashed, or ended by force.
    Crash,
    /// It runs again.
    Restart,
    /// An error that it tolerates.
    Trouble,
}

/// One element of a picture; elements stand below each other in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A line over the whole width: the title of what begins here.
    Chapter(String),
    /// Time passes.
    Pause(String),
    /// The time since the beginning of what follows: the time on the axis of the picture.
    Time(Duration),
    /// From here on another registration of a plugin is active; shown as a bar on its line.
    Active {
        /// The plugin.
        plugin: String,
        /// The active registration before, if any.
        before: Option<String>,
        /// The active registration from now on, if any.
        now: Option<String>,
    },
    /// A message from one actor to another.
    Message {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// The message.
        text: String,
        /// Its subject: a plugin with its generation, an allocation; may be empty.
        about: String,
        /// Whether it is an answer.
        arrow: Arrow,
    },
    /// Something happens to an actor.
    Sign {
        /// The actor.
        actor: String,
        /// The event.
        text: String,
        /// Its subject; may be empty.
        about: String,
        /// Its kind.
        sign: Sign,
    },
    /// A gate closes: from here on the answers and news of the actor wait for the disk.
    GateCloses {
        /// The actor.
        actor: String,
        /// Its number among the writes of this actor.
        write: u64,
    },
    /// Gates open up to a write: it is on disk, and what waited for it may leave.
    GateOpens {
        /// The actor.
        actor: String,
        /// The last write that is on disk.
        through: u64,
    },
    /// All gates of an actor end with it: what waited is refused.
    GatesFall {
        /// The actor.
        actor: String,
    },
}

impl Mark {
    /// The columns that it touches.
    #[must_use]
    pub fn actors(&self) -> Vec<&str> {
        match self {
            Self::Chapter(_) | Self::Pause(_) | Self::Time(_) => Vec::new(),
            Self::Active { before, now, .. } => before.iter().chain(now).map(String::as_str).collect(),
            Self::Message { from, to, .. } => vec![from, to],
            Self::GateCloses { actor, .. } | Self::GateOpens { actor, .. } => vec![actor, "disk"],
            Self::Sign { actor, .. } | Self::GatesFall { actor } => vec![actor],
        }
    }
}

/// A run in the form in which it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// Its subject.
    pub title: String,
    /// The events, in order.
    pub marks: Vec<Mark>,
}

/// The kinds of columns from left to right, by the first word of their names.
const ORDER: [&str; 13] = [
    "you",
    "host",
    "agent",
    "tasks",
    "task",
    "allocation",
    "registry",
    "disk",
    "instances",
    "inventory",
    "drivers",
    "process",
    "driver",
];

impl Picture {
    /// The columns from left to right: the host's side, the actors, the world; columns of one kind in the order of their first use.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        let mut columns: Vec<&str> = Vec::new();
        for actor in self.marks.iter().flat_map(Mark::actors) {
            if !columns.contains(&actor) {
                columns.push(actor);
            }
        }
        columns.sort_by_key(|name| {
            let kind = name.split(' ').next().unwrap_or_default();
            ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
        });
        columns
    }
}
