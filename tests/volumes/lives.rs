//! Tests volumes from their creation to their deletion, while plugins are replaced and killed.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;

use callboard::actors::inventory::{TakeInventory, VolumeRoom};
use callboard::actors::vocabulary::PluginName;
use callboard::actors::volumes::{DeleteError, DeleteVolume};
use rustix::mount::{UnmountFlags, unmount};

use crate::namespace::in_namespace;
use crate::node::{
    builder, claim, claim_when_served, contents, create, delete, key, mounted, nothing_is_left, plugin, read,
    release, serve, until_shown, write,
};
use crate::support::{LONG, Stage};

#[test]
fn what_one_allocation_writes_another_reads_and_nothing_is_left_c050_v3_v6_v7() {
    let name = "lives::what_one_allocation_writes_another_reads_and_nothing_is_left_c050_v3_v6_v7";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let data = create(&host, "data").await;
        let first = claim(&host, &data, "a", false).await.expect("it is set up");
        write(&first.path, "from a");
        let second = claim(&host, &data, "b", true).await.expect("it is shared");
        assert_eq!(read(&second.path), "from a");
        let refused = std::fs::write(second.path.join("file"), "from b").expect_err("it only reads");
        assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(mounted(&stage).len(), 3, "one staging and two targets");
        let delete_it = DeleteVolume { volume: key("data"), within: LONG };
        let refused = host.volumes().ask(delete_it).await.expect("it runs").expect_err("it is claimed");
        assert!(
            refused.to_string().contains("a, b") || refused.to_string().contains("allocation"),
            "{refused}"
        );
        let tree = format!("{:?}", host.tree().await.expect("it runs"));
        assert!(tree.contains("default/data"), "{tree}");
        release(&host, &data, "a").await;
        assert_eq!(read(&second.path), "from a", "the other claim is not touched");
        release(&host, &data, "b").await;
        nothing_is_left(&stage);
        delete(&host, &data).await;
        assert_eq!(contents(&stage), 0);
        let again: Result<_, DeleteError> =
            host.volumes().ask(DeleteVolume { volume: data, within: LONG }).await.expect("it runs");
        assert!(!again.expect("it is harmless").did_exist);
        served.stop(&host).await;
        let report = host.stop().await;
        assert_eq!(report.not_in_order().count(), 0, "{report:?}");
    });
}

