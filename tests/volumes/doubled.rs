//! Tests a volume that has two names: it was created under one and is known by the other. An operation on one name must not affect
//! the data of the other.

use std::fs;
use std::sync::Arc;

use callboard::actors::csi::Context;
use callboard::actors::vocabulary::PluginName;
use callboard::actors::volume::{Deleted, VolumeSpec};
use callboard::actors::volumes::{DeleteVolume, KnownVolume, ListVolumesOfPlugin, RegisterVolume};
use callboard::host::Host;

use crate::namespace::in_namespace;
use crate::node::{
    PLUGIN, builder, claim, contents, creation, delete, key, nothing_is_left, plugin, read, release,
    until_shown, write,
};
use crate::support::{LONG, Stage};

/// The id of the only volume of the plugin.
async fn only_id(host: &Host) -> String {
    let plugin = PluginName::new(PLUGIN).expect("a good name");
    let list = ListVolumesOfPlugin { plugin, page: Default::default(), within: LONG };
    let listed = host.volumes().ask(list).await.expect("it runs").expect("it can be listed");
    let [entry] = &listed.entries[..] else { panic!("there is one volume: {listed:?}") };
    entry.volume.volume_id.clone()
}

/// An operator finds the result of an unclear creation at the plugin, registers it under another name, and deletes the volume that is
/// still being created.
#[test]
fn what_is_deleted_while_it_is_created_takes_no_data_of_another_name_c059_c061() {
    let name = "doubled::what_is_deleted_while_it_is_created_takes_no_data_of_another_name_c059_c061";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let sick = stage.path("sick");
        fs::write(&sick, "").expect("it can be written");
        let fault = format!("CreateVolume=UNAVAILABLE,after,while:{}", sick.display());
        let mut served = plugin(&stage, "plugin").with(&["--fault", &fault]);
        served.start(&host).await;
        let created = host.volumes().ask(creation("lost"));
        until_shown(&host, &key("lost"), "CreateVolume is tried again").await;

        let (plugin, volume_id) = (PluginName::new(PLUGIN).expect("a good name"), only_id(&host).await);
        let spec = VolumeSpec { key: key("found"), plugin, volume_id, volume_context: Context::new() };
        let volume = KnownVolume::new(Arc::new(spec));
        host.volumes()
            .ask(RegisterVolume { volume })
            .await
            .expect("it runs")
            .expect("its id is not known yet");
        let found = key("found");
        let path = claim(&host, &found, "a", false).await.expect("it is set up").path;
        write(&path, "from a");

        let lost = DeleteVolume { volume: key("lost"), within: LONG };
        let (deleted, ()) = tokio::join!(host.volumes().ask(lost), async {
            until_shown(&host, &key("lost"), "BeingDeleted").await;
            fs::remove_file(&sick).expect("it is there");
        });
        assert_eq!(deleted.expect("it runs"), Ok(Deleted { did_exist: false }));
        created.await.expect("it runs").expect_err("it was deleted");
        assert_eq!(served.calls("DeleteVolume"), 0);
        assert_eq!(read(&path), "from a");

        release(&host, &found, "a").await;
        nothing_is_left(&stage);
        assert_eq!(contents(&stage), 1);
        delete(&host, &found).await;
        assert_eq!((contents(&stage), served.calls("DeleteVolume")), (0, 1));
        served.stop(&host).await;
        host.stop().await;
    });
}
