//! Tests drivers that violate the protocol: every row of the protocol's table of bad plugins (D.10), and every refusal of a
//! handshake (D20 to D36), by real processes under a real host.
//!
//! Each results in a clear error in the driver's report, which names the cause; nothing of the process is left; and where
//! another launch can help, the driver is healthy after it.

mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard::actors::driver::client::{TaskConfig, TaskId};
use callboard::actors::driver::{DriverHealth, DriverReport, DriverSpec};
use callboard::actors::drivers::{DescribeDriver, DriverStatus, DriversNews, DriversView, Removed, Wanted};
use callboard::actors::process::Executable;
use callboard::actors::vocabulary::TaskName;
use callboard::host::Host;
use rustix::process::{Pid, Signal, kill_process};

use support::drivers::{
    CALLBOARD, DriverStage, add, driver_name, remove, until_driver, until_reason, write_program,
};
use support::{LONG, Watch, id, until};

/// The name of the driver in all of these tests.
const NAME: &str = "odd";
/// The beginning of a script that misbehaves at its first launch only.
const MENDED: &str =
    "if [ -e \"$STAGE/odd\" ]; then exec \"$CALLBOARD\" plugin exec --name odd; fi; : > \"$STAGE/odd\"; ";

/// A driver that misbehaves by this script at its first launch, and is the reference driver from the second launch on.
fn odd_once(stage: &DriverStage, script: &str) -> DriverSpec {
    stage.shell(NAME, &format!("{MENDED}{script}"))
}

/// A reference driver with these faults at its first launch, and without them from the second launch on.
fn faulty_once(stage: &DriverStage, faults: &str) -> DriverSpec {
    odd_once(stage, &format!("exec \"$CALLBOARD\" plugin exec --name odd {faults}"))
}

/// A driver that has two seconds to start.
fn hurried(mut spec: DriverSpec) -> DriverSpec {
    Arc::make_mut(&mut spec.process).start_timeout = Duration::from_secs(2);
    spec
}

fn contains_all(reason: &str, words: &[&str]) {
    for word in words {
        assert!(reason.contains(word), "{word:?} is not in: {reason}");
    }
}

/// A host with a driver that misbehaves.
struct Story {
    stage: DriverStage,
    host: Host,
    watch: Watch<DriversNews, DriversView>,
}

impl Story {
    async fn of(prepare: impl FnOnce(&DriverStage) -> DriverSpec) -> Self {
        let stage = DriverStage::new();
        let host = stage.host().await;
        let watch = Watch::on(host.drivers());
        add(&host, &prepare(&stage)).await;
        Self { stage, host, watch }
    }

    async fn until(&mut self, health: DriverHealth) -> DriverReport {
        until_driver(&mut self.watch, NAME, health).await
    }

    /// Waits until the driver is unhealthy for a reason with these words in it.
    async fn fails(&mut self, words: &[&str]) -> DriverReport {
        let report = self.until(DriverHealth::Unhealthy).await;
        contains_all(&report.reason, words);
        report
    }

    async fn describe(&self) -> DriverStatus {
        let describe = DescribeDriver { name: driver_name(NAME) };
        self.host.drivers().ask(describe).await.unwrap().unwrap()
    }

    /// Removes the driver; returns how long that took, and its result.
    async fn end(self) -> (Duration, Removed) {
        let began = Instant::now();
        let removed = remove(&self.host, NAME).await;
        let took = began.elapsed();
        assert_eq!(self.stage.living(), [], "nothing of it runs when its removal is answered");
        self.host.stop().await;
        (took, removed)
    }
}

/// Tests a driver that fails for a reason with these words in it, and is healthy after its next launch.
async fn fails_and_is_mended(prepare: impl FnOnce(&DriverStage) -> DriverSpec, words: &[&str]) {
    let mut story = Story::of(prepare).await;
    story.fails(words).await;
    let report = story.until(DriverHealth::Healthy).await;
    assert_eq!(story.stage.living(), [pid_of(&report)], "the bad one is gone");
    story.end().await;
}