#[test]
fn what_is_below_a_mount_of_an_allocation_that_is_pulled_away_is_closed_v7_vol_07() {
    let name = "lives::what_is_below_a_mount_of_an_allocation_that_is_pulled_away_is_closed_v7_vol_07";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let data = create(&host, "data").await;
        let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
        unmount(&claimed.path, UnmountFlags::empty()).expect("it is mounted");
        let bare = std::fs::metadata(&claimed.path).expect("it is there");
        assert_eq!(
            bare.permissions().mode() & 0o777,
            0,
            "no workload without the rights of root writes there"
        );
        let again = claim(&host, &data, "a", false).await.expect("it is set up again");
        write(&again.path, "from a");
        release(&host, &data, "a").await;
        nothing_is_left(&stage);
        served.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn a_mount_that_was_pulled_away_is_made_again_by_a_plugin_that_undoes_only_what_is_mounted_v4_v7() {
    let name = "lives::a_mount_that_was_pulled_away_is_made_again_by_a_plugin_that_undoes_only_what_is_mounted_v4_v7";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (strict, failing) = (stage.path("strict"), "NodeUnpublishVolume=INTERNAL");
        std::fs::write(&strict, "").expect("it can be written");
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served =
            plugin(&stage, "plugin").with(&["--fault", &format!("{failing},while:{}", strict.display())]);
        served.start(&host).await;
        let data = create(&host, "data").await;
        let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
        write(&claimed.path, "from a");
        unmount(&claimed.path, UnmountFlags::empty()).expect("it is mounted");
        let again = claim(&host, &data, "a", false).await.expect("it is set up again");
        assert_eq!(read(&again.path), "from a");
        assert_eq!((served.calls("NodeUnpublishVolume"), served.calls("NodePublishVolume")), (1, 2));
        std::fs::remove_file(&strict).expect("it is there");
        release(&host, &data, "a").await;
        nothing_is_left(&stage);
        served.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn the_inventory_tells_how_many_volumes_are_in_use_and_how_many_may_be_c147() {
    let name = "lives::the_inventory_tells_how_many_volumes_are_in_use_and_how_many_may_be_c147";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "plugin").with(&["--max-volumes", "2"]);
        served.start(&host).await;
        let (data, logs) = (create(&host, "data").await, create(&host, "logs").await);
        let mut feed = host.inventory().subscribe("test", 64).expect("it runs");
        // A created volume counts until it is known that it is not set up here.
        let mut until = async |in_use| {
            let plugin = PluginName::new("example").expect("a good name");
            let told = async {
                while host.inventory().ask(TakeInventory).await.expect("it runs").volume_room(&plugin)
                    != Some(VolumeRoom { in_use, limit: Some(2) })
                {
                    feed.next().await.expect("it runs");
                }
            };
            tokio::time::timeout(LONG, told).await.unwrap_or_else(|_| panic!("never {in_use} of 2"));
        };
        until(0).await;
        claim(&host, &data, "a", false).await.expect("it is set up");
        claim(&host, &data, "b", true).await.expect("it is shared");
        until(1).await;
        claim(&host, &logs, "a", false).await.expect("there is room");
        until(2).await;
        for (volume, allocation) in [(&data, "a"), (&data, "b")] {
            release(&host, volume, allocation).await;
        }
        until(1).await;
        release(&host, &logs, "a").await;
        until(0).await;
        served.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn a_plugin_that_is_replaced_or_killed_takes_no_volume_with_it_res_05_v7() {
    let name = "lives::a_plugin_that_is_replaced_or_killed_takes_no_volume_with_it_res_05_v7";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let (mut old, mut new) = (plugin(&stage, "old"), plugin(&stage, "new"));
        old.start(&host).await;
        let data = create(&host, "data").await;
        let first = claim(&host, &data, "a", false).await.expect("it is set up");
        write(&first.path, "from a");
        new.start(&host).await;
        old.stop(&host).await;
        let second = claim_when_served(&host, &data, "b").await;
        assert_eq!(read(&second.path), "from a");
        assert_eq!((old.calls("NodePublishVolume"), new.calls("NodePublishVolume")), (1, 1));
        assert_eq!(new.calls("NodeStageVolume"), 0, "it stays staged");
        new.kill(&host).await;
        assert_eq!(read(&first.path), "from a", "the mounts are the kernel's");
        // Its release waits for a plugin, and is not lost.
        let releases = tokio::join!(release(&host, &data, "a"), release(&host, &data, "b"), async {
            until_shown(&host, &data, "Released").await;
            new.start(&host).await;
        });
        let ((), (), ()) = releases;
        nothing_is_left(&stage);
        delete(&host, &data).await;
        assert_eq!(contents(&stage), 0);
        new.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn a_plugin_that_dies_in_the_middle_of_a_step_completes_it_in_its_next_life_v4_vol_05() {
    let name = "lives::a_plugin_that_dies_in_the_middle_of_a_step_completes_it_in_its_next_life_v4_vol_05";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut sound = plugin(&stage, "sound");
        sound.start(&host).await;
        let data = create(&host, "data").await;
        sound.stop(&host).await;
        for (number, dying) in
            ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
                .into_iter()
                .enumerate()
        {
            let mut dies = plugin(&stage, &format!("dies-{number}"))
                .with(&["--fault", &format!("{dying}=die,middle,nth:1")]);
            dies.start(&host).await;
            let life = async {
                let claimed = claim(&host, &data, "a", false).await.expect("it is set up");
                write(&claimed.path, dying);
                release(&host, &data, "a").await;
            };
            let death = async {
                dies.end().await;
                dies.say_exited(&host, "it died").await;
                let mut next = plugin(&stage, &format!("next-{number}"));
                next.start(&host).await;
                next
            };
            let ((), mut next) = tokio::join!(life, death);
            nothing_is_left(&stage);
            next.stop(&host).await;
            dies.stop(&host).await;
        }
        host.stop().await;
    });
}
