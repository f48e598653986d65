//! Tests with real directories: moved, copied, restored and seen under two paths.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use super::*;

fn directory(name: &str) -> (tempfile::TempDir, PathBuf) {
    let stage = tempfile::tempdir().unwrap();
    let path = stage.path().join(name);
    fs::create_dir(&path).unwrap();
    (stage, path)
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().expect("there is a cp");
    assert!(copied.success());
}

fn text(directory: &Path) -> String {
    fs::read_to_string(directory.join(IDENTITY_FILE)).unwrap()
}

#[test]
fn a_new_directory_gets_a_mark_of_its_own_for_good_th053() {
    let (stage, one) = directory("one");
    let mark = settle(&one, true).unwrap();
    assert!(mark.len() == 16 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()), "{mark}");
    let file = fs::metadata(one.join(IDENTITY_FILE)).unwrap();
    assert_eq!(file.permissions().mode() & 0o7777, 0o600);
    assert_eq!((settle(&one, true).unwrap(), settle(&one, false).unwrap()), (mark.clone(), mark.clone()));
    // Another directory at the same path, perhaps with the same inode, belongs to another host.
    fs::remove_dir_all(&one).unwrap();
    fs::create_dir(&one).unwrap();
    assert_ne!(settle(&one, true).unwrap(), mark);
    assert_eq!(fs::read_dir(stage.path()).unwrap().count(), 1);
}

#[test]
fn the_directory_of_an_earlier_version_keeps_the_mark_that_it_had_th053() {
    let (_stage, one) = directory("one");
    let computed = former_mark(&one, &place::of(&one).unwrap()).unwrap();
    assert_eq!(&*settle(&one, false).unwrap(), computed);
    assert!(text(&one).contains(&format!("mark {computed}\n")));
}

#[test]
fn a_moved_or_restored_directory_keeps_its_mark_th053() {
    let (stage, one) = directory("one");
    let two = stage.path().join("two");
    let mark = settle(&one, true).unwrap();
    fs::rename(&one, &two).unwrap();
    assert_eq!(settle(&two, false).unwrap(), mark);
    assert!(text(&two).contains(&format!("path {}\n", two.canonicalize().unwrap().display())));
    // Moved to another file system: all inodes change.
    copy(&two, &one);
    fs::remove_dir_all(&two).unwrap();
    assert_eq!(settle(&one, false).unwrap(), mark);
    // A backup restored at the same path.
    copy(&one, &two);
    fs::remove_dir_all(&one).unwrap();
    copy(&two, &one);
    fs::remove_dir_all(&two).unwrap();
    assert_eq!(settle(&one, false).unwrap(), mark);
    // A device number that changed with a reboot.
    let here = text(&one);
    let device = here.lines().find(|line| line.starts_with("device ")).unwrap();
    let elsewhere = here.replace(device, "device 4711");
    fs::write(one.join(IDENTITY_FILE), &elsewhere).unwrap();
    assert_eq!(settle(&one, false).unwrap(), mark);
    assert_ne!(text(&one), elsewhere);
    // Another host is at its former path.
    fs::rename(&one, &two).unwrap();
    fs::create_dir(&one).unwrap();
    assert_ne!(settle(&one, true).unwrap(), mark);
    assert_eq!(settle(&two, false).unwrap(), mark);
}

#[test]
fn a_copy_beside_its_original_is_refused_until_it_is_made_a_host_of_its_own_th053() {
    let (stage, original) = directory("original");
    let clone = stage.path().join("copy");
    let mark = settle(&original, true).unwrap();
    copy(&original, &clone);
    let before = text(&clone);
    for _ in 0..2 {
        let refused = settle(&clone, false).unwrap_err();
        assert!(matches!(&refused, OwnershipError::Copied { mark: told, .. } if **told == *mark));
        let told = refused.to_string();
        for word in ["one is a copy", "remove callboard.identity and callboard.redb", &*mark] {
            assert!(told.contains(word), "{told}");
        }
        assert!(told.contains(&original.canonicalize().unwrap().display().to_string()), "{told}");
    }
    assert_eq!(text(&clone), before, "nothing is written");
    assert_eq!(settle(&original, false).unwrap(), mark, "the original goes on");
    fs::remove_file(clone.join(IDENTITY_FILE)).unwrap();
    let own = settle(&clone, true).unwrap();
    assert_ne!(own, mark);
    assert_eq!((settle(&clone, false).unwrap(), settle(&original, false).unwrap()), (own, mark));
}

