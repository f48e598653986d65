//! The one call that a machine waits for.

use std::time::Duration;

use super::machine::CallKey;
use crate::vocabulary::{Attempt, Generation};

/// How much longer the shell waits for a call to a plugin than the call itself does, so that the error is the call's own.
pub const CALL_GRACE: Duration = Duration::from_secs(2);

/// The one call that a machine waits for. Another one takes its place, and what the former comes back with is stale (REG-08).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OneCall {
    attempt: Attempt,
    awaited: Option<CallKey>,
}

impl OneCall {
    /// Waits for another call, made for this generation. Gives its key, which no call before it had.
    pub fn begin(&mut self, generation: Generation) -> CallKey {
        self.attempt = self.attempt.next();
        let key = CallKey { generation, attempt: self.attempt };
        self.awaited = Some(key);
        key
    }

    /// A call with this key came back. False if it is stale: another one is waited for, or none.
    pub fn came_back(&mut self, key: CallKey) -> bool {
        self.awaited.take_if(|awaited| *awaited == key).is_some()
    }

    /// Waits for no call any more.
    pub const fn forget(&mut self) {
        self.awaited = None;
    }

    /// Whether a call is waited for.
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
