//! The stream of a task's resource usage.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callboard_proto::drivers as wire;
use futures_util::future::BoxFuture;
use tonic::{Response, Status, Streaming};

use super::TaskId;
use super::TaskStats;
use super::line::Line;
use super::{DriverError, DriverRpc};
use super::{from_wire, to_wire};

type Opening = BoxFuture<'static, Result<Response<Streaming<wire::TaskStatsResponse>>, Status>>;

enum State {
    /// It is opened when it is first read. A plugin may answer only when it has something to report.
    Fresh(wire::TaskStatsRequest),
    Opening(Opening),
    Open(Box<Streaming<wire::TaskStatsResponse>>),
    Ended,
}

/// The resource usage of one task, as reported. After an error, and after the end, nothing follows: dispense a client and
/// open it again (EVT-03).
pub struct TaskStatsStream {
    line: Arc<Line>,
    state: State,
}

impl TaskStatsStream {
    pub(super) fn open(line: Arc<Line>, task: &TaskId, interval: Duration) -> Self {
        let question = wire::TaskStatsRequest {
            task_id: task.to_string(),
            collection_interval: Some(to_wire::span(interval)),
        };
        Self { line, state: State::Fresh(question) }
    }

    /// Waits for the next report; `None` when the stream is over. Dropping this future loses nothing.
    ///
    /// # Errors
    /// Like all calls: [`DriverError`].
    pub async fn next(&mut self) -> Option<Result<TaskStats, DriverError>> {
        let rpc = DriverRpc::TaskStats;
        let line = Arc::clone(&self.line);
        let item = match line.begin(rpc) {
            Ok(in_flight) => tokio::select! {
                biased;
                gone = in_flight.gone() => Err(gone),
                item = self.read() => match item {
                    Ok(Some(answer)) => {
                        from_wire::stats(answer).map_err(|fault| DriverError::Malformed { asked: line.asked(rpc), fault })
                    }
                    Ok(None) => {
                        self.state = State::Ended;
                        return None;
                    }
                    Err(status) => Err(line.failed(&in_flight, &status, true).await),
                },
            },
            Err(gone) => Err(gone),
        };
        if matches!(self.state, State::Ended) {
            return None;
        }
        if item.is_err() {
            self.state = State::Ended;
        }
        Some(item)
    }

    /// Continues where the last call was dropped.
    async fn read(&mut self) -> Result<Option<wire::TaskStatsResponse>, Status> {
        loop {
            match &mut self.state {
                State::Fresh(question) => {
                    let question = std::mem::take(question);
                    let mut stub = self.line.stub();
                    self.state = State::Opening(Box::pin(async move { stub.task_stats(question).await }));
                }
                State::Opening(opening) => {
                    let stream = opening.await?.into_inner();
                    self.state = State::Open(Box::new(stream));
                }
                State::Open(stream) => return stream.message().await,
                State::Ended => return Ok(None),
            }
        }
    }
}

impl fmt::Debug for TaskStatsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStatsStream").field("line", &self.line).finish_non_exhaustive()
    }
}