#[test]
fn a_copy_takes_the_place_of_an_original_that_gave_its_identity_up_th053() {
    let (stage, original) = directory("original");
    let clone = stage.path().join("copy");
    let mark = settle(&original, true).unwrap();
    copy(&original, &clone);
    fs::remove_file(original.join(IDENTITY_FILE)).unwrap();
    assert_eq!(settle(&clone, false).unwrap(), mark);
    assert_ne!(settle(&original, true).unwrap(), mark);
}

#[test]
fn a_link_in_the_place_of_the_identity_is_not_followed_and_named() {
    let (stage, original) = directory("original");
    settle(&original, true).unwrap();
    let (identity, elsewhere) = (original.join(IDENTITY_FILE), stage.path().join("elsewhere"));
    fs::rename(&identity, &elsewhere).unwrap();
    symlink(&elsewhere, &identity).unwrap();
    let told = settle(&original, false).unwrap_err().to_string();
    assert!(told.contains("symbolic link") && told.contains(IDENTITY_FILE), "{told}");
}

#[test]
fn one_directory_under_two_paths_is_no_copy_th053() {
    let (stage, real) = directory("real");
    let link = stage.path().join("link");
    let mark = settle(&real, true).unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(settle(&link, false).unwrap(), mark);
    let moved = stage.path().join("moved");
    fs::remove_file(&link).unwrap();
    fs::rename(&real, &moved).unwrap();
    symlink(&moved, &real).unwrap();
    assert_eq!(settle(&real, false).unwrap(), mark);

    let bound = stage.path().join("bound");
    fs::create_dir(&bound).unwrap();
    let mounted = Command::new("mount").arg("--bind").args([&moved, &bound]).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED: a directory that is mounted twice is not shown, since nothing may be mounted here"
        );
        return;
    }
    let marks = [settle(&bound, false), settle(&moved, false), settle(&bound, false)];
    let unmounted = Command::new("umount").arg(&bound).status().expect("there is an umount");
    assert!(unmounted.success());
    for found in marks {
        assert_eq!(found.unwrap(), mark);
    }
}

