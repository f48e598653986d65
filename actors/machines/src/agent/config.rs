//! The configuration of an allocation, and of restarts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::allocation::RestartWhen;
use crate::vocabulary::{AllocationId, Backoff, FailoverPolicy, PluginName, Probing, RestartBudget, Role};
use crate::volume::VolumeKey;

/// How often and how soon a task that ended by itself is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// The most restarts within a window; with one more the task has failed. `None`: no limit. Keys `attempts` and `window`.
    pub budget: Option<RestartBudget>,
    /// The backoff, doubled with each consecutive failure. Key `delay` is the first pause.
    pub backoff: Backoff,
}

impl RestartPolicy {
    /// The longest pause.
    const PAUSE_LONGEST: Duration = Duration::from_secs(30);
    /// The most restarts within a window by default.
    pub const ATTEMPTS: u32 = 5;
    /// The window of a budget by default, also where a policy has no budget.
    pub const WINDOW: Duration = Duration::from_secs(300);

    /// At most `attempts` restarts within `window`, the first one after `delay`.
    #[must_use]
    pub fn new(attempts: u32, window: Duration, delay: Duration) -> Self {
        Self {
            budget: Some(RestartBudget { limit: attempts, window }),
            backoff: Backoff {
                first: delay,
                longest: Self::PAUSE_LONGEST.max(delay),
                jitter_percent: 10,
                reset_after: Duration::from_secs(60),
            },
        }
    }
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self::new(Self::ATTEMPTS, Self::WINDOW, Duration::from_secs(1))
    }
}

/// A volume that the process of an allocation uses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationVolume {
    /// The volume. Key `name`, required: its name, or its namespace, a slash and its name.
    pub volume: VolumeKey,
    /// The variable with its path, in the environment of the process and as `${VARIABLE}` in its arguments. Key `variable`; by default
    /// `CALLBOARD_VOLUME_` and the name in capitals, with an underscore for all but letters and digits.
    pub variable: String,
    /// Whether the process only reads. Key `read_only`, false by default.
    pub read_only: bool,
}

/// One allocation: one run of a plugin's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationConfig {
    /// Its name, also the id of the allocation. Key `name`, required.
    pub name: AllocationId,
    /// Its plugin. Key `plugin`, required.
    pub plugin: PluginName,
    /// Its role. Key `type`, required: controller, node or monolith.
    pub role: Role,
    /// The program, an executable file. Key `command`, required: a text, or a list whose further entries are arguments.
    pub program: PathBuf,
    /// Its arguments; `${CSI_ENDPOINT}` is replaced at each start. Key `args`, after those of `command`.
    pub arguments: Vec<String>,
    /// Additions to its environment. Table `env`. A `CSI_ENDPOINT` in it overrides ours (SEC-04).
    pub environment: BTreeMap<String, String>,
    /// The timeout from its start to its first ready answer. Key `health_timeout`, 30 s by default.
    pub health_timeout: Duration,
    /// When it is restarted after it was ready once. Key `restart_when`, never by default.
    pub restart_when: RestartWhen,
    /// How it is probed, where that differs from the whole file. Keys `probe_interval`, `call_deadline`, `failures_until_unhealthy`,
    /// `restart_grace`, `strict` and `listener`; a key that the allocation does not set is taken from the whole file.
    pub probing: Probing,
    /// How the active allocation of its plugin is chosen, if this is configured. Key `failover`. `pinned` means this allocation.
    pub failover: Option<FailoverPolicy>,
    /// The volumes that its process uses. A list `volumes`.
    pub volumes: Vec<AllocationVolume>,
    /// Whether it starts with the host. Key `start`, true by default.
    pub start: bool,
    /// Whether its process outlives its host and is adopted by the next one (PRC-04). Key `survives`, false by default.
    pub survives: bool,
    /// The time between SIGTERM and SIGKILL. Key `stop_grace`, 5 s by default.
    pub stop_grace: Duration,
}
