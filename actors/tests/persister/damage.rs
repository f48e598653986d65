//! RES-08 and P2: a damaged record is set aside, named, and takes nothing else along; an older one is migrated.

use std::path::Path;

use callboard_actors::persister::{
    DecodeError, LoadError, Operation, Quarantined, Record, Table, decode_payload, encode,
};
use redb::{Database, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

use crate::common::{Author, Player, closed_file, open, play, players};
use crate::disk::{Disk, Random};

type Rows = TableDefinition<'static, &'static [u8], &'static [u8]>;

const PLAYERS: Rows = TableDefinition::new("players");

/// Changes the bytes of stored players, by number, behind the persister's back.
fn tamper(file: &Path, mut change: impl FnMut(u64, &mut Vec<u8>)) {
    let database = Database::open(file).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(PLAYERS).unwrap();
        let rows: Vec<_> = table
            .iter()
            .unwrap()
            .map(|row| row.map(|(key, bytes)| (key.value().to_vec(), bytes.value().to_vec())).unwrap())
            .collect();
        for (key, mut bytes) in rows {
            change(u64::from_be_bytes(key.as_slice().try_into().unwrap()), &mut bytes);
            table.insert(key.as_slice(), bytes.as_slice()).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Loads from a directory, in a run of its own.
fn keys_damaged(data_dir: &Path) -> Vec<u64> {
    play(async {
        let persister = open(data_dir).await;
        let loaded = persister.load::<Player>().await.unwrap();
        for (key, player) in &loaded.rows {
            let number = u64::from_be_bytes(key.as_slice().try_into().unwrap());
            assert_eq!(*player, Player::numbered(number), "every other record is sound");
        }
        persister.close().await.unwrap();
        loaded.damaged.iter().map(|one| u64::from_be_bytes(one.key.as_slice().try_into().unwrap())).collect()
    })
}

#[test]
fn res_08_whichever_byte_of_a_record_flips_exactly_that_record_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(200)).unwrap();
    let mut flipped = vec![];
    tamper(&file, |number, bytes| {
        let at = usize::try_from(number / 2).unwrap();
        if number % 2 == 0 && at < bytes.len() {
            bytes[at] ^= 1 << (number % 8);
            flipped.push(number);
        }
    });
    assert!(flipped.len() > 30, "there is a record for each byte of a record");
    assert_eq!(keys_damaged(directory.path()), flipped);
    assert_eq!(keys_damaged(directory.path()), [0; 0], "they are in quarantine and not reported again");
}

#[test]
fn res_08_at_whichever_length_a_record_is_cut_exactly_that_record_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(100)).unwrap();
    let mut cut = vec![];
    tamper(&file, |number, bytes| {
        let length = usize::try_from(number).unwrap();
        if length < bytes.len() {
            bytes.truncate(length);
            cut.push(number);
        }
    });
    assert_eq!(keys_damaged(directory.path()), cut);
}

#[test]
fn res_08_what_is_in_quarantine_can_be_looked_at_and_its_place_is_free_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(5)).unwrap();
    let mut bytes_of_three = vec![];
    tamper(&file, |number, bytes| {
        if number == 3 {
            bytes[9] ^= 0x10;
            bytes_of_three.clone_from(bytes);
        }
    });
    play(async {
        let persister = open(directory.path()).await;
        let loaded = persister.load::<Player>().await.unwrap();
        assert_eq!(loaded.rows.len(), 4);
        assert!(matches!(loaded.damaged[0].reason, DecodeError::Checksum { .. }), "{:?}", loaded.damaged);
        let quarantined = persister.load::<Quarantined>().await.unwrap().rows;
        let (_, one) = &quarantined[0];
        assert_eq!((one.table.as_str(), one.key.as_slice()), ("players", 3_u64.to_be_bytes().as_slice()));
        assert_eq!(one.bytes, bytes_of_three);
        assert!(one.reason.contains("checksum") && one.at > 1_700_000_000, "{one:?}");
        assert_eq!(quarantined.len(), 1);
        let mut author = Author::new("common", &persister);
        author.put(3, &Player::numbered(3));
        author.all_written().await;
        assert_eq!(players(&persister).await.len(), 5);
    });
}

/// A damaged record is found only once, so a reader that fails because of another table must be notified of it as well.
#[test]
fn res_08_what_was_set_aside_is_told_also_if_another_table_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(5)).unwrap();
    tamper(&file, |number, bytes| bytes[9] ^= u8::from(number == 3));
    play(async {
        let persister = open(directory.path()).await;
        let reading = persister.read(|tables| {
            tables.load::<Player>()?;
            Err::<(), _>(LoadError::Closed { path: "of another table".into() })
        });
        let (read, damaged) = reading.await;
        assert!(matches!(read, Err(LoadError::Closed { .. })), "{read:?}");
        let keys: Vec<_> = damaged.into_iter().map(|one| one.key).collect();
        assert_eq!(keys, [3_u64.to_be_bytes()]);
    });
}

#[test]
fn res_08_a_record_that_lies_under_the_key_of_another_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(5)).unwrap();
    let mut first = vec![];
    tamper(&file, |number, bytes| match number {
        1 => first.clone_from(bytes),
        4 => bytes.clone_from(&first),
        _ => {}
    });
    assert_eq!(keys_damaged(directory.path()), [4]);
}

