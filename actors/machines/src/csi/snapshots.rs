//! Requests about snapshots, and their answers.

use std::collections::BTreeMap;

use super::call::Call;
use super::listing::check_page;
use super::request::Request;
use super::rules::{self, inconsistent};
use super::secrets::Secrets;
use super::volume::{check_secrets, withheld};
use crate::rpc::Fault;
use crate::vocabulary::Timestamp;

/// A snapshot as its plugin describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Snapshot {
    /// The minimal size of a volume made from it, in bytes; zero if it is unknown (C102).
    pub size_bytes: u64,
    /// Its id with the plugin.
    pub snapshot_id: String,
    /// Its source volume.
    pub source_volume_id: String,
    /// When it was taken; `None` if the plugin does not report it.
    pub creation_time: Option<Timestamp>,
    /// Whether volumes can be made from it. If not, repeat the call that created it until it is (C100).
    pub ready_to_use: bool,
    /// The group that it belongs to; empty for none. A snapshot of a group is never deleted alone (C103).
    pub group_snapshot_id: String,
}

impl Snapshot {
    pub(super) fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("snapshot_id", &self.snapshot_id)?;
        rules::plugin_id("source_volume_id", &self.source_volume_id)?;
        rules::plugin_text("group_snapshot_id", &self.group_snapshot_id)
    }

    /// Checks that it has the requested id.
    fn check_is(&self, snapshot_id: &str) -> Result<(), Fault> {
        self.check()?;
        match self.snapshot_id == snapshot_id {
            true => Ok(()),
            false => Err(inconsistent("C059", "snapshot_id", "is not the one that was asked for")),
        }
    }
}

/// Creates a snapshot. Answered with a [`Snapshot`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateSnapshotRequest {
    /// The volume.
    pub source_volume_id: String,
    /// Chosen by the host, the same for every retry (C050).
    pub name: String,
    /// Secrets for this call.
    pub secrets: Secrets,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
}

impl Request for CreateSnapshotRequest {
    type Answer = Snapshot;
    const CALL: Call = Call::CreateSnapshot;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("source_volume_id", &self.source_volume_id)?;
        rules::given_name("name", &self.name)?;
        check_secrets(&self.secrets)?;
        rules::map("parameters", &self.parameters)
    }

    fn check_answer(&self, snapshot: &Snapshot) -> Result<(), Fault> {
        snapshot.check()
    }
}

/// Deletes a snapshot that does not belong to a group (C103).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteSnapshotRequest {
    /// The snapshot.
    pub snapshot_id: String,
    /// Secrets for this call.
    pub secrets: Secrets,
}

impl Request for DeleteSnapshotRequest {
    type Answer = ();
    const CALL: Call = Call::DeleteSnapshot;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("snapshot_id", &self.snapshot_id)?;
        check_secrets(&self.secrets)
    }
}

/// A page of a list. Pages are not a consistent view: duplicates and gaps are possible (C092).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListSnapshotsRequest {
    /// The most entries of a page; zero for no limit (C091).
    pub max_entries: u32,
    /// The `next_token` of the page before; empty for the first. After `ABORTED`, begin with an empty token (C093).
    pub starting_token: String,
    /// Only snapshots of this volume; empty for all.
    pub source_volume_id: String,
    /// Only this snapshot; empty for all.
    pub snapshot_id: String,
    /// Secrets for this call.
    pub secrets: Secrets,
}

/// The answer to a [`ListSnapshotsRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ListSnapshotsResponse {
    /// The snapshots of this page.
    pub entries: Vec<Snapshot>,
    /// The token of the next page; empty after the last.
    pub next_token: String,
}

impl Request for ListSnapshotsRequest {
    type Answer = ListSnapshotsResponse;
    const CALL: Call = Call::ListSnapshots;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::entries_max("C091", "max_entries", self.max_entries)?;
        rules::plugin_text("starting_token", &self.starting_token)?;
        rules::plugin_text("source_volume_id", &self.source_volume_id)?;
        rules::plugin_text("snapshot_id", &self.snapshot_id)?;
        check_secrets(&self.secrets)
    }

    fn check_answer(&self, answer: &ListSnapshotsResponse) -> Result<(), Fault> {
        check_page(self.max_entries, &self.starting_token, answer.entries.len(), &answer.next_token)?;
        answer.entries.iter().try_for_each(Snapshot::check)
    }
}

/// Describes one snapshot; alpha. Answered with a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetSnapshotRequest {
    /// The snapshot.
    pub snapshot_id: String,
    /// Secrets for this call.
    pub secrets: Secrets,
}

impl Request for GetSnapshotRequest {
    type Answer = Snapshot;
    const CALL: Call = Call::GetSnapshot;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("snapshot_id", &self.snapshot_id)?;
        check_secrets(&self.secrets)
    }

    fn check_answer(&self, snapshot: &Snapshot) -> Result<(), Fault> {
        snapshot.check_is(&self.snapshot_id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::fingerprint;
    use super::*;
    use crate::vocabulary::ControllerCapability;

    fn snapshot(id: &str) -> Snapshot {
        Snapshot { snapshot_id: id.to_owned(), source_volume_id: "v".to_owned(), ..Snapshot::default() }
    }

    #[test]
    fn a_snapshot_is_named_and_has_a_source_c004_c050() {
        let request = |source: &str, name: &str| CreateSnapshotRequest {
            source_volume_id: source.to_owned(),
            name: name.to_owned(),
            ..CreateSnapshotRequest::default()
        };
        assert_eq!(request("v", "nightly").validate(&fingerprint()), Ok(()));
        assert_eq!(request("", "nightly").check().expect_err("no source").rule, "C004");
        assert_eq!(request("v", "a\0").check().expect_err("a control character").rule, "C050");
        let mut plain = fingerprint();
        plain.controller = Some(vec![ControllerCapability::ListSnapshots]);
        assert!(request("v", "nightly").validate(&plain).expect_err("it makes none").is_unsupported());
    }

    #[test]
    fn another_snapshot_than_was_asked_for_is_a_fault_c059() {
        let request = GetSnapshotRequest { snapshot_id: "s".to_owned(), secrets: Secrets::none() };
        assert_eq!(request.check_answer(&snapshot("s")), Ok(()));
        assert_eq!(request.check_answer(&snapshot("t")).expect_err("another").rule, "C059");
        let nameless = request.check_answer(&snapshot("")).expect_err("no id");
        assert_eq!((nameless.rule, &*nameless.to_string()), ("C004", "snapshot_id is empty"));
    }

    #[test]
    fn pages_of_snapshots_are_checked_as_those_of_volumes_c091_c092() {
        let request = ListSnapshotsRequest { max_entries: 1, ..ListSnapshotsRequest::default() };
        let page = |ids: &[&str]| ListSnapshotsResponse {
            entries: ids.iter().map(|id| snapshot(id)).collect(),
            next_token: String::new(),
        };
        assert_eq!(request.check_answer(&page(&["s"])), Ok(()));
        assert_eq!(request.check_answer(&page(&["s", "t"])).expect_err("too long").rule, "C091");
        assert_eq!(request.check_answer(&page(&[""])).expect_err("no id").rule, "C004");
    }
}
