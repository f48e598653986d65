//! The limits and formats of the specification, checked on answers (C004 to C006, C011, C030, C055).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::rpc::{Fault, Problem};
use crate::vocabulary::text::quoted;

/// The size limit of a string field without a limit of its own, in bytes (C004).
pub(super) const STRING_BYTES_MAX: usize = 128;
/// The size limit of a map, keys and values together, in bytes (C005).
pub(super) const MAP_BYTES_MAX: usize = 4 * 1024;
/// The size limit of a node id, in bytes (C006).
pub(super) const NODE_ID_BYTES_MAX: usize = 256;
/// The length limit of a plugin's name (C030).
const PROVIDER_BYTES_MAX: usize = 63;
/// The length limit of each part of a topology key, and of a topology value (C055).
const TOPOLOGY_BYTES_MAX: usize = 63;
const EXCERPT_BYTES_MAX: usize = 64;
/// The most unknown capabilities that a remark names.
const UNKNOWN_SHOWN_MAX: usize = 8;

const fn fault(rule: &'static str, field: &'static str, problem: Problem) -> Fault {
    Fault { rule, field, problem }
}

fn malformed(rule: &'static str, field: &'static str, text: &str, expected: &'static str) -> Fault {
    let excerpt = text.char_indices().take_while(|(at, _)| *at < EXCERPT_BYTES_MAX).map(|(_, c)| c);
    let excerpt = quoted(&excerpt.collect::<String>());
    fault(rule, field, Problem::Malformed { excerpt, expected })
}

pub(super) fn length(rule: &'static str, field: &'static str, text: &str, limit: usize) -> Result<(), Fault> {
    match text.len() {
        bytes if bytes > limit => Err(fault(rule, field, Problem::TooLong { bytes, limit })),
        _ => Ok(()),
    }
}

/// Checks that a text is not empty and within the limit.
pub(super) fn filled(rule: &'static str, field: &'static str, text: &str, limit: usize) -> Result<(), Fault> {
    if text.is_empty() {
        return Err(fault(rule, field, Problem::Empty));
    }
    length(rule, field, text, limit)
}

/// Checks the size of a map and sorts it (C005).
pub(super) fn map(
    field: &'static str,
    entries: HashMap<String, String>,
) -> Result<BTreeMap<String, String>, Fault> {
    let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAP_BYTES_MAX {
        return Err(fault("C005", field, Problem::TooLong { bytes, limit: MAP_BYTES_MAX }));
    }
    Ok(entries.into_iter().collect())
}

/// Whether harmless deviations are refused, and remarks about those that are not.
#[derive(Debug, Default)]
pub(super) struct Leeway {
    pub(super) strict: bool,
    pub(super) remarks: Vec<String>,
}

impl Leeway {
    fn allow(&mut self, deviation: Fault, taken_as: &str) -> Result<(), Fault> {
        if self.strict {
            return Err(deviation);
        }
        self.remarks.push(format!("{deviation}; {taken_as}"));
        Ok(())
    }

    /// Remarks on capabilities that are left out. They break no rule, so they are never refused (C026).
    pub(super) fn unknown(&mut self, kind: &'static str, numbers: &BTreeSet<i32>) {
        if numbers.is_empty() {
            return;
        }
        let shown: Vec<_> = numbers.iter().take(UNKNOWN_SHOWN_MAX).map(i32::to_string).collect();
        let more = if numbers.len() > shown.len() { " and more" } else { "" };
        let shown = shown.join(", ");
        self.remarks.push(format!(
            "a {kind} capability of the plugin is unknown to this version and left out: {shown}{more} (rule C026)"
        ));
    }
}

/// Reads a limit of which 0 means none (C147).
pub(super) fn limit(field: &'static str, value: i64, leeway: &mut Leeway) -> Result<Option<u64>, Fault> {
    let Ok(limit) = u64::try_from(value) else {
        let deviation = fault("C147", field, Problem::Negative { value });
        return leeway.allow(deviation, "it counts as no limit").map(|()| None);
    };
    Ok((limit > 0).then_some(limit))
}

/// Checks a plugin's own name (C030).
pub(super) fn provider(name: &str, leeway: &mut Leeway) -> Result<(), Fault> {
    filled("C030", "name", name, PROVIDER_BYTES_MAX)?;
    if is_domain(name) {
        return Ok(());
    }
    let malformed = malformed("C030", "name", name, "a domain name of letters, digits, '-' and '.'");
    match is_domain(&name.replace('_', "x")) {
        true => leeway.allow(malformed, "it is taken as it is"),
        false => Err(malformed),
    }
}

/// Checks the keys and values of a topology (C055).
pub(super) fn topology(segments: &BTreeMap<String, String>) -> Result<(), Fault> {
    let mut keys = HashSet::new();
    for (key, value) in segments {
        topology_key(key)?;
        filled("C055", "topology value", value, TOPOLOGY_BYTES_MAX)?;
        if !is_label(value) {
            return Err(malformed("C055", "topology value", value, LABEL));
        }
        if !keys.insert(key.to_ascii_lowercase()) {
            return Err(malformed("C055", "topology key", key, "no two keys that differ in case only"));
        }
    }
    Ok(())
}

const LABEL: &str = "letters, digits, '-', '_' and '.', with a letter or digit at both ends";

