//! The events of a volume in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_machines::volume::Expands;

use super::super::writes::Outcome;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumeBounds {
    /// How many allocations there are.
    pub allocations: u8,
    /// How often the volume is claimed.
    pub claims: u8,
    /// How often it is released.
    pub releases: u8,
    /// How often a release is forced.
    pub forces: u8,
    /// How often an operator gives up the released claim of one allocation.
    pub gives_up: u8,
    /// How often the volume is created.
    pub creations: u8,
    /// How often it is deleted.
    pub deletions: u8,
    /// How often it is expanded.
    pub expansions: u8,
    /// When the plugin expands volumes.
    pub expands: Expands,
    /// How often a group of snapshots of it is taken or deleted.
    pub groups: u8,
    /// Whether a group is not ready yet when it is taken.
    pub is_late: bool,
    /// How many calls are refused or return an unclear result.
    pub faults: u8,
    /// How often the plugin says OK and does nothing.
    pub lies: u8,
    /// How often a mount vanishes, or hangs.
    pub losses: u8,
    /// How often another instance of the plugin takes over.
    pub takeovers: u8,
    /// Whether each takeover switches whether the plugin stages.
    pub changes: bool,
    /// How many commits fail, whether or not they took effect, and how many writes are refused at once.
    pub failures: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// How often the host is killed.
    pub kills: u8,
    /// How often the host ends and finds a damaged row when it starts again.
    pub damages: u8,
    /// How often the machine is booted.
    pub reboots: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// Whether the volume does not exist at the start, and the plugin creates volumes.
    pub is_new: bool,
    /// Whether the plugin stages volumes.
    pub stages: bool,
    /// Whether the plugin attaches volumes.
    pub attaches: bool,
    /// Whether the volume permits one allocation at a time.
    pub is_single: bool,
    /// The modes in which the host may end, once.
    pub stops: &'static [StopMode],
}

impl VolumeBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        allocations: 1,
        claims: 0,
        releases: 0,
        forces: 0,
        gives_up: 0,
        creations: 0,
        deletions: 0,
        expansions: 0,
        expands: Expands::Not,
        groups: 0,
        is_late: false,
        faults: 0,
        lies: 0,
        losses: 0,
        takeovers: 0,
        changes: false,
        failures: 0,
        crashes: 0,
        kills: 0,
        damages: 0,
        reboots: 0,
        pauses: 0,
        is_new: false,
        stages: true,
        attaches: false,
        is_single: false,
        stops: &[],
    };
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answered {
    /// It is done.
    Ok,
    /// The plugin answers OK, and did nothing.
    Lie,
    /// It is refused permanently.
    Refused,
    /// It is refused temporarily.
    NotNow,
    /// It is unclear, and was not done.
    UnclearBefore,
    /// It is unclear, and was done.
    UnclearAfter,
}

impl Answered {
    /// All faults of a plugin that does not lie.
    pub const FAULTS: [Self; 4] = [Self::Refused, Self::NotNow, Self::UnclearBefore, Self::UnclearAfter];
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Lie => "lie",
            Self::Refused => "refused",
            Self::NotNow => "not-now",
            Self::UnclearBefore => "unclear-before-effect",
            Self::UnclearAfter => "unclear-after-effect",
        })
    }
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeEvent {
    /// The allocation of this number claims the volume.
    Claim(u8),
    /// Its last process has exited, and it releases the volume.
    Release(u8),
    /// An operator releases the volume by force.
    Force,
    /// An operator releases the claim of only the allocation of this number by force.
    GiveUp(u8),
    /// A caller creates the volume.
    Create,
    /// A caller deletes the volume.
    Delete,
    /// Its owner allows the deletion that waits for permission.
    Allow,
    /// A caller expands the volume.
    Expand,
    /// A caller takes a group of snapshots of it.
    TakeGroup,
    /// A caller deletes the group that was taken last.
    DeleteGroup,
    /// The call in flight returns.
    Answer(Answered),
    /// The mount at this place is unmounted from outside.
    PullAway(usize),
    /// Looks at the mount at this place hang.
    Hang(usize),
    /// Another instance of the plugin takes over.
    TakeOver,
    /// After a restart the host reports whether the allocations with a claim live.
    Confirm(bool),
    /// This number of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The ledger is read.
    Load,
    /// Time passes until the next timer is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The host is killed; this number of its writes had reached the disk, and the call in flight takes effect or not.
    Kill(usize, bool),
    /// The same, and the row of the claim of the allocation of this number is damaged.
    DamageClaim(u8),
    /// The same, and the row of the volume is damaged.
    DamageVolume,
    /// The same, and the machine is booted.
    Reboot,
    /// The host ends.
    Stop(StopMode),
}

/// As a line of a history.
impl fmt::Display for VolumeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(number) => write!(f, "claim a{number}"),
            Self::Release(number) => write!(f, "release a{number}"),
            Self::Force => f.write_str("force"),
            Self::GiveUp(number) => write!(f, "force a{number}"),
            Self::Create => f.write_str("create"),
            Self::Delete => f.write_str("delete"),
            Self::Allow => f.write_str("allow-deletion"),
            Self::Expand => f.write_str("expand"),
            Self::TakeGroup => f.write_str("take group"),
            Self::DeleteGroup => f.write_str("delete group"),
            Self::Answer(how) => write!(f, "answer {how}"),
            Self::PullAway(place) => write!(f, "pull-away mount={place}"),
            Self::Hang(place) => write!(f, "hang mount={place}"),
            Self::TakeOver => f.write_str("take-over"),
            Self::Confirm(true) => f.write_str("confirm living"),
            Self::Confirm(false) => f.write_str("confirm none"),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "settle {count} fails"),
            Self::Settle(count, Outcome::FailedButWritten) => write!(f, "settle {count} fails-but-is-there"),
            Self::RefuseNext => f.write_str("refuse-next"),
            Self::Load => f.write_str("load"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Crash => f.write_str("crash-next volume"),
            Self::Kill(reached, effect) => write!(f, "kill-host reached={reached} effect={effect}"),
            Self::DamageClaim(number) => write!(f, "restart-host lost=a{number}"),
            Self::DamageVolume => f.write_str("restart-host lost=volume"),
            Self::Reboot => f.write_str("reboot"),
            Self::Stop(StopMode::Stop) => f.write_str("stop"),
            Self::Stop(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
