//! What opens, what is refused, and that a refusal touches nothing (P2, P5, RES-08).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use callboard_actors::persister::{FILE_SCHEMA, OpenError, Options, Persister};
use redb::{Database, TableDefinition};
use rustix::io::Errno;

use crate::common::{Author, Player, closed_file, open, play, players};
use crate::disk::{Disk, Fault, Unsynced};
use crate::faults::Mounted;

const META: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("meta");

/// Opens a directory that must be refused.
async fn refusal(data_dir: &Path) -> OpenError {
    match Persister::open(Options::new(data_dir)).await {
        Ok(_) => panic!("{} must not open", data_dir.display()),
        Err(error) => error,
    }
}

#[test]
fn a_directory_that_is_not_there_is_created_for_its_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("some").join("where");
    play(async {
        let persister = open(&data_dir).await;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&data_dir), 0o700);
        assert_eq!(mode(persister.path()), 0o600);
        assert_eq!(mode(&data_dir.join("callboard.lock")), 0o600);
    });
}

#[test]
fn every_opening_has_a_higher_run_number_than_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    for run in 1..=5 {
        play(async {
            let persister = open(directory.path()).await;
            assert_eq!(persister.run().get(), run);
        });
    }
}

#[test]
fn a_data_directory_of_two_hundred_bytes_works() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("d".repeat(200));
    play(async {
        open(&data_dir).await;
    });
}

#[test]
fn a_file_where_the_directory_should_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "text").unwrap();
    play(async {
        for path in [file.clone(), file.join("below")] {
            let error = refusal(&path).await;
            assert!(matches!(error, OpenError::NotADirectory { .. }), "{error:?}");
            assert!(error.to_string().contains("not a directory") && !error.is_transient(), "{error}");
        }
    });
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn a_path_that_is_too_long_is_refused_with_its_length() {
    play(async {
        for name in ["d".repeat(300), "d/".repeat(4_000)] {
            let error = refusal(&Path::new("/tmp").join(name)).await;
            assert!(matches!(error, OpenError::PathTooLong { bytes, .. } if bytes > 300), "{error:?}");
        }
    });
}

#[test]
fn a_directory_on_a_read_only_file_system_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::small_tmpfs(directory.path()) else {
        println!("not run: mounting a file system needs root and the right to mount");
        return;
    };
    assert!(mounted.remount_read_only());
    play(async {
        for path in [directory.path().to_owned(), directory.path().join("below")] {
            let error = refusal(&path).await;
            assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
        }
    });
}

#[test]
fn a_directory_of_someone_else_is_refused() {
    if rustix::process::geteuid().is_root() {
        println!("not run: nothing is closed to root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
    play(async {
        let error = refusal(directory.path()).await;
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    });
}

#[test]
fn a_full_file_system_is_refused_and_leaves_nothing_that_hinders_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::small_tmpfs(directory.path()) else {
        println!("not run: mounting a file system needs root and the right to mount");
        return;
    };
    let ballast = directory.path().join("ballast");
    assert!(std::fs::write(&ballast, vec![1; 8 * 1024 * 1024]).is_err());
    play(async {
        let error = refusal(directory.path()).await;
        assert!(matches!(error, OpenError::NoSpace { .. }) && error.is_transient(), "{error:?}");
        std::fs::remove_file(&ballast).unwrap();
        open(directory.path()).await.close().await.unwrap();
    });
}

#[test]
fn what_fails_while_opening_is_named_and_the_next_try_works() {
    for (fault, words) in [
        (Fault::Writes(Errno::NOSPC), "no space is left"),
        (Fault::Writes(Errno::ROFS), "write access"),
        (Fault::Syncs(Errno::IO), "os error 5"),
        (Fault::All(Errno::IO), "os error 5"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        for disk in [Disk::default(), Disk::holding(closed_file(10))] {
            disk.fail(fault);
            play(async {
                let error = disk.open(directory.path()).await.err().unwrap().to_string();
                assert!(error.contains(words) && error.contains("callboard.redb"), "{fault:?}: {error}");
            });
            disk.mend();
            play(async {
                disk.open(directory.path()).await.unwrap();
            });
        }
    }
}

#[test]
fn res_08_what_is_not_a_database_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    for content in ["", "x", "this is not a database", &"\0".repeat(1_100_000)] {
        std::fs::write(&file, content).unwrap();
        play(async {
            let error = refusal(directory.path()).await;
            assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
            assert!(error.to_string().contains("move it away"), "{error}");
        });
        assert_eq!(std::fs::read(&file).unwrap(), content.as_bytes());
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    play(async {
        assert!(matches!(refusal(directory.path()).await, OpenError::Damaged { .. }));
    });
}

#[test]
fn res_08_a_database_of_another_program_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    let database = Database::create(&file).unwrap();
    let transaction = database.begin_write().unwrap();
    let other: TableDefinition<'_, u64, u64> = TableDefinition::new("other");
    transaction.open_table(other).unwrap().insert(1, 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let before = std::fs::read(&file).unwrap();
    play(async {
        let error = refusal(directory.path()).await;
        assert!(error.to_string().contains("other tables"), "{error}");
    });
    assert!(std::fs::read(&file).unwrap() == before);
}

#[test]
fn res_08_a_creation_that_was_cut_short_does_not_hinder_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("callboard.new"), "half a file").unwrap();
    play(async {
        open(directory.path()).await;
    });
    assert!(!directory.path().join("callboard.new").exists());
}

