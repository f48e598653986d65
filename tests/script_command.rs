//! Tests `callboard script` for a user who has never used it: every mistake has a message, a position and an exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");

fn callboard(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(CALLBOARD);
    command.arg("script").args(arguments).current_dir(directory);
    command
}

/// The result of the command: its exit code, its standard output and its standard error.
fn script(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let ran = callboard(directory, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr))
}

fn stage(name: &str, text: impl AsRef<[u8]>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), text).unwrap();
    directory
}

/// The command fails with this message and does nothing else.
fn refused(directory: &Path, arguments: &[&str], words: &str) {
    let (code, out, told) = script(directory, arguments);
    assert_eq!((code, out.as_str()), (2, ""), "{told}");
    assert!(told.contains(words), "{told}\nwas to contain\n{words}");
    assert_eq!(told.lines().count(), 1, "one line is enough: {told}");
}

#[test]
fn what_is_no_script_is_called_by_its_name() {
    let stage = stage("binary", b"host start\n\x7fELF\xff\xfe\n---\n");
    let here = stage.path();
    refused(here, &["missing"], "callboard: missing: cannot be read: No such file or directory");
    refused(
        here,
        &["."],
        "callboard: .: cannot be read: this is a directory; give the scripts in it, as in ./*",
    );
    refused(here, &["binary"], "callboard: binary:2: this is no text in UTF-8; a script is lines of a verb");
    refused(here, &["/dev/zero"], "callboard: /dev/zero is longer than 1048576 bytes");
}

#[test]
fn a_script_of_a_hundred_thousand_lines_is_refused_with_the_first_line_too_many() {
    let stage = stage("long", "(host start)\n".repeat(2) + &"list\n".repeat(100_000) + "---\n");
    refused(stage.path(), &["long"], "callboard: long:10001: a script has at most 10000 lines");
}

#[test]
fn a_mistake_has_its_line_and_what_was_expected() {
    for (text, words) in [
        ("host start\n\nfly\n---\n", "s:3: there is no verb \"fly\""),
        ("host\n---\n", "s:1: what the host does is missing; say: host start|start-beside|stop|detach|kill"),
        (
            "host start now\n---\n",
            "s:1: nothing is known of now; say: host start|start-beside|stop|detach|kill",
        ),
        ("host strt\nlist\n", "s:1: what the host does: \"strt\" is none of start"),
        (
            "(host start)\n!list\n",
            "s:2: `list` was expected to be a mistake, but returned: no plugin is registered",
        ),
        ("host start\nlist \"\n---\n", "s:2: this is no line of a script: list \";"),
        ("host start\nlist /all\n---\n", "s:2: this is no line of a script: list /all; a word that begins"),
        ("host start\ncrash instance csi-node/zfs\n---\n", "s:2: no instance csi-node/zfs runs; there are "),
        ("host start\nend host\n---\n", "s:2: the host does not give up by itself; say `host stop`"),
        ("host start\nstart-task exec red\n---\n", "s:2: the name of the task is missing; say: start-task"),
        ("host start\nrecover-task exec red main\n---\n", "s:2: the script has no handle of red/main"),
        ("driver exec\ntask-ends exec red main exited\n---\n", "s:2: no task red/main of exec runs"),
        ("driver exec\ngarble exec output\n---\n", "s:2: stream: \"output\" is none of fingerprint, events"),
        (
            "driver exec\nanswer exec Probe ready\n---\n",
            "s:2: call: \"Probe\" is none of PluginInfo, SetConfig",
        ),
        (
            "host start\nsubscribe reader registry capacity=9999999999\n---\n",
            "s:2: capacity: 9999999999 is too much; at most 4294967295",
        ),
        ("(host start)\nplugin red name=a name=b\n---\n", "s:2: name= is said twice"),
        ("host start\n list\n---\n", "s:2: a line begins with its verb, and this one with a blank: list;"),
        ("\u{feff}list\n---\n", "s:1: the script begins with a byte order mark; save it without one"),
        ("list \u{1b}[31m\n---\n", "s:1: this is no line of a script: list \\u{1b}[31m; a word"),
        ("host start\nawait-drivers\n---\n", "s:2: within=DURATION is missing; say: await-drivers"),
    ] {
        refused(stage("s", text).path(), &["s"], words);
    }
}

#[test]
fn a_difference_is_shown_and_is_no_mistake() {
    let stage = stage("s", "host start\nlist\n---\na plugin\n");
    let (code, out, told) = script(stage.path(), &["s"]);
    assert_eq!((code, told.as_str()), (1, ""));
    assert!(out.contains("-a plugin\n") && out.contains("+no plugin is registered\n"), "{out}");
    // A mistake in one script does not prevent the others from being played, and the worst result is the exit code.
    let (code, out, told) = script(stage.path(), &["missing", "s"]);
    assert_eq!(code, 2);
    assert!(out.contains("-a plugin\n") && told.contains("missing: cannot be read"), "{out}{told}");
}

