//! Tests the output of plugins: it is logged once, over any number of restarts, and never delays other work.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use callboard_actors::process::ProcessSpec;
use callboard_actors::processes::Recalled;
use callboard_actors::shell::StopMode;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::stage::{lives, shell, story};

/// Records what is logged of plugins, and blocks when it is requested to.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<(tracing::Level, String)>>>,
    is_stuck: Arc<(Mutex<bool>, Condvar)>,
}

impl Log {
    fn count(&self) -> usize {
        self.lines.lock().expect("no test panics").len()
    }

    fn messages(&self) -> Vec<String> {
        self.lines.lock().expect("no test panics").iter().map(|(_, message)| message.clone()).collect()
    }

    fn stick(&self, is_stuck: bool) {
        *self.is_stuck.0.lock().expect("no test panics") = is_stuck;
        self.is_stuck.1.notify_all();
    }
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "callboard::plugin"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let stuck = self.is_stuck.0.lock().expect("no test panics");
        drop(self.is_stuck.1.wait_while(stuck, |is_stuck| *is_stuck).expect("no test panics"));
        let mut text = Text::default();
        event.record(&mut text);
        self.lines.lock().expect("no test panics").push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn a_plugin_that_logs_every_ten_milliseconds_across_five_restarts_never_dies_and_has_every_line_once_prc_07()
{
    story(|stage| async move {
        let log = Log::default();
        let _heard = tracing::subscriber::set_default(log.clone());
        let script = "i=0; while :; do echo \"[INFO] line $i\" >&2; i=$((i+1)); sleep 0.01; done";
        let mut fixture = stage.open();
        let launched = fixture.launch("a", shell(script)).await.expect("it starts");
        for round in 1..=5 {
            while log.count() < round * 20 {
                sleep(Duration::from_millis(5)).await;
            }
            fixture.end(StopMode::Detach).await;
            sleep(Duration::from_millis(100)).await;
            assert!(lives(launched.pid), "it lives without a host");
            fixture = stage.open();
            assert!(
                matches!(fixture.recall("a").await, Recalled::Proven(again) if again.pid == launched.pid)
            );
        }
        fixture.stop("a", Duration::from_secs(5)).await;
        fixture.end(StopMode::Stop).await;
        let written = fs::read_to_string(stage.output("a", "stderr.log")).expect("its file");
        let written: Vec<&str> = written.lines().map(|line| line.trim_start_matches("[INFO] ")).collect();
        assert!(written.len() > 100);
        assert_eq!(log.messages(), written, "every line once, in order");
    });
}

#[test]
fn after_a_kill_of_the_owner_no_line_is_lost_and_at_most_the_last_ones_are_told_twice_prc_07() {
    story(|stage| async move {
        let log = Log::default();
        let _heard = tracing::subscriber::set_default(log.clone());
        let script = "i=0; while :; do echo \"[INFO] line $i\" >&2; i=$((i+1)); sleep 0.01; done";
        let mut fixture = stage.open();
        fixture.launch("a", shell(script)).await.expect("it starts");
        for round in 1..=5 {
            while log.count() < round * 30 {
                sleep(Duration::from_millis(5)).await;
            }
            fixture.kill().await;
            sleep(Duration::from_millis(50)).await;
            fixture = stage.open();
        }
        fixture.stop("a", Duration::from_secs(5)).await;
        fixture.end(StopMode::Stop).await;
        let written = fs::read_to_string(stage.output("a", "stderr.log")).expect("its file");
        let messages = log.messages();
        for line in written.lines().map(|line| line.trim_start_matches("[INFO] ")) {
            assert!(messages.iter().any(|message| message == line), "{line} is lost");
        }
        let twice = messages.len() - written.lines().count();
        println!("{twice} lines of {} were told twice after five kills", messages.len());
        assert!(twice <= 5 * 20, "{twice} lines told twice");
    });
}

#[test]
fn a_burst_that_nothing_follows_is_kept_as_told_and_is_not_told_again_after_a_kill_prc_07() {
    const LINES: usize = 50;
    story(|stage| async move {
        let log = Log::default();
        let _heard = tracing::subscriber::set_default(log.clone());
        let go = stage.path("go");
        let go_on = format!("while [ ! -e {0} ]; do sleep 0.01; done; rm {0}", go.display());
        let burst = format!(
            "n=0; while [ $n -lt {LINES} ]; do echo \"[INFO] line $i\" >&2; i=$((i+1)); n=$((n+1)); done"
        );
        let mut fixture = stage.open();
        fixture
            .launch("a", shell(&format!("i=0; while :; do {go_on}; {burst}; done")))
            .await
            .expect("it starts");
        for round in 1..=20 {
            fs::write(&go, "").expect("it is written");
            while log.count() < round * LINES {
                sleep(Duration::from_millis(5)).await;
            }
            let written = fs::metadata(stage.output("a", "stderr.log")).expect("its file").len();
            let began = Instant::now();
            while stage.records.all()[0].positions.errors != written {
                assert!(
                    began.elapsed() < Duration::from_secs(10),
                    "the position of burst {round} is not kept"
                );
                sleep(Duration::from_millis(5)).await;
            }
            fixture.kill().await;
            fixture = stage.open();
        }
        fixture.stop("a", Duration::from_secs(5)).await;
        fixture.end(StopMode::Stop).await;
        let expected: Vec<_> = (0..20 * LINES).map(|number| format!("line {number}")).collect();
        assert_eq!(log.messages(), expected, "every line once, in order");
    });
}

#[test]
fn a_line_of_fifty_mebibytes_and_a_flood_delay_nothing_and_take_little_room_log_02() {
    story(|stage| async move {
        let log = Log::default();
        let _heard = tracing::subscriber::set_default(log.clone());
        let fixture = stage.open();
        let script =
            "head -c 52428800 /dev/zero | tr '\\0' x >&2; echo >&2; echo '[INFO] after' >&2; exec sleep 60";
        let spec = ProcessSpec { output_kept_bytes: 1 << 20, ..shell(script) };
        fixture.launch("a", spec).await.expect("it starts");
        while log.messages().last().is_none_or(|last| last != "after") {
            sleep(Duration::from_millis(20)).await;
        }
        let file = fs::metadata(stage.output("a", "stderr.log")).expect("its file");
        let (length, room) = (file.len(), file.blocks() * 512);
        println!("{length} bytes were written, {room} are kept on disk");
        assert!(length > 50 << 20 && room < 8 << 20, "{room} of {length} bytes are kept");
        let longest = log.messages().iter().map(String::len).max();
        assert!(longest <= Some(256 * 1_024), "{longest:?}");
        fixture.stop("a", Duration::from_secs(5)).await;
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_log_that_stands_still_delays_nothing_else_and_what_it_missed_is_counted_log_03() {
    story(|stage| async move {
        let log = Log::default();
        let _heard = tracing::subscriber::set_default(log.clone());
        let fixture = stage.open();
        log.stick(true);
        let flood =
            "i=0; while [ $i -lt 20000 ]; do echo \"[INFO] line $i\" >&2; i=$((i+1)); done; exec sleep 60";
        let noisy = fixture.launch("noisy", shell(flood)).await.expect("it starts");
        let dropped = loop {
            let asked = Instant::now();
            let quiet =
                fixture.launch("quiet", shell("exec sleep 60")).await.expect("it starts all the same");
            fixture.stop("quiet", Duration::from_secs(5)).await;
            assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
            assert!(lives(noisy.pid) && !lives(quiet.pid));
            let describe = callboard_actors::processes::DescribeProcess { name: noisy.name.clone() };
            let report = fixture.address.ask(describe).await.expect("it is answered").expect("it is there");
            if report.lines_dropped > 10_000 {
                break report.lines_dropped;
            }
        };
        println!("{dropped} lines of 20000 were dropped");
        log.stick(false);
        fixture.stop("noisy", Duration::from_secs(5)).await;
        fixture.end(StopMode::Stop).await;
        assert!(log.count() > 100, "what was not dropped is told");
    });
}

#[test]
fn a_plugin_that_falls_silent_after_a_flood_has_every_dropped_line_told_all_the_same_log_03() {
    story(|stage| async move {
        let log = Log::default();
        let _heard = tracing::subscriber::set_default(log.clone());
        let fixture = stage.open();
        let flood = "head -c 200000 /dev/zero | tr '\\0' '\\n' | sed 's/^/[INFO] x/' >&2; exec sleep 600";
        let noisy = fixture.launch("noisy", shell(flood)).await.expect("it starts");
        let counted = |message: &String| {
            let (count, rest) = message.split_once(' ')?;
            rest.starts_with("lines of this plugin were dropped").then(|| count.parse::<u64>().ok())?
        };
        let began = Instant::now();
        let dropped = loop {
            let describe = callboard_actors::processes::DescribeProcess { name: noisy.name.clone() };
            let report = fixture.address.ask(describe).await.expect("it is answered").expect("it is there");
            let told: u64 = log.messages().iter().filter_map(counted).sum();
            if report.lines_dropped > 0 && told == report.lines_dropped {
                break told;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{told} of {} are told", report.lines_dropped);
            sleep(Duration::from_millis(20)).await;
        };
        assert!(lives(noisy.pid), "it is only silent");
        println!("{dropped} lines were dropped and are told");
        fixture.stop("noisy", Duration::from_secs(5)).await;
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn the_panic_of_a_running_plugin_is_one_event_with_trace_exit_and_uptime_log_01() {
    story(|stage| async move {
        let fixture = stage.open();
        let script = "echo '[INFO] up' >&2; echo 'panic: lost the pool' >&2; echo '\tmain.go:7' >&2; exit 2";
        let launched = fixture.launch("a", shell(script)).await.expect("it starts");
        let ending = fixture.ended(&launched).await;
        assert_eq!(ending.panic.as_deref(), Some("panic: lost the pool\n\tmain.go:7"));
        assert!(
            ending.to_string().contains("exit code 2 after") && ending.to_string().contains("lost the pool")
        );
        fixture.end(StopMode::Stop).await;
    });
}
