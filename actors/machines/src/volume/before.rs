//! Decides whether a step may be set up over a mount at its path.

use std::path::Path;

use super::outcome::{Failure, Known};
use crate::mounts::Made;

/// The state of a step in the ledger before its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Before {
    /// It is down for certain.
    Down,
    /// It may be up.
    Unknown,
}

impl Before {
    /// Whether the call may be made, by what was found at its path when its directories were made.
    ///
    /// # Errors
    /// The step is down, and something is mounted there: that would be taken for the volume (V7), and undone with it. It belongs to another
    /// user, or was left when something was forced (V14).
    pub fn admit(self, path: &Path, made: Made) -> Result<(), Failure> {
        if (self, made) != (Self::Down, Made::Mounted) {
            return Ok(());
        }
        let path = path.display();
        let reason = format!(
            "the mount at {path} belongs to no claim of this volume and is not touched: see what it is (findmnt {path}) and \
            unmount it, then this goes on"
        );
        Err(Failure { known: Known::NotNow, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_that_is_down_for_certain_is_refused_where_something_is_mounted_v7_v14() {
        let admits = |before: Before, made| before.admit(Path::new("/t"), made).is_ok();
        for made in [Made::New, Made::AlreadyThere, Made::Mounted] {
            assert!(admits(Before::Unknown, made), "it may be its own mount: {made:?}");
            assert_eq!(admits(Before::Down, made), made != Made::Mounted, "{made:?}");
        }
        let refused = Before::Down.admit(Path::new("/t"), Made::Mounted).unwrap_err();
        assert_eq!(refused.known, Known::NotNow, "nothing was changed, and it may succeed later");
    }
}