/// Tests a driver that fails for a reason with these words in it, at every launch.
async fn fails(prepare: impl FnOnce(&DriverStage) -> DriverSpec, words: &[&str]) {
    let mut story = Story::of(prepare).await;
    let report = story.fails(words).await;
    assert_eq!(report.pid, None, "what had started is ended");
    story.end().await;
}

/// Tests a driver that is healthy in spite of its behaviour, and runs a task.
async fn is_borne(prepare: impl FnOnce(&DriverStage) -> DriverSpec) {
    let mut story = Story::of(prepare).await;
    let report = story.until(DriverHealth::Healthy).await;
    runs_a_task(&story).await;
    let status = story.describe().await;
    assert_eq!((status.troubles, status.report.pid), (vec![], report.pid), "nothing happened to it");
    story.end().await;
}

/// Starts and ends a task through the driver, as proof that it serves.
async fn runs_a_task(story: &Story) {
    let client = story.host.leases().driver(&driver_name(NAME), Wanted::Healthy, LONG).await.unwrap();
    let command = rmp_serde::to_vec_named(&std::collections::BTreeMap::from([("command", "true")])).unwrap();
    let task = TaskId::new("t").unwrap();
    let mut config = TaskConfig::new(task.clone(), id("a"), TaskName::new("main").unwrap(), command);
    config.allocation_dir = story.stage.path("allocation");
    client.start_task(&config, LONG).await.unwrap();
    let exit = client.wait_task(&task, LONG).await.unwrap();
    assert!(exit.is_success(), "{exit:?}");
    client.destroy_task(&task, true, LONG).await.unwrap();
}

fn pid_of(report: &DriverReport) -> Pid {
    Pid::from_raw(i32::try_from(report.pid.expect("it runs")).unwrap()).unwrap()
}

// === The handshake line, and output before it: D.10, D20 to D29, D35 ===

#[actix::test]
async fn text_before_the_line_is_passed_over_d10_d35_prc_06() {
    is_borne(|stage| stage.exec(NAME, &["--stray-line", "loading its modules"])).await;
}

#[actix::test]
async fn an_empty_line_before_the_line_is_passed_over_d10_d35_prc_06() {
    is_borne(|stage| stage.exec(NAME, &["--stray-line", ""])).await;
}

#[actix::test]
async fn text_and_no_line_is_quoted_when_it_ends_d20_d35_prc_06() {
    let words = ["ended before it was ready", "usage: odd", "exit code 2"];
    fails_and_is_mended(|stage| odd_once(stage, "echo 'usage: odd [FILE]'; exit 2"), &words).await;
}

#[actix::test]
async fn more_text_than_is_passed_over_is_refused_prc_06() {
    let words = ["too much to standard output", "1000 lines", "noise"];
    let script = "i=0; while [ $i -lt 1100 ]; do echo noise; i=$((i+1)); done; exec sleep 1000";
    fails_and_is_mended(|stage| odd_once(stage, script), &words).await;
}

/// A handshake line that is refused, and the words of the refusal.
async fn line_is_refused(line: &str, words: &[&str]) {
    fails_and_is_mended(|stage| faulty_once(stage, &format!("--line '{line}'")), words).await;
}

#[actix::test]
async fn a_line_of_three_fields_is_none_and_is_quoted_when_the_time_is_over_d20_d33() {
    fails_and_is_mended(
        |stage| hurried(faulty_once(stage, "--line '1|2|unix'")),
        &["no handshake line within 2s"],
    )
    .await;
}

#[actix::test]
async fn a_core_version_that_is_no_number_is_refused_d21() {
    line_is_refused("one|2|unix|{socket}|grpc", &["core protocol version", "one", "not a number"]).await;
}

#[actix::test]
async fn another_core_version_is_refused_d21() {
    line_is_refused("2|2|unix|{socket}|grpc", &["core protocol version 2, expected 1"]).await;
}

