//! The reported state of a driver.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::service::DriverService;
use super::{DriverEnding, DriverHealth, DriverStage};
use crate::session::Session;
use crate::vocabulary::{Attempt, DriverName, Generation, Timestamp};

/// The value of an attribute in a fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A number with a fraction, never NaN or infinite: such values are refused on receipt.
    Float(f64),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(String),
    /// A boolean.
    Bool(bool),
}

impl Hash for AttributeValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // Zero is equal to its negative.
            Self::Float(value) => (0_u8, (value + 0.0).to_bits()).hash(state),
            Self::Integer(value) => (1_u8, value).hash(state),
            Self::Text(value) => (2_u8, value).hash(state),
            Self::Bool(value) => (3_u8, value).hash(state),
        }
    }
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Text(value) => f.write_str(value),
            Self::Bool(value) => value.fmt(f),
        }
    }
}

/// One attribute in a fingerprint.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Attribute {
    /// Its value.
    pub value: AttributeValue,
    /// The unit of a number, as the plugin names it; empty if there is none.
    pub unit: String,
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unit.is_empty() { self.value.fmt(f) } else { write!(f, "{} {}", self.value, self.unit) }
    }
}

/// The attributes of a driver, by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// How a driver isolates the file system of a task from the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FsIsolation {
    /// No isolation.
    None,
    /// By a root of its own.
    Chroot,
    /// By an image.
    Image,
    /// By the kernel's landlock or unveil.
    Unveil,
}

/// How the network of a task is isolated from the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetworkMode {
    /// It uses the host's network.
    Host,
    /// One network for all tasks of an allocation.
    Group,
    /// One network for each task.
    Task,
    /// No network.
    None,
}

/// Whether a driver performs the mounts that the host requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MountSupport {
    /// All mounts; on the wire also the value of a driver that does not know the field. Nomad's SDK for drivers always reports this (T077),
    /// so a driver whose tasks share the file system of the host is reported as [`None`](Self::None), unless its attribute
    /// `driver.NAME.mounts` is true.
    Any,
    /// No mounts.
    None,
}

/// The capabilities of a driver (D103, `Capabilities`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DriverCapabilities {
    /// It can send signals to tasks.
    pub send_signals: bool,
    /// It can run commands inside tasks.
    pub exec: bool,
    /// How it isolates file systems.
    pub fs_isolation: FsIsolation,
    /// How it can isolate networks, sorted and without duplicates.
    pub network_modes: Vec<NetworkMode>,
    /// Networks must be made by the driver and not by the host.
    pub must_create_network: bool,
    /// Whether it mounts for its tasks.
    pub mounts: MountSupport,
    /// The host need not collect logs of its tasks.
    pub disable_log_collection: bool,
    /// It can run tasks as users that exist only for them.
    pub dynamic_workload_users: bool,
}

/// The known state of a driver.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct DriverReport {
    /// The driver.
    pub name: DriverName,
    /// The number of the connection: it grows with each connection to a process of the driver, and never repeats while the host runs.
    /// Zero before the first connection. It does not survive the host; the tag of the process does.
    pub generation: Generation,
    /// Its health.
    pub health: DriverHealth,
    /// Why it has this health: in the driver's own words, or the failed action and its result. May be empty when healthy, and
    /// is empty when the driver is gone and nothing of it ran.
    pub reason: String,
    /// How it ended; `None` while it exists.
    pub ending: Option<DriverEnding>,
    /// Since when it has this health.
    pub since: Timestamp,
    /// Its stage.
    pub stage: DriverStage,
    /// The attributes that it reported last; empty before that.
    pub attributes: Arc<Attributes>,
    /// Its capabilities; `None` before it has reported them.
    pub capabilities: Option<Arc<DriverCapabilities>>,
    /// Its own version; `None` before it has reported it.
    pub version: Option<Arc<str>>,
    /// Its process, while one is known to run.
    pub pid: Option<u32>,
    /// Whether an earlier run of the host left that process running and it was found again.
    pub is_adopted: bool,
    /// How many processes of it were launched since it was added or its actor was started, without refused launches.
    pub launches: u64,
    /// The number of the last restart that was requested of its actor before this report; zero before the first request.
    pub restart: Attempt,
}

