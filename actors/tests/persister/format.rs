//! Tests the format of the database file with any version of redb.

use callboard_actors::persister::{OpenError, Options, Persister, Quarantined, decode, encode};

use super::common::{Player, closed_file, play, players};
use super::damage::FIXTURE;

/// The bytes of a redb file that identify it: its magic number, and the format of each of its two commit slots.
const MAGIC: std::ops::Range<usize> = 0..9;
const FORMATS: [usize; 2] = [64, 192];

/// A host may be rolled back to a version with an older redb, which must know the format of the file.
#[test]
fn p2_a_new_file_has_the_format_of_the_one_that_redb_4_4_wrote() {
    let file = closed_file(20);
    assert_eq!(file[MAGIC], FIXTURE[MAGIC]);
    for place in FORMATS {
        assert_eq!((file[place], FIXTURE[place]), (3, 3), "the commit slot at {place}");
    }
}

#[test]
fn p2_a_file_that_redb_4_4_wrote_is_read_without_a_migration() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("callboard.redb"), FIXTURE).unwrap();
    play(async {
        let persister = super::common::open(directory.path()).await;
        let expected: Vec<_> = (0..20).map(|number| (number, Player::numbered(number))).collect();
        assert_eq!(players(&persister).await, expected);
    });
}

#[test]
fn p2_a_file_of_a_format_that_redb_does_not_know_is_refused_and_left_alone() {
    let mut file = closed_file(20);
    for place in FORMATS {
        file[place] = 4;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("callboard.redb");
    std::fs::write(&path, &file).unwrap();
    let opened = play(Persister::open(Options::new(directory.path())));
    let error = opened.expect_err("a database of an unknown format is not opened");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), file);
}

#[test]
fn p2_records_in_quarantine_have_these_bytes_whatever_library_writes_them() {
    let record = Quarantined {
        table: "players".to_owned(),
        key: vec![0, 255],
        bytes: vec![1; 3],
        reason: "torn".to_owned(),
        at: 1_700_000_000,
    };
    let bytes = b"\x01\x00\x07players\x02\x00\xff\x03\x01\x01\x01\x04torn\xfc\x00\xf1Se";
    assert_eq!(encode(&record).escape_ascii().to_string(), bytes.escape_ascii().to_string());
    assert_eq!(decode::<Quarantined>(bytes).unwrap(), record);
}