#[actix::test]
async fn an_app_version_that_is_no_number_is_refused_d22() {
    line_is_refused("1|two|unix|{socket}|grpc", &["protocol version", "two", "not a number"]).await;
}

#[actix::test]
async fn an_app_version_that_was_not_offered_is_refused_d22_d23() {
    let words = ["protocol version 9, expected one of [2]"];
    fails_and_is_mended(|stage| faulty_once(stage, "--app-version 9"), &words).await;
}

#[actix::test]
async fn another_network_is_refused_by_its_name_d24() {
    line_is_refused("1|2|udp|127.0.0.1:1|grpc", &["network", "udp", "127.0.0.1:1", "unix or tcp"]).await;
}

#[actix::test]
async fn an_address_that_cannot_be_dialled_is_refused_d25() {
    line_is_refused("1|2|tcp|nowhere|grpc", &["tcp", "nowhere", "cannot be dialled"]).await;
}

#[actix::test]
async fn a_plugin_that_speaks_net_rpc_is_refused_by_its_word_and_by_its_silence_d26() {
    for line in ["1|2|unix|{socket}|netrpc", "1|2|unix|{socket}"] {
        line_is_refused(line, &["net/rpc, expected grpc"]).await;
    }
}

#[actix::test]
async fn another_protocol_is_refused_d26() {
    line_is_refused("1|2|unix|{socket}|soap", &["soap", "expected grpc"]).await;
}

#[actix::test]
async fn a_plugin_that_insists_on_certificates_is_refused_d27_d44() {
    let words = ["automatic mutual TLS"];
    fails_and_is_mended(|stage| faulty_once(stage, "--insist-on-tls"), &words).await;
}

#[actix::test]
async fn a_certificate_that_is_none_is_refused_d27() {
    let line = format!("1|2|unix|{{socket}}|grpc|{}", "?".repeat(60));
    line_is_refused(&line, &["sixth field", "no certificate"]).await;
}

#[actix::test]
async fn a_plugin_that_insists_on_multiplexing_is_refused_d28() {
    line_is_refused("1|2|unix|{socket}|grpc||true", &["insists on broker multiplexing"]).await;
}

#[actix::test]
async fn a_word_on_multiplexing_that_is_no_boolean_is_refused_d28() {
    line_is_refused("1|2|unix|{socket}|grpc||maybe", &["maybe", "no boolean"]).await;
}

// === It does not start: D.10, D33, D34, D36 ===

#[actix::test]
async fn one_that_prints_nothing_and_stays_is_ended_when_its_time_is_over_d10_d33() {
    fails_and_is_mended(
        |stage| hurried(faulty_once(stage, "--no-line")),
        &["no handshake line within 2s", "it was ended"],
    )
    .await;
}

#[actix::test]
async fn one_that_ends_at_once_is_told_with_its_exit_code_d10_d33_log_01() {
    let words = ["ended before it was ready", "exit code 7"];
    fails_and_is_mended(|stage| faulty_once(stage, "--exit-before-line 7"), &words).await;
}

#[actix::test]
async fn one_that_dies_of_a_signal_is_told_with_its_signal_and_last_words_d33_log_01() {
    let words = ["ended before it was ready", "SIGKILL", "no room for my heap"];
    let script = "echo no room for my heap >&2; kill -9 $$";
    fails_and_is_mended(|stage| odd_once(stage, script), &words).await;
}

#[actix::test]
async fn a_file_that_is_not_there_is_named_d34() {
    fails(|stage| stage.driver(NAME, "/nowhere/at/all", &[]), &["/nowhere/at/all", "No such file"]).await;
}

#[actix::test]
async fn a_file_that_is_not_executable_is_told_with_its_mode_d10_d34() {
    let plain = |stage: &DriverStage| {
        let path = stage.path("plain");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        stage.driver(NAME, path, &[])
    };
    fails(plain, &["plain", "not executable", "06"]).await;
}

