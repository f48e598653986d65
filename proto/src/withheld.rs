//! Replaces secret content in debug output.

use std::fmt;

/// Shows the number of entries or bytes of a secret field, and nothing of its content (C025).
///
/// The build writes the debug output of every message with such a field, and uses this for it.
pub(crate) struct Withheld(pub(crate) usize);

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} withheld>", self.0)
    }
}
