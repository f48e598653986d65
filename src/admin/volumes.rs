//! Composes the status rows of volumes. Pure: equal views give equal statuses.
//!
//! The id, context and places of a volume are shown; CSI does not keep them secret. Parameters, mount flags and secrets are not in the view
//! of its owner, so they cannot get here (C025, V11).

use std::cell::LazyCell;
use std::collections::BTreeMap;

use callboard_actors::vocabulary::{AllocationId, PluginName, Topology};
use callboard_actors::volume::{Abandoned, ClaimStatus, Desired, OrderStatus, VolumeKey, VolumeStatus};
use callboard_actors::volumes::{SameVolume, VolumeActor, VolumeReport};
use callboard_proto::admin::v1 as wire;

use super::compose::Views;
use crate::config::{VolumeConfig, VolumeOrigin};

/// Every volume that is known, in use or configured, by namespace and name.
pub(super) fn volumes(views: &Views) -> Vec<wire::VolumeStatus> {
    let reports = &views.volumes.volumes;
    let mut all: BTreeMap<_, _> =
        reports.iter().map(|report| (report.volume.spec.key.clone(), volume(report))).collect();
    // Rarely needed: most configured volumes have been claimed.
    let names = LazyCell::new(|| {
        let specs = reports.iter().map(|report| &report.volume.spec);
        specs.map(|spec| ((&spec.plugin, &spec.volume_id), &spec.key)).collect::<BTreeMap<_, _>>()
    });
    for volume in &views.configured {
        all.entry(volume.key.clone()).or_insert_with(|| {
            let other = volume.volume_id.as_ref().and_then(|id| names.get(&(&volume.plugin, id)));
            volume.status(other.copied())
        });
    }
    all.into_values().collect()
}

/// A volume of the configuration.
#[derive(Debug)]
pub(super) struct ConfiguredVolume {
    key: VolumeKey,
    plugin: PluginName,
    /// Its id with the plugin, unless it is to be created.
    volume_id: Option<String>,
}

impl From<&VolumeConfig> for ConfiguredVolume {
    fn from(volume: &VolumeConfig) -> Self {
        let volume_id = match &volume.origin {
            VolumeOrigin::Registered(known) => Some(known.spec.volume_id.clone()),
            VolumeOrigin::Created(_) => None,
        };
        Self { key: volume.key.clone(), plugin: volume.plugin.clone(), volume_id }
    }
}

impl ConfiguredVolume {
    /// The status while only the configuration has it. Its claims are refused while another name here has its id.
    fn status(&self, other: Option<&VolumeKey>) -> wire::VolumeStatus {
        let same = other.map(|other| SameVolume {
            volume: self.key.clone(),
            other: other.clone(),
            plugin: self.plugin.clone(),
            volume_id: self.volume_id.clone().unwrap_or_default(),
        });
        let doing = if same.is_some() { "it cannot be claimed" } else { "its first claim makes it known" };
        wire::VolumeStatus {
            name: self.key.to_string(),
            plugin: self.plugin.to_string(),
            exists: "configured".to_owned(),
            actor: VolumeActor::Unneeded.as_str().to_owned(),
            doing: doing.to_owned(),
            error: same.map(|same| same.to_string()).unwrap_or_default(),
            ..Default::default()
        }
    }
}

fn volume(report: &VolumeReport) -> wire::VolumeStatus {
    let VolumeReport { volume, is_known, actor, restarts, status } = report;
    let spec = &volume.spec;
    let known = wire::VolumeStatus {
        name: spec.key.to_string(),
        plugin: spec.plugin.to_string(),
        known: *is_known,
        volume_id: spec.volume_id.clone(),
        context: spec.volume_context.clone().into_iter().collect(),
        capacity_bytes: volume.capacity_bytes.unwrap_or_default(),
        topology: topology(&volume.accessible_topology),
        actor: actor.as_str().to_owned(),
        actor_reason: reason(actor).to_owned(),
        restarts: *restarts,
        pending: *actor != VolumeActor::Unneeded,
        ..Default::default()
    };
    match status {
        Some(status) => with_status(known, status),
        None => known,
    }
}

