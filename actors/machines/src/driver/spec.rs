//! The specification of a driver.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::node::NodeFacts;
use crate::process::{MalformedProcessName, ProcessName, ProcessSpec, Reach, STOP_GRACE};
use crate::session::SessionLimits;
use crate::vocabulary::{Backoff, DriverName};

/// The prefix of the process names of drivers.
const PROCESS_PREFIX: &str = "driver-";

/// The specification of a driver: the process that serves it, and its configuration.
#[derive(Clone, PartialEq, Hash)]
pub struct DriverSpec {
    /// The name that hosts and tasks use for it.
    pub name: DriverName,
    /// The process that serves it. A process that an earlier run of the host left, and that was launched from another spec, is ended and
    /// replaced. The compared spec is [on record](crate::process::ProcessRecord::spec_digest).
    pub process: Arc<ProcessSpec>,
    /// The name that its plugin must report; `None`: any. Its own name by default.
    pub said_name: Option<String>,
    /// The API version to send to it, chosen from the versions that it offers; empty for a plugin without this question.
    pub api_version: String,
    /// Its configuration, encoded as msgpack by its schema (D113). Not shown: it may hold secrets.
    pub config: Vec<u8>,
    /// Why no process of it is launched. A process that an earlier run of the host left is found again nevertheless, and keeps the
    /// configuration that it was given then. `None` by default.
    pub not_launched: Option<String>,
    /// Whether a process of it that an earlier run of the host left is kept, whatever it was launched from. The same applies to a driver
    /// that is not launched. False by default.
    pub adopts_any: bool,
    /// The facts about this node that it receives.
    pub node: NodeFacts,
    /// The time in which its process must end when it is stopped, counted from the shutdown request (SHD-07). For the last quarter of
    /// it SIGTERM requests the same, and then it is killed. 5 s by default.
    pub stop_grace: Duration,
    /// The timeout of the shutdown request itself (D65). 2 s by default.
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

    /// The spec of its process as it is launched: the process ends alone, whatever the spec says. Its tasks and their executors carry
    /// its tag and may be in its control group, and have to outlive it (TH032).
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

/// The name of the process that serves a driver. It is the same in each run of the host, so that the process can be found again.
///
/// # Errors
/// When the driver's name has characters that the name of a process must not have.
pub fn process_name(driver: &DriverName) -> Result<ProcessName, MalformedProcessName> {
    ProcessName::new(format!("{PROCESS_PREFIX}{driver}"))
}

/// Limits of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverLimits {
    /// The pauses before a retry after a failure, the first or any later one (HLT-04, HLT-05). 5 s doubling to 2 min by default,
    /// and 5 s again after calm.
    pub backoff: Backoff,
    /// The timeout of each step until it is healthy. 10 s by default.
    pub step_deadline: Duration,
    /// The timeout of the first fingerprint. 50 s by default.
    pub fingerprint_deadline: Duration,
    /// The pause before the next fingerprint is read, so that a driver that sends too many is slowed down instead of us.
    /// 100 ms by default.
    pub fingerprint_pause: Duration,
    /// How often a driver that serves is pinged (D50), since a hung driver is as quiet as an idle one. A ping may take as
    /// long as a [step](Self::step_deadline). While a ping has no answer the driver is unhealthy, and keeps its connection, leases and
    /// process. 30 s by default, 100 ms at least; `None`: never.
    pub ping_every: Option<Duration>,
    /// The number of consecutive failures without an answer after which the process is ended and launched again. 3 by default.
    pub silent_until_replaced: u32,
    /// How long to wait for the process's end before an error that looks like it is reported as another error (D111). 3 s by
    /// default.
    pub end_wait: Duration,
    /// The timeout for calls in flight when the driver is stopped, restarted or removed; then they are cut. 4 s by default.
    pub drain_deadline: Duration,
    /// The limit of calls in flight to a driver, of all clients together. 1,024 by default.
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
    /// The limits of the session with its plugin.
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