fn topology_key(key: &str) -> Result<(), Fault> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    filled("C055", "topology key", name, TOPOLOGY_BYTES_MAX)?;
    if !is_label(name) {
        return Err(malformed("C055", "topology key", key, LABEL));
    }
    let Some(prefix) = prefix else { return Ok(()) };
    filled("C055", "prefix of a topology key", prefix, TOPOLOGY_BYTES_MAX)?;
    if is_domain(prefix) {
        return Ok(());
    }
    Err(malformed("C055", "prefix of a topology key", prefix, "a domain name"))
}

/// Whether each part between dots begins and ends with a letter or digit and contains only letters, digits and dashes.
fn is_domain(name: &str) -> bool {
    name.split('.').all(|part| !part.contains('_') && is_label(part))
}

fn is_label(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|byte| byte.is_some_and(|b| b.is_ascii_alphanumeric()))
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<Vec<String>, Fault> {
        let mut leeway = Leeway::default();
        provider(name, &mut leeway).map(|()| leeway.remarks)
    }

    fn topology_of(entries: &[(&str, &str)]) -> Result<(), Fault> {
        topology(&entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn names_of_plugins_in_the_field_are_names_c030() {
        for name in ["hostpath.csi.k8s.io", "org.democratic-csi.nfs", "ebs.csi.aws.com", "A", "3par.example"]
        {
            assert_eq!(named(name), Ok(vec![]), "{name}");
        }
        assert_eq!(named(&"x".repeat(63)), Ok(vec![]));
    }

    #[test]
    fn a_name_with_an_underscore_is_taken_with_a_remark_unless_strict_c030() {
        for name in ["a_b", "_a", "csi_zfs.example_1"] {
            let remarks = named(name).expect("it is harmless");
            let [remark] = &remarks[..] else { panic!("{remarks:?}") };
            assert!(remark.starts_with(&format!("name is \"{name}\", expected a domain name")), "{remark}");
            assert!(remark.ends_with("(rule C030); it is taken as it is"), "{remark}");
            let mut strict = Leeway { strict: true, ..Leeway::default() };
            assert_eq!(provider(name, &mut strict).expect_err(name).rule, "C030");
            assert!(strict.remarks.is_empty());
        }
    }

    #[test]
    fn a_remark_about_unknown_capabilities_is_short_however_many_there_are_c011_c026() {
        let mut leeway = Leeway::default();
        leeway.unknown("node", &BTreeSet::new());
        leeway.unknown("node", &(100..100_000).collect());
        let [remark] = &leeway.remarks[..] else { panic!("{leeway:?}") };
        assert!(
            remark.ends_with("left out: 100, 101, 102, 103, 104, 105, 106, 107 and more (rule C026)"),
            "{remark}"
        );
    }

    #[test]
    fn names_that_are_no_domain_names_are_faults_c030() {
        for name in ["-a", "a-", ".a", "a.", "a..b", "a.-b", "a_.-b", "a b", "a/b", "naïve", "a\nb"] {
            let fault = named(name).expect_err(name);
            assert_eq!(fault.rule, "C030", "{name}");
            assert!(matches!(fault.problem, Problem::Malformed { .. }), "{name}: {fault}");
        }
        assert_eq!(named("").expect_err("empty").problem, Problem::Empty);
        let long = named(&"_".repeat(64)).expect_err("too long");
        assert_eq!(long.problem, Problem::TooLong { bytes: 64, limit: 63 });
    }

    #[test]
    fn a_map_is_measured_as_a_whole_c005() {
        let entry = |bytes: usize| HashMap::from([("key".to_owned(), "v".repeat(bytes - 3))]);
        assert!(map("manifest", entry(MAP_BYTES_MAX)).is_ok());
        let fault = map("manifest", entry(MAP_BYTES_MAX + 1)).expect_err("one byte too many");
        assert_eq!(fault.to_string(), "manifest has 4097 bytes, at most 4096 are allowed (rule C005)");
    }

    #[test]
    fn topologies_of_plugins_in_the_field_are_topologies_c055() {
        let good =
            [("topology.kubernetes.io/zone", "us-east-1a"), ("region", "R_1"), ("com.EXAMPLE/rack", "7")];
        assert_eq!(topology_of(&good), Ok(()));
    }

    #[test]
    fn malformed_topologies_are_faults_c055() {
        let long = "x".repeat(64);
        let bad: [&[(&str, &str)]; 8] = [
            &[("", "a")],
            &[("/zone", "a")],
            &[("a/b/c", "a")],
            &[("zone", "")],
            &[("zone", "-a")],
            &[("zone", "a"), ("Zone", "b")],
            &[(&long, "a")],
            &[("zone", &long)],
        ];
        for entries in bad {
            assert_eq!(topology_of(entries).expect_err("malformed").rule, "C055", "{entries:?}");
        }
    }

    #[test]
    fn a_fault_shows_a_short_excerpt_and_never_the_whole_c011() {
        let fault = malformed("C030", "name", &format!("\n{}", "é".repeat(1 << 20)), "a domain name");
        assert!(fault.to_string().len() < 200, "{fault}");
        let Problem::Malformed { excerpt, .. } = malformed("C030", "name", &"x".repeat(65), "a name").problem
        else {
            panic!("it is malformed");
        };
        assert_eq!(excerpt, quoted(&"x".repeat(64)));
    }
}