fn with_status(known: wire::VolumeStatus, status: &VolumeStatus) -> wire::VolumeStatus {
    wire::VolumeStatus {
        exists: status.exists.to_string(),
        attach: status.attach.to_owned(),
        stage: status.stage.to_owned(),
        claims: status.claims.iter().map(claim).collect(),
        abandoned: status.abandoned.iter().map(abandoned).collect(),
        orders: status.orders.iter().map(order).collect(),
        doing: status.doing.clone(),
        pending: !status.is_settled(),
        error: status.error.clone().unwrap_or_default(),
        ..known
    }
}

fn abandoned(target: &Abandoned) -> wire::VolumeAbandoned {
    wire::VolumeAbandoned {
        allocation: target.allocation.to_string(),
        path: target.path.display().to_string(),
        released: target.is_released,
    }
}

fn order(order: &OrderStatus) -> wire::VolumeOrder {
    wire::VolumeOrder {
        what: order.what.clone(),
        state: order.state.to_owned(),
        resting: order.is_resting,
        error: order.error.clone().unwrap_or_default(),
    }
}

fn claim(claim: &ClaimStatus) -> wire::VolumeClaim {
    let desired = match claim.desired {
        Desired::Held => "held",
        Desired::Released => "released",
    };
    wire::VolumeClaim {
        allocation: claim.allocation.to_string(),
        desired: desired.to_owned(),
        provisional: claim.is_provisional,
        proven: claim.is_proven,
        publish: claim.publish.to_owned(),
        path: claim.path.display().to_string(),
        error: claim.error.clone().unwrap_or_default(),
        usage: claim.usage.clone(),
    }
}

/// How the actor of a volume ended, if it did so unexpectedly.
fn reason(actor: &VolumeActor) -> &str {
    match actor {
        VolumeActor::Unneeded | VolumeActor::Running | VolumeActor::Stopping => "",
        VolumeActor::Pausing { reason } | VolumeActor::GivenUp { reason } => reason,
    }
}

/// The places from which a volume is accessible.
pub(super) fn topology(places: &[Topology]) -> Vec<wire::VolumeTopology> {
    let place = |place: &Topology| wire::VolumeTopology { segments: place.clone().into_iter().collect() };
    places.iter().map(place).collect()
}

/// The volumes that are not mounted yet for users who have claimed them, or not released yet from users who have ended, in words.
pub(super) fn awaited(views: &Views) -> BTreeMap<&AllocationId, String> {
    let mut awaited = BTreeMap::<_, String>::new();
    for status in views.volumes.volumes.iter().filter_map(|report| report.status.as_deref()) {
        for claim in status.claims.iter().filter(|claim| claim.is_known()) {
            let what = match claim.desired {
                Desired::Held if claim.is_up() => continue,
                Desired::Held => "mounted for it",
                Desired::Released => "released",
            };
            let text = format!("; volume {} is not {what} yet: {}", status.key, status.doing);
            awaited.entry(&claim.allocation).or_default().push_str(&text);
        }
    }
    awaited
}

