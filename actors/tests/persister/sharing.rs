//! P1: what waits shares a commit, news comes in order, and virtual time waits for the disk.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::persister::{LoadError, Loaded, Operation, Persister, RECORD_BYTES_MAX, WriteError};

use crate::common::{Author, Player, open, play, play_paused, players};
use crate::disk::Disk;

#[test]
fn p1_a_burst_of_writes_shares_few_commits_and_all_of_it_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        for key in 0..1_000 {
            author.put(key, &Player::numbered(key));
        }
        assert_eq!(persister.depth(), 1_000);
        let commits = author.all_written().await;
        assert!(commits <= 3, "{commits} commits for one burst");
        assert_eq!(persister.depth(), 0);
        persister.close().await.unwrap();
    });
    play(async {
        let persister = open(directory.path()).await;
        assert_eq!(persister.run().get(), 2);
        let expected: Vec<_> = (0..1_000).map(|key| (key, Player::numbered(key))).collect();
        assert_eq!(players(&persister).await, expected);
    });
}

#[test]
fn p1_writes_that_arrive_during_a_commit_share_the_next_one() {
    let (directory, disk) = (tempfile::tempdir().unwrap(), Disk::default());
    play(async {
        let persister = disk.open(directory.path()).await.unwrap();
        let mut authors: Vec<_> =
            ["one", "two", "three", "four"].map(|owner| Author::new(owner, &persister)).into();
        let before = disk.syncs();
        for round in 0..50 {
            for (place, author) in authors.iter_mut().enumerate() {
                author.put(place as u64, &Player::numbered(round));
            }
            authors[0].all_written().await;
        }
        for author in &mut authors[1..] {
            author.all_written().await;
        }
        let syncs = disk.syncs() - before;
        assert!(syncs <= 102, "{syncs} syncs for 200 writes in 50 bursts");
    });
}

#[test]
fn p1_each_owner_hears_of_its_own_writes_in_order_and_once_per_commit() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let (mut one, mut other) = (Author::new("one", &persister), Author::new("other", &persister));
        one.put(1, &Player::numbered(1));
        other.put(2, &Player::numbered(2));
        one.put(3, &Player::numbered(3));
        let settled = one.settled().await;
        assert_eq!((settled.epoch, settled.through), (1, 2));
        assert_eq!(other.settled().await.through, 1);
        let mut last = 2;
        for burst in 1..20 {
            for key in 0..burst {
                one.put(key, &Player::numbered(key));
            }
            while last < one.sequence {
                let settled = one.settled().await;
                assert!(settled.through > last, "news in order");
                last = settled.through;
            }
        }
        assert!(other.heard().is_none(), "what one writes is no news for the other");
    });
}

#[test]
fn p1_a_load_sees_every_write_that_was_handed_over_before_it_and_none_after() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        for key in 0..100 {
            author.put(key, &Player::numbered(key));
        }
        author.delete(50);
        let loading = persister.load::<Player>();
        author.put(1_000, &Player::numbered(1_000));
        let rows = loading.await.unwrap().rows;
        assert_eq!(rows.len(), 99);
        assert_eq!(players(&persister).await.len(), 100);
    });
}

async fn below(persister: &Persister, prefix: &'static [u8]) -> Loaded<Player> {
    persister.read(|tables| tables.load_below(prefix)).await.0.unwrap()
}

#[test]
fn a_load_below_a_key_sees_every_write_to_what_is_there_and_nothing_else_p1() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("registry", &persister);
        let put = |key: &[u8], number| Operation::put(key, &Player::numbered(number));
        author.write(vec![put(b"a", 1), put(b"ab", 2), put(b"ab\0x", 3), put(b"ab\0y", 4), put(b"ac", 5)]);
        author.write(vec![put(b"ab\0z", 6), Operation::delete::<Player>(b"ab\0x")]);
        let loaded = below(&persister, b"ab\0").await;
        let rows = [(b"ab\0y".to_vec(), Player::numbered(4)), (b"ab\0z".to_vec(), Player::numbered(6))];
        assert_eq!((loaded.rows.as_slice(), loaded.damaged.len()), (rows.as_slice(), 0));
        let none = below(&persister, &[0xff; 3]).await;
        assert_eq!((none.rows.len(), none.damaged.len()), (0, 0));
        persister.close().await.unwrap();
    });
}

