//! P3: when the disk fails, the writers get the error, the process lives, and writing works again when the cause is gone.

use std::path::Path;
use std::process::Command;

use callboard_actors::persister::{
    CloseError, DiskFault, DiskHealth, LoadError, MemoryDisk, Persister, WriteError,
};
use futures_util::FutureExt;
use rustix::io::Errno;

use crate::common::{Author, Player, open, play, players};
use crate::disk::{Disk, Fault, Unsynced};

const FAULTS: [Fault; 6] = [
    Fault::Writes(Errno::NOSPC),
    Fault::Writes(Errno::ROFS),
    Fault::Writes(Errno::IO),
    Fault::Syncs(Errno::IO),
    Fault::Syncs(Errno::NOSPC),
    Fault::All(Errno::IO),
];

/// Writes players 0 to 9, which are acknowledged.
async fn ten_players(persister: &Persister) -> Author {
    let mut author = Author::new("common", persister);
    for key in 0..10 {
        author.put(key, &Player::numbered(key));
    }
    author.all_written().await;
    author
}

#[test]
fn p3_what_a_sick_disk_did_not_take_is_written_in_its_order_when_it_is_sound() {
    for fault in FAULTS {
        let (directory, disk) = (tempfile::tempdir().unwrap(), Disk::default());
        play(async {
            let persister = disk.open(directory.path()).await.unwrap();
            let mut author = ten_players(&persister).await;
            let mut health = persister.disk().watch();
            disk.fail(fault);
            author.put(1, &Player::numbered(100));
            health.wait_for(|health| health.reason().is_some()).await.unwrap();
            let last = author.put(1, &Player::numbered(200));
            assert!(author.heard().is_none(), "{fault:?}: it is tried again");
            disk.mend();
            while author.settled().await.through < last {}
            assert_eq!(
                *health.wait_for(|health| health.reason().is_none()).await.unwrap(),
                DiskHealth::Sound
            );
            assert_eq!(players(&persister).await[1], (1, Player::numbered(200)), "{fault:?}");
            persister.close().await.unwrap();
        });
    }
}

#[test]
fn p3_what_a_sick_disk_does_not_take_until_the_end_is_counted() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), Disk::default());
    play(async {
        let persister = disk.open(directory.path()).await.unwrap();
        let mut author = ten_players(&persister).await;
        disk.fail(Fault::Writes(Errno::NOSPC));
        author.put(1, &Player::numbered(100));
        persister.disk().watch().wait_for(|health| health.reason().is_some()).await.unwrap();
        author.put(2, &Player::numbered(100));
        let error = persister.close().await.unwrap_err();
        assert!(matches!(error, CloseError::NotWritten { writes: 2, .. }), "{error}");
        assert!(error.to_string().contains("no space is left"), "{error}");
    });
}

#[test]
fn p3_the_error_says_what_is_wrong_where() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), Disk::default());
    play(async {
        let persister = disk.open(directory.path()).await.unwrap();
        let mut author = ten_players(&persister).await;
        for (fault, words) in [
            (Fault::Writes(Errno::NOSPC), "no space is left"),
            (Fault::Writes(Errno::ROFS), "make the file system writable again"),
            (Fault::Writes(Errno::IO), "os error 5"),
        ] {
            disk.fail(fault);
            author.put(1, &Player::numbered(1));
            let reason = author.refused().await;
            assert!(reason.contains(words) && reason.contains("callboard.redb"), "{reason}");
            disk.mend();
            author.all_written().await;
        }
    });
}

#[test]
fn p3_a_table_can_be_loaded_while_nothing_can_be_written_with_all_that_was_handed_over() {
    for fault in FAULTS.into_iter().filter(|fault| !matches!(fault, Fault::All(_))) {
        let (directory, disk) = (tempfile::tempdir().unwrap(), Disk::default());
        play(async {
            let persister = disk.open(directory.path()).await.unwrap();
            let mut author = ten_players(&persister).await;
            disk.fail(fault);
            author.put(100, &Player::numbered(100));
            author.refused().await;
            author.delete(0);
            author.put(1, &Player::numbered(101));
            for _ in 0..3 {
                let players = players(&persister).await;
                assert_eq!((players.len(), &players[0]), (10, &(1, Player::numbered(101))), "{fault:?}");
                assert_eq!(players[9], (100, Player::numbered(100)), "{fault:?}");
            }
            assert!(author.heard().is_none(), "{fault:?}: the tries go on");
            disk.mend();
            author.all_written().await;
            assert_eq!(players(&persister).await.len(), 10);
        });
    }
}

