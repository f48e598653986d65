//! How tasks lie on disk. Rows are not domain types: what comes from disk is checked like anything from outside.

use std::time::Duration;

use callboard_actors::driver::client::{TaskEnd, TaskExit, TaskHandle, TaskId};
use callboard_actors::driver::{EventPosition, Folded, RECENT_ENTRIES, Recent};
use callboard_actors::persister::{Record, Table};
use callboard_actors::vocabulary::{Attempt, DriverName, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::log::EventLog;
use super::state::{Course, Run, RunState, Wanted};

/// The course of a task, by its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CourseRow(pub(super) Course);

impl Record for CourseRow {
    const TABLE: Table = Table("task-courses");
    const SCHEMA: u16 = 1;
}

/// What a driver told of a task, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogRow(pub(super) EventLog);

impl Record for LogRow {
    const TABLE: Table = Table("task-events");
    const SCHEMA: u16 = 1;
}

/// The layout of a course. Times are microseconds since the Unix epoch.
#[derive(Serialize, Deserialize)]
struct CourseLayout {
    wanted: Option<WantedLayout>,
    attempt: u64,
    run: Option<RunLayout>,
    exit: Option<(ExitLayout, u64)>,
    restarts: u64,
    restarted_at_us: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
enum WantedLayout {
    Running,
    Stopped,
    Ended,
    Failed,
}

#[derive(Serialize, Deserialize)]
struct RunLayout {
    driver: String,
    id: String,
    state: RunStateLayout,
}

#[derive(Serialize, Deserialize)]
enum RunStateLayout {
    Intended,
    /// The handle as its driver gave it, without the environment of the task, which may hold secrets (P6) and stands in the
    /// host's configuration.
    Started(Vec<u8>),
    Over(Option<ExitLayout>),
}

#[derive(Serialize, Deserialize)]
struct ExitLayout {
    end: EndLayout,
    oom_killed: bool,
}

#[derive(Serialize, Deserialize)]
enum EndLayout {
    Exited(i32),
    Signalled(i32),
    Unknown(String),
}

/// The layout of what a driver told.
#[derive(Serialize, Deserialize)]
struct LogLayout {
    /// `<stream>:<sequence>`.
    position: Option<String>,
    taken: u64,
    told: u64,
    missed: u64,
    /// Words, first time, last time, how often.
    recent: Vec<(String, u64, u64, u64)>,
}

fn micros(timestamp: Timestamp) -> u64 {
    u64::try_from(timestamp.since_epoch().as_micros()).unwrap_or(u64::MAX)
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
            RunState::Started(handle) => {
                RunStateLayout::Started(handle.as_ref().clone().without_environment().to_bytes())
            }
            RunState::Over(exit) => RunStateLayout::Over(exit.as_ref().map(ExitLayout::from)),
        };
        Self { driver: run.driver.to_string(), id: run.id.to_string(), state }
    }
}

/// Takes a run back. One whose handle cannot be read is one of which nobody knows whether it was started.
fn run(layout: RunLayout) -> Result<Run, String> {
    let state = match layout.state {
        RunStateLayout::Intended => RunState::Intended,
        RunStateLayout::Started(bytes) => {
            let handle = TaskHandle::from_bytes(&bytes).map_err(|error| error.to_string())?;
            RunState::Started(Box::new(handle))
        }
        RunStateLayout::Over(exit) => RunState::Over(exit.map(TaskExit::from)),
    };
    let driver = DriverName::new(&layout.driver).map_err(|error| error.to_string())?;
    let id = TaskId::new(&layout.id).map_err(|error| error.to_string())?;
    Ok(Run { driver, id, state })
}

impl Serialize for CourseRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Course { wanted, attempt, run, exit, restarts, restarted_at } = &self.0;
        let layout = CourseLayout {
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

impl<'de> Deserialize<'de> for CourseRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let layout = CourseLayout::deserialize(deserializer)?;
        Ok(Self(Course {
            wanted: layout.wanted.map(|wanted| match wanted {
                WantedLayout::Running => Wanted::Running,
                WantedLayout::Stopped => Wanted::Stopped,
                WantedLayout::Ended => Wanted::Ended,
                WantedLayout::Failed => Wanted::Failed,
            }),
            attempt: Attempt::new(layout.attempt),
            run: layout.run.map(run).transpose().map_err(D::Error::custom)?,
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

    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_micros(micros))
    }

    fn exit() -> TaskExit {
        TaskExit { end: TaskEnd::Unknown("nobody saw it".to_owned()), oom_killed: true }
    }

    fn course(state: RunState) -> Course {
        let run = Run {
            driver: DriverName::new("exec").unwrap(),
            id: TaskId::new("web/main/3-00000007").unwrap(),
            state,
        };
        Course {
            wanted: Some(Wanted::Running),
            attempt: Attempt::new(3),
            run: Some(run),
            exit: Some((exit(), at(5))),
            restarts: 2,
            restarted_at: vec![at(1), at(2)],
        }
    }

    #[test]
    fn a_course_comes_back_from_its_row_as_it_was() {
        let config = callboard_proto::drivers::TaskConfig { id: "web".into(), ..Default::default() };
        let wire = callboard_proto::drivers::TaskHandle { config: Some(config), ..Default::default() };
        let handle = TaskHandle::from_bytes(&wire.encode_to_vec()).unwrap();
        let states = [
            RunState::Intended,
            RunState::Started(Box::new(handle)),
            RunState::Over(None),
            RunState::Over(Some(exit())),
        ];
        for state in states {
            let row = CourseRow(course(state));
            assert_eq!(decode::<CourseRow>(&encode(&row)).unwrap(), row);
        }
        let nothing = CourseRow(Course::default());
        assert_eq!(decode::<CourseRow>(&encode(&nothing)).unwrap(), nothing);
    }

    #[test]
    fn the_environment_of_a_task_is_not_stored_p6() {
        let env = [("TOKEN".to_owned(), "canary-7".to_owned())].into();
        let config = callboard_proto::drivers::TaskConfig { id: "web".into(), env, ..Default::default() };
        let wire = callboard_proto::drivers::TaskHandle { config: Some(config), ..Default::default() };
        let handle = TaskHandle::from_bytes(&wire.encode_to_vec()).unwrap();
        let row = encode(&CourseRow(course(RunState::Started(Box::new(handle.clone())))));
        assert!(!row.windows(8).any(|window| window == b"canary-7"));
        let Some(Run { state: RunState::Started(read), .. }) = decode::<CourseRow>(&row).unwrap().0.run
        else {
            panic!("it is a run with a handle");
        };
        let environment = [("TOKEN".to_owned(), "canary-7".to_owned())].into();
        assert_eq!(read.with_environment(&environment).to_bytes(), handle.to_bytes());
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