#[test]
fn the_writes_of_an_owner_that_has_ended_are_on_disk_and_its_place_is_free() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        for number in 0..500 {
            Author::write_and_end(number, &persister);
        }
        assert_eq!(players(&persister).await.len(), 500);
        persister.close().await.unwrap();
    });
}

#[test]
fn p1_a_paused_clock_stands_still_while_the_disk_works() {
    let directory = tempfile::tempdir().unwrap();
    play_paused(async {
        let started = tokio::time::Instant::now();
        let has_rung = Rc::new(Cell::new(false));
        let bell = Rc::clone(&has_rung);
        actix_rt::spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            bell.set(true);
        });
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        for key in 0..100 {
            author.put(key, &Player::numbered(key));
            author.all_written().await;
        }
        assert_eq!(persister.load::<Player>().await.unwrap().rows.len(), 100);
        persister.close().await.unwrap();
        assert!(!has_rung.get(), "a timer of one millisecond went off during a hundred commits");
        assert_eq!(started.elapsed(), Duration::ZERO);
    });
}

#[test]
fn a_record_that_is_too_large_is_refused_and_takes_nothing_else_along() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let (mut one, mut other) = (Author::new("one", &persister), Author::new("other", &persister));
        one.put(1, &Player::numbered(1));
        one.put(2, &Player { name: "x".repeat(RECORD_BYTES_MAX), parts: vec![] });
        one.put(3, &Player::numbered(3));
        other.put(4, &Player::numbered(4));
        assert_eq!(one.settled().await.through, 1);
        let refused = one.settled().await;
        assert_eq!(refused.through, 2);
        let error = refused.outcome.unwrap_err();
        assert!(
            matches!(error, WriteError::TooLarge { owner: "one", .. }) && !error.is_transient(),
            "{error}"
        );
        other.all_written().await;
        let keys: Vec<_> = players(&persister).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [1, 4], "the third write built on the refused one");
        assert_eq!(persister.depth(), 0);
    });
}

#[test]
fn a_table_of_the_persister_itself_is_not_written_by_others() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        let table = callboard_actors::persister::Table("meta");
        author.write(vec![Operation::Put { table, key: b"first".to_vec(), record: vec![1] }]);
        assert!(author.settled().await.outcome.is_err());
        author.epoch += 1;
        author.put(1, &Player::numbered(1));
        author.all_written().await;
    });
}

#[test]
fn closing_settles_what_was_handed_over_and_lets_the_next_host_in() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        author.put(1, &Player::numbered(1));
        persister.close().await.unwrap();
        assert!(author.settled().await.outcome.is_ok());
        persister.close().await.unwrap();
        author.put(2, &Player::numbered(2));
        assert!(matches!(author.settled().await.outcome, Err(WriteError::Closed { .. })));
        assert!(matches!(persister.load::<Player>().await, Err(LoadError::Closed { .. })));
        let next = open(directory.path()).await;
        assert_eq!(players(&next).await, [(1, Player::numbered(1))]);
    });
}

#[test]
fn when_all_handles_are_gone_what_was_handed_over_is_written_and_the_lock_is_released() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        Author::new("common", &persister).put(1, &Player::numbered(1));
        drop(persister);
        let next = opened_at_last(directory.path()).await;
        assert_eq!(players(&next).await, [(1, Player::numbered(1))]);
    });
}

/// Retries until the lock is free, for a minute at most.
async fn opened_at_last(directory: &std::path::Path) -> Persister {
    let options = callboard_actors::persister::Options::new(directory);
    let trying = async {
        loop {
            if let Ok(persister) = Persister::open(options.clone()).await {
                return persister;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), trying).await.expect("the lock is released")
}
