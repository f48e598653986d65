//! Tests a driver that writes as fast as it can, beside a quiet one, under `callboard run`.

mod program;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use program::driven::{find, kill, task, until_running};
use program::{CALLBOARD, Stage, lives};
use rustix::process::{Pid, Signal, kill_process};

/// The room that the output of a driver may take at any check: the kept part, the waiting part, and what arrives while a busy machine
/// has no time to check.
const ROOM_MAX: u64 = 512 << 20;
/// How much the driver must write, so that all of it would be too much.
const WRITTEN_MIN: u64 = 2 * ROOM_MAX;
/// More time than that takes on the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A stage that kills its surviving processes at its end, whatever the result of the test.
struct Noisy(Stage);

impl Noisy {
    fn new() -> Self {
        let stage = Stage::new("");
        let directory = stage.directory.path().to_owned();
        let script = directory.join("noisy");
        let text = "#!/bin/sh\nyes 'not all of this is read' >&2 &\n\
                    exec \"$CALLBOARD\" plugin exec --name noisy --state-dir \"$STAGE/noisy-state\"\n";
        fs::write(&script, text).expect("room");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let place = directory.display();
        stage.configure(&format!(
            "[[driver]]\nname = \"noisy\"\ncommand = {script:?}\nenv = {{ CALLBOARD = {CALLBOARD:?}, STAGE = \"{place}\" }}\n\
             [[driver]]\nname = \"exec\"\nenv = {{ STAGE = \"{place}\" }}\n{}",
            task(&place.to_string(), "web", "")
        ));
        Self(stage)
    }

    /// The number of bytes that the driver has written, and the room that they take.
    fn output(&self) -> (u64, u64) {
        let files = fs::read_dir(self.0.data_dir().join("processes/driver-noisy")).into_iter().flatten();
        let found = files.filter_map(|file| file.ok()?.metadata().ok()).filter(|file| file.is_file());
        found.fold((0, 0), |(length, room), file| (length + file.len(), room + file.blocks() * 512))
    }

    /// Checks the room while the driver writes too much, and calls `look` at each check.
    fn is_bounded(&self, when: &str, mut look: impl FnMut()) {
        let (began, (at_first, _)) = (Instant::now(), self.output());
        loop {
            let (length, room) = self.output();
            assert!(room < ROOM_MAX, "{when}: {room} bytes of {length}");
            look();
            if length > at_first + WRITTEN_MIN {
                return;
            }
            assert!(began.elapsed() < TIMEOUT, "{when}: only {length} bytes were written");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Noisy {
    fn drop(&mut self) {
        let mark = format!("STAGE={}", self.0.directory.path().display()).into_bytes();
        for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
            let is_marked = |path: &Path| {
                let environment = fs::read(path.join("environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == mark)
            };
            let pid = entry.file_name().to_str().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|_| is_marked(&entry.path())) {
                // A process that has ended meanwhile receives no signal.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

#[test]
fn a_driver_that_floods_its_output_never_fills_the_disk_and_costs_its_neighbour_nothing() {
    let stage = Noisy::new();
    let program = stage.0.run();
    let status = until_running(&program, "web");
    let healthy = |status: &serde_json::Value| find(status, "drivers", "noisy")["health"] == "healthy";
    let noisy = program.until("a noisy driver that is a script", healthy);
    let pid = find(&noisy, "drivers", "noisy")["pid"].as_u64().expect("it runs");
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).expect("it runs");
    assert_eq!(name.trim(), "callboard", "what the script has become has its own name");
    let own = find(&status, "drivers", "exec")["pid"].clone();
    stage.is_bounded("beside a host", || {
        let asked = Instant::now();
        let status = program.json(&["status"]);
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        assert_eq!(
            (&find(&status, "drivers", "exec")["pid"], &find(&status, "tasks", "web")["state"]),
            (&own, &"running".into())
        );
    });
    assert!(program.log().contains("were skipped unread"), "the loss is told");
    // The host is killed: there is no longer a reader, and the driver continues.
    program.kill();
    stage.is_bounded("without a host", || assert!(lives(pid), "it outlives its host"));
    let program = stage.0.run();
    program.until("the same driver", |status| {
        healthy(status) && find(status, "drivers", "noisy")["pid"].as_u64() == Some(pid)
    });
    stage.is_bounded("beside the next host", || ());
    kill(pid);
    drop(program);
}

/// The frames of the floods: names of the drivers, and of the frames in the reason.
const FLOODS: [(&str, &str); 3] =
    [("ping", "PING"), ("window-update", "WINDOW_UPDATE"), ("unknown", "unknown")];

#[test]
fn a_driver_that_floods_its_connection_is_cut_off_with_the_reason_and_disturbs_no_other_f17() {
    let stage = Stage::new("");
    let place = stage.directory.path().display().to_string();
    let flooding: String = FLOODS
        .map(|(name, _)| {
            let command = [CALLBOARD, "plugin", "exec", "--name", name, "--flood-connection", name];
            format!("[[driver]]\nname = {name:?}\ncommand = {command:?}\nsurvives = false\n")
        })
        .concat();
    stage.configure(&format!("[[driver]]\nname = \"exec\"\n{flooding}{}", task(&place, "web", "")));
    let program = stage.run();
    let calm = |status: &serde_json::Value| {
        let exec = find(status, "drivers", "exec");
        [
            exec["pid"].clone(),
            exec["generation"].clone(),
            find(status, "tasks", "web")["since_unix_ms"].clone(),
        ]
    };
    let before = calm(&until_running(&program, "web"));
    for (name, frame) in FLOODS {
        let floods = "the plugin floods the connection with unsolicited HTTP/2 frames";
        let last = format!("the last one {frame}:");
        let is_told = |text: &serde_json::Value| {
            text.as_str().is_some_and(|text| text.contains(floods) && text.contains(&last))
        };
        let status = program.until(&format!("{name} as cut off"), |status| {
            let driver = find(status, "drivers", name);
            driver["health"] == "unhealthy" && is_told(&driver["reason"])
        });
        assert_eq!(calm(&status), before, "the other driver and its task are as they were");
        let whole = program.json(&["status", name]);
        let events = find(&whole, "drivers", name)["events"].as_array().expect("a list");
        assert!(events.iter().any(|event| is_told(&event["text"])), "{events:?}");
    }
    // The driver is connected again and cut off again, with pauses between.
    let ping = find(&program.json(&["status"]), "drivers", "ping")["generation"].as_u64();
    let ping = ping.expect("it has had a connection");
    let status = program.until("another connection to a driver", |status| {
        find(status, "drivers", "ping")["generation"].as_u64() > Some(ping)
    });
    assert_eq!(calm(&status), before);
    assert_eq!(find(&status, "drivers", "exec")["health"], "healthy");
}
