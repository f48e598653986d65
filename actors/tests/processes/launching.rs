//! Tests launches: the outcome for a process that gets ready, and for one that does not.

use std::time::Duration;

use callboard_actors::process::{EndedBy, Executable, Exit, LaunchError, ProcessSpec};
use callboard_actors::processes::{NoSuchProcess, Recalled, StopProcess};
use callboard_actors::shell::StopMode;

use crate::stage::{HANDSHAKE, all_tagged, is_gone, lives, name, pid_in, plugin, shell, story, tagged};

#[test]
fn a_process_is_ready_when_it_runs_and_its_end_is_told_with_exit_uptime_and_last_lines_log_01() {
    story(|stage| async move {
        let fixture = stage.open();
        let launched = fixture.launch("a", shell("echo out; echo 'no pool' >&2; sleep 0.2; exit 3")).await;
        let launched = launched.expect("it starts");
        assert!(!launched.is_adopted && launched.handshake.is_none());
        let ending = fixture.ended(&launched).await;
        assert_eq!(
            (&ending.exit, ending.by, ending.pid),
            (&Exit::Code(3), EndedBy::Itself, Some(launched.pid))
        );
        assert!(ending.uptime >= Duration::from_millis(150), "{:?}", ending.uptime);
        assert_eq!(ending.last_output, ["out"]);
        assert_eq!(ending.last_errors, ["no pool"]);
        // The ending is kept for later callers, and stopping a process that has ended is harmless.
        assert_eq!(fixture.ended(&launched).await, ending);
        assert_eq!(fixture.stop("a", Duration::ZERO).await, ending);
        let killed = fixture.launch("a", shell("kill -SEGV $$")).await.expect("the name is free again");
        assert_eq!(fixture.ended(&killed).await.exit, Exit::Signal(11));
        assert!(matches!(fixture.recall("b").await, Recalled::Unknown));
        let stop = StopProcess { name: name("b"), tag: None, grace: Duration::ZERO };
        let unknown = fixture.address.ask(stop).await.expect("it is answered");
        assert!(matches!(unknown, Err(NoSuchProcess::Unknown { .. })));
        assert_eq!(stage.records.all(), vec![], "nothing is left on disk");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_plugin_that_prints_a_hundred_lines_first_is_ready_prc_06() {
    story(|stage| async move {
        let fixture = stage.open();
        let script = format!(
            "i=0; while [ $i -lt 100 ]; do echo stray $i; i=$((i+1)); done; echo '{HANDSHAKE}'; exec sleep 60"
        );
        let launched = fixture.launch("a", plugin(&script)).await.expect("it is ready");
        let handshake = launched.handshake.expect("it said one");
        assert_eq!(
            (handshake.app_version, handshake.endpoint.to_string()),
            (2, "unix:/run/plugin".to_owned())
        );
        let record = stage.records.all().remove(0);
        assert!(record.is_ready && record.identity.is_some());
        fixture.end(StopMode::Stop).await;
        assert!(!lives(launched.pid));
    });
}

#[test]
fn a_plugin_that_panics_before_its_handshake_is_told_with_its_panic_and_exit_prc_06_log_01() {
    story(|stage| async move {
        let fixture = stage.open();
        let script = "echo hello; echo 'panic: no such pool' >&2; echo 'goroutine 1 [running]:' >&2; exit 2";
        let error = fixture.launch("a", plugin(script)).await.expect_err("it ends");
        let LaunchError::Ended { ending, diagnosis, .. } = &error else { panic!("{error}") };
        assert_eq!(ending.exit, Exit::Code(2));
        assert_eq!(ending.panic.as_deref(), Some("panic: no such pool\ngoroutine 1 [running]:"));
        assert_eq!(ending.last_output, ["hello"]);
        assert!(diagnosis.iter().any(|note| note.contains("mode")), "{diagnosis:?}");
        assert!(error.to_string().contains("panic: no such pool") && error.is_transient(), "{error}");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_launch_that_fails_at_any_step_leaves_nothing_prc_02() {
    story(|stage| async move {
        let fixture = stage.open();
        let mark = stage.path("pid");
        let report = format!("echo $$ > {}", mark.display());
        let silent = ProcessSpec {
            start_timeout: Duration::from_millis(200),
            ..plugin(&format!("{report}; sleep 60"))
        };
        let refused = plugin(&format!("{report}; echo '1|9|unix|/x|grpc'; sleep 60"));
        let stubborn = ProcessSpec {
            start_timeout: Duration::from_millis(200),
            stop_grace: Duration::from_millis(50),
            ..plugin(&format!("trap '' TERM; {report}; while :; do sleep 0.01; done"))
        };
        for (spec, words) in [
            (silent, "no handshake line within"),
            (refused, "version 9"),
            (stubborn, "killed after its grace"),
        ] {
            let _ = std::fs::remove_file(&mark);
            let error = fixture.launch("a", spec).await.expect_err("it is no plugin");
            assert!(error.to_string().contains(words), "{error}");
            let ending = error.ending().expect("it had started");
            assert_eq!(Some(pid_in(&mark).await), ending.pid);
            assert!(!lives(ending.pid.expect("it had a pid")), "{error}");
            assert_eq!((tagged(ending.tag), stage.records.all()), (vec![], vec![]));
        }
        let missing = ProcessSpec { executable: Executable::at("/nowhere"), ..shell("") };
        let error = fixture.launch("a", missing).await.expect_err("it is not there");
        assert!(error.to_string().contains("cannot open /nowhere"), "{error}");
        let elsewhere = ProcessSpec { directory: "/nowhere".into(), ..shell("true") };
        let error = fixture.launch("a", elsewhere).await.expect_err("it has no place");
        assert!(error.to_string().contains("cannot start the program"), "{error}");
        assert_eq!(fixture.count().await, 0);
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_launch_whose_owner_is_lost_in_the_middle_is_ended_and_reaped_prc_02_prc_10() {
    story(|stage| async move {
        let mark = stage.path("pid");
        let fixture = stage.open();
        let spec = plugin(&format!("sleep 60 & echo $! > {}; sleep 60", mark.display()));
        let asked = fixture
            .address
            .ask(callboard_actors::processes::LaunchProcess { name: name("a"), spec: spec.into() });
        let child = pid_in(&mark).await;
        let tag = stage.records.all().remove(0).tag;
        // The shell and both of its children.
        all_tagged(tag, 3).await;
        fixture.kill().await;
        assert!(asked.await.is_err(), "no owner is there to answer");
        is_gone(child).await;
        while !tagged(tag).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The next run finds the record, and no process.
        let fixture = stage.open();
        assert!(matches!(fixture.recall("a").await, Recalled::Ended { .. }));
        assert_eq!(stage.records.all(), vec![]);
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn however_many_ask_at_once_one_process_is_launched() {
    story(|stage| async move {
        let fixture = stage.open();
        let spec = || shell("exec sleep 60");
        let (first, second) = tokio::join!(fixture.launch("a", spec()), fixture.launch("a", spec()));
        let launched = first.expect("the first is launched");
        let error = second.expect_err("the second is not");
        assert!(matches!(error, LaunchError::Occupied { .. }), "{error}");
        let ending = fixture.stop("a", Duration::from_secs(5)).await;
        assert_eq!((ending.exit, ending.pid), (Exit::Signal(15), Some(launched.pid)));
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_plugin_that_names_a_socket_in_the_directory_of_another_one_is_refused() {
    story(|stage| async move {
        let fixture = stage.open();
        let good = fixture.launch(
            "good",
            plugin("mkdir -p \"$PLUGIN_UNIX_SOCKET_DIR\"; echo '1|2|unix|/x|grpc|'; exec sleep 1000"),
        );
        good.await.expect("it is ready");
        let script = "echo \"1|2|unix|${PLUGIN_UNIX_SOCKET_DIR%/bad/sockets}/good/sockets/plugin1|grpc|\"; exec sleep 1000";
        let refused = fixture.launch("bad", plugin(script)).await.expect_err("it is another's place");
        assert!(refused.to_string().contains("which belongs to another plugin"), "{refused}");
        let own = plugin("echo \"1|2|unix|$PLUGIN_UNIX_SOCKET_DIR/plugin1|grpc|\"; exec sleep 1000");
        fixture.launch("own", own).await.expect("it is its own place");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_handshake_line_does_not_count_as_last_words_log_01() {
    story(|stage| async move {
        let fixture = stage.open();
        let script = format!("echo '{HANDSHAKE}'; echo behind it; sleep 0.1; exit 3");
        let launched = fixture.launch("a", plugin(&script)).await.expect("it is ready");
        assert_eq!(fixture.ended(&launched).await.last_output, ["behind it"]);
        fixture.end(StopMode::Stop).await;
    });
}
