//! The records of tasks on disk. Rows are not domain types: data from disk is validated like any input.

use std::time::Duration;

use callboard_actors::driver::client::{TaskEnd, TaskExit, TaskId};
use callboard_actors::driver::{EventPosition, Folded, RECENT_ENTRIES, Recent};
use callboard_actors::leftovers::{Begun, TRACED_GROUPS_MAX, TRACED_PROCESSES_MAX, Trace, Traces};
use callboard_actors::persister::{DecodeError, Record, Table};
use callboard_actors::vocabulary::{Attempt, DriverName, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{DurableState, EventLog, Run, RunEvidence, RunState, Wanted, former_row, handle};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StateRow(pub(super) DurableState);

impl Record for StateRow {
    const TABLE: Table = Table("task-courses");
    const SCHEMA: u16 = 2;

    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        former_row::durable(schema, payload)
    }
}

/// The events of a task, by the task's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogRow(pub(super) EventLog);

impl Record for LogRow {
    const TABLE: Table = Table("task-events");
    const SCHEMA: u16 = 1;
}

/// The layout of a durable state. Times are in microseconds since the Unix epoch.
#[derive(Serialize, Deserialize)]
pub(super) struct StateLayout {
    pub(super) wanted: Option<WantedLayout>,
    pub(super) attempt: u64,
    pub(super) run: Option<RunLayout>,
    pub(super) exit: Option<(ExitLayout, u64)>,
    pub(super) restarts: u64,
    pub(super) restarted_at_us: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
pub(super) enum WantedLayout {
    Running,
    Stopped,
    Ended,
    Failed,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RunLayout {
    pub(super) driver: String,
    pub(super) id: String,
    pub(super) state: RunStateLayout,
    /// The boot in which it began, and the microseconds since that boot.
    pub(super) begun: Option<(String, u64)>,
    pub(super) traces: Option<TracesLayout>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TracesLayout {
    boot: String,
    /// Process id, start time in ticks since the boot, and its session and process group if they belong to the run.
    processes: Vec<(u32, u64, Option<u32>, Option<u32>)>,
    groups: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) enum RunStateLayout {
    Intended,
    /// The driver's handle, without the task's environment, which may hold secrets (P6) and is in the configuration.
    Started(Vec<u8>),
    Over {
        exit: Option<ExitLayout>,
        /// As in `Started`.
        handle: Option<Vec<u8>>,
    },
}

#[derive(Serialize, Deserialize)]
pub(super) struct ExitLayout {
    end: EndLayout,
    oom_killed: bool,
}

#[derive(Serialize, Deserialize)]
enum EndLayout {
    Exited(i32),
    Signalled(i32),
    Unknown(String),
}

/// The layout of an event log.
#[derive(Serialize, Deserialize)]
struct LogLayout {
    /// `<stream>:<sequence>`.
    position: Option<String>,
    taken: u64,
    told: u64,
    missed: u64,
    /// Text, first time, last time, count.
    recent: Vec<(String, u64, u64, u64)>,
}

fn micros(timestamp: Timestamp) -> u64 {
    span_micros(timestamp.since_epoch())
}

fn span_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

const fn timestamp(micros: u64) -> Timestamp {
    Timestamp::from_epoch(Duration::from_micros(micros))
}

impl From<&TaskExit> for ExitLayout {
    fn from(exit: &TaskExit) -> Self {
        let end = match &exit.end {
            TaskEnd::Exited(code) => EndLayout::Exited(*code),
            TaskEnd::Signalled(signal) => EndLayout::Signalled(*signal),
            TaskEnd::Unknown(reason) => EndLayout::Unknown(reason.clone()),
        };
        Self { end, oom_killed: exit.oom_killed }
    }
}

impl From<ExitLayout> for TaskExit {
    fn from(layout: ExitLayout) -> Self {
        let end = match layout.end {
            EndLayout::Exited(code) => TaskEnd::Exited(code),
            EndLayout::Signalled(signal) => TaskEnd::Signalled(signal),
            EndLayout::Unknown(reason) => TaskEnd::Unknown(reason),
        };
        Self { end, oom_killed: layout.oom_killed }
    }
}

impl From<&Run> for RunLayout {
    fn from(run: &Run) -> Self {
        let state = match &run.state {
            RunState::Intended => RunStateLayout::Intended,
            RunState::Started(handle) => RunStateLayout::Started(handle.stored().to_vec()),
            RunState::Over { exit, handle } => RunStateLayout::Over {
                exit: exit.as_ref().map(ExitLayout::from),
                handle: handle.as_ref().map(|handle| handle.stored().to_vec()),
            },
        };
        let RunEvidence { begun, traces } = &run.evidence;
        Self {
            driver: run.driver.to_string(),
            id: run.id.to_string(),
            state,
            begun: begun.as_ref().map(|begun| (begun.boot.clone(), span_micros(begun.since_boot))),
            traces: (!traces.is_empty()).then(|| traces.into()),
        }
    }
}

impl From<&Traces> for TracesLayout {
    fn from(traces: &Traces) -> Self {
        let process = |(pid, trace): (&u32, &Trace)| (*pid, trace.started_ticks, trace.session, trace.group);
        Self {
            boot: traces.boot.clone(),
            processes: traces.processes.iter().map(process).collect(),
            groups: traces.groups.iter().cloned().collect(),
        }
    }
}

impl From<TracesLayout> for Traces {
    fn from(layout: TracesLayout) -> Self {
        let process = |(pid, started_ticks, session, group)| (pid, Trace { started_ticks, session, group });
        Self {
            boot: layout.boot,
            processes: layout.processes.into_iter().take(TRACED_PROCESSES_MAX).map(process).collect(),
            groups: layout.groups.into_iter().take(TRACED_GROUPS_MAX).collect(),
        }
    }
}

/// Decodes a run. A malformed handle of a started run is an error; that of a run that is over is dropped, since it is only evidence.
fn run(layout: RunLayout) -> Result<Run, String> {
    let state = match layout.state {
        RunStateLayout::Intended => RunState::Intended,
        RunStateLayout::Started(bytes) => {
            let handle = handle::read(&bytes).map_err(|error| error.to_string())?;
            RunState::Started(Box::new(handle))
        }
        RunStateLayout::Over { exit, handle } => RunState::Over {
            exit: exit.map(TaskExit::from),
            handle: handle.and_then(|bytes| handle::read(&bytes).ok()).map(Box::new),
        },
    };
    let driver = DriverName::new(&layout.driver).map_err(|error| error.to_string())?;
    let id = TaskId::new(&layout.id).map_err(|error| error.to_string())?;
    let evidence = RunEvidence {
        begun: layout.begun.map(|(boot, micros)| Begun { boot, since_boot: Duration::from_micros(micros) }),
        traces: layout.traces.map(Traces::from).unwrap_or_default(),
    };
    Ok(Run { driver, id, state, evidence })
}

impl Serialize for StateRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let DurableState { wanted, attempt, run, exit, restarts, restarted_at } = &self.0;
        let layout = StateLayout {
            wanted: wanted.map(|wanted| match wanted {
                Wanted::Running => WantedLayout::Running,
                Wanted::Stopped => WantedLayout::Stopped,
                Wanted::Ended => WantedLayout::Ended,
                Wanted::Failed => WantedLayout::Failed,
            }),
            attempt: attempt.get(),
            run: run.as_ref().map(RunLayout::from),
            exit: exit.as_ref().map(|(exit, at)| (exit.into(), micros(*at))),
            restarts: *restarts,
            restarted_at_us: restarted_at.iter().copied().map(micros).collect(),
        };
        layout.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let layout = StateLayout::deserialize(deserializer)?;
        Self::try_from(layout).map_err(D::Error::custom)
    }
}

impl TryFrom<StateLayout> for StateRow {
    type Error = String;