/// Flips bytes everywhere in a file that was closed in order. Whatever they meant, no false record is ever loaded, and every record
/// that is not loaded is reported.
#[test]
fn res_08_wherever_a_byte_of_the_file_flips_no_record_is_false_and_none_is_missed_in_silence() {
    let whole = closed_file(120);
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let used: Vec<usize> = (0..whole.len() / 4_096)
        .filter(|page| whole[page * 4_096..(page + 1) * 4_096].iter().any(|byte| *byte != 0))
        .collect();
    let picks = used.iter().flat_map(|page| (0..4_096).step_by(97).map(move |at| page * 4_096 + at));
    let (mut refused, mut reported, mut unharmed) = (0, 0, 0);
    for at in picks.chain(0..320) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (random.next() % 8);
        let disk = Disk::holding(bytes.clone());
        play(async {
            let Ok(persister) = disk.open(directory.path()).await else {
                assert!(disk.bytes() == bytes, "byte {at}: refused, and touched nevertheless");
                refused += 1;
                return;
            };
            match persister.load::<Player>().await {
                Ok(loaded) => {
                    for (key, player) in &loaded.rows {
                        let number = u64::from_be_bytes(key.as_slice().try_into().unwrap());
                        assert_eq!(*player, Player::numbered(number), "byte {at}");
                    }
                    let is_whole = loaded.rows.len() == 120;
                    assert!(
                        is_whole || !loaded.damaged.is_empty(),
                        "byte {at}: {} rows and no word",
                        loaded.rows.len()
                    );
                    if is_whole { unharmed += 1 } else { reported += 1 }
                }
                Err(error) => {
                    assert!(matches!(error, LoadError::Damaged { .. }), "byte {at}: {error}");
                    reported += 1;
                }
            }
            let _ = persister.close().await;
        });
    }
    println!("{refused} refused, {reported} reported, {unharmed} without effect on the table");
    assert!(refused > 0 && reported > 0 && unharmed > 0);
}

/// Players as a later version stores them: with an age, which older records do not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AgedPlayer {
    name: String,
    age: Option<u8>,
    parts: Vec<String>,
}

impl Record for AgedPlayer {
    const TABLE: Table = Table("players");
    const SCHEMA: u16 = 2;

    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        match schema {
            1 => {
                let Player { name, parts } = decode_payload(payload)?;
                Ok(Self { name, age: None, parts })
            }
            schema => Err(DecodeError::UnknownSchema { schema }),
        }
    }
}

fn aged(number: u64) -> AgedPlayer {
    let Player { name, parts } = Player::numbered(number);
    AgedPlayer { name, age: None, parts }
}

/// The file was written by [`write_the_fixture`] with redb 4.4.0, when players had schema 1 and the file schema was 1.
pub(crate) const FIXTURE: &[u8] = include_bytes!("players-of-schema-1.redb");

/// Writes a new fixture to the path in `CALLBOARD_TEST_FIXTURE`. To be run only to make a fixture of a newer schema, beside the
/// old ones, which stay: `CALLBOARD_TEST_FIXTURE=... cargo test -p callboard-actors --test persister write_the_fixture`.
#[test]
fn write_the_fixture() {
    if let Some(path) = std::env::var_os("CALLBOARD_TEST_FIXTURE") {
        std::fs::write(path, closed_file(20)).unwrap();
    }
}

#[test]
fn p2_a_file_that_an_older_version_wrote_is_read_migrated_and_then_of_the_new_schema() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("callboard.redb"), FIXTURE).unwrap();
    for _ in 0..2 {
        play(async {
            let persister = open(directory.path()).await;
            let loaded = persister.load::<AgedPlayer>().await.unwrap();
            let expected: Vec<_> =
                (0..20_u64).map(|number| (number.to_be_bytes().to_vec(), aged(number))).collect();
            assert_eq!(loaded.rows, expected);
            assert!(loaded.damaged.is_empty());
        });
    }
    play(async {
        let persister = open(directory.path()).await;
        let error = persister.load::<Player>().await.unwrap_err();
        assert!(
            matches!(error, LoadError::Newer { theirs: 2, ours: 1, .. }),
            "all records are new now: {error}"
        );
    });
}

#[test]
fn p2_one_record_of_a_newer_schema_keeps_an_older_version_from_touching_its_table() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        author.put(1, &Player::numbered(1));
        author.write(vec![Operation::put(2_u64.to_be_bytes(), &aged(2))]);
        author.all_written().await;
        for _ in 0..2 {
            let error = persister.load::<Player>().await.unwrap_err();
            assert!(matches!(error, LoadError::Newer { .. }) && !error.is_transient(), "{error}");
        }
        assert_eq!(persister.load::<Quarantined>().await.unwrap().rows, []);
        let rows = persister.load::<AgedPlayer>().await.unwrap().rows;
        assert_eq!(rows.len(), 2);
    });
}

#[test]
fn p2_an_older_record_that_nothing_migrates_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let persister = open(directory.path()).await;
        let mut author = Author::new("common", &persister);
        let mut record = encode(&aged(1));
        record[..2].copy_from_slice(&0_u16.to_le_bytes());
        author.write(vec![Operation::Put { table: AgedPlayer::TABLE, key: vec![1], record }]);
        author.all_written().await;
        let loaded = persister.load::<AgedPlayer>().await.unwrap();
        assert_eq!(loaded.rows, []);
        assert_eq!(loaded.damaged[0].reason, DecodeError::UnknownSchema { schema: 0 });
    });
}
