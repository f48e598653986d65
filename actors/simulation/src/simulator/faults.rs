//! The faults of a simulation.

use std::fmt;
use std::str::FromStr;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// Plugins answer late.
    Slow,
    /// Plugins do not answer.
    Hang,
    /// Plugins answer falsehoods, or nonsense.
    Lie,
    /// Plugins die.
    Die,
    /// Plugins are not ready.
    NotReady,
    /// Plugins answer a call with an error, or do not implement it.
    Fail,
    /// Commits fail, and some of these have taken effect; the store cannot be read.
    Disk,
    /// The disk is full for a while.
    FullDisk,
    /// The file system is read-only for a while.
    ReadOnlyDisk,
    /// The disk takes commits late for a while.
    SlowDisk,
    /// The disk does not answer for a while.
    HangingDisk,
    /// Steps of machines, and instances, crash.
    Crash,
    /// Processes end by themselves.
    Exit,
    /// Streams of drivers break.
    Stream,
    /// Mounts of volumes vanish, or looks at them hang.
    Mount,
    /// The host is killed.
    KillHost,
    /// The host is stopped in order.
    Shutdown,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 17] = [
        Self::Slow,
        Self::Hang,
        Self::Lie,
        Self::Die,
        Self::NotReady,
        Self::Fail,
        Self::Disk,
        Self::FullDisk,
        Self::ReadOnlyDisk,
        Self::SlowDisk,
        Self::HangingDisk,
        Self::Crash,
        Self::Exit,
        Self::Stream,
        Self::Mount,
        Self::KillHost,
        Self::Shutdown,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Hang => "hang",
            Self::Lie => "lie",
            Self::Die => "die",
            Self::NotReady => "not-ready",
            Self::Fail => "fail",
            Self::Disk => "disk",
            Self::FullDisk => "full-disk",
            Self::ReadOnlyDisk => "read-only-disk",
            Self::SlowDisk => "slow-disk",
            Self::HangingDisk => "hanging-disk",
            Self::Crash => "crash",
            Self::Exit => "exit",
            Self::Stream => "stream",
            Self::Mount => "mount",
            Self::KillHost => "kill-host",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that does not name faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no fault; name some of slow, hang, lie, die, not-ready, fail, disk, full-disk, read-only-disk, slow-disk, hanging-disk, crash, exit, stream, mount, kill-host, shutdown with commas between them, or all, or none"
)]
pub struct UnknownFault(
    /// The text.
    pub String,
);

/// A set of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults([bool; Fault::ALL.len()]);

impl Faults {
    /// Every kind of fault happens.
    pub const ALL: Self = Self([true; Fault::ALL.len()]);
    /// No fault happens.
    pub const NONE: Self = Self([false; Fault::ALL.len()]);

    /// Whether the set contains this fault.
    #[must_use]
    pub const fn has(self, fault: Fault) -> bool {
        self.0[fault as usize]
    }
}

/// As the command line takes them.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all"),
            Self::NONE => f.write_str("none"),
            some => {
                let names: Vec<&str> =
                    Fault::ALL.into_iter().filter(|fault| some.has(*fault)).map(Fault::as_str).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl FromStr for Faults {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        match text {
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let mut faults = Self::NONE;
        for name in text.split(',').map(str::trim) {
            let fault = Fault::ALL.into_iter().find(|fault| fault.as_str() == name);
            faults.0[fault.ok_or_else(|| UnknownFault(name.to_owned()))? as usize] = true;
        }
        Ok(faults)
    }
}