    fn try_from(layout: StateLayout) -> Result<Self, String> {
        Ok(Self(DurableState {
            wanted: layout.wanted.map(|wanted| match wanted {
                WantedLayout::Running => Wanted::Running,
                WantedLayout::Stopped => Wanted::Stopped,
                WantedLayout::Ended => Wanted::Ended,
                WantedLayout::Failed => Wanted::Failed,
            }),
            attempt: Attempt::new(layout.attempt),
            run: layout.run.map(run).transpose()?,
            exit: layout.exit.map(|(exit, at)| (exit.into(), timestamp(at))),
            restarts: layout.restarts,
            restarted_at: layout.restarted_at_us.into_iter().map(timestamp).collect(),
        }))
    }
}

impl Serialize for LogRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EventLog { position, taken, told, missed, recent } = &self.0;
        let entry =
            |entry: &Folded| (entry.text.clone(), micros(entry.first), micros(entry.last), entry.count);
        let layout = LogLayout {
            position: position.as_ref().map(ToString::to_string),
            taken: *taken,
            told: *told,
            missed: *missed,
            recent: recent.entries().iter().map(entry).collect(),
        };
        layout.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LogRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let layout = LogLayout::deserialize(deserializer)?;
        let position = layout.position.map(|text| text.parse::<EventPosition>());
        let entry = |(text, first, last, count)| Folded {
            text,
            first: timestamp(first),
            last: timestamp(last),
            count,
        };
        Ok(Self(EventLog {
            position: position.transpose().map_err(D::Error::custom)?,
            taken: layout.taken,
            told: layout.told,
            missed: layout.missed,
            recent: Recent::from_entries(RECENT_ENTRIES, layout.recent.into_iter().map(entry).collect()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::persister::{decode, encode};
    use prost::Message as _;

    use super::super::KeptHandle;
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_micros(micros))
    }

    fn exit() -> TaskExit {
        TaskExit { end: TaskEnd::Unknown("it is unknown".to_owned()), oom_killed: true }
    }

    fn durable(state: RunState) -> DurableState {
        let begun = Begun { boot: "boot".to_owned(), since_boot: Duration::from_micros(7) };
        let trace = Trace { started_ticks: 9, session: Some(3), group: None };
        let traces = Traces {
            boot: "boot".to_owned(),
            processes: [(4, trace)].into(),
            groups: ["/container".to_owned()].into(),
        };
        let run = Run {
            driver: DriverName::new("exec").unwrap(),
            id: TaskId::new("web/main/3-00000007").unwrap(),
            state,
            evidence: RunEvidence { begun: Some(begun), traces },
        };
        DurableState {
            wanted: Some(Wanted::Running),
            attempt: Attempt::new(3),
            run: Some(run),
            exit: Some((exit(), at(5))),
            restarts: 2,
            restarted_at: vec![at(1), at(2)],
        }
    }

    fn handle() -> KeptHandle {
        let config = callboard_proto::drivers::TaskConfig { id: "web".into(), ..Default::default() };
        let wire = callboard_proto::drivers::TaskHandle { config: Some(config), ..Default::default() };
        handle::read(&wire.encode_to_vec()).unwrap()
    }

    #[test]
    fn a_state_comes_back_from_its_row_as_it_was() {
        let states = [
            RunState::Intended,
            RunState::Started(Box::new(handle())),
            RunState::Over { exit: None, handle: None },
            RunState::Over { exit: Some(exit()), handle: Some(Box::new(handle())) },
        ];
        for state in states {
            let row = StateRow(durable(state));
            assert_eq!(decode::<StateRow>(&encode(&row)).unwrap(), row);
        }
        let mut plain = durable(RunState::Intended);
        if let Some(run) = &mut plain.run {
            run.evidence = RunEvidence::default();
        }
        assert_eq!(decode::<StateRow>(&encode(&StateRow(plain.clone()))).unwrap().0, plain);
        let nothing = StateRow(DurableState::default());
        assert_eq!(decode::<StateRow>(&encode(&nothing)).unwrap(), nothing);
    }

    /// The bytes that this version writes. They must stay readable: a change, even by a library, needs a schema and a
    /// migration.
    #[test]
    fn p2_tasks_have_these_bytes_whatever_library_writes_them() {
        let over = RunState::Over { exit: Some(exit()), handle: None };
        let exited = TaskExit { end: TaskEnd::Exited(-3), oom_killed: false };
        let ended = DurableState {
            wanted: Some(Wanted::Ended),
            exit: Some((exited, at(6))),
            ..durable(RunState::Intended)
        };
        let states: [(DurableState, &[u8]); 3] = [
            (
                durable(RunState::Started(Box::new(handle()))),
                b"\x02\x00\x01\x00\x03\x01\x04exec\x13web/m\
                ain/3-00000007\x01\x07\x12\x05\n\x03web\x01\x04boot\x07\x01\x04boot\x01\x04\t\x01\x03\
                \x00\x01\n/container\x01\x02\rit is unknown\x01\x05\x02\x02\x01\x02",
            ),
            (
                durable(over),
                b"\x02\x00\x01\x00\x03\x01\x04exec\x13web/main/3-00000007\x02\x01\x02\rit is \
                unknown\x01\x00\x01\x04boot\x07\x01\x04boot\x01\x04\t\x01\x03\x00\x01\n/container\x01\
                \x02\rit is unknown\x01\x05\x02\x02\x01\x02",
            ),
            (
                ended,
                b"\x02\x00\x01\x02\x03\x01\x04exec\x13web/main/3-00000007\x00\x01\x04boot\x07\x01\
                \x04boot\x01\x04\t\x01\x03\x00\x01\n/container\x01\x00\x05\x00\x06\x02\x02\x01\x02",
            ),
        ];
        for (durable, bytes) in states {
            let row = StateRow(durable);
            assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
            assert_eq!(decode::<StateRow>(bytes).unwrap(), row);
        }
        let mut log =
            EventLog { position: "s:9".parse().ok(), taken: 9, told: 8, missed: 4, ..Default::default() };
        log.recent.add(at(300), "started");
        let (row, bytes) = (
            LogRow(log),
            b"\x01\x00\x01\x03s:9\t\x08\x04\x01\x07started\xfb,\x01\xfb,\
            \x01\x01",
        );
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<LogRow>(bytes).unwrap(), row);
    }

    #[test]
    fn the_environment_of_a_task_is_not_stored_p6() {
        let env = [("TOKEN".to_owned(), "canary-7".to_owned())].into();
        let config = callboard_proto::drivers::TaskConfig { id: "web".into(), env, ..Default::default() };
        let wire = callboard_proto::drivers::TaskHandle { config: Some(config), ..Default::default() };
        let kept = handle::read(&wire.encode_to_vec()).unwrap();
        let row = encode(&StateRow(durable(RunState::Started(Box::new(kept.clone())))));
        assert!(!row.windows(8).any(|window| window == b"canary-7"));
        let Some(Run { state: RunState::Started(read), .. }) = decode::<StateRow>(&row).unwrap().0.run else {
            panic!("it is a run with a handle");
        };
        let over = RunState::Over { exit: None, handle: Some(Box::new(kept.clone())) };
        let row = encode(&StateRow(durable(over)));
        assert!(!row.windows(8).any(|window| window == b"canary-7"));
        let environment = [("TOKEN".to_owned(), "canary-7".to_owned())].into();
        assert_eq!(handle::given_back(&read, &environment).unwrap().to_bytes(), kept.bytes());
    }

    #[test]
    fn what_was_told_comes_back_with_its_position_evt_03() {
        let mut log =
            EventLog { position: "s:9".parse().ok(), taken: 9, told: 8, missed: 4, ..Default::default() };
        log.recent.add(at(1), "started");
        log.recent.add(at(2), "pulled");
        log.recent.add(at(3), "pulled");
        assert_eq!(decode::<LogRow>(&encode(&LogRow(log.clone()))).unwrap().0, log);
    }
}