/// How many volumes of each plugin are in use.
pub(super) fn in_use(views: &Views) -> BTreeMap<PluginName, u32> {
    let mut counts = BTreeMap::new();
    for report in views.volumes.volumes.iter().filter(|report| report.is_on_node()) {
        *counts.entry(report.volume.spec.plugin.clone()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::vocabulary::{VolumeName, VolumeNamespace};
    use callboard_actors::volume::{Exists, VolumeSpec};
    use callboard_actors::volumes::{KnownVolume, VolumesView};

    use super::*;

    fn key(name: &str) -> VolumeKey {
        VolumeKey {
            namespace: VolumeNamespace::new("default").expect("a good name"),
            name: VolumeName::new(name).expect("a good name"),
        }
    }

    fn status(name: &str, claims: Vec<ClaimStatus>) -> VolumeStatus {
        VolumeStatus {
            key: key(name),
            plugin: PluginName::new("zfs").expect("a good name"),
            exists: Exists::Registered,
            created: None,
            deletion_to_allow: None,
            attach: "down",
            stage: "down",
            claims,
            abandoned: vec![],
            orders: vec![],
            expanded_bytes: None,
            doing: "vacant".to_owned(),
            error: None,
        }
    }

    fn report(name: &str, actor: VolumeActor, status: Option<VolumeStatus>) -> VolumeReport {
        let spec = VolumeSpec {
            key: key(name),
            plugin: PluginName::new("zfs").expect("a good name"),
            volume_id: format!("id-{name}"),
            volume_context: [("pool".to_owned(), "tank".to_owned())].into(),
        };
        let zone: Topology = [("zone".to_owned(), "a".to_owned())].into();
        let volume = KnownVolume {
            capacity_bytes: Some(4_096),
            accessible_topology: vec![zone],
            ..KnownVolume::new(Arc::new(spec))
        };
        let status = status.map(Arc::new);
        VolumeReport { volume: Arc::new(volume), is_known: true, actor, restarts: 1, status }
    }

    fn web(publish: &'static str, error: Option<&str>) -> ClaimStatus {
        ClaimStatus {
            allocation: AllocationId::new("web").expect("a good name"),
            usage: "file system, single-node-writer".to_owned(),
            staged_at: None,
            desired: Desired::Released,
            is_provisional: false,
            is_proven: true,
            publish,
            path: "/data/volumes/web".into(),
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn the_volumes_that_a_user_waits_for_are_told_with_what_they_wait_for() {
        let held = |publish| ClaimStatus { desired: Desired::Held, ..web(publish, None) };
        let waiting = |name, publish| VolumeStatus {
            doing: "NodeStageVolume is in flight".to_owned(),
            ..status(name, vec![held(publish)])
        };
        let undoing = VolumeStatus {
            doing: "NodeUnpublishVolume for web is tried again".to_owned(),
            ..status("old", vec![web("up", None)])
        };
        let reports = [waiting("data", "down"), waiting("logs", "up"), undoing];
        let reports = reports.map(|status| report("data", VolumeActor::Running, Some(status)));
        let views = Views { volumes: VolumesView { volumes: reports.into() }, ..Views::default() };
        let awaited = awaited(&views);
        let told = "; volume default/data is not mounted for it yet: NodeStageVolume is in flight; volume default/old is not released yet: \
                    NodeUnpublishVolume for web is tried again";
        assert_eq!(awaited.into_values().collect::<Vec<_>>(), [told]);
    }

    #[test]
    fn a_volume_is_shown_with_what_is_known_of_it_and_what_its_actor_says() {
        let in_use = VolumeStatus {
            attach: "up",
            stage: "unknown-down",
            doing: "unstage is tried again; busy".to_owned(),
            error: Some("busy".to_owned()),
            abandoned: vec![Abandoned {
                path: "/data/volumes/db".into(),
                allocation: AllocationId::new("db").expect("a good name"),
                is_released: true,
            }],
            orders: vec![OrderStatus {
                what: "expand to 20 bytes".to_owned(),
                state: "up-at-controller",
                is_resting: false,
                error: Some("no node".to_owned()),
                snapshot: None,
                group: None,
            }],
            ..status("data", vec![web("going-down", Some("no answer"))])
        };
        let fallen = VolumeActor::Pausing { reason: "it crashed: a drill".to_owned() };
        let views = Views {
            volumes: VolumesView { volumes: vec![report("data", fallen, Some(in_use))] },
            ..Views::default()
        };
        let shown = volumes(&views);
        let expected = wire::VolumeStatus {
            name: "default/data".to_owned(),
            plugin: "zfs".to_owned(),
            exists: "registered".to_owned(),
            known: true,
            volume_id: "id-data".to_owned(),
            context: [("pool".to_owned(), "tank".to_owned())].into(),
            capacity_bytes: 4_096,
            topology: vec![wire::VolumeTopology { segments: [("zone".to_owned(), "a".to_owned())].into() }],
            actor: "pausing".to_owned(),
            actor_reason: "it crashed: a drill".to_owned(),
            restarts: 1,
            attach: "up".to_owned(),
            stage: "unknown-down".to_owned(),
            claims: vec![wire::VolumeClaim {
                allocation: "web".to_owned(),
                desired: "released".to_owned(),
                provisional: false,
                proven: true,
                publish: "going-down".to_owned(),
                path: "/data/volumes/web".to_owned(),
                error: "no answer".to_owned(),
                usage: "file system, single-node-writer".to_owned(),
            }],
            doing: "unstage is tried again; busy".to_owned(),
            error: "busy".to_owned(),
            events: vec![],
            pending: true,
            abandoned: vec![wire::VolumeAbandoned {
                allocation: "db".to_owned(),
                path: "/data/volumes/db".to_owned(),
                released: true,
            }],
            orders: vec![wire::VolumeOrder {
                what: "expand to 20 bytes".to_owned(),
                state: "up-at-controller".to_owned(),
                resting: false,
                error: "no node".to_owned(),
            }],
        };
        assert_eq!(shown, [expected]);
    }

    #[test]
    fn a_volume_that_is_not_what_was_asked_for_is_shown_as_such_without_an_actor_c052() {
        let unfit = VolumeStatus {
            exists: Exists::Unfit,
            doing: "it is not what was asked for: too small".to_owned(),
            ..status("data", vec![])
        };
        let volumes_of = vec![report("data", VolumeActor::Unneeded, Some(unfit))];
        let shown = volumes(&Views { volumes: VolumesView { volumes: volumes_of }, ..Views::default() });
        let told: Vec<_> =
            shown.iter().map(|one| (&*one.exists, &*one.doing, &*one.actor, one.pending)).collect();
        assert_eq!(told, [("unfit", "it is not what was asked for: too small", "unneeded", false)]);
    }

    #[test]
    fn a_volume_that_only_the_configuration_has_is_shown_among_the_others() {
        let views = Views {
            volumes: VolumesView { volumes: vec![report("data", VolumeActor::Unneeded, None)] },
            configured: vec![of_configuration("data", None), of_configuration("cache", None)],
            ..Views::default()
        };
        let shown = volumes(&views);
        let told: Vec<_> =
            shown.iter().map(|one| (&*one.name, &*one.exists, one.known, one.pending)).collect();
        assert_eq!(told, [("default/cache", "configured", false, false), ("default/data", "", true, false)]);
    }

    fn of_configuration(name: &str, volume_id: Option<&str>) -> ConfiguredVolume {
        let plugin = PluginName::new("zfs").expect("a good name");
        ConfiguredVolume { key: key(name), plugin, volume_id: volume_id.map(str::to_owned) }
    }

    #[test]
    fn a_volume_of_the_configuration_says_that_another_name_has_its_id_before_it_is_claimed() {
        let known = VolumesView { volumes: vec![report("data", VolumeActor::Unneeded, None)] };
        let configured =
            vec![of_configuration("data", Some("id-data")), of_configuration("twice", Some("id-data"))];
        let shown = volumes(&Views { volumes: known, configured, ..Views::default() });
        let told: Vec<_> = shown.iter().map(|one| (&*one.name, one.error.contains("default/data"))).collect();
        assert_eq!(told, [("default/data", false), ("default/twice", true)]);
        assert_eq!(shown[1].doing, "it cannot be claimed");
    }

    #[test]
    fn a_plugin_has_volumes_in_use_until_they_are_known_to_be_vacant_v13() {
        let running = || VolumeActor::Running;
        let volumes = vec![
            report("claimed", running(), Some(status("claimed", vec![web("up", None)]))),
            report("silent", running(), None),
            report("vacant", running(), Some(status("vacant", vec![]))),
            report("unneeded", VolumeActor::Unneeded, None),
        ];
        let views = Views { volumes: VolumesView { volumes }, ..Views::default() };
        let counts: Vec<_> =
            in_use(&views).into_iter().map(|(plugin, count)| (plugin.to_string(), count)).collect();
        assert_eq!(counts, [("zfs".to_owned(), 2)]);
    }
}
