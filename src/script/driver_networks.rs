//! The simulated networks of a scripted driver.

use std::collections::BTreeMap;

use callboard_proto::drivers as wire;
use tonic::Status;
use wire::network_isolation_spec::NetworkIsolationMode;

/// The networks of a driver, by allocation. They outlive its process.
#[derive(Default)]
pub(super) struct Networks {
    made: BTreeMap<String, wire::NetworkIsolationSpec>,
    count: u8,
}

impl Networks {
    /// Creates a network, unless it exists.
    pub(super) fn create(&mut self, request: wire::CreateNetworkRequest) -> wire::CreateNetworkResponse {
        let wire::CreateNetworkRequest { alloc_id, hostname } = request;
        if let Some(made) = self.made.get(&alloc_id) {
            return wire::CreateNetworkResponse { isolation_spec: Some(made.clone()), created: false };
        }
        self.count = self.count.wrapping_add(1);
        let address = format!("10.0.0.{}", self.count);
        let hosts_config =
            Some(wire::HostsConfig { hostname, address }).filter(|hosts| !hosts.hostname.is_empty());
        let network = wire::NetworkIsolationSpec {
            mode: NetworkIsolationMode::Group.into(),
            path: format!("/run/netns/{alloc_id}"),
            hosts_config,
            ..Default::default()
        };
        self.made.insert(alloc_id, network.clone());
        wire::CreateNetworkResponse { isolation_spec: Some(network), created: true }
    }

    /// Removes a network.
    pub(super) fn destroy(&mut self, allocation: &str) -> Result<(), Status> {
        let removed = self.made.remove(allocation);
        removed.map(drop).ok_or_else(|| Status::not_found(format!("no network of {allocation}")))
    }
}
