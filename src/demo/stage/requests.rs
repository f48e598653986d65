//! The requests of the stage to the host, as `callboard` commands make them.

use std::future::Future;
use std::time::Duration;

use callboard_proto::admin::v1::{ChildEnding, Said};

use super::Stage;
use crate::admin::{AdminClient, AdminError};
use crate::demo::error::DemoError;
use crate::demo::host::asked;

/// How long a new version has to be healthy before it replaces another one.
const HEALTHY_FOR: Duration = Duration::from_millis(500);

impl Stage {
    pub(in crate::demo) async fn start(&mut self, name: &str) -> Result<(), DemoError> {
        let socket = self.workspace.socket().clone();
        let answer = async { AdminClient::connect(&socket).await?.start(name).await };
        self.ask(&format!("start {name}"), answer).await
    }

    pub(in crate::demo) async fn start_both(&mut self, first: &str, second: &str) -> Result<(), DemoError> {
        let socket = self.workspace.socket().clone();
        let start = async |name| AdminClient::connect(&socket).await?.start(name).await;
        let answer = async { tokio::try_join!(start(first), start(second)) };
        self.ask(&format!("start {first} and {second}"), answer).await.map(drop)
    }

    pub(in crate::demo) async fn stop(&mut self, allocation: &str) -> Result<(), DemoError> {
        let socket = self.workspace.socket().clone();
        let answer = async { AdminClient::connect(&socket).await?.stop(allocation, false).await };
        self.ask(&format!("stop {allocation}"), answer).await.map(drop)
    }

    /// Replaces an allocation as `callboard replace` does, and waits until the old one has ended.
    pub(in crate::demo) async fn replace(&mut self, name: &str, with: &str) -> Result<(), DemoError> {
        let socket = self.workspace.socket().clone();
        let answer = async {
            AdminClient::connect(&socket).await?.replace(name, with, HEALTHY_FOR, super::TIMEOUT).await
        };
        self.ask(&format!("replace {name} with {with}"), answer).await.map(drop)
    }

    /// Requests a stop that will not end while this host runs, and does not wait for it.
    pub(in crate::demo) fn begin_stop(&mut self, name: &'static str) -> Result<(), DemoError> {
        let socket = self.workspace.socket().clone();
        self.you("agent", &format!("stop {name}"))?;
        // It gets no answer: the host is killed first.
        tokio::spawn(async move { AdminClient::connect(&socket).await?.stop(name, false).await });
        Ok(())
    }

    /// Sends a request to the agent, and prints the timeline meanwhile.
    async fn ask<T>(
        &mut self,
        what: &str,
        answer: impl Future<Output = Result<T, AdminError>>,
    ) -> Result<T, DemoError> {
        self.you("agent", what)?;
        let mut answer = std::pin::pin!(answer);
        loop {
            let answered = tokio::select! {
                biased;
                answered = &mut answer => answered,
                next = self.next() => {
                    next?;
                    continue;
                }
            };
            return match answered {
                Ok(answer) => Ok(answer),
                Err(error) => Err(self.broken(what, error).await),
            };
        }
    }

    /// Shuts the host down like `callboard shutdown`, waits for its end, and returns its report.
    pub(in crate::demo) async fn shut_down(&mut self) -> Result<Vec<ChildEnding>, DemoError> {
        self.you("host", "shut down")?;
        let socket = self.workspace.socket().clone();
        let answer = async { AdminClient::connect(&socket).await?.shutdown(false).await };
        let report = self.until_ended(answer).await?;
        self.wire = None;
        report.map_err(asked("shut the host down"))
    }

    /// Prints the timeline until the shutdown is complete.
    async fn until_ended<T>(&mut self, work: impl Future<Output = T>) -> Result<T, DemoError> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                result = &mut work => {
                    self.release()?;
                    return Ok(result);
                }
                line = self.next_line() => match line? {
                    Some(said) => self.heard(said)?,
                    None => {
                        self.release()?;
                        return Ok(work.await);
                    }
                },
            }
        }
    }

    async fn next_line(&mut self) -> Result<Option<Said>, DemoError> {
        let wire = self.wire.as_mut().ok_or(DemoError::NoHost)?;
        // A broken stream means that the host has ended.
        Ok(wire.timeline.next().await.unwrap_or_default())
    }
}