/// Writes facts of another schema into a file, as a later version would: first the checksum and schema, then arbitrary bytes.
fn make_newer(file: &Path) {
    let mut rest = (FILE_SCHEMA + 1).to_le_bytes().to_vec();
    rest.extend_from_slice(b"facts of an unknown schema");
    let facts = [crc32fast::hash(&rest).to_le_bytes().as_slice(), &rest].concat();
    let database = Database::open(file).unwrap();
    let transaction = database.begin_write().unwrap();
    for copy in ["first", "second"] {
        transaction.open_table(META).unwrap().insert(copy, facts.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn p2_a_newer_file_is_refused_and_not_a_byte_of_it_changes_whether_it_was_closed_or_killed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(10)).unwrap();
    make_newer(&file);
    let closed = std::fs::read(&file).unwrap();
    let killed = {
        let database = Database::open(&file).unwrap();
        let transaction = database.begin_write().unwrap();
        let other: TableDefinition<'_, u64, u64> = TableDefinition::new("other");
        transaction.open_table(other).unwrap().insert(1, 1).unwrap();
        transaction.commit().unwrap();
        std::fs::read(&file).unwrap()
    };
    assert!(closed != killed);
    for content in [closed, killed] {
        std::fs::write(&file, &content).unwrap();
        play(async {
            let error = refusal(directory.path()).await;
            let newer = matches!(error, OpenError::Newer { theirs, ours: FILE_SCHEMA, .. } if theirs == FILE_SCHEMA + 1);
            assert!(newer, "{error:?}");
            assert!(error.to_string().contains("run the version that wrote it"), "{error}");
        });
        assert!(std::fs::read(&file).unwrap() == content, "the file was touched");
    }
}

#[test]
fn p2_one_of_the_two_copies_of_the_run_number_is_enough_and_without_both_the_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("callboard.redb");
    std::fs::write(&file, closed_file(10)).unwrap();
    let damage = |copy: &str| {
        let database = Database::open(&file).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert(copy, b"damaged facts, of a length".as_slice()).unwrap();
        transaction.commit().unwrap();
    };
    for (run, copy) in [(2, "first"), (3, "second")] {
        damage(copy);
        play(async {
            assert_eq!(open(directory.path()).await.run().get(), run);
        });
    }
    damage("first");
    damage("second");
    play(async {
        assert!(matches!(refusal(directory.path()).await, OpenError::Damaged { .. }));
    });
}