impl DriverReport {
    /// The report of a driver, from its session and its service.
    pub(super) fn of(session: &Session<DriverService>) -> Self {
        let (known, service) = (session.status().clone(), session.service());
        Self {
            name: service.name.clone(),
            generation: known.generation,
            health: known.health,
            reason: known.reason,
            ending: known.ending,
            since: known.since,
            stage: session.stage(),
            attributes: Arc::clone(&service.attributes),
            capabilities: service.capabilities.clone(),
            version: known.version,
            pid: known.pid,
            is_adopted: known.is_adopted,
            launches: known.launches,
            restart: known.restart,
        }
    }

    /// The report of a driver before its first step.
    #[must_use]
    pub fn of_nothing_yet(name: DriverName, now: Timestamp) -> Self {
        Self {
            name,
            generation: Generation::default(),
            health: DriverHealth::NoAnswerYet,
            reason: String::new(),
            ending: None,
            since: now,
            stage: DriverStage::Recalling,
            attributes: Arc::default(),
            capabilities: None,
            version: None,
            pid: None,
            is_adopted: false,
            launches: 0,
            restart: Attempt::default(),
        }
    }

    /// Whether both reports are equal for a scheduler that places work by them: only the time, the stage, and the process may differ
    /// (SCL-05).
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && self.health == other.health
            && self.reason == other.reason
            && self.attributes == other.attributes
            && self.capabilities == other.capabilities
            && self.version == other.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_differ_in_what_work_is_placed_by_are_not_equal_scl_05() {
        let report = DriverReport {
            name: DriverName::new("exec").unwrap(),
            generation: Generation::new(1),
            health: DriverHealth::Healthy,
            reason: String::new(),
            ending: None,
            since: Timestamp::default(),
            stage: DriverStage::Watching,
            attributes: Arc::default(),
            capabilities: None,
            version: None,
            pid: Some(1),
            is_adopted: false,
            launches: 1,
            restart: Attempt::default(),
        };
        let capabilities = DriverCapabilities {
            send_signals: true,
            exec: true,
            fs_isolation: FsIsolation::None,
            network_modes: Vec::new(),
            must_create_network: false,
            mounts: MountSupport::None,
            disable_log_collection: false,
            dynamic_workload_users: false,
        };
        let attribute = Attribute { value: AttributeValue::Bool(true), unit: String::new() };
        let changed = |change: &dyn Fn(&mut DriverReport)| {
            let mut other = report.clone();
            change(&mut other);
            !report.equals(&other)
        };
        assert!(changed(&|other| other.name = DriverName::new("java").unwrap()));
        assert!(changed(&|other| other.health = DriverHealth::Unhealthy));
        assert!(changed(&|other| other.reason = "no disk".to_owned()));
        assert!(changed(&|other| other.attributes = Arc::new([("a".to_owned(), attribute.clone())].into())));
        assert!(changed(&|other| other.capabilities = Some(Arc::new(capabilities.clone()))));
        assert!(changed(&|other| other.version = Some("1.0".into())));
        // The time, the stage and the process do not count.
        assert!(!changed(&|other| {
            other.since = Timestamp::from_epoch(std::time::Duration::from_secs(1));
            other.stage = DriverStage::Connecting;
            (other.pid, other.is_adopted, other.launches) = (None, true, 2);
            other.generation = Generation::new(2);
        }));
    }

    #[test]
    fn attributes_are_shown_in_words() {
        let shown = |value, unit: &str| Attribute { value, unit: unit.to_owned() }.to_string();
        assert_eq!(shown(AttributeValue::Float(0.5), "GHz"), "0.5 GHz");
        assert_eq!(shown(AttributeValue::Integer(7), "MiB"), "7 MiB");
        assert_eq!(shown(AttributeValue::Text("x86".to_owned()), ""), "x86");
        assert_eq!(shown(AttributeValue::Bool(true), ""), "true");
    }
}
