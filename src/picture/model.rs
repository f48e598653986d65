//! What is drawn.

use std::time::Duration;

/// How a message is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrow {
    /// Something is said: a whole line.
    Said,
    /// Something is answered: a broken line.
    Answered,
}

/// What a sign on the line of an actor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It tells everyone who listens.
    News,
    /// It crashed, or ended by force.
    Crash,
    /// It lives again.
    Restart,
    /// Something went wrong that it bears.
    Trouble,
}

/// One thing in a picture; they stand below each other in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A line over the whole width: what begins here.
    Chapter(String),
    /// Time passes.
    Pause(String),
    /// What follows happens so long after the beginning: the time on the axis of the picture.
    Time(Duration),
    /// From here on another one of a plugin is active; shown as a bar on its line.
    Active {
        /// Of which plugin.
        plugin: String,
        /// Who was until now, if anybody.
        before: Option<String>,
        /// Who is from now on, if anybody.
        now: Option<String>,
    },
    /// One says something to another.
    Message {
        /// Who.
        from: String,
        /// To whom.
        to: String,
        /// What.
        text: String,
        /// About what: a plugin with its generation, an allocation; may be empty.
        about: String,
        /// Whether it is an answer.
        arrow: Arrow,
    },
    /// Something happens to one of them.
    Sign {
        /// To whom.
        actor: String,
        /// What.
        text: String,
        /// About what; may be empty.
        about: String,
        /// Of which kind.
        sign: Sign,
    },
    /// A gate closes: from here on its answers and news wait for the disk.
    GateCloses {
        /// Whose gate.
        actor: String,
        /// Its number among the writes of this actor.
        write: u64,
    },
    /// Gates open up to a write: it is on disk, and what waited may leave.
    GateOpens {
        /// Whose gates.
        actor: String,
        /// The last write that is on disk.
        through: u64,
    },
    /// All gates of one go down with it: what waited is refused.
    GatesFall {
        /// Whose gates.
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

/// A run as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// What happened, in order.
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
    /// The columns from left to right: the host's side, the actors, the world; of one kind in the order in which they come.
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
