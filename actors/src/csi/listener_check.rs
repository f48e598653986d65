//! Whether the listener at the socket of an allocation may be talked to.

use std::fmt;
use std::sync::Arc;

use crate::rpc::Listener;
use crate::vocabulary::AllocationId;

type Check = dyn Fn(&AllocationId, &Listener) -> Result<(), String> + Send + Sync;

/// Checks the listener at the socket of an allocation before anything is sent to it. By default anybody may listen.
#[derive(Clone, Default)]
pub struct ListenerCheck(Option<Arc<Check>>);

impl ListenerCheck {
    /// A check whose error names the listener and who was expected.
    #[must_use]
    pub fn new(
        check: impl Fn(&AllocationId, &Listener) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Checks a listener.
    ///
    /// # Errors
    /// When somebody else listens; says who.
    pub fn check(&self, allocation: &AllocationId, listener: &Listener) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |check| check(allocation, listener))
    }
}

impl fmt::Debug for ListenerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerCheck").finish_non_exhaustive()
    }
}
