//! Why an executable could not start, found out on real files (D33, D34, PRC-06).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use callboard_actors::goplugin::{Finding, diagnose};

/// The position of the machine type in the header of a program.
const MACHINE: std::ops::Range<usize> = 18..20;

fn file(directory: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, content).expect("writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
    path
}

fn findings(path: &Path) -> Vec<Finding> {
    diagnose(path, []).findings
}

#[test]
fn nothing_is_wrong_with_a_program_that_runs_d34() {
    assert_eq!(findings(&std::env::current_exe().expect("this test is one")), []);
}

#[test]
fn each_reason_is_found_on_a_real_file_that_the_kernel_refuses_d34_prc_06() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    let good = fs::read(std::env::current_exe().expect("this test is one")).expect("readable");
    let mut alien = good.clone();
    let other: u16 = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    alien[MACHINE].copy_from_slice(&other.to_ne_bytes());
    let rows = [
        (at.join("absent"), "cannot be reached"),
        (at.to_owned(), "a directory and no file"),
        (file(at, "forbidden", &good, 0o600), "may not execute it: its mode is 0600"),
        (file(at, "alien", &alien, 0o700), "was compiled for"),
        (file(at, "empty", b"", 0o700), "empty"),
        (file(at, "text", b"no program", 0o700), "no program that the kernel knows"),
        (
            file(at, "script", b"#!/nowhere/python9 -u\n", 0o700),
            "\"/nowhere/python9\", which has to start it",
        ),
        (file(at, "windows", b"MZ\x90\0", 0o700), "a Windows program"),
    ];
    for (path, words) in rows {
        let diagnosis = diagnose(&path, []);
        assert_eq!(diagnosis.findings.len(), 1, "{diagnosis}");
        assert!(diagnosis.to_string().contains(words), "{diagnosis}");
    }
}

#[test]
fn a_program_whose_loader_is_missing_is_told_by_the_path_of_the_loader_d34() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut program = fs::read(std::env::current_exe().expect("this test is one")).expect("readable");
    let Some(at) =
        program.windows(8).take(16 * 1024).position(|bytes| bytes == b"/ld-linu" || bytes == b"/ld-musl")
    else {
        println!("this test is a program without a loader, so that none can be taken from it: not tried");
        return;
    };
    program[at + 1..at + 3].copy_from_slice(b"no");
    let path = file(directory.path(), "plugin", &program, 0o700);
    let found = findings(&path);
    assert!(
        matches!(found.as_slice(), [Finding::RunnerMissing { runner }] if runner.contains("/no-")),
        "{found:?}"
    );
}

#[test]
fn a_pipe_is_no_file_and_delays_no_launch_d34() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o700);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    assert_eq!(findings(&path), [Finding::NoFile { what: "a special file" }]);
}
