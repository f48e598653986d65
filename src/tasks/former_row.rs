//! Former layouts of task states on disk, and their migration.
//!
//! ```text
//!  1   a run had no evidence, and a run that was over had no handle
//! ```

use callboard_actors::persister::{DecodeError, decode_payload};
use serde::{Deserialize, Serialize};

use super::row::{ExitLayout, RunLayout, RunStateLayout, StateLayout, StateRow, WantedLayout};

pub(super) fn durable(schema: u16, payload: &[u8]) -> Result<StateRow, DecodeError> {
    match schema {
        1 => {
            let layout: StateLayout = decode_payload::<FirstState>(payload)?.into();
            StateRow::try_from(layout).map_err(|reason| DecodeError::Malformed { reason })
        }
        _ => Err(DecodeError::UnknownSchema { schema }),
    }
}

#[derive(Serialize, Deserialize)]
struct FirstState {
    wanted: Option<WantedLayout>,
    attempt: u64,
    run: Option<FirstRun>,
    exit: Option<(ExitLayout, u64)>,
    restarts: u64,
    restarted_at_us: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct FirstRun {
    driver: String,
    id: String,
    state: FirstRunState,
}

#[derive(Serialize, Deserialize)]
enum FirstRunState {
    Intended,
    Started(Vec<u8>),
    Over(Option<ExitLayout>),
}

impl From<FirstState> for StateLayout {
    fn from(first: FirstState) -> Self {
        let FirstState { wanted, attempt, run, exit, restarts, restarted_at_us } = first;
        Self { wanted, attempt, run: run.map(RunLayout::from), exit, restarts, restarted_at_us }
    }
}

impl From<FirstRun> for RunLayout {
    fn from(FirstRun { driver, id, state }: FirstRun) -> Self {
        let state = match state {
            FirstRunState::Intended => RunStateLayout::Intended,
            FirstRunState::Started(handle) => RunStateLayout::Started(handle),
            FirstRunState::Over(exit) => RunStateLayout::Over { exit, handle: None },
        };
        Self { driver, id, state, begun: None, traces: None }
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::client::{TaskEnd, TaskExit};
    use callboard_actors::persister::{Record, Table, decode, encode};
    use callboard_actors::vocabulary::Attempt;
    use prost::Message as _;

    use super::super::{DurableState, KeptHandle, Run, RunEvidence, RunState, Wanted, handle};
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Former(FirstState);

    impl Record for Former {
        const TABLE: Table = Table("task-courses");
        const SCHEMA: u16 = 1;
    }

    fn handle() -> KeptHandle {
        let config = callboard_proto::drivers::TaskConfig { id: "web".into(), ..Default::default() };
        let wire = callboard_proto::drivers::TaskHandle { config: Some(config), ..Default::default() };
        handle::read(&wire.encode_to_vec()).unwrap()
    }

    fn read(state: FirstRunState) -> DurableState {
        let run = FirstRun { driver: "exec".to_owned(), id: "a/web/1".to_owned(), state };
        let row = Former(FirstState {
            wanted: Some(WantedLayout::Running),
            attempt: 3,
            run: Some(run),
            exit: None,
            restarts: 2,
            restarted_at_us: vec![1],
        });
        decode::<StateRow>(&encode(&row)).unwrap().0
    }

    #[test]
    fn a_state_that_the_first_version_wrote_is_read_and_has_no_evidence() {
        let exit = TaskExit { end: TaskEnd::Exited(3), oom_killed: false };
        let states = [
            (FirstRunState::Intended, RunState::Intended),
            (FirstRunState::Started(handle().stored().to_vec()), RunState::Started(Box::new(handle()))),
            (FirstRunState::Over(Some((&exit).into())), RunState::Over { exit: Some(exit), handle: None }),
            (FirstRunState::Over(None), RunState::Over { exit: None, handle: None }),
        ];
        for (former, state) in states {
            let durable = read(former);
            let (wanted, attempt) = (Some(Wanted::Running), Attempt::new(3));
            assert_eq!((durable.wanted, durable.attempt, durable.restarts), (wanted, attempt, 2));
            let Run { state: present, evidence, .. } = durable.run.unwrap();
            assert_eq!((present, evidence), (state, RunEvidence::default()));
        }
    }

    #[test]
    fn a_schema_that_never_was_is_refused() {
        assert_eq!(durable(0, &[]).unwrap_err(), DecodeError::UnknownSchema { schema: 0 });
    }
}
