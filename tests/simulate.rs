//! Tests `callboard simulate` as a person uses it: a summary, a reproducible trace, and clear error messages.

use std::fs;
use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_callboard")).arg("simulate").args(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_simulation_ends_with_a_summary_and_success() {
    let output = simulate(&[
        "--seed",
        "5",
        "--seeds",
        "2",
        "--plugins",
        "3",
        "--allocations",
        "20",
        "--drivers",
        "2",
        "--messages",
        "2000",
    ]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for word in
        ["no law was broken", "seeds          5 to 6", "interleavings", "kill-host", "messages per second"]
    {
        assert!(said.contains(word), "{word} is missing in:\n{said}");
    }
}

#[test]
fn the_end_of_a_simulation_is_drawn_the_same_each_time_and_no_more_than_that() {
    let directory = tempfile::tempdir().unwrap();
    let pictures = ["first.svg", "second.svg"].map(|name| {
        let path = directory.path().join(name);
        let output = simulate(&["--seed", "3", "--messages", "5000", "--diagram", path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read_to_string(path).unwrap()
    });
    assert!(pictures[0] == pictures[1], "two runs of one seed are drawn as two pictures");
    assert!(
        pictures[0].contains("simulation with seed 3: the end of 5000 messages")
            && pictures[0].ends_with("</svg>\n")
    );
    let drawn = ["class=\"said\"", "class=\"answer\"", "class=\"news\""]
        .map(|what| pictures[0].matches(what).count());
    assert!((50..=100).contains(&drawn.iter().sum::<usize>()), "{drawn:?}");
    let nowhere = simulate(&["--messages", "100", "--diagram", "nowhere/at/all.svg"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("cannot draw nowhere/at/all.svg"), "{}", text(&nowhere.stderr));
}

#[test]
fn the_same_seed_writes_the_same_trace_to_the_byte() {
    let directory = tempfile::tempdir().unwrap();
    let traces = ["first", "second"].map(|name| {
        let path = directory.path().join(name);
        let output = simulate(&["--messages", "1000", "--trace", path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read(path).unwrap()
    });
    assert!(traces[0].len() > 10_000, "the trace has {} bytes", traces[0].len());
    assert!(traces[0] == traces[1], "two runs of one seed wrote two traces");
}

#[test]
fn mistakes_are_named_and_end_with_2() {
    for (arguments, complaint) in [
        (["--faults", "slow,earthquake"], "\"earthquake\" is no fault; name some of slow"),
        (["--plugins", "0"], "0 is not in 1..=100000"),
        (["--allocations", "0"], "0 is not in 1..=1000000"),
        (["--drivers", "10001"], "10001 is not in 0..=10000"),
        (["--seeds", "0"], "0 is not in 1.."),
        (["--messages", "many"], "invalid digit found in string"),
    ] {
        let output = simulate(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_named_and_ends_with_1() {
    let output = simulate(&["--messages", "10", "--trace", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("cannot write the trace /nowhere/at/all: No such file or directory"), "{said}");
}

#[test]
fn what_a_run_ends_with_is_seen_to_before_it_begins() {
    for (option, file, complaint) in [
        (
            "--script",
            "nowhere/at/all",
            "cannot write the history nowhere/at/all: there is no directory nowhere/at",
        ),
        (
            "--diagram",
            "nowhere/all.svg",
            "cannot draw nowhere/all.svg: there is no directory nowhere; make it",
        ),
    ] {
        let output = simulate(&["--messages", "100", option, file]);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{said}");
        assert!(said.contains(complaint), "{said}");
    }
    let output = simulate(&["--messages", "100", "--seed", &u64::MAX.to_string(), "--seeds", "2"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there are no 2 seeds from 18446744073709551615 on"), "{said}");
}

#[test]
fn progress_is_shown_on_standard_error_when_it_is_asked_for() {
    let quiet = simulate(&["--messages", "1000", "--seeds", "2"]);
    assert_eq!(text(&quiet.stderr), "");
    let told = simulate(&["--messages", "1000", "--seeds", "2", "--progress"]);
    let said = text(&told.stderr);
    assert!(said.starts_with("seed 2: 10") && said.contains(" messages, "), "{said}");
}
