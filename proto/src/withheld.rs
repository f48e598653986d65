//! Stands in debug output for what must not be shown.

use std::fmt;

/// Shows how many entries or bytes a secret field has, and nothing of what is in them (C025).
///
/// The build writes the debug output of every message with such a field, and uses this for it.
pub(crate) struct Withheld(pub(crate) usize);

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} withheld>", self.0)
    }
}
