//! Compares the answers of a plugin with its earlier ones (C031, C032).

use std::fmt::Display;

use crate::rpc::{Fault, Problem};
use crate::vocabulary::text::quoted;
use crate::vocabulary::{CsiFingerprint, Identity};

/// Checks that a plugin's own name is unchanged (C031). Another name means another plugin on the same socket, with other
/// volumes.
///
/// # Errors
/// [`Problem::Changed`] under rule C031.
pub fn check_same_provider(before: &Identity, now: &Identity) -> Result<(), Fault> {
    unchanged("C031", "name", &before.provider, &now.provider)
}

/// Checks that instances of one plugin are compatible: the same name (C031), and per version the same capabilities (C032).
///
/// # Errors
/// [`Problem::Changed`] under the rule that is broken.
pub fn check_same_plugin(before: &CsiFingerprint, now: &CsiFingerprint) -> Result<(), Fault> {
    check_same_provider(&before.identity, &now.identity)?;
    if before.identity.version != now.identity.version {
        return Ok(());
    }
    unchanged("C032", "plugin capabilities", &listed(&before.plugin), &listed(&now.plugin))?;
    unchanged("C032", "volume expansion", &listed(&before.expansion), &listed(&now.expansion))
}

fn unchanged(rule: &'static str, field: &'static str, before: &str, now: &str) -> Result<(), Fault> {
    if before == now {
        return Ok(());
    }
    Err(Fault { rule, field, problem: Problem::Changed { before: quoted(before), now: quoted(now) } })
}

fn listed(items: &[impl Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::vocabulary::PluginCapability;

    fn fingerprint(name: &str, version: &str, plugin: &[PluginCapability]) -> CsiFingerprint {
        CsiFingerprint {
            identity: Identity { provider: name.into(), version: version.into(), manifest: BTreeMap::new() },
            plugin: plugin.to_vec(),
            expansion: Vec::new(),
            controller: None,
            group_controller: None,
            node: None,
            node_info: None,
        }
    }

    #[test]
    fn a_plugin_that_changes_its_name_is_at_fault_c031() {
        let before = fingerprint("a.example", "1", &[]);
        let fault = check_same_plugin(&before, &fingerprint("b.example", "2", &[])).expect_err("renamed");
        assert_eq!(
            (fault.rule, &*fault.to_string()),
            ("C031", "name was \"a.example\" and is now \"b.example\"")
        );
    }

    #[test]
    fn equal_versions_have_equal_capabilities_and_another_version_may_differ_c032() {
        let before = fingerprint("a.example", "1", &[]);
        let grown = [PluginCapability::ControllerService];
        let fault = check_same_plugin(&before, &fingerprint("a.example", "1", &grown)).expect_err("differs");
        assert_eq!(fault.rule, "C032");
        assert_eq!(check_same_plugin(&before, &fingerprint("a.example", "2", &grown)), Ok(()));
    }
}
