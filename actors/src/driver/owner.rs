//! The requests of a driver to the owner of the processes.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use super::{Reached, Trouble, TroubleKind};
use crate::goplugin::Listener;
use crate::process::{LaunchError, Launched, ProcessName, ProcessSpec, ProcessTag, prove_listener};
use crate::processes::{AwaitEnd, LaunchProcess, NoSuchProcess, Processes, RecallProcess, StopProcess};
use crate::shell::{Address, AskError};

/// The result of a request to the owner of the processes.
pub type Ordered = LocalBoxFuture<'static, Result<Reached, Trouble>>;

/// The owner of the processes, as a driver uses it.
pub trait ProcessOwner: 'static {
    /// Determines the fate of the process of this name: [`Reached::Recalled`].
    fn recall(&self, name: ProcessName) -> Ordered;

    /// Launches a process: [`Reached::Launched`]. A trouble of the kind [`TroubleKind::Refused`] is final for this program.
    fn launch(&self, name: ProcessName, spec: Arc<ProcessSpec>) -> Ordered;

    /// Ends a process: [`Reached::Ended`], or [`Reached::Done`] when there was none.
    fn stop(&self, order: StopProcess) -> Ordered;

    /// Waits for the end of a process: [`Reached::Ended`].
    fn await_end(&self, name: ProcessName, tag: ProcessTag) -> Ordered;

    /// Proves that the listener is this process or a descendant of it.
    ///
    /// # Errors
    /// Names the actual listener and the remedy.
    fn prove(&self, launched: Launched, listener: Listener) -> LocalBoxFuture<'static, Result<(), String>>;
}

impl ProcessOwner for Address<Processes> {
    fn recall(&self, name: ProcessName) -> Ordered {
        let answer = self.ask(RecallProcess { name });
        Box::pin(async move {
            match answer.await {
                Ok(Ok(recalled)) => Ok(Reached::Recalled(recalled)),
                Ok(Err(error)) => Err(trouble(error.to_string())),
                Err(error) => Err(not_asked(&error)),
            }
        })
    }

    fn launch(&self, name: ProcessName, spec: Arc<ProcessSpec>) -> Ordered {
        let answer = self.ask(LaunchProcess { name, spec });
        Box::pin(async move {
            match answer.await {
                Ok(Ok(launched)) => Ok(Reached::Launched(launched)),
                // The error may differ at the next start, as with a wrapper.
                Ok(Err(error @ LaunchError::System { .. })) => Err(not_begun(error.to_string())),
                Ok(Err(error)) if error.is_transient() || matches!(error, LaunchError::Handshake { .. }) => {
                    Err(trouble(error.to_string()))
                }
                Ok(Err(error)) => Err(Trouble { kind: TroubleKind::Refused, what: error.to_string() }),
                Err(error @ (AskError::Busy { .. } | AskError::NotDurable { is_begun: false, .. })) => {
                    Err(not_begun(error.to_string()))
                }
                Err(error) => Err(not_asked(&error)),
            }
        })
    }

    fn stop(&self, order: StopProcess) -> Ordered {
        let answer = self.ask(order);
        Box::pin(async move {
            match answer.await {
                Ok(Ok(ending)) => Ok(Reached::Ended(ending.to_string())),
                Ok(Err(NoSuchProcess::Unknown { .. })) => Ok(Reached::Done),
                Ok(Err(error @ NoSuchProcess::TooMany { .. })) => Err(trouble(error.to_string())),
                Err(error) => Err(not_asked(&error)),
            }
        })
    }

    fn prove(&self, launched: Launched, listener: Listener) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(prove_listener(launched, listener))
    }

    fn await_end(&self, name: ProcessName, tag: ProcessTag) -> Ordered {
        let answer = self.ask(AwaitEnd { name, tag });
        Box::pin(async move {
            match answer.await {
                Ok(Ok(ending)) => Ok(Reached::Ended(ending.to_string())),
                Ok(Err(NoSuchProcess::Unknown { .. })) => {
                    Ok(Reached::Ended("it is gone, and it is unknown how it ended".to_owned()))
                }
                Ok(Err(error @ NoSuchProcess::TooMany { .. })) => Err(trouble(error.to_string())),
                Err(error) => Err(not_asked(&error)),
            }
        })
    }
}

const fn trouble(what: String) -> Trouble {
    Trouble { kind: TroubleKind::Answered, what }
}

const fn not_begun(what: String) -> Trouble {
    Trouble { kind: TroubleKind::NotBegun, what }
}

fn not_asked(error: &AskError) -> Trouble {
    trouble(error.to_string())
}