#[actix::test]
async fn a_program_for_another_machine_is_told_so_d10_d34() {
    let foreign = |stage: &DriverStage| {
        let path = stage.path("foreign");
        // The file of this program, except for the field that names its machine: 0xf3 is RISC-V.
        let order = "head -c 18 \"$1\" > \"$2\" && printf '\\363\\000' >> \"$2\" && head -c 4096 \"$1\" | tail -c +21 >> \"$2\" && chmod 755 \"$2\"";
        let done = Command::new("/bin/sh").args(["-c", order, "sh", CALLBOARD]).arg(&path).status().unwrap();
        assert!(done.success());
        stage.driver(NAME, path, &[])
    };
    fails(foreign, &["foreign", "compiled for riscv64"]).await;
}

#[actix::test]
async fn a_file_that_is_no_program_is_told_so_d34() {
    let text = |stage: &DriverStage| {
        let path = stage.path("text");
        write_program(&path, "this is a letter, and no program\n");
        stage.driver(NAME, path, &[])
    };
    fails(text, &["text", "is no program", "neither as ELF nor with #!"]).await;
}

#[actix::test]
async fn a_program_that_lacks_a_library_is_told_which_d10_d34() {
    let lacking = |stage: &DriverStage| {
        build_without_its_library(&stage.path(""));
        stage.driver(NAME, stage.path("lacking"), &[])
    };
    fails(lacking, &["libgone.so", "lacks a library"]).await;
}

/// Builds a program with the C compiler, and removes the library that it needs.
fn build_without_its_library(directory: &Path) {
    let order = "cd \"$1\" && echo 'int gone(void){return 0;}' > gone.c && echo 'int gone(void);int main(void){return gone();}' > lacking.c \
        && cc -shared -fPIC -o libgone.so gone.c && cc -o lacking lacking.c -L. -lgone && rm libgone.so";
    let done = Command::new("/bin/sh").args(["-c", order, "sh"]).arg(directory).status().unwrap();
    assert!(done.success(), "a C compiler is needed");
}

#[actix::test]
async fn a_program_that_takes_no_orders_from_this_kind_of_host_is_told_so_d36() {
    let stranger = |stage: &DriverStage| {
        let mut spec = stage.exec(NAME, &[]);
        Arc::make_mut(&mut spec.process).handshake.as_mut().unwrap().cookie_value =
            "another host's".to_owned();
        spec
    };
    fails(stranger, &["ended before it was ready", "exit code 1", "does not accept the cookie"]).await;
}

#[actix::test]
async fn a_program_with_another_digest_than_the_pinned_one_is_not_run_sec_07() {
    let pinned = |stage: &DriverStage| {
        let mut spec = stage.exec(NAME, &[]);
        Arc::make_mut(&mut spec.process).executable =
            Executable { sha256: Some([7; 32]), ..Executable::at(CALLBOARD) };
        spec
    };
    fails(pinned, &["SHA-256", "0707", "it was not run"]).await;
}

#[actix::test]
async fn one_that_forks_and_ends_has_ended_and_its_child_ends_with_it_d10_prc_03() {
    fails_and_is_mended(|stage| faulty_once(stage, "--fork-and-exit"), &["exit code 0"]).await;
}

// === A good line without a server: D.10 ===

#[actix::test]
async fn a_line_whose_socket_has_no_listener_is_reported_with_the_socket_and_another_process_comes_d10() {
    let words = ["-unused", "no socket is there"];
    fails_and_is_mended(|stage| faulty_once(stage, "--no-listener"), &words).await;
}

#[actix::test]
async fn a_line_behind_which_another_service_answers_is_told_so_d10() {
    let script = "s=$PLUGIN_UNIX_SOCKET_DIR/csi.sock; \"$CALLBOARD\" plugin hostpath --role node --endpoint unix://$s & \
        while ! [ -S $s ]; do sleep 0.01; done; echo \"1|2|unix|$s|grpc|\"; wait";
    let mut story = Story::of(|stage| stage.shell(NAME, script)).await;
    story.fails(&["UNIMPLEMENTED"]).await;
    story.end().await;
}

