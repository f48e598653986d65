//! Marks the tokens of pages with their list. A plugin need not notice that a token is of another list, and would answer with wrong
//! entries.

use super::ReadError;
use crate::vocabulary::PluginName;

/// The list of a token: the listed objects, and the filters.
pub(super) struct List<'l> {
    pub(super) plugin: &'l PluginName,
    pub(super) of: &'l [&'l str],
}

impl List<'_> {
    /// The plugin's token from a caller's token; both are empty for the first page.
    pub(super) fn read(&self, token: &str) -> Result<String, ReadError> {
        if token.is_empty() {
            return Ok(String::new());
        }
        let of_plugin = token.strip_prefix(&self.mark());
        of_plugin.map(str::to_owned).ok_or_else(|| ReadError::OtherList {
            plugin: self.plugin.clone(),
            reason: "it is a token of another list, or was changed".to_owned(),
        })
    }

    /// The caller's token from a plugin's token; both are empty after the last page.
    pub(super) fn give(&self, token: &str) -> String {
        if token.is_empty() { String::new() } else { format!("{}{token}", self.mark()) }
    }

    fn mark(&self) -> String {
        let mut digest = crc32fast::Hasher::new();
        for part in [self.plugin.as_str()].iter().chain(self.of) {
            digest.update(&part.len().to_le_bytes());
            digest.update(part.as_bytes());
        }
        format!("{:08x}-", digest.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_by_its_own_list_alone_c092() {
        let [zfs, nfs] = ["zfs", "nfs"].map(|name| PluginName::new(name).unwrap());
        let volumes = List { plugin: &zfs, of: &["volumes"] };
        let given = volumes.give("7");
        assert!(given.ends_with("-7"), "{given}");
        assert_eq!(volumes.read(&given).unwrap(), "7");
        assert_eq!((volumes.give(""), volumes.read("").unwrap()), (String::new(), String::new()));
        for other in [
            List { plugin: &nfs, of: &["volumes"] },
            List { plugin: &zfs, of: &["snapshots", "", ""] },
            List { plugin: &zfs, of: &["volumes", ""] },
        ] {
            let refused = other.read(&given).unwrap_err().to_string();
            assert!(refused.contains("start the list again without a token"), "{refused}");
        }
        let [one, two] = [&["snapshots", "v", ""], &["snapshots", "", "v"]];
        let token = List { plugin: &zfs, of: one }.give("7");
        assert!(List { plugin: &zfs, of: two }.read(&token).is_err(), "the same texts as other filters");
        assert!(volumes.read("7").is_err(), "it was changed");
    }
}
