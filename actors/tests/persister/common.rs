//! Shared by the stories: a record, an owner with its ledger, and a system to run in.

use std::path::Path;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use callboard_actors::persister::{
    DiskHealth, LedgerId, OpenLedger, Operation, Options, Owner, Persister, Record, Settled, Table, Write,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// A row as an actor stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Player {
    pub(crate) name: String,
    pub(crate) parts: Vec<String>,
}

impl Record for Player {
    const TABLE: Table = Table("players");
    const SCHEMA: u16 = 1;
}

impl Player {
    pub(crate) fn numbered(number: u64) -> Self {
        Self { name: format!("player {number}"), parts: vec![format!("part {}", number % 7); 3] }
    }
}

/// Runs a story in an actix system of its own.
pub(crate) fn play<F: Future>(story: F) -> F::Output {
    actix_rt::System::new().block_on(story)
}

/// Runs a story under virtual time.
pub(crate) fn play_paused<F: Future>(story: F) -> F::Output {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
    };
    actix_rt::System::with_tokio_rt(runtime).block_on(story)
}

/// Opens a directory as a host would.
pub(crate) async fn open(data_dir: &Path) -> Persister {
    Persister::open(Options::new(data_dir)).await.expect("a directory of our own opens")
}

/// All players on disk by number, without any damaged row.
pub(crate) async fn players(persister: &Persister) -> Vec<(u64, Player)> {
    let loaded = persister.load::<Player>().await.expect("a table that can be read");
    assert!(loaded.damaged.is_empty(), "{:?}", loaded.damaged);
    let number = |key: Vec<u8>| u64::from_be_bytes(key.try_into().expect("keys of eight bytes"));
    loaded.rows.into_iter().map(|(key, player)| (number(key), player)).collect()
}

/// The bytes of a database that holds this many players and was closed in order.
pub(crate) fn closed_file(count: u64) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        for number in 0..count {
            author.put(number, &Player::numbered(number));
        }
        author.all_written().await;
        persister.close().await.expect("an open database closes");
        std::fs::read(persister.path()).expect("the file is there")
    })
}

/// An owner that writes, and receives the outcomes.
pub(crate) struct Author {
    owner: Owner,
    ledger: LedgerId,
    persister: Persister,
    pub(crate) epoch: u64,
    pub(crate) sequence: u64,
    news: mpsc::UnboundedReceiver<Settled>,
}

impl Author {
    pub(crate) fn new(owner: &'static str, persister: &Persister) -> Self {
        Self::of(Owner::new(owner), persister)
    }

    fn of(owner: Owner, persister: &Persister) -> Self {
        let (told, news) = mpsc::unbounded_channel();
        let settled = Listener(told).start().recipient();
        let ledger = persister.open_ledger(OpenLedger { owner, settled });
        Self { owner, ledger, persister: persister.clone(), epoch: 1, sequence: 0, news }
    }

    /// One of many owners, which ends as soon as it has written one player.
    pub(crate) fn write_and_end(number: u64, persister: &Persister) {
        let mut author = Self::of(Owner::numbered("author", number), persister);
        author.put(number, &Player::numbered(number));
        persister.close_ledger(author.owner, author.ledger);
    }

    /// Hands over a write of one player, and returns its sequence.
    pub(crate) fn put(&mut self, key: u64, player: &Player) -> u64 {
        self.write(vec![Operation::put(key.to_be_bytes(), player)])
    }

    pub(crate) fn delete(&mut self, key: u64) -> u64 {
        self.write(vec![Operation::delete::<Player>(key.to_be_bytes())])
    }

    pub(crate) fn write(&mut self, operations: Vec<Operation>) -> u64 {
        self.sequence += 1;
        self.persister.write(Write {
            owner: self.owner,
            epoch: self.epoch,
            sequence: self.sequence,
            operations,
        });
        self.sequence
    }

    /// The reason why the disk does not take the writes.
    pub(crate) async fn refused(&self) -> String {
        let mut disk = self.persister.disk().watch();
        let sick = disk.wait_for(|health| *health != DiskHealth::Sound).await.expect("a disk that is there");
        sick.reason().expect("it is sick").to_owned()
    }

    /// The next news, which must come.
    pub(crate) async fn settled(&mut self) -> Settled {
        let news = tokio::time::timeout(Duration::from_secs(60), self.news.recv()).await;
        news.expect("news within a minute").expect("a listener that lives")
    }

    /// All news up to success of the last write.
    pub(crate) async fn all_written(&mut self) -> usize {
        for commits in 1.. {
            let settled = self.settled().await;
            settled.outcome.expect("a commit that succeeds");
            if settled.through == self.sequence {
                return commits;
            }
        }
        0
    }

    /// The next news, if it has already arrived.
    pub(crate) fn heard(&mut self) -> Option<Settled> {
        self.news.try_recv().ok()
    }
}

struct Listener(mpsc::UnboundedSender<Settled>);

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<Settled> for Listener {
    type Result = ();

    fn handle(&mut self, settled: Settled, _: &mut Context<Self>) {
        let _ = self.0.send(settled);
    }
}