#[actix::test]
async fn one_that_never_says_how_it_is_is_replaced_d50_hlt_05() {
    let words = ["Check on unix:", "no answer", "3s"];
    fails_and_is_mended(|stage| faulty_once(stage, "--hang-health"), &words).await;
}

#[actix::test]
async fn one_that_never_takes_its_configuration_is_replaced_d102_hlt_05() {
    let words = ["SetConfig on unix:", "no answer", "3s"];
    fails_and_is_mended(|stage| faulty_once(stage, "--hang SetConfig"), &words).await;
}

#[actix::test]
async fn one_that_refuses_its_configuration_is_told_in_its_own_words_and_not_replaced_d102_hlt_04() {
    let refusing = ["--fail", "SetConfig=INVALID_ARGUMENT"];
    let mut story = Story::of(|stage| stage.exec(NAME, &refusing)).await;
    let report = story.fails(&["SetConfig", "INVALID_ARGUMENT", "as it was told to"]).await;
    let refusals = async || story.describe().await.troubles.iter().map(|trouble| trouble.count).sum::<u64>();
    until("it is asked again", async || refusals().await >= 3).await;
    assert_eq!(story.stage.living(), [pid_of(&report)], "by the same process");
    story.end().await;
}

// === It misbehaves later: D.10 ===

#[actix::test]
async fn a_flood_on_standard_output_stops_nothing_d10_d29() {
    is_borne(|stage| stage.exec(NAME, &["--flood-stdout", "40000000"])).await;
}

#[actix::test]
async fn a_flood_on_standard_error_stops_nothing_d10_log_02() {
    is_borne(|stage| stage.exec(NAME, &["--flood-stderr", "40000000"])).await;
}

#[actix::test]
async fn a_line_of_many_megabytes_stops_nothing_d29_d70_log_02() {
    is_borne(|stage| stage.exec(NAME, &["--long-line", "8000000"])).await;
}

#[actix::test]
async fn odd_lines_of_log_stop_nothing_d10_d72_d73_d76() {
    is_borne(|stage| stage.exec(NAME, &["--odd-log"])).await;
}

#[actix::test]
async fn one_without_init_is_as_good_as_any_d109() {
    is_borne(|stage| stage.exec(NAME, &["--without-init"])).await;
}

#[actix::test]
async fn one_that_closes_its_outputs_serves_and_its_end_is_seen_d10_prc_10() {
    let mut story = Story::of(|stage| stage.exec(NAME, &["--close-output"])).await;
    let report = story.until(DriverHealth::Healthy).await;
    runs_a_task(&story).await;
    kill_process(pid_of(&report), Signal::KILL).unwrap();
    until_reason(&mut story.watch, NAME, &["its process ended", "SIGKILL"]).await;
    let next = story.until(DriverHealth::Healthy).await;
    assert_ne!(next.pid, report.pid);
    story.end().await;
}

#[actix::test]
async fn one_that_panics_is_told_with_its_panic_and_comes_again_d74_log_01_prc_05() {
    let mut story = Story::of(|stage| faulty_once(stage, "--panic-after 500ms")).await;
    story.until(DriverHealth::Healthy).await;
    until_reason(&mut story.watch, NAME, &["its process ended", "as --panic-after demands"]).await;
    story.until(DriverHealth::Healthy).await;
    story.end().await;
}

#[actix::test]
async fn one_that_ends_its_reports_is_asked_again_over_the_same_connection_hlt_05() {
    for how in ["end", "error"] {
        let faults = ["--fingerprints-end-after", "1", "--fingerprints-end", how];
        let mut story = Story::of(|stage| stage.exec(NAME, &faults)).await;
        let first = story.until(DriverHealth::Healthy).await;
        story.fails(&["ingerprint"]).await;
        let again = story.until(DriverHealth::Healthy).await;
        assert_eq!((again.pid, again.generation), (first.pid, first.generation));
        story.end().await;
    }
}

