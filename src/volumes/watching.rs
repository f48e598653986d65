//! Logs volumes that do not reach their desired state while the host runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use callboard_actors::shell::Address;
use callboard_actors::vocabulary::PluginName;
use callboard_actors::volume::{VolumeKey, VolumeStatus};
use callboard_actors::volumes::{ListVolumes, VolumeActor, VolumeReport, Volumes};
use tokio::time::sleep;

/// The pause between two looks. Volumes that are pending at both looks are logged.
const LOOK_PAUSE: Duration = Duration::from_secs(60);

/// Logs each volume that is in use although no allocation serves its plugin, and each volume that is pending for longer than a pause. Ends
/// when the host stops.
pub async fn watch(volumes: &Address<Volumes>, served: &BTreeSet<PluginName>) {
    let mut pending = Pending::default();
    loop {
        if let Ok(reports) = volumes.ask(ListVolumes).await {
            for (volume, state) in pending.looked(&reports, served) {
                let plugin = &volume.plugin;
                if served.contains(plugin) {
                    tracing::warn!(volume = %volume.key, %plugin, state, "a volume has been pending for a while");
                } else {
                    tracing::warn!(
                        volume = %volume.key, %plugin, state,
                        "a volume is in use or pending, but no allocation of the configuration serves its plugin; add one so \
                        that it can be released"
                    );
                }
            }
        }
        sleep(LOOK_PAUSE).await;
    }
}

/// A volume that is pending.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    key: VolumeKey,
    plugin: PluginName,
}

/// The volumes that were pending at the last look, or in use without an allocation that serves them, and whether that is logged.
#[derive(Debug, Default)]
struct Pending(BTreeMap<VolumeKey, bool>);

impl Pending {
    /// The volumes that were pending at the last look as well, each once until it is settled.
    fn looked(&mut self, reports: &[VolumeReport], served: &BTreeSet<PluginName>) -> Vec<(Named, String)> {
        let (mut overdue, mut now) = (Vec::new(), BTreeMap::new());
        for VolumeReport { volume, actor, status, .. } in reports {
            let is_settled =
                status.as_deref().map_or(*actor == VolumeActor::Unneeded, VolumeStatus::is_settled);
            let is_in_use = status.as_ref().is_some_and(|status| !status.is_vacant());
            if is_settled && (!is_in_use || served.contains(&volume.spec.plugin)) {
                continue;
            }
            let key = volume.spec.key.clone();
            let before = self.0.get(&key).copied();
            if before == Some(false) {
                let state = status.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
                overdue.push((Named { key: key.clone(), plugin: volume.spec.plugin.clone() }, state));
            }
            now.insert(key, before.is_some());
        }
        self.0 = now;
        overdue
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::volume::Abandoned;
    use callboard_actors::volumes::KnownVolume;

    use super::super::tests::{spec, status, user};
    use super::*;

    #[test]
    fn what_is_pending_at_two_looks_is_told_once_until_it_has_settled() {
        let report = |status: Option<VolumeStatus>, actor| {
            let (volume, status) = (Arc::new(KnownVolume::new(spec("data"))), status.map(Arc::new));
            [VolumeReport { volume, is_known: true, actor, restarts: 0, status }]
        };
        // Its claim is not proven.
        let pending = || report(Some(status(&spec("data"), vec![user("web")])), VolumeActor::Running);
        let settled = || report(Some(status(&spec("data"), vec![])), VolumeActor::Running);
        let mut looks = Pending::default();
        let served = BTreeSet::from([spec("data").plugin.clone()]);
        let mut told = |reports: &[VolumeReport]| looks.looked(reports, &served).len();
        assert_eq!([told(&pending()), told(&pending()), told(&pending())], [0, 1, 0]);
        assert_eq!([told(&settled()), told(&pending()), told(&pending())], [0, 0, 1]);
        assert_eq!(told(&report(None, VolumeActor::Unneeded)), 0);
        assert_eq!(
            [told(&report(None, VolumeActor::Running)), told(&report(None, VolumeActor::Running))],
            [0, 1]
        );
    }
    #[test]
    fn what_is_in_use_and_served_by_nothing_is_told_although_it_is_settled() {
        let mut used = VolumeStatus { stage: "up", ..status(&spec("data"), vec![user("web")]) };
        (used.claims[0].is_provisional, used.claims[0].is_proven, used.claims[0].publish) =
            (false, true, "up");
        assert!(used.is_settled() && used.is_kept());
        let left = Abandoned { path: "/d/db".into(), allocation: user("db"), is_released: true };
        let beside = VolumeStatus { abandoned: vec![left], ..used.clone() };
        assert!(!beside.is_settled() && !beside.is_kept(), "something of it waits to be undone");
        let volume = Arc::new(KnownVolume::new(spec("data")));
        let used = [VolumeReport {
            volume,
            is_known: true,
            actor: VolumeActor::Running,
            restarts: 0,
            status: Some(used.into()),
        }];
        let served = BTreeSet::from([spec("data").plugin.clone()]);
        let (mut of_served, mut of_unserved) = (Pending::default(), Pending::default());
        let told = [(); 3].map(|()| of_unserved.looked(&used, &BTreeSet::new()).len());
        assert_eq!(told, [0, 1, 0]);
        assert_eq!([(); 3].map(|()| of_served.looked(&used, &served).len()), [0; 3]);
    }
}
