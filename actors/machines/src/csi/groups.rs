//! Requests about snapshots of several volumes at once, and their answers.

use std::collections::{BTreeMap, BTreeSet};

use super::call::Call;
use super::request::Request;
use super::rules::{self, inconsistent};
use super::secrets::Secrets;
use super::snapshots::Snapshot;
use super::volume::{check_secrets, withheld};
use crate::rpc::Fault;
use crate::vocabulary::Timestamp;

/// Snapshots of several volumes, taken at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeGroupSnapshot {
    /// Its id with the plugin.
    pub group_snapshot_id: String,
    /// Its snapshots; at least one.
    pub snapshots: Vec<Snapshot>,
    /// When it was taken; `None` if the plugin does not report it.
    pub creation_time: Option<Timestamp>,
    /// Whether all of them can be used. If not, repeat the call that created it until they can (C107).
    pub ready_to_use: bool,
}

impl VolumeGroupSnapshot {
    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("group_snapshot_id", &self.group_snapshot_id)?;
        rules::some("C009", "snapshots", self.snapshots.len())?;
        self.snapshots.iter().try_for_each(|snapshot| {
            snapshot.check()?;
            match snapshot.group_snapshot_id == self.group_snapshot_id {
                true => Ok(()),
                false => {
                    Err(inconsistent("C103", "group_snapshot_id", "of a snapshot is not that of its group"))
                }
            }
        })
    }
}

/// Checks a required list of ids: at least one, no duplicates.
fn check_ids(field: &'static str, ids: &[String]) -> Result<(), Fault> {
    rules::some("C009", field, ids.len())?;
    ids.iter().try_for_each(|id| rules::plugin_id(field, id))?;
    match ids.iter().collect::<BTreeSet<_>>().len() == ids.len() {
        true => Ok(()),
        false => Err(inconsistent("C009", field, "has an id twice")),
    }
}

/// Checks the common fields of every call on a group (C106): the group, all of its snapshots, and secrets.
fn check_group(group_snapshot_id: &str, snapshot_ids: &[String], secrets: &Secrets) -> Result<(), Fault> {
    rules::plugin_id("group_snapshot_id", group_snapshot_id)?;
    check_ids("snapshot_ids", snapshot_ids)?;
    check_secrets(secrets)
}

/// Creates snapshots of several volumes at once. Answered with a [`VolumeGroupSnapshot`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateVolumeGroupSnapshotRequest {
    /// Chosen by the host, the same for every retry (C050).
    pub name: String,
    /// The volumes.
    pub source_volume_ids: Vec<String>,
    /// Secrets for this call; the same for every call on the group (C106).
    pub secrets: Secrets,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
}

impl Request for CreateVolumeGroupSnapshotRequest {
    type Answer = VolumeGroupSnapshot;
    const CALL: Call = Call::CreateVolumeGroupSnapshot;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::given_name("name", &self.name)?;
        check_ids("source_volume_ids", &self.source_volume_ids)?;
        check_secrets(&self.secrets)?;
        rules::map("parameters", &self.parameters)
    }

    fn check_answer(&self, group: &VolumeGroupSnapshot) -> Result<(), Fault> {
        group.check()
    }
}

/// Deletes all snapshots of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteVolumeGroupSnapshotRequest {
    /// The group.
    pub group_snapshot_id: String,
    /// All of its snapshots (C106, C108).
    pub snapshot_ids: Vec<String>,
    /// Secrets for this call (C106).
    pub secrets: Secrets,
}

impl Request for DeleteVolumeGroupSnapshotRequest {
    type Answer = ();
    const CALL: Call = Call::DeleteVolumeGroupSnapshot;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        check_group(&self.group_snapshot_id, &self.snapshot_ids, &self.secrets)
    }
}

/// Describes a group. Answered with a [`VolumeGroupSnapshot`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetVolumeGroupSnapshotRequest {
    /// The group.
    pub group_snapshot_id: String,
    /// All of its snapshots (C106, C108).
    pub snapshot_ids: Vec<String>,
    /// Secrets for this call (C106).
    pub secrets: Secrets,
}

