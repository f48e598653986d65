//! The events of a small registry, and their bounds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::Register;
use callboard_actors::vocabulary::{AllocationId, FailoverPolicy, PluginKey, SocketPath};

use super::super::writes::Outcome;
use super::questions;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegistryBounds {
    /// How many allocations there are.
    pub allocations: u8,
    /// How often each registers, updates or deregisters, in any order.
    pub orders_each: u8,
    /// Whether the first allocation is a monolith: controller and node.
    pub has_monolith: bool,
    /// Whether plugins report their name, so that they can be proven after a restart.
    pub are_provable: bool,
    /// Whether a registration may change its policy, alone and with its contents: the first to `newest`, the others to pin the first.
    pub has_policies: bool,
    /// How often the fitness of a registration is reported. Then allocations also leave because they failed.
    pub reports: u8,
    /// How often a registration gets a new generation.
    pub renewals: u8,
    /// How often a client waits for the plugin.
    pub waits: u8,
    /// How often a client asks all questions that are answered at once.
    pub questions: u8,
    /// How many writes fail, in any of three ways.
    pub failures: u8,
    /// How often the disk becomes sick, and is sound again at any instant.
    pub sicknesses: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// How often the host is killed and started again.
    pub restarts: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// How often half a minute passes in which nothing is due.
    pub idles: u8,
    /// Whether the registry is requested to stop at some instant.
    pub stops: bool,
}

impl RegistryBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        allocations: 0,
        orders_each: 0,
        has_monolith: false,
        are_provable: false,
        has_policies: false,
        reports: 0,
        renewals: 0,
        waits: 0,
        questions: 0,
        failures: 0,
        sicknesses: 0,
        crashes: 0,
        restarts: 0,
        pauses: 0,
        idles: 0,
        stops: false,
    };
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegistryEvent {
    /// An allocation registers, with contents of this kind.
    Register(u8, u8),
    /// An allocation deregisters.
    Deregister(u8),
    /// An allocation leaves because it failed.
    Fail(u8),
    /// An allocation is reported fit or not.
    Report(u8, bool),
    /// An allocation gets a new generation.
    Renew(u8),
    /// A client waits for the plugin.
    Wait,
    /// A client asks all questions that are answered at once.
    Ask,
    /// This number of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The disk becomes sick, or is sound again.
    Disk(bool),
    /// The next step will crash.
    Crash,
    /// The store is read.
    Load,
    /// An identity check returns.
    Checked(u64, bool),
    /// Time passes until the next timer is due.
    Pass,
    /// Half a minute passes, and nothing is due.
    Idle,
    /// The host is killed when this number of the waiting writes have reached the disk, and starts again.
    KillHost(u8),
    /// The registry is requested to stop.
    Stop,
}

/// The length of an idle period.
pub(super) const IDLE: Duration = Duration::from_secs(30);

/// The name of an allocation.
pub(super) fn name(who: u8) -> String {
    char::from(b'a' + who).to_string()
}

/// As a line of a message script of the registry.
impl fmt::Display for RegistryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(who, kind) => {
                let socket = if *kind == 1 { "-new" } else { "" };
                write!(f, "register {0} csi-node/zfs socket=\"/run/{0}{socket}.sock\"", name(*who))?;
                match policy(*who).filter(|_| *kind > 1) {
                    Some(policy) => write!(f, " policy=\"{policy}\""),
                    None => Ok(()),
                }
            }
            Self::Deregister(who) => write!(f, "deregister {} csi-node/zfs", name(*who)),
            Self::Fail(who) => write!(f, "deregister {} csi-node/zfs failed=yes", name(*who)),
            Self::Report(who, true) => write!(f, "fit {} csi-node/zfs", name(*who)),
            Self::Report(who, false) => write!(f, "unfit {} csi-node/zfs", name(*who)),
            Self::Renew(who) => write!(f, "renew {} csi-node/zfs", name(*who)),
            Self::Wait => f.write_str(questions::WAIT),
            Self::Ask => f.write_str(questions::PROMPT),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(_, Outcome::Failed) => f.write_str("write-fails"),
            Self::Settle(_, Outcome::FailedButWritten) => f.write_str("write-fails-but-is-there"),
            Self::RefuseNext => f.write_str("disk-full"),
            Self::Disk(true) => f.write_str("disk-hangs"),
            Self::Disk(false) => f.write_str("disk-answers"),
            Self::Crash => f.write_str("crash-next"),
            Self::Load => f.write_str("load"),
            Self::Checked(number, true) => write!(f, "proven check={number}"),
            Self::Checked(number, false) => write!(f, "not-proven check={number}"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Idle => write!(f, "pass {}", IDLE.as_secs()),
            Self::KillHost(reached) => write!(f, "kill-host written={reached}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl RegistryBounds {
    /// The kinds of contents that an allocation may register with.
    pub(super) fn kinds(&self) -> std::ops::Range<u8> {
        0..2 + u8::from(self.has_policies)
    }
}

/// The allocation of this number.
pub(super) fn allocation(who: u8) -> AllocationId {
    AllocationId::new(name(who)).expect("a letter is a name")
}

/// Its registration message, with contents of this kind: the first ones, others, or the first ones under another policy.
pub(super) fn registering(who: u8, kind: u8, plugins: Vec<PluginKey>, is_provable: bool) -> Register {
    let socket =
        if kind != 1 { format!("/run/{}.sock", name(who)) } else { format!("/run/{}-new.sock", name(who)) };
    Register {
        policy: None,
        plugins,
        allocation: allocation(who),
        socket: SocketPath::new(socket).expect("it is short and absolute"),
        provider: is_provable.then(|| "zfs.example".into()),
        version: None,
        options: Arc::default(),
    }
}

/// The policy that it registers with, if it has one.
pub(super) fn policy(who: u8) -> Option<FailoverPolicy> {
    Some(if who == 0 { FailoverPolicy::Newest } else { FailoverPolicy::Pinned(allocation(0)) })
}
