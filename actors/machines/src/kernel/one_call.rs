//! Tracks the one call that a machine waits for.

use std::time::Duration;

use super::machine::CallKey;
use crate::vocabulary::{Attempt, Generation};

/// How much longer the shell waits for a call to a plugin than the call's own deadline, so that the call itself reports the error.
pub const CALL_GRACE: Duration = Duration::from_secs(2);

/// The one call that a machine waits for. A new call replaces it, and the outcome of the former call is stale (REG-08).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OneCall {
    attempt: Attempt,
    awaited: Option<CallKey>,
}

impl OneCall {
    /// Waits for another call, made for this generation. Returns its key, which no earlier call had.
    pub fn begin(&mut self, generation: Generation) -> CallKey {
        self.attempt = self.attempt.next();
        let key = CallKey { generation, attempt: self.attempt };
        self.awaited = Some(key);
        key
    }

    /// A call with this key returned. False if it is stale: another call is awaited, or none.
    pub fn came_back(&mut self, key: CallKey) -> bool {
        self.awaited.take_if(|awaited| *awaited == key).is_some()
    }

    /// Waits for no call.
    pub const fn forget(&mut self) {
        self.awaited = None;
    }

    /// Whether a call is awaited.
    #[must_use]
    pub const fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_of_a_former_call_or_generation_is_stale_and_each_counts_once_reg_08() {
        let mut call = OneCall::default();
        assert!(!call.came_back(CallKey::default()), "none was made");
        let first = call.begin(Generation::new(1));
        let second = call.begin(Generation::new(1));
        assert!(!call.came_back(first), "another one took its place");
        assert!(!call.came_back(CallKey { generation: Generation::new(2), ..second }));
        assert!(call.is_awaited() && call.came_back(second));
        assert!(!call.is_awaited() && !call.came_back(second), "it has come back");
        let third = call.begin(Generation::new(2));
        call.forget();
        assert!(!call.came_back(third), "it is not waited for any more");
    }
}
