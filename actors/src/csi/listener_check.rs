//! Checks whether the host may talk to the listener at the socket of an allocation.

use std::fmt;
use std::sync::Arc;

use crate::rpc::Listener;
use crate::vocabulary::AllocationId;

type Check = dyn Fn(&AllocationId, &Listener) -> Result<(), String> + Send + Sync;
type IsEnding = dyn Fn(&AllocationId) -> bool + Send + Sync;

/// Checks the listener at the socket of an allocation before anything is sent to it. By default any process may listen.
#[derive(Clone, Default)]
pub struct ListenerCheck {
    check: Option<Arc<Check>>,
    is_ending: Option<Arc<IsEnding>>,
}

impl ListenerCheck {
    /// A check whose error names the actual and the expected listener. It may block.
    #[must_use]
    pub fn new(
        check: impl Fn(&AllocationId, &Listener) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { check: Some(Arc::new(check)), is_ending: None }
    }

    /// The same check, which also knows whether the process of an allocation was asked to end.
    #[must_use]
    pub fn with_endings(self, is_ending: impl Fn(&AllocationId) -> bool + Send + Sync + 'static) -> Self {
        Self { is_ending: Some(Arc::new(is_ending)), ..self }
    }

    /// Whether the process of an allocation was asked to end: then its loss is expected.
    #[must_use]
    pub fn is_ending(&self, allocation: &AllocationId) -> bool {
        self.is_ending.as_ref().is_some_and(|is_ending| is_ending(allocation))
    }

    /// Checks a listener, on a thread for blocking work.
    ///
    /// # Errors
    /// When another process listens; names it.
    pub async fn check(&self, allocation: &AllocationId, listener: &Listener) -> Result<(), String> {
        let Some(check) = self.check.clone() else { return Ok(()) };
        let (allocation, listener) = (allocation.clone(), listener.clone());
        let checked = tokio::task::spawn_blocking(move || check(&allocation, &listener)).await;
        checked.unwrap_or_else(|crash| Err(format!("it cannot be found out who listens there: {crash}")))
    }
}

impl fmt::Debug for ListenerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerCheck").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    #[tokio::test]
    async fn a_check_that_takes_long_delays_no_other() {
        let (go_on, awaited) = mpsc::channel();
        let awaited = Mutex::new(awaited);
        let check = ListenerCheck::new(move |allocation, _| {
            awaited.lock().unwrap().recv().unwrap();
            Err(format!("not that of {allocation}"))
        });
        let (allocation, listener) =
            (AllocationId::new("a").unwrap(), Listener::Port(([127, 0, 0, 1], 1).into()));
        let beside = async { go_on.send(()).unwrap() };
        let (checked, ()) = tokio::join!(check.check(&allocation, &listener), beside);
        assert_eq!(checked, Err("not that of a".to_owned()));
        assert_eq!(ListenerCheck::default().check(&allocation, &listener).await, Ok(()));
    }
}