#[test]
fn a_file_that_cannot_be_understood_is_refused_and_left_as_it_is() {
    let (stage, one) = directory("one");
    let file = one.join(IDENTITY_FILE);
    let mark = settle(&one, true).unwrap();
    let good = text(&one);
    for (text, word) in [("", "first line"), (&good.replace("identity 1", "identity 9"), "format 9")] {
        fs::write(&file, text).unwrap();
        let refused = settle(&one, false).unwrap_err();
        assert!(refused.to_string().contains(word) && !refused.is_transient(), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::remove_file(&file).unwrap();
    let made = Command::new("mkfifo").arg(&file).status().expect("there is a mkfifo");
    assert!(made.success());
    let refused = settle(&one, false).unwrap_err().to_string();
    assert!(
        refused.contains("not a short file") && refused.contains("restore it from a backup"),
        "{refused}"
    );
    fs::remove_file(&file).unwrap();
    // A start that was killed while writing it.
    fs::write(&file, &good).unwrap();
    let moved = stage.path().join("moved");
    fs::rename(&one, &moved).unwrap();
    fs::write(moved.join("callboard.identity.new"), "half").unwrap();
    assert_eq!(settle(&moved, false).unwrap(), mark);
    assert!(!moved.join("callboard.identity.new").exists());
}

#[test]
fn what_cannot_be_seen_is_neither_a_copy_nor_moved_th053() {
    let (stage, one) = directory("one");
    let two = stage.path().join("two");
    settle(&one, true).unwrap();
    fs::rename(&one, &two).unwrap();
    // A directory with the name of the mark file.
    fs::create_dir(&one).unwrap();
    fs::write(one.join(IDENTITY_FILE), "what is this").unwrap();
    let refused = settle(&two, false).unwrap_err();
    assert!(matches!(refused, OwnershipError::Unclear { .. }), "{refused}");
    let here = two.canonicalize().unwrap();
    assert!(refused.to_string().contains(&format!("write `path {}`", here.display())), "{refused}");
    let told =
        text(&two).replace(&one.canonicalize().unwrap().display().to_string(), &here.display().to_string());
    fs::write(two.join(IDENTITY_FILE), told).unwrap();
    settle(&two, false).unwrap();
}

/// Starts like a host, without waiting for others.
fn start(directory: &Path, marks: &Path) -> Result<(Arc<str>, Option<HeldMark>), OwnershipError> {
    settled(directory, true, |kept| held::hold(marks, directory, kept, std::time::Duration::ZERO))
}

#[test]
fn a_copy_does_not_run_beside_its_original_that_was_moved_away_th053() {
    let (stage, original) = directory("original");
    let (clone, moved, marks) =
        (stage.path().join("copy"), stage.path().join("moved"), stage.path().join("callboard/marks"));
    let (mark, held) = start(&original, &marks).unwrap();
    drop(held);
    copy(&original, &clone);
    fs::rename(&original, &moved).unwrap();
    let (_, held) = start(&moved, &marks).unwrap();
    let before = text(&clone);
    let refused = start(&clone, &marks).unwrap_err();
    assert!(matches!(&refused, OwnershipError::Held { other: Some(_), .. }), "{refused}");
    assert!(!refused.is_transient());
    let (told, lock) = (refused.to_string(), marks.join(&*mark).display().to_string());
    let there = moved.canonicalize().unwrap().display().to_string();
    assert!(!told.contains("  "), "{told}");
    for word in [&*lock, &*there, "fuser -v", "remove callboard.identity and callboard.redb"] {
        assert!(told.contains(word), "{told}");
    }
    // Processes of that host may survive its end.
    drop(held);
    let refused = start(&clone, &marks).unwrap_err();
    assert!(
        matches!(&refused, OwnershipError::Copied { other, .. } if *other == moved.canonicalize().unwrap())
    );
    assert_eq!(text(&clone), before, "nothing is written");
    let (again, held) = start(&moved, &marks).unwrap();
    assert!(again == mark && held.is_some(), "the original goes on");
    drop(held);
    // Its mark file is removed.
    fs::remove_file(moved.join(IDENTITY_FILE)).unwrap();
    assert_eq!(start(&clone, &marks).unwrap().0, mark);
    assert_ne!(start(&moved, &marks).unwrap().0, mark);
}

#[test]
fn a_directory_that_is_moved_again_and_again_holds_its_mark_and_leaves_no_file_for_good_th053() {
    let (stage, one) = directory("one");
    let (two, marks) = (stage.path().join("two"), stage.path().join("callboard/marks"));
    let files = || fs::read_dir(&marks).unwrap().count();
    let (mark, held) = start(&one, &marks).unwrap();
    assert!(held.is_some());
    drop(held);
    fs::rename(&one, &two).unwrap();
    assert_eq!(start(&two, &marks).unwrap().0, mark);
    copy(&two, &one);
    fs::remove_dir_all(&two).unwrap();
    assert_eq!(start(&one, &marks).unwrap().0, mark);
    // An incomplete file is ignored.
    fs::write(marks.join(&*mark), "callboard ident").unwrap();
    let (again, held) = start(&one, &marks).unwrap();
    // One file for the mark, and two for the place.
    assert_eq!((again, files()), (mark, 3));
    // The files of a deleted directory are removed, but never locked ones.
    fs::remove_dir_all(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let other = start(&two, &marks).unwrap();
    assert_eq!(files(), 6);
    drop(held);
    drop(other);
    assert!(start(&two, &marks).unwrap().1.is_some());
    assert_eq!(files(), 3);
}

#[test]
fn a_host_starts_also_where_no_mark_can_be_held() {
    let (stage, one) = directory("one");
    fs::write(stage.path().join("callboard"), "").unwrap();
    let (mark, held) = start(&one, &stage.path().join("callboard/marks")).unwrap();
    assert!(held.is_none());
    assert_eq!(settle(&one, false).unwrap(), mark);
}
