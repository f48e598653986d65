//! A file system whose server hangs or dies costs a thread, and delays no other caller (V7, VOL-07, VOL-08).

use std::time::{Duration, Instant};

use callboard_actors::mounts::{
    KernelMounts, LookError, MountLimits, MountRecord, MountState, Mounts as _, PathLook, PlaceError,
};
use rustix::mount::{UnmountFlags, unmount};

use super::fuse::Server;
use super::namespace::{BOOT, Stage, both, in_namespace};

/// A time limit that a healthy file system meets on a busy machine.
const TIME: Duration = Duration::from_secs(2);

fn limits(time: Duration) -> MountLimits {
    MountLimits { time, threads: 4, hanging_per_device: 2 }
}

fn server(stage: &Stage, below: &str) -> Option<Server> {
    match Server::mount(&stage.directory(below)) {
        Ok(server) => Some(server),
        Err(error) => {
            eprintln!("SKIPPED: a FUSE server is not shown, since none can be mounted here: {error}");
            None
        }
    }
}

/// Waits until no look hangs.
async fn until_nothing_hangs(mounts: &KernelMounts) {
    while !mounts.hanging().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_server_that_has_died_is_told_and_its_mount_is_not_handed_out_v7_vol_07() {
    in_namespace(
        "servers::a_server_that_has_died_is_told_and_its_mount_is_not_handed_out_v7_vol_07",
        async |stage: Stage| {
            let Some(server) = server(&stage, "volume") else { return };
            let (mounts, path) = (KernelMounts::new(limits(Duration::from_secs(30))), stage.path("volume"));
            let look = mounts.look(path.clone()).await.unwrap();
            assert!(look.mounted().is_some());
            let listed = || PathLook::of(&path, &stage.table());
            let record = MountRecord::of(BOOT.into(), &listed()).unwrap();
            assert!(record.identity.to_string().contains("fuse"), "{}", record.identity);

            server.kill();
            for mounts in both(limits(Duration::from_secs(30))) {
                let error = mounts.look(path.clone()).await.unwrap_err();
                assert!(matches!(error, LookError::Dead { .. }) && error.is_dead(), "{error}");
            }
            assert_eq!(record.compare(BOOT, &listed()), MountState::Same, "the table alone does not tell");

            let mounted = PlaceError::Mounted { path: path.clone() };
            assert_eq!(mounts.remove(stage.place("volume")).await.unwrap_err(), mounted);
            unmount(&path, UnmountFlags::DETACH).unwrap();
            assert_eq!(mounts.remove(stage.place("volume")).await.unwrap(), [path]);
            assert!(mounts.hanging().is_empty());
        },
    );
}

#[test]
fn a_server_that_hangs_costs_two_threads_and_no_other_volume_waits_v7_v9_vol_08() {
    in_namespace(
        "servers::a_server_that_hangs_costs_two_threads_and_no_other_volume_waits_v7_v9_vol_08",
        async |stage: Stage| {
            let Some(server) = server(&stage, "hung") else { return };
            stage.tmpfs("other");
            let source = stage.path("hung");
            for bound in ["bound", "bound-too"] {
                stage.directory(bound);
                stage.bind(&source, bound);
            }
            for mounts in both(limits(TIME)) {
                let hung = stage.path("hung");
                mounts.look(hung.clone()).await.unwrap();

                server.set_silent(true);
                let is_hung = |error: &LookError| matches!(error, LookError::Hung { .. }) && error.is_dead();
                let error = mounts.look(hung.clone()).await.unwrap_err();
                assert!(is_hung(&error) && error.to_string().contains("did not answer within 2s"), "{error}");
                let shown = mounts.hanging();
                assert!(shown.len() == 1 && shown[0].path == hung && shown[0].since >= TIME, "{shown:?}");
                assert!(shown[0].attempt == "look at" && shown[0].device.is_some());

                // The same look again gets the result of the one that hangs.
                assert!(is_hung(&mounts.look(hung.clone()).await.unwrap_err()));
                assert!(is_hung(&mounts.look(stage.path("bound")).await.unwrap_err()));
                for _ in 0..5 {
                    assert!(is_hung(&mounts.look(stage.path("bound-too")).await.unwrap_err()));
                }
                assert_eq!(mounts.hanging().len(), 2, "no more threads of one file system");

                assert!(mounts.look(stage.path("other")).await.unwrap().mounted().is_some());
                let made = mounts.make_mount_point(stage.place("hung")).await;
                assert_eq!(
                    made,
                    Ok(callboard_actors::mounts::Made::Mounted),
                    "no request reaches the server"
                );

                server.set_silent(false);
                until_nothing_hangs(&mounts).await;
                assert!(mounts.look(hung).await.is_ok(), "it has recovered");
            }
        },
    );
}

#[test]
fn threads_that_hang_are_bounded_and_the_next_look_is_refused_at_once_v9_vol_08() {
    in_namespace(
        "servers::threads_that_hang_are_bounded_and_the_next_look_is_refused_at_once_v9_vol_08",
        async |stage: Stage| {
            let Some(first) = server(&stage, "hung-0") else { return };
            let mut servers = vec![first];
            servers.extend((1..4).map(|number| server(&stage, &format!("hung-{number}")).expect("one more")));
            stage.tmpfs("other");
            let mounts = KernelMounts::new(limits(TIME));
            servers.iter().for_each(|server| server.set_silent(true));
            let looks = (0..4).map(|number| mounts.look(stage.path(&format!("hung-{number}"))));
            assert!(futures_util::future::join_all(looks).await.iter().all(Result::is_err));
            assert_eq!(mounts.hanging().len(), 4);
            assert_eq!(mounts.hanging()[0].path, stage.path("hung-0"), "the longest first");

            let began = Instant::now();
            let error = mounts.look(stage.path("other")).await.unwrap_err();
            assert!(began.elapsed() < TIME, "it did not wait");
            assert!(!error.is_dead(), "that says nothing of this volume");
            let wanted = format!(
                "4 paths already hang, which is the limit; the first of them is {}",
                stage.path("hung-0").display()
            );
            assert!(error.to_string().contains(&wanted), "{error}");

            servers.pop().expect("one of four").kill();
            while mounts.hanging().len() == 4 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(mounts.look(stage.path("other")).await.is_ok(), "a thread is free again");
        },
    );
}

#[test]
fn a_caller_that_gives_up_leaves_no_thread_behind_v9() {
    in_namespace("servers::a_caller_that_gives_up_leaves_no_thread_behind_v9", async |stage: Stage| {
        let Some(server) = server(&stage, "slow") else { return };
        let mounts = KernelMounts::new(limits(Duration::from_millis(50)));
        server.set_silent(true);
        for _ in 0..20 {
            let look = mounts.look(stage.path("slow"));
            let _ = tokio::time::timeout(Duration::from_millis(10), look).await;
        }
        server.set_silent(false);
        until_nothing_hangs(&mounts).await;
        while mounts.look(stage.path("slow")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