#[test]
fn of_last_lines_without_an_outcome_the_outcome_is_shown_and_written_down() {
    for text in ["(host start)\nlist", "(host start)\nlist\n"] {
        let stage = stage("s", text);
        let (code, out, told) = script(stage.path(), &["s"]);
        assert_eq!((code, told.as_str()), (1, ""));
        assert!(out.contains("+---\n+no plugin is registered\n"), "{out}");
        let whole = "(host start)\nlist\n---\nno plugin is registered\n";
        assert_eq!(script(stage.path(), &["--show", "s"]), (0, whole.to_owned(), String::new()));
        assert_eq!(script(stage.path(), &["--update", "s"]).0, 0);
        assert_eq!(fs::read_to_string(stage.path().join("s")).unwrap(), whole);
    }
}

#[test]
fn a_run_that_is_drawn_is_compared_as_well() {
    let stage = stage("s", "host start\nlist\n---\na plugin\n");
    let (code, out, told) = script(stage.path(), &["--diagram", "s.svg", "s"]);
    assert_eq!((code, told.as_str()), (1, ""));
    assert!(out.contains("-a plugin\n"), "{out}");
    assert!(fs::read_to_string(stage.path().join("s.svg")).unwrap().ends_with("</svg>\n"));
}

#[test]
fn an_outcome_that_cannot_be_printed_is_a_failure_that_is_told() {
    let stage = stage("s", "host start\nlist\n---\na plugin\n");
    for arguments in [&["--show", "s"][..], &["--verbs"], &["s"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = callboard(stage.path(), arguments).stdout(full).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.starts_with("callboard: cannot write to standard output: No space left"), "{told}");
    }
}

#[test]
fn a_script_that_is_interrupted_leaves_nothing_behind() {
    let name = format!("interrupted-{}", std::process::id());
    let lines = "pass 1h\n".repeat(9_000);
    let stage =
        stage("s", format!("(host start)\nplugin {name}\nregister {name} csi-node/zfs\n{lines}---\n"));
    let mut playing = callboard(stage.path(), &["s", "s"]).stderr(Stdio::piped()).spawn().unwrap();
    let of_stages = || fs::read_dir("/tmp").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let has_socket = |directory: &PathBuf| directory.join(format!("sockets/{name}.sock")).exists();
    let directory = loop {
        if let Some(directory) = of_stages().find(has_socket) {
            break directory;
        }
        assert_eq!(playing.try_wait().unwrap(), None, "it is over too early");
        std::thread::sleep(Duration::from_millis(5));
    };
    let pid = rustix::process::Pid::from_child(&playing);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = playing.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.starts_with("callboard: s:") && told.ends_with("the script was given up before this line\n"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "the second one is not begun: {told}");
    assert!(!directory.exists(), "{} is left", directory.display());
}

#[test]
fn a_file_that_cannot_be_updated_is_as_it_was_and_one_that_can_keeps_its_permissions() {
    let stage = stage("s", "host start\nlist\n---\n");
    let path = stage.path().join("s");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    refused(stage.path(), &["--update", "s"], "callboard: s: cannot be written: its permissions forbid it");
    assert_eq!(fs::read_to_string(&path).unwrap(), "host start\nlist\n---\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = stage.path().join("link");
    std::os::unix::fs::symlink("s", &link).unwrap();
    let (code, _, told) = script(stage.path(), &["--update", "link"]);
    assert_eq!((code, told.as_str()), (0, "link: updated\n"));
    assert!(fs::read_to_string(&path).unwrap().contains("no plugin is registered"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_dir(stage.path()).unwrap().count(), 2, "nothing is left over");
}

#[test]
fn a_picture_needs_a_place_and_an_ending() {
    let stage = stage("s", "(host start)\n---\nok\n");
    refused(
        stage.path(),
        &["--diagram", "nowhere/run.svg", "s"],
        "callboard: nowhere/run.svg: cannot be written: there is no directory nowhere; make it before",
    );
    let (code, _, told) = script(stage.path(), &["--diagram", "run.png", "s"]);
    assert_eq!(code, 2);
    assert!(told.contains("its name ends neither in .svg nor in .mmd"), "{told}");
    assert_eq!(script(stage.path(), &["--diagram", "run.svg", "s"]).0, 0);
    assert!(fs::read_to_string(stage.path().join("run.svg")).unwrap().ends_with("</svg>\n"));
}

#[test]
fn a_script_comes_with_the_line_ends_of_another_system_and_without_a_last_one() {
    let stage = stage("s", "host start\r\nlist\r\n---\r\n");
    let (code, _, told) = script(stage.path(), &["--show", "s"]);
    assert_eq!((code, told.as_str()), (0, ""));
}
