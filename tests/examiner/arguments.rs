//! Tests that wrong arguments are refused before anything is served.

use std::process::Command;

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let mut examiner = Command::new(env!("CARGO_BIN_EXE_callboard"));
    examiner.args(["plugin", "examiner", "--endpoint", "/nonexistent/callboard.sock"]).args(arguments);
    let output = examiner.output().expect("it can be started");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn wrong_arguments_of_an_exam_are_refused_with_what_is_expected() {
    let (code, error) = refused(&[]);
    assert_eq!(code, Some(2), "{error}");
    assert_eq!(error, "callboard: an exam needs volumes: say with --volumes where they are kept\n");
    for (wrong, expected) in [
        ("--needs-secret=NodeStageVolume", "expected CALL=KEY, for instance NodeStageVolume=token"),
        ("--needs-secret=Stage=token", "expected one of GetPluginInfo"),
        ("--needs-secret=Probe=", "the key of the secret is empty"),
        ("--needs-secret=Probe=token", "Probe has no secrets in the specification"),
        ("--needs-secret=NodeUnstageVolume=token", "NodeUnstageVolume has no secrets in the specification"),
        ("--needs-secret=NodeStageVolume=a$b", "have a key that is empty or holds more than letters"),
    ] {
        let (code, error) = refused(&["--volumes", "/nonexistent/volumes", wrong]);
        assert!(code == Some(2) && error.contains(expected), "{error}");
    }
    let (code, error) = refused(&["--volumes", "/nonexistent/volumes", "--report", "/"]);
    assert_eq!(code, Some(1), "{error}");
    assert_eq!(error, "callboard: cannot write the report to /: it is a directory; name a file in it\n");
    let (code, error) =
        refused(&["--volumes", "/nonexistent/volumes", "--report", "/nonexistent/report.json"]);
    let expected =
        "callboard: cannot write the report to /nonexistent/report.json: there is no directory /nonexistent";
    assert!(code == Some(1) && error.starts_with(expected), "{error}");
}
