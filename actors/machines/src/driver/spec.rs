//! What a driver is born with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::node::NodeFacts;
use crate::process::{MalformedProcessName, ProcessName, ProcessSpec, Reach, STOP_GRACE};
use crate::session::SessionLimits;
use crate::vocabulary::{Backoff, DriverName};

/// What the names of drivers' processes begin with.
const PROCESS_PREFIX: &str = "driver-";

/// A driver to be: which process serves it, and how it is configured.
#[derive(Clone, PartialEq, Hash)]
pub struct DriverSpec {
    /// Under which name hosts and tasks speak of it.
    pub name: DriverName,
    /// The process that serves it. One that an earlier run of the host left, and that was launched from another spec, is ended, and
    /// another one comes in its place. What counts is [on record](crate::process::ProcessRecord::spec_digest).
    pub process: Arc<ProcessSpec>,
    /// The name that its plugin has to say of itself; `None`: any. Its own name by default.
    pub said_name: Option<String>,
    /// The API version to tell it, chosen from what it offers; empty for a plugin that does not ask.
    pub api_version: String,
    /// Its configuration, as msgpack of what its schema describes (D113). Not shown: it may hold secrets.
    pub config: Vec<u8>,
    /// Why no process of it is launched. One that an earlier run of the host left is found again all the same, and keeps the
    /// configuration that it was given then. `None` by default.
    pub not_launched: Option<String>,
    /// Whether a process of it that an earlier run of the host left is kept, whatever it was launched from. So is that of a driver that is
    /// not launched. False by default.
    pub adopts_any: bool,
    /// What it receives of this node.
    pub node: NodeFacts,
    /// How long its process may take to end when it is stopped, counted from the polite request (SHD-07). For the last quarter of
    /// it SIGTERM asks the same of it, and then it is killed. 5 s by default.
    pub stop_grace: Duration,
    /// How long the polite request itself may take (D65). 2 s by default.
    pub polite_deadline: Duration,
}

impl DriverSpec {
    /// A driver that is served by this process, without a configuration of its own.
    #[must_use]
    pub fn new(name: DriverName, process: ProcessSpec) -> Self {
        Self {
            said_name: Some(name.to_string()),
            name,
            process: Arc::new(process),
            api_version: String::new(),
            config: Vec::new(),
            not_launched: None,
            adopts_any: false,
            node: NodeFacts::default(),
            stop_grace: STOP_GRACE,
            polite_deadline: Duration::from_secs(2),
        }
    }

    /// Its process as it is launched: it ends alone, whatever was said of it. Its tasks and their executors carry its tag and may stand
    /// in its control group, and have to outlive it (TH032).
    #[must_use]
    pub fn launched_process(&self) -> Arc<ProcessSpec> {
        match self.process.reach {
            Reach::Group => Arc::clone(&self.process),
            Reach::Everything => {
                Arc::new(ProcessSpec { reach: Reach::Group, ..ProcessSpec::clone(&self.process) })
            }
        }
    }
}

impl fmt::Debug for DriverSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverSpec")
            .field("name", &self.name)
            .field("process", &self.process)
            .field("said_name", &self.said_name)
            .field("api_version", &self.api_version)
            .field("config_bytes", &self.config.len())
            .field("not_launched", &self.not_launched)
            .field("adopts_any", &self.adopts_any)
            .field("node", &self.node)
            .field("stop_grace", &self.stop_grace)
            .field("polite_deadline", &self.polite_deadline)
            .finish()
    }
}

/// The name of the process that serves a driver. It is the same in each run of the host, so that the process is found again.
///
/// # Errors
/// When the driver's name holds what the name of a process may not.
pub fn process_name(driver: &DriverName) -> Result<ProcessName, MalformedProcessName> {
    ProcessName::new(format!("{PROCESS_PREFIX}{driver}"))
}

/// Limits of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverLimits {
    /// How soon to try again after a failure, the first or any later one (HLT-04, HLT-05). 5 s doubling to 2 min by default,
    /// and 5 s again after calm.
    pub backoff: Backoff,
    /// How long each step to a healthy driver may take. 10 s by default.
    pub step_deadline: Duration,
    /// How long the first fingerprint may take. 50 s by default.
    pub fingerprint_deadline: Duration,
    /// How long to wait before the next fingerprint is read, so that a driver that tells more than anybody can use is slowed
    /// down instead of us. 100 ms by default.
    pub fingerprint_pause: Duration,
    /// How often a driver that serves is pinged (D50), since a hung one is as quiet as one that has nothing to tell. A ping may take as
    /// long as a [step](Self::step_deadline). While one has no answer the driver is unhealthy; its connection, its leases and its process
    /// stay. 30 s by default, 100 ms at least; `None`: never.
    pub ping_every: Option<Duration>,
    /// After how many failures in a row without an answer the process is ended and another one launched. 3 by default.
    pub silent_until_replaced: u32,
    /// How long to wait for the process's end before an error that looks like it is reported as another one (D111). 3 s by
    /// default.
    pub end_wait: Duration,
    /// How long calls in flight may take to end when the driver is stopped, restarted or removed; then they are cut. 4 s by default.
    pub drain_deadline: Duration,
    /// How many questions may be under way to a driver at once, all clients together. 1,024 by default.
    pub calls_max: usize,
}

impl Default for DriverLimits {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                first: Duration::from_secs(5),
                longest: Duration::from_secs(120),
                jitter_percent: 10,
                reset_after: Duration::from_secs(60),
            },
            step_deadline: Duration::from_secs(10),
            fingerprint_deadline: Duration::from_secs(50),
            fingerprint_pause: Duration::from_millis(100),
            ping_every: Some(Duration::from_secs(30)),
            silent_until_replaced: 3,
            end_wait: Duration::from_secs(3),
            drain_deadline: Duration::from_secs(4),
            calls_max: 1_024,
        }
    }
}

impl DriverLimits {
    /// Those of the session with its plugin.
    pub(super) const fn session(&self) -> SessionLimits {
        SessionLimits {
            backoff: self.backoff,
            step_deadline: self.step_deadline,
            fingerprint_deadline: self.fingerprint_deadline,
            fingerprint_pause: self.fingerprint_pause,
            ping_every: self.ping_every,
            silent_until_replaced: self.silent_until_replaced,
            drain_deadline: self.drain_deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Executable;

    #[test]
    fn a_driver_to_be_is_shown_without_its_configuration_sec_06() {
        let process = ProcessSpec::new(Executable::at("/bin/driver"));
        let spec = DriverSpec::new(DriverName::new("exec").unwrap(), process);
        let shown = format!("{:?}", DriverSpec { config: vec![199; 7], ..spec });
        assert!(
            shown.contains("exec") && shown.contains("config_bytes: 7") && !shown.contains("199"),
            "{shown}"
        );
    }
}
