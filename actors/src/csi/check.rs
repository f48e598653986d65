//! The limits and formats of the specification, checked on answers with some leeway (C005, C011, C026, C030, C147).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::rules::{fault, is_domain, malformed};
use crate::rpc::{Fault, Problem};

pub(super) use super::rules::{NODE_ID_BYTES_MAX, STRING_BYTES_MAX, filled, length, topology};

/// The length limit of a plugin's name (C030).
const PROVIDER_BYTES_MAX: usize = 63;
/// The most unknown capabilities that a remark names.
const UNKNOWN_SHOWN_MAX: usize = 8;

/// Checks the size of a map and sorts it (C005).
pub(super) fn map(
    field: &'static str,
    entries: HashMap<String, String>,
) -> Result<BTreeMap<String, String>, Fault> {
    let entries = entries.into_iter().collect();
    super::rules::map(field, &entries)?;
    Ok(entries)
}

/// Whether harmless deviations are refused, and remarks about accepted ones.
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
            "a {kind} capability of the plugin is unknown to this version and left out: {shown}{more}"
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

#[cfg(test)]
mod tests {
    use super::super::rules::MAP_BYTES_MAX;
    use super::*;

    fn named(name: &str) -> Result<Vec<String>, Fault> {
        let mut leeway = Leeway::default();
        provider(name, &mut leeway).map(|()| leeway.remarks)
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
            assert!(remark.ends_with("'-' and '.'; it is taken as it is"), "{remark}");
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
        assert!(remark.ends_with("left out: 100, 101, 102, 103, 104, 105, 106, 107 and more"), "{remark}");
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
        assert_eq!(
            (fault.rule, &*fault.to_string()),
            ("C005", "manifest has 4097 bytes, at most 4096 are allowed")
        );
    }
}