impl Request for GetVolumeGroupSnapshotRequest {
    type Answer = VolumeGroupSnapshot;
    const CALL: Call = Call::GetVolumeGroupSnapshot;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        check_group(&self.group_snapshot_id, &self.snapshot_ids, &self.secrets)
    }

    fn check_answer(&self, group: &VolumeGroupSnapshot) -> Result<(), Fault> {
        group.check()?;
        match group.group_snapshot_id == self.group_snapshot_id {
            true => Ok(()),
            false => Err(inconsistent("C059", "group_snapshot_id", "is not the one that was asked for")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::fingerprint;
    use super::*;
    use crate::vocabulary::PluginCapability;

    fn group(id: &str, of_snapshot: &str) -> VolumeGroupSnapshot {
        let snapshot = Snapshot {
            snapshot_id: "s".to_owned(),
            source_volume_id: "v".to_owned(),
            group_snapshot_id: of_snapshot.to_owned(),
            ..Snapshot::default()
        };
        let snapshots = vec![snapshot];
        VolumeGroupSnapshot { group_snapshot_id: id.to_owned(), snapshots, ..VolumeGroupSnapshot::default() }
    }

    #[test]
    fn a_group_names_its_volumes_once_each_c009_c034() {
        let request = |ids: &[&str]| CreateVolumeGroupSnapshotRequest {
            name: "nightly".to_owned(),
            source_volume_ids: ids.iter().map(|&id| id.to_owned()).collect(),
            ..CreateVolumeGroupSnapshotRequest::default()
        };
        assert_eq!(request(&["a", "b"]).validate(&fingerprint()), Ok(()));
        for (ids, rule) in [(&[][..], "C009"), (&["a", "a"][..], "C009"), (&[""][..], "C004")] {
            assert_eq!(request(ids).check().expect_err("malformed").rule, rule, "{ids:?}");
        }
        let mut plain = fingerprint();
        plain.plugin = vec![PluginCapability::ControllerService];
        assert_eq!(request(&["a"]).validate(&plain).expect_err("no group service").fault.rule, "C034");
    }

    #[test]
    fn calls_on_a_group_name_its_snapshots_c106() {
        let delete = |ids: &[&str]| DeleteVolumeGroupSnapshotRequest {
            group_snapshot_id: "g".to_owned(),
            snapshot_ids: ids.iter().map(|&id| id.to_owned()).collect(),
            secrets: Secrets::none(),
        };
        let get = |ids: &[&str]| {
            let DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets } = delete(ids);
            GetVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets }
        };
        assert_eq!(delete(&["a", "b"]).validate(&fingerprint()), Ok(()));
        assert_eq!(get(&["a", "b"]).validate(&fingerprint()), Ok(()));
        for (ids, rule) in [(&[][..], "C009"), (&["a", "a"][..], "C009"), (&[""][..], "C004")] {
            assert_eq!(delete(ids).check().expect_err("malformed").rule, rule, "{ids:?}");
            assert_eq!(get(ids).check().expect_err("malformed").rule, rule, "{ids:?}");
        }
    }

    #[test]
    fn every_snapshot_of_an_answer_belongs_to_its_group_c103_c059() {
        let request = GetVolumeGroupSnapshotRequest {
            group_snapshot_id: "g".to_owned(),
            snapshot_ids: vec!["s".to_owned()],
            secrets: Secrets::none(),
        };
        assert_eq!(request.validate(&fingerprint()), Ok(()));
        assert_eq!(request.check_answer(&group("g", "g")), Ok(()));
        assert_eq!(request.check_answer(&group("g", "")).expect_err("of no group").rule, "C103");
        assert_eq!(request.check_answer(&group("h", "h")).expect_err("another").rule, "C059");
        let empty = VolumeGroupSnapshot { snapshots: Vec::new(), ..group("g", "g") };
        assert_eq!(request.check_answer(&empty).expect_err("no snapshot").rule, "C009");
    }
}
