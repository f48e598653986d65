//! The handle by which a driver finds its task again.

use std::collections::BTreeMap;
use std::fmt;

use callboard_proto::drivers as wire;
use prost::Message;

use super::NetworkOverride;

/// Largest handle that is read back, in bytes.
pub const HANDLE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The variables that a host fills in for every task (T080), and those that come from the host itself (T083). They contain no
/// secrets, and are always the same.
const KEPT_VARIABLES: [&str; 21] = [
    "NOMAD_ALLOC_DIR",
    "NOMAD_TASK_DIR",
    "NOMAD_SECRETS_DIR",
    "NOMAD_ALLOC_ID",
    "NOMAD_SHORT_ALLOC_ID",
    "NOMAD_ALLOC_NAME",
    "NOMAD_ALLOC_INDEX",
    "NOMAD_GROUP_NAME",
    "NOMAD_TASK_NAME",
    "NOMAD_JOB_ID",
    "NOMAD_JOB_NAME",
    "NOMAD_DC",
    "NOMAD_REGION",
    "NOMAD_NAMESPACE",
    "NOMAD_CPU_LIMIT",
    "NOMAD_CPU_CORES",
    "NOMAD_MEMORY_LIMIT",
    "NOMAD_MEMORY_MAX_LIMIT",
    "PATH",
    "LANG",
    "TZ",
];

/// The data by which a driver finds its task again after a restart of either side (D107). The host stores it before it does anything
/// else about the task, and returns it unchanged with `RecoverTask`.
#[derive(Clone, PartialEq)]
pub struct TaskHandle {
    wire: Box<wire::TaskHandle>,
}

/// Bytes that are not a handle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedHandle {
    /// Longer than any handle.
    #[error("a task handle of {bytes} bytes; at most {HANDLE_BYTES_MAX} are read")]
    TooLong {
        /// The number of bytes.
        bytes: usize,
    },
    /// They cannot be decoded as a handle.
    #[error("these bytes are no task handle: {detail}")]
    Unreadable {
        /// The error in them.
        detail: String,
    },
}

/// The result of a request to start a task.
#[derive(Debug, Clone, PartialEq)]
pub enum StartOutcome {
    /// It runs.
    Started {
        /// The driver finds the task again by this handle. The host stores it, before anything else.
        handle: TaskHandle,
        /// The address of the task, if it differs from what the host assumes.
        network: Option<NetworkOverride>,
    },
    /// It does not run, and a retry can help.
    Retry {
        /// In the driver's words.
        reason: String,
    },
    /// It does not run, and a retry does not help.
    Fatal {
        /// In the driver's words.
        reason: String,
    },
}

impl TaskHandle {
    /// Reads a stored handle back.
    ///
    /// # Errors
    /// When the bytes are too many, are not a handle, or are a handle without a task.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MalformedHandle> {
        if bytes.len() > HANDLE_BYTES_MAX {
            return Err(MalformedHandle::TooLong { bytes: bytes.len() });
        }
        let unreadable = |detail: String| MalformedHandle::Unreadable { detail };
        let wire = wire::TaskHandle::decode(bytes).map_err(|error| unreadable(error.to_string()))?;
        Self::from_wire(wire).map_err(unreadable)
    }

    /// The bytes to store. They may hold secrets of the task: its environment is among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.as_wire().encode_to_vec()
    }

    /// The handle without the environment of its task, which may contain secrets: for a store that must not contain any (P6). The
    /// variables that every task receives about itself stay (T080), and so does the driver's own part of the handle.
    #[must_use]
    pub fn without_environment(mut self) -> Self {
        if let Some(config) = &mut self.wire.config {
            config.env.retain(|name, _| KEPT_VARIABLES.contains(&name.as_str()));
            config.device_env.clear();
        }
        self
    }

    /// The handle with this environment of its task added: the variables that [`without_environment`](Self::without_environment) removed,
    /// if the host knows them.
    #[must_use]
    pub fn with_environment(mut self, environment: &BTreeMap<String, String>) -> Self {
        if let Some(config) = &mut self.wire.config {
            config.env.extend(environment.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        self
    }

    /// The cores that its task has exclusively, as the kernel writes a list; empty if it has none.
    #[must_use]
    pub fn cores(&self) -> &str {
        let resources = self.wire.config.as_ref().and_then(|config| config.resources.as_ref());
        let linux = resources.and_then(|resources| resources.linux_resources.as_ref());
        linux.map_or("", |linux| &linux.cpuset_cpus)
    }

    /// The id of its task.
    #[must_use]
    pub fn task_id(&self) -> &str {
        self.wire.config.as_ref().map_or("", |config| &config.id)
    }

    pub(super) fn from_wire(wire: wire::TaskHandle) -> Result<Self, String> {
        let has_task = wire.config.as_ref().is_some_and(|config| !config.id.is_empty());
        if has_task { Ok(Self { wire: Box::new(wire) }) } else { Err("it names no task".to_owned()) }
    }

    pub(super) fn as_wire(&self) -> &wire::TaskHandle {
        &self.wire
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("task_id", &self.task_id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_back_as_it_was_stored_d107() {
        let config = wire::TaskConfig { id: "a/t".to_owned(), ..Default::default() };
        let stored =
            wire::TaskHandle { version: 1, config: Some(config), state: 1, driver_state: vec![7; 9] };
        let handle = TaskHandle::from_wire(stored.clone()).unwrap();
        assert_eq!(TaskHandle::from_bytes(&handle.to_bytes()).unwrap().as_wire(), &stored);
    }

    #[test]
    fn bytes_that_are_no_handle_are_refused() {
        assert!(matches!(TaskHandle::from_bytes(&[0xff; 9]), Err(MalformedHandle::Unreadable { .. })));
        assert!(matches!(TaskHandle::from_bytes(&[]), Err(MalformedHandle::Unreadable { .. })));
        let long = vec![0; HANDLE_BYTES_MAX + 1];
        assert!(matches!(TaskHandle::from_bytes(&long), Err(MalformedHandle::TooLong { .. })));
        let longest = &long[1..];
        assert!(matches!(TaskHandle::from_bytes(longest), Err(MalformedHandle::Unreadable { .. })));
    }

    #[test]
    fn a_handle_comes_back_with_what_every_task_is_told_and_with_what_its_host_knows_th042_p6() {
        let pairs = [("NOMAD_TASK_DIR", "/t"), ("TOKEN", "canary-7"), ("NOMAD_TOKEN", "canary-8")];
        let env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let config = wire::TaskConfig { id: "a/t".to_owned(), env, ..Default::default() };
        let whole = wire::TaskHandle { config: Some(config), ..Default::default() };
        let stored = TaskHandle::from_wire(whole.clone()).unwrap().without_environment();
        assert!(!String::from_utf8_lossy(&stored.to_bytes()).contains("canary"));
        let known = pairs[1..].iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        assert_eq!(stored.with_environment(&known.collect()).as_wire(), &whole);
    }

    #[test]
    fn a_handle_shows_whose_it_is_and_none_of_its_secrets_p6() {
        let env = [("TOKEN".to_owned(), "canary-7".to_owned())].into();
        let config = wire::TaskConfig { id: "a/t".to_owned(), env, ..Default::default() };
        let handle = TaskHandle::from_wire(wire::TaskHandle { config: Some(config), ..Default::default() });
        assert_eq!(format!("{:?}", handle.unwrap()), "TaskHandle { task_id: \"a/t\", .. }");
    }
}