#[test]
fn p3_p4_pages_that_the_system_forgot_in_a_failed_sync_are_written_again_before_anything_is_acknowledged() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), Disk::default());
    play(async {
        let persister = disk.open(directory.path()).await.unwrap();
        let mut author = Author::new("common", &persister);
        for key in 0..500 {
            author.put(key, &Player::numbered(key));
        }
        author.all_written().await;
        for round in 1..=10 {
            // The failing write and the next one are on different pages, so that the next one relies on pages of the first.
            disk.fail(Fault::Syncs(Errno::IO));
            author.put(round, &Player::numbered(1_000 + round));
            author.refused().await;
            disk.mend();
            author.put(500 - round, &Player::numbered(2_000 + round));
            author.all_written().await;
            let seen = players(&persister).await;
            let survived = disk.after_the_cut(Unsynced::Nothing);
            let elsewhere = tempfile::tempdir().unwrap();
            let next = survived.open(elsewhere.path()).await.unwrap();
            assert!(players(&next).await == seen, "round {round}: what was seen is what is on disk");
        }
    });
}

#[test]
fn p3_a_real_file_system_that_is_full_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::small_tmpfs(directory.path()) else {
        println!("not run: mounting a small tmpfs needs root and the right to mount");
        return;
    };
    play(async {
        let persister = open(directory.path()).await;
        let mut author = ten_players(&persister).await;
        let ballast = directory.path().join("ballast");
        let filled = std::fs::write(&ballast, vec![1; 8 * 1024 * 1024]);
        assert!(filled.is_err(), "the file system is full now");
        let large = Player { name: "x".repeat(500_000), parts: vec![] };
        author.put(100, &large);
        let reason = author.refused().await;
        assert!(reason.contains("no space is left"), "{reason}");
        assert_eq!(players(&persister).await.len(), 11, "with what the disk does not take");
        std::fs::remove_file(ballast).unwrap();
        author.all_written().await;
        persister.close().await.unwrap();
        let next = open(directory.path()).await;
        assert_eq!(players(&next).await.len(), 11);
        next.close().await.unwrap();
    });
}

/// A file system that is unmounted at the end.
pub(crate) struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// A file system of four megabytes, if this user may mount one.
    pub(crate) fn small_tmpfs(at: &'a Path) -> Option<Self> {
        let options = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(at).output().ok()?;
        mounted.status.success().then_some(Self(at))
    }

    /// Makes it read-only.
    pub(crate) fn remount_read_only(&self) -> bool {
        let mounted = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0).status();
        mounted.is_ok_and(|status| status.success())
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn p3_a_persister_whose_thread_panics_has_ended_and_fails_every_write() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), MemoryDisk::default());
    let options = disk.hold(directory.path());
    play(async {
        let persister = Persister::open(options.clone()).await.unwrap();
        let (mut author, mut idle) = (ten_players(&persister).await, Author::new("idle", &persister));
        idle.put(50, &Player::numbered(50));
        idle.all_written().await;
        assert!(persister.ended().now_or_never().is_none(), "it lives");

        disk.set_fault(Some(DiskFault::Panics));
        author.put(100, &Player::numbered(100));
        // The disk fails first. Then the database is opened again, and its thread panics.
        author.refused().await;
        let loading = persister.load::<Player>();
        let error = author.settled().await.outcome.unwrap_err();
        assert!(matches!(error, WriteError::Ended { .. }) && error.is_transient(), "{error}");
        assert!(matches!(loading.await, Err(LoadError::Closed { .. })));
        persister.ended().await;
        assert_eq!(persister.depth(), 0);
        assert!(idle.heard().is_none(), "it waits for nothing");

        // Owners that come later are notified at once, once for each epoch.
        idle.put(51, &Player::numbered(51));
        idle.put(52, &Player::numbered(52));
        let error = idle.settled().await.outcome.unwrap_err();
        assert!(matches!(error, WriteError::Ended { .. }), "{error}");
        assert!(idle.heard().is_none());
        assert!(persister.close().await.is_err(), "there is no actor that could close it");

        // The next persister finds the directory free, and the acknowledged rows.
        disk.set_fault(None);
        let next = Persister::open(options).await.unwrap();
        assert_eq!(players(&next).await.len(), 11);
    });
}

#[test]
fn p3_a_persister_that_is_closed_has_not_ended_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = ten_players(&persister).await;
        persister.close().await.unwrap();
        author.put(100, &Player::numbered(100));
        let error = author.settled().await.outcome.unwrap_err();
        assert!(matches!(error, WriteError::Closed { .. }), "{error}");
        assert!(persister.ended().now_or_never().is_none());
    });
}