/// Does this to a healthy driver first; returns how long its removal takes, and how its process ended.
async fn removal(faults: &[&str], harm: impl FnOnce(Pid)) -> (Duration, String) {
    let mut story = Story::of(|stage| stage.exec(NAME, faults)).await;
    harm(pid_of(&story.until(DriverHealth::Healthy).await));
    let (took, Removed::Ended { ending }) = story.end().await else { panic!("it ran") };
    (took, ending)
}

/// The grace of each driver here is 2 s, from the polite request on.
fn took_its_grace(took: Duration) {
    assert!((Duration::from_millis(1_900)..Duration::from_secs(15)).contains(&took), "{took:?}");
}

#[actix::test]
async fn one_that_takes_no_notice_of_shutdown_is_ended_after_its_grace_d10_d51_d60_shd_07() {
    let (took, ending) = removal(&["--ignore-shutdown"], |_| {}).await;
    // It had the last quarter of its grace to handle SIGTERM, and handled it.
    contains_all(&ending, &["exit code 0"]);
    assert!(!ending.contains("killed"), "{ending}");
    assert!((Duration::from_millis(1_450)..Duration::from_secs(15)).contains(&took), "{took:?}");
}

#[actix::test]
async fn one_that_takes_no_notice_of_anything_is_killed_after_its_grace_d10_d60_shd_07() {
    let (took, ending) = removal(&["--ignore-shutdown", "--ignore-sigterm"], |_| {}).await;
    contains_all(&ending, &["killed after its grace", "SIGKILL"]);
    took_its_grace(took);
}

#[actix::test]
async fn one_whose_shutdown_never_answers_delays_no_other_d65_shd_07() {
    let freeze = |pid| kill_process(pid, Signal::STOP).unwrap();
    let (took, ending) = removal(&[], freeze).await;
    contains_all(&ending, &["killed after its grace", "SIGKILL"]);
    took_its_grace(took);
}

// === It is another driver ===

#[actix::test]
async fn one_that_names_the_socket_of_another_driver_never_serves_and_its_end_leaves_the_other_alone_d82() {
    let mut story = Story::of(|stage| stage.exec("innocent", &[])).await;
    let innocent = until_driver(&mut story.watch, "innocent", DriverHealth::Healthy).await;
    let mut sockets = std::fs::read_dir(story.stage.path("sockets")).unwrap().filter_map(Result::ok);
    let socket = sockets.next().expect("it listens").path().display().to_string();
    let script = format!("echo '1|2|unix|{socket}|grpc|'; exec sleep 1000");
    add(&story.host, &story.stage.shell(NAME, &script)).await;
    let told = format!("process {} ", pid_of(&innocent).as_raw_nonzero());
    story.fails(&[&told, "another launch", "no request was sent to it"]).await;
    remove(&story.host, NAME).await;
    let describe = DescribeDriver { name: driver_name("innocent") };
    let status = story.host.drivers().ask(describe).await.unwrap().unwrap();
    assert_eq!((status.report.pid, status.troubles), (innocent.pid, vec![]), "it is as it was");
    assert_eq!(status.report.health, DriverHealth::Healthy);
    remove(&story.host, "innocent").await;
    story.host.stop().await;
}

#[actix::test]
async fn one_that_calls_itself_otherwise_than_it_is_asked_for_does_not_serve_d102() {
    let prepare = |stage: &DriverStage| DriverSpec {
        said_name: Some(NAME.to_owned()),
        ..stage.shell(NAME, "exec \"$CALLBOARD\" plugin exec --name another-driver")
    };
    let mut story = Story::of(prepare).await;
    story.fails(&["calls itself another-driver", "is expected"]).await;
    story.end().await;
}
