//! Lists of volumes, and free capacity.

use std::collections::BTreeMap;

use super::call::Call;
use super::request::Request;
use super::rules::{self, fault, inconsistent};
use super::secrets::Secrets;
use super::volume::{Volume, VolumeCapability, VolumeStatus, supported, withheld};
use crate::rpc::{Fault, Problem};
use crate::vocabulary::{CsiFingerprint, PluginCapability, Topology};

/// A page of a list. Pages are not a consistent view: duplicates and gaps are possible (C092).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListVolumesRequest {
    /// The most entries of a page; zero for no limit (C091).
    pub max_entries: u32,
    /// The `next_token` of the page before; empty for the first. After `ABORTED`, begin with an empty token (C093).
    pub starting_token: String,
}

/// A volume of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ListVolumesEntry {
    /// The volume.
    pub volume: Volume,
    /// Where it is published, and its condition; `None` if the plugin does not report it.
    pub status: Option<VolumeStatus>,
}

/// The answer to a [`ListVolumesRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ListVolumesResponse {
    /// The volumes of this page.
    pub entries: Vec<ListVolumesEntry>,
    /// The token of the next page; empty after the last.
    pub next_token: String,
}

/// Checks a page: at most so many entries (C091), and a next token other than its own.
pub(super) fn check_page(
    max_entries: u32,
    starting_token: &str,
    entries: usize,
    next_token: &str,
) -> Result<(), Fault> {
    let limit = usize::try_from(max_entries).unwrap_or(usize::MAX);
    if limit > 0 && entries > limit {
        let (value, limit) = (u64::try_from(entries).unwrap_or(u64::MAX), max_entries.into());
        return Err(fault("C091", "number of entries", Problem::TooLarge { value, limit }));
    }
    rules::plugin_text("next_token", next_token)?;
    match !next_token.is_empty() && next_token == starting_token {
        true => Err(inconsistent("C092", "next_token", "is the token of this page, so the list never ends")),
        false => Ok(()),
    }
}

impl Request for ListVolumesRequest {
    type Answer = ListVolumesResponse;
    const CALL: Call = Call::ListVolumes;

    fn check(&self) -> Result<(), Fault> {
        rules::entries_max("C091", "max_entries", self.max_entries)?;
        rules::plugin_text("starting_token", &self.starting_token)
    }

    fn check_answer(&self, answer: &ListVolumesResponse) -> Result<(), Fault> {
        check_page(self.max_entries, &self.starting_token, answer.entries.len(), &answer.next_token)?;
        answer.entries.iter().try_for_each(|entry| {
            entry.volume.check()?;
            entry.status.as_ref().map_or(Ok(()), VolumeStatus::check)
        })
    }
}

/// Asks for the free capacity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetCapacityRequest {
    /// For volumes that can be used in these ways; empty for any.
    pub volume_capabilities: Vec<VolumeCapability>,
    /// For volumes with these parameters.
    pub parameters: BTreeMap<String, String>,
    /// For volumes that are accessible from this place. Needs the topology capability (C097).
    pub accessible_topology: Option<Topology>,
}

/// The answer to a [`GetCapacityRequest`], in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct GetCapacityResponse {
    /// The free capacity.
    pub available_capacity: u64,
    /// The largest volume that may be requested; `None` if the plugin does not report it (C098).
    pub maximum_volume_size: Option<u64>,
    /// The smallest volume that may be requested; `None` if the plugin does not report it; alpha (C098).
    pub minimum_volume_size: Option<u64>,
}

impl Request for GetCapacityRequest {
    type Answer = GetCapacityResponse;
    const CALL: Call = Call::GetCapacity;

    fn withheld(&self) -> Vec<&str> {
        withheld(const { &Secrets::none() }, &self.volume_capabilities)
    }

    fn check(&self) -> Result<(), Fault> {
        self.volume_capabilities.iter().try_for_each(VolumeCapability::check)?;
        rules::map("parameters", &self.parameters)?;
        self.accessible_topology.as_ref().map_or(Ok(()), rules::topology)
    }

    fn check_capabilities(&self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        let needed = PluginCapability::VolumeAccessibilityConstraints.as_str();
        let is_supported = self.accessible_topology.is_none() || plugin.requires_topology();
        supported("C097", "accessible_topology", needed, is_supported)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{fingerprint, map};
    use super::*;

    fn page(entries: usize, next_token: &str) -> ListVolumesResponse {
        let volume = Volume { volume_id: "v".to_owned(), ..Volume::default() };
        let entry = ListVolumesEntry { volume, status: None };
        ListVolumesResponse { entries: vec![entry; entries], next_token: next_token.to_owned() }
    }

    #[test]
    fn a_page_is_no_longer_than_asked_for_and_leads_on_c091_c092() {
        let request = ListVolumesRequest { max_entries: 2, starting_token: "2".to_owned() };
        assert_eq!(request.check_answer(&page(2, "4")), Ok(()));
        let fault = request.check_answer(&page(3, "")).expect_err("too long");
        assert_eq!(
            (fault.rule, &*fault.to_string()),
            ("C091", "number of entries is 3, at most 2 is allowed")
        );
        let fault = request.check_answer(&page(2, "2")).expect_err("the same page again");
        assert_eq!(fault.rule, "C092");
        assert_eq!(ListVolumesRequest::default().check_answer(&page(300, "")), Ok(()));
        let long = "t".repeat(rules::PLUGIN_TEXT_BYTES_MAX);
        assert_eq!(request.check_answer(&page(1, &long)), Ok(()));
        assert_eq!(request.check_answer(&page(1, &(long + "t"))).expect_err("too long").rule, "C004");
    }

    #[test]
    fn every_entry_is_checked_and_unknown_nodes_are_no_fault_c011_c094() {
        let mut answer = page(1, "");
        let status = |id: String| Some(VolumeStatus { published_node_ids: vec![id], volume_condition: None });
        answer.entries[0].status = status("a-node-of-another-cluster".to_owned());
        assert_eq!(ListVolumesRequest::default().check_answer(&answer), Ok(()));
        answer.entries[0].status = status("n".repeat(257));
        assert_eq!(ListVolumesRequest::default().check_answer(&answer).expect_err("too long").rule, "C006");
        answer.entries[0].volume.volume_id.clear();
        assert_eq!(ListVolumesRequest::default().check_answer(&answer).expect_err("no id").rule, "C004");
    }

    #[test]
    fn capacity_is_asked_by_place_only_of_a_plugin_with_topology_c097() {
        let topology = Some(map(&[("zone", "a")]));
        let request = GetCapacityRequest { accessible_topology: topology, ..GetCapacityRequest::default() };
        assert_eq!(request.validate(&fingerprint()), Ok(()));
        let mut plain = fingerprint();
        plain.plugin = vec![PluginCapability::ControllerService];
        assert_eq!(request.validate(&plain).expect_err("no topology").fault.rule, "C097");
        assert_eq!(GetCapacityRequest::default().validate(&plain), Ok(()));
    }
}
