//! Values that never reach a log, an error, a trace, a dump or a disk (C025, V11).

use std::collections::BTreeMap;
use std::fmt;

/// The secrets of one call: keys and values that the host provides for it.
///
/// `Debug` shows their number and neither keys nor values. There is no `Display` and no `Serialize`, so they cannot be
/// stored or printed by accident:
///
/// ```compile_fail
/// fn stored<T: serde::Serialize>(_: &T) {}
/// stored(&callboard_machines::csi::Secrets::none());
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// No secrets.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// These secrets.
    #[must_use]
    pub const fn new(entries: BTreeMap<String, String>) -> Self {
        Self(entries)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their content, for the one place that sends it to a plugin.
    #[must_use]
    pub const fn expose(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} withheld>", self.0.len())
    }
}

/// The mount flags of a volume. They may hold credentials, so they are handled like secrets (C025).
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MountFlags(Vec<String>);

impl MountFlags {
    /// These flags, in their order.
    #[must_use]
    pub const fn new(flags: Vec<String>) -> Self {
        Self(flags)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their content, for a request, or for a record that is protected like secrets.
    #[must_use]
    pub fn expose(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Debug for MountFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} withheld>", self.0.len())
    }
}

/// The placeholder for a removed value.
const WITHHELD: &str = "<withheld>";
/// The shortest secret that is searched in a text, in bytes: shorter secrets are in every text.
const SECRET_BYTES_MIN: usize = 4;

/// Removes from a text of a plugin, for instance an error message, the secrets and mount flags that it was given: plugins repeat
/// them, for example in the command of a mount that failed. Values of less than four bytes are not searched.
#[must_use]
pub fn redacted(text: &str, withheld: &[&str]) -> String {
    let mut withheld: Vec<&str> =
        withheld.iter().copied().filter(|secret| secret.len() >= SECRET_BYTES_MIN).collect();
    // A secret may be a part of another secret.
    withheld.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    withheld.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret, WITHHELD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plugin_repeats_of_its_secrets_is_taken_out_of_its_words_c025_v11() {
        let withheld = ["pass", "password=hunter2", "hunter2", "ro", ""];
        assert_eq!(
            redacted("mount -o ro,password=hunter2 failed: hunter2 is wrong, pass", &withheld),
            "mount -o ro,<withheld> failed: <withheld> is wrong, <withheld>"
        );
        assert_eq!(redacted("no room", &withheld), "no room");
    }

    #[test]
    fn secrets_and_mount_flags_show_their_number_only_c025_v11() {
        let secrets = Secrets::new(BTreeMap::from([("canary-key".to_owned(), "canary".to_owned())]));
        let flags = MountFlags::new(vec!["password=canary".to_owned(), "ro".to_owned()]);
        assert_eq!(format!("{secrets:?} {flags:?} {secrets:#?}"), "<1 withheld> <2 withheld> <1 withheld>");
        assert_eq!((secrets.is_empty(), Secrets::none().is_empty()), (false, true));
        assert_eq!((flags.is_empty(), MountFlags::default().is_empty()), (false, true));
    }
}