#[test]
fn p5_a_second_host_is_refused_and_told_who_was_first() {
    let directory = tempfile::tempdir().unwrap();
    play(async {
        let first = open(directory.path()).await;
        let error = refusal(directory.path()).await;
        assert!(matches!(error, OpenError::Locked { .. }) && error.is_transient(), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("process {}, since 20", std::process::id())), "{text}");
        let mut author = Author::new("common", &first);
        author.put(1, &Player::numbered(1));
        author.all_written().await;
    });
}

/// A host that is killed while it starts a process leaves, for a moment, a copy of its lock in that process.
#[test]
fn p5_a_lock_whose_holder_is_gone_is_waited_for_while_a_process_that_it_was_starting_has_a_copy() {
    use rustix::fs::{FlockOperation, flock};
    let directory = tempfile::tempdir().unwrap();
    let mut gone = Command::new("/bin/true").spawn().unwrap();
    gone.wait().unwrap();
    let path = directory.path().join("callboard.lock");
    std::fs::write(&path, format!("pid={} since=1\n", gone.id())).unwrap();
    let copy = std::fs::File::open(&path).unwrap();
    flock(&copy, FlockOperation::NonBlockingLockExclusive).unwrap();
    let becoming_another_program = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(copy);
    });
    play(async { drop(open(directory.path()).await) });
    becoming_another_program.join().unwrap();
}

const HOLD: &str = "CALLBOARD_TEST_HOLD";

/// Not a test of its own: the first host of the next test, in a process that is killed.
#[test]
fn a_host_that_holds_a_directory_until_it_is_killed() {
    let Some(data_dir) = std::env::var_os(HOLD) else { return };
    play(async {
        let persister = open(Path::new(&data_dir)).await;
        let mut author = Author::new("common", &persister);
        for key in 0.. {
            author.put(key, &Player::numbered(key));
            author.all_written().await;
            let note = Path::new(&data_dir).join("acknowledged");
            std::fs::write(note.with_extension("new"), key.to_string()).unwrap();
            std::fs::rename(note.with_extension("new"), note).unwrap();
        }
    });
}

#[test]
fn p4_p5_a_host_that_is_killed_held_its_directory_to_the_last_and_lost_nothing_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("acknowledged");
    let last_acknowledged = || std::fs::read_to_string(&note).ok()?.parse::<u64>().ok();
    for enough in [1, 10, 20, 30, 40] {
        let _ = std::fs::remove_file(&note);
        let mut first = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "opening::a_host_that_holds_a_directory_until_it_is_killed"])
            .env(HOLD, directory.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let begun = std::time::Instant::now();
        while last_acknowledged().is_none_or(|last| last < enough) {
            assert!(begun.elapsed().as_secs() < 60, "the first host makes no progress");
            std::thread::yield_now();
        }
        play(async {
            let error = refusal(directory.path()).await.to_string();
            assert!(error.contains(&format!("process {}", first.id())), "{error}");
        });
        first.kill().unwrap();
        first.wait().unwrap();
        let last = last_acknowledged().unwrap();
        play(async {
            let persister = open(directory.path()).await;
            let players = players(&persister).await;
            for key in 0..=last {
                assert_eq!(players[usize::try_from(key).unwrap()], (key, Player::numbered(key)));
            }
            persister.close().await.unwrap();
        });
    }
}

#[test]
fn res_08_a_file_that_was_cut_at_any_length_is_refused_whole_or_opens_whole() {
    let whole = closed_file(200);
    let directory = tempfile::tempdir().unwrap();
    let lengths = (1..whole.len()).step_by(1_777).chain(whole.len() - 3..=whole.len());
    for length in lengths {
        let cut = whole[..length].to_vec();
        let disk = Disk::holding(cut.clone());
        play(async {
            match disk.open(directory.path()).await {
                Ok(persister) => {
                    assert_eq!(players(&persister).await.len(), 200, "cut at {length}");
                    persister.close().await.unwrap();
                }
                Err(error) => {
                    assert!(matches!(error, OpenError::Damaged { .. }), "cut at {length}: {error}");
                    assert!(
                        disk.after_the_cut(Unsynced::Everything).bytes() == cut,
                        "cut at {length}: it was touched"
                    );
                }
            }
        });
    }
}
