//! Tests plugins that are to stop while their volumes are in use: alone, and with their host, which has no agent here.

use callboard::actors::supervisor::ShutdownReport;
use callboard::actors::volume::{ObservedEnd, VolumeKey};
use callboard::actors::volumes::{AllocationEnded, ClaimError, ConfirmClaims, ListVolumes};
use callboard::host::Host;
use rustix::process::Signal;

use crate::namespace::in_namespace;
use crate::node::{
    builder, claim, contents, create, delete, mounted, nothing_is_left, plugin, read, release, serve,
    until_shown, write,
};
use crate::support::{LONG, PAUSE, Stage, id};

/// Waits until a new claim is refused, since the plugin is about to stop.
async fn until_leaving(host: &Host, volume: &VolumeKey, allocation: &str) -> ClaimError {
    loop {
        match claim(host, volume, allocation, false).await {
            // The request for the use of the plugin has not arrived yet.
            Ok(_) => release(host, volume, allocation).await,
            Err(error) => return error,
        }
    }
}

async fn until_none_is_in_use(host: &Host) {
    let none = async {
        while host.volumes().ask(ListVolumes).await.unwrap().iter().any(|volume| volume.status.is_some()) {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(LONG, none).await.expect("all volumes are undone");
}

fn place(report: &ShutdownReport, part: &str) -> usize {
    report.children.iter().position(|child| child.name == part).expect("it is a part of every host")
}

#[test]
fn a_plugin_stops_behind_the_release_of_its_last_volume_and_takes_no_new_claims_meanwhile_v13_shd_01() {
    let name = "stops::a_plugin_stops_behind_the_release_of_its_last_volume_and_takes_no_new_claims_meanwhile_v13_shd_01";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let data = create(&host, "data").await;
        let first = claim(&host, &data, "a", false).await.expect("it is set up");
        write(&first.path, "from a");
        let (stopped, refused) = tokio::join!(served.stop(&host), async {
            let refused = until_leaving(&host, &data, "b").await;
            assert_eq!(read(&first.path), "from a", "the plugin goes on");
            claim(&host, &data, "a", false).await.expect("it has the claim already");
            release(&host, &data, "a").await;
            refused
        });
        assert!(stopped.deregistered, "{stopped:?}");
        assert!(matches!(refused, ClaimError::PluginLeaving(_)) && refused.is_transient(), "{refused}");
        assert_eq!(served.calls("NodeUnstageVolume"), served.calls("NodeStageVolume"));
        nothing_is_left(&stage);

        // The next allocation of the plugin takes new claims.
        served.start(&host).await;
        let second = claim(&host, &data, "b", false).await.expect("it is set up");
        assert_eq!(read(&second.path), "from a");
        release(&host, &data, "b").await;
        delete(&host, &data).await;
        served.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn a_host_without_an_agent_undoes_what_is_released_before_its_plugins_leave_v13_shd_01_shd_02_shd_05() {
    let name = "stops::a_host_without_an_agent_undoes_what_is_released_before_its_plugins_leave_v13_shd_01_shd_02_shd_05";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let faults = [1, 2, 3].map(|nth| format!("--fault=NodeUnpublishVolume=UNAVAILABLE,before,nth:{nth}"));
        let mut served = plugin(&stage, "plugin").with(&faults.each_ref().map(String::as_str));
        served.start(&host).await;
        let (data, kept) = (create(&host, "data").await, create(&host, "kept").await);
        claim(&host, &data, "a", false).await.expect("it is set up");
        claim(&host, &kept, "b", false).await.expect("it is set up");
        // The host stops while the undo of one volume is refused, and another volume is held.
        let observed = ObservedEnd::Exited;
        let ended = AllocationEnded { allocation: id("a"), observed, within: LONG };
        let releasing = host.volumes().ask(ended);
        until_shown(&host, &data, "Released").await;
        let report = host.stop().await;
        drop(releasing);

        assert!(place(&report, "volumes") < place(&report, "allocations"), "{report:?}");
        assert!(place(&report, "allocations") < place(&report, "instances"), "{report:?}");
        assert_eq!(served.calls("NodeUnpublishVolume"), 4, "it is repeated until it is confirmed");
        assert_eq!(served.calls("NodeUnstageVolume"), 1, "once, and behind it");
        assert_eq!(mounted(&stage).len(), 2, "one staging and one target of what is held");
        // A held volume is kept on purpose, and this is reported.
        assert_eq!(report.not_in_order().count(), 0, "{report:?}");
        let below: Vec<_> = report.children.iter().flat_map(|child| &child.below).collect();
        let step = below.iter().find(|step| step.what == "volume/default/kept").expect("it is told");
        assert!(!step.is_left && step.ending.contains("stays mounted for b"), "{step:?}");
        served.signal(Signal::TERM);
        served.end().await;

        // The rest is undone in the next run, when its program reports that no process uses it.
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        served.start(&host).await;
        host.volumes().ask(ConfirmClaims { living: [].into(), unclear: [].into() }).await.expect("it runs");
        until_none_is_in_use(&host).await;
        nothing_is_left(&stage);
        delete(&host, &data).await;
        delete(&host, &kept).await;
        assert_eq!(contents(&stage), 0);
        served.stop(&host).await;
        let report = host.stop().await;
        assert_eq!(report.not_in_order().count(), 0, "{report:?}");
    });
}
