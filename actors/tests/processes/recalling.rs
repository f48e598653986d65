//! Tests what a run of the host finds of earlier runs.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callboard_actors::ownership::IDENTITY_FILE;
use callboard_actors::process::{
    Exit, FileId, Identity, Launched, Lifetime, OWNER_VARIABLE, ProcessRecord, ProcessSpec, ProcessTag,
    Reach, TAG_VARIABLE,
};
use callboard_actors::processes::{ProcessesNews, Recalled};
use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::Timestamp;
use tokio::time::sleep;

use crate::stage::{
    Fixture, HANDSHAKE, Stage, all_tagged, is_gone, lives, name, plugin, shell, story, tagged,
};

fn proven(recalled: Recalled) -> Launched {
    match recalled {
        Recalled::Proven(launched) => launched,
        other @ (Recalled::Ended { .. } | Recalled::Unknown) => panic!("{other:?}"),
    }
}

/// A process that is launched by a run that then detaches from it.
async fn left_behind(stage: &Stage, spec: ProcessSpec) -> Launched {
    let fixture = stage.open();
    let launched = fixture.launch("a", spec).await.expect("it starts");
    fixture.end(StopMode::Detach).await;
    assert!(lives(launched.pid));
    launched
}

#[test]
fn twenty_runs_adopt_one_surviving_process_and_never_make_a_second_prc_04() {
    story(|stage| async move {
        let first = left_behind(&stage, plugin(&format!("echo '{HANDSHAKE}'; sleep 60; :"))).await;
        for _ in 0..20 {
            let fixture = stage.open();
            let again = proven(fixture.recall("a").await);
            assert_eq!((again.pid, again.tag, &again.handshake), (first.pid, first.tag, &first.handshake));
            assert!(again.is_adopted);
            // The process, and the child that it waits for.
            all_tagged(first.tag, 2).await;
            fixture.end(StopMode::Detach).await;
        }
        let fixture = stage.open();
        proven(fixture.recall("a").await);
        fixture.end(StopMode::Stop).await;
        assert!(!lives(first.pid), "stopping ends what was adopted");
        assert_eq!(stage.records.all(), vec![]);
    });
}

#[test]
fn the_version_that_was_chosen_is_in_the_record_and_holds_after_a_reattachment_prc_08() {
    story(|stage| async move {
        let mut spec = plugin("echo '1|7|unix|/run/p.sock|grpc'; sleep 60; :");
        let terms = spec.handshake.as_mut().expect("a plugin has terms");
        terms.versions = vec![2, 7, 5];
        let first = left_behind(&stage, spec).await;
        let chosen = |launched: &Launched| launched.handshake.as_ref().map(|shaken| shaken.app_version);
        assert_eq!(chosen(&first), Some(7));
        let recorded = stage.records.all();
        assert_eq!(recorded[0].handshake, first.handshake, "what was agreed on is on record");
        // Nothing is negotiated again: the agreed version holds for the next owner.
        let fixture = stage.open();
        let again = proven(fixture.recall("a").await);
        assert_eq!((chosen(&again), again.is_adopted), (Some(7), true));
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn how_a_process_ended_that_was_no_child_is_not_known_and_no_success_evt_05() {
    story(|stage| async move {
        let ending_mark = stage.path("end");
        let script = format!("while [ ! -e {} ]; do sleep 0.01; done; exit 0", ending_mark.display());
        let pid = orphan(&stage, &script);
        let fixture = stage.open();
        let launched = proven(fixture.recall("a").await);
        std::fs::write(&ending_mark, "").expect("it is written");
        let ending = fixture.ended(&launched).await;
        assert_eq!(ending.pid, Some(pid));
        assert!(
            matches!(ending.exit, Exit::Unknown { .. }) && !ending.exit.is_success(),
            "{:?}",
            ending.exit
        );
        fixture.end(StopMode::Stop).await;
    });
}

/// A process with a good record that is not a child of ours: as of an earlier run of the host. Returns its process id.
fn orphan(stage: &Stage, script: &str) -> u32 {
    let tag = ProcessTag::new([0xa7; 16]);
    let spec = shell(script);
    let mut record = ProcessRecord::intent(name("a"), tag, &spec, Timestamp::default());
    // It leads a group and a session of its own, and init adopts it when its parent ends.
    let parent = Command::new("/bin/sh")
        .args(["-c", "setsid sh -c \"$1\" >&2 & echo $!", "sh", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(TAG_VARIABLE, tag.to_string())
        .env(OWNER_VARIABLE, &*stage.owner())
        .stderr(Stdio::null())
        .output()
        .expect("a shell");
    let pid = String::from_utf8_lossy(&parent.stdout).trim().parse().expect("a process id");
    // It is a wrapper at first, as some plugins are.
    record.identity = Some(Identity { executable: None, ..identity_of(pid) });
    record.is_ready = true;
    let directory = stage.data_dir().join("processes/a");
    std::fs::create_dir_all(&directory).expect("a directory");
    for file in ["stdout.log", "stderr.log"] {
        std::fs::write(directory.join(file), "").expect("a file");
    }
    stage.records.put(record);
    pid
}

/// A child in a group of its own with the marks of this data directory's host.
fn marked(stage: &Stage, tag: ProcessTag, script: &str) -> Child {
    Command::new("/bin/sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(TAG_VARIABLE, tag.to_string())
        .env(OWNER_VARIABLE, &*stage.owner())
        .process_group(0)
        .spawn()
        .expect("a shell")
}

fn identity_of(pid: u32) -> Identity {
    use std::os::unix::fs::MetadataExt;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let started_ticks =
        stat.rsplit(')').next().expect("fields").split_whitespace().nth(19).expect("field 22");
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let exe = std::fs::metadata(format!("/proc/{pid}/exe")).expect("its program");
    Identity {
        pid,
        started_ticks: started_ticks.parse().expect("a number"),
        boot_id: boot_id.trim().to_owned(),
        executable: Some(FileId { device: exe.dev(), inode: exe.ino() }),
    }
}

#[test]
fn an_adopted_process_that_was_no_child_is_stopped_with_its_group_shd_07_prc_03() {
    story(|stage| async move {
        let mark = stage.path("child");
        let pid =
            orphan(&stage, &format!("trap '' TERM; sleep 60 & echo $! > {}; wait; wait", mark.display()));
        let child = crate::stage::pid_in(&mark).await;
        let fixture = stage.open();
        assert_eq!(proven(fixture.recall("a").await).pid, pid);
        let ending = fixture.stop("a", Duration::from_millis(100)).await;
        assert!(!lives(pid), "{ending}");
        assert!(
            !lives(child),
            "{}",
            std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default()
        );
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_record_that_points_at_a_foreign_process_touches_no_process_and_a_fresh_plugin_is_launched_prc_01_res_07()
{
    story(|stage| async move {
        let launched = left_behind(&stage, shell("exec sleep 60")).await;
        let mut foreign = Command::new("/bin/sleep").arg("60").process_group(0).spawn().expect("a process");
        let mut record = stage.records.all().remove(0);
        record.identity = Some(identity_of(foreign.id()));
        stage.records.put(record);
        let fixture = stage.open();
        let fresh = fixture.launch("a", shell("exec sleep 60")).await.expect("it is launched afresh");
        let news = fixture.news(|news| matches!(news, ProcessesNews::Retired { .. })).await;
        let ProcessesNews::Retired { reason, tag, .. } = news else { panic!("{news:?}") };
        assert_eq!(tag, launched.tag);
        assert!(reason.contains("carries no tag"), "{reason}");
        assert!(lives(foreign.id()), "it was not touched");
        assert_ne!((fresh.pid, fresh.tag), (launched.pid, launched.tag));
        is_gone(launched.pid).await;
        fixture.end(StopMode::Stop).await;
        foreign.kill().expect("it is ours");
        foreign.wait().expect("it ends");
    });
}

#[test]
fn a_copied_database_takes_and_ends_no_process_of_the_host_that_it_was_copied_from_th053_prc_01() {
    for reach in [Reach::Group, Reach::Everything] {
        story(|stage| async move {
            let spec = ProcessSpec { reach, ..shell("sleep 60 & exec sleep 60") };
            let launched = left_behind(&stage, spec).await;
            all_tagged(launched.tag, 2).await;
            // The same records under another identity.
            let original = stage.owner();
            std::fs::remove_file(stage.data_dir().join(IDENTITY_FILE)).expect("it was there");
            assert_ne!(stage.owner(), original);
            let fixture = stage.open();
            let news = fixture.news(|news| matches!(news, ProcessesNews::Retired { .. })).await;
            let ProcessesNews::Retired { reason, .. } = news else { panic!("{news:?}") };
            assert!(reason.contains("belongs to another host"), "{reason}");
            let fresh = fixture.launch("a", shell("exec sleep 60")).await.expect("it is launched afresh");
            assert_ne!(fresh.pid, launched.pid);
            fixture.end(StopMode::Stop).await;
            assert_eq!(tagged(launched.tag).len(), 2, "they were not touched");
            for pid in tagged(launched.tag) {
                let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives");
            }
            is_gone(launched.pid).await;
        });
    }
}

#[test]
fn whatever_field_of_a_record_is_damaged_the_plugin_runs_again_and_only_once_res_07() {
    story(|stage| async move {
        type Damage = fn(&mut ProcessRecord);
        fn identity(record: &mut ProcessRecord) -> &mut Identity {
            record.identity.as_mut().expect("it has one")
        }
        let damages: BTreeMap<&str, Damage> = BTreeMap::from([
            ("the process id", (|record| identity(record).pid = 1) as Damage),
            ("a process id without a process", |record| identity(record).pid = 4_000_000),
            ("the start time", |record| identity(record).started_ticks += 1),
            ("the boot id", |record| identity(record).boot_id = "another".to_owned()),
            ("the program", |record| identity(record).executable = Some(FileId { device: 1, inode: 1 })),
            ("the tag", |record| record.tag = ProcessTag::new([1; 16])),
            ("the identity", |record| record.identity = None),
            ("its being ready", |record| record.is_ready = false),
            ("the positions", |record| record.positions.errors = u64::MAX / 2),
            ("the lifetime", |record| record.lifetime = Lifetime::Bound),
        ]);
        for (what, damage) in damages {
            let before = left_behind(&stage, shell("echo line >&2; exec sleep 60")).await;
            let mut record = stage.records.all().remove(0);
            damage(&mut record);
            stage.records.put(record);
            let fixture = stage.open();
            let fresh = fixture.launch("a", shell("exec sleep 61")).await;
            match fresh {
                Ok(fresh) => {
                    assert_ne!(fresh.tag, before.tag, "{what}");
                    is_gone(before.pid).await;
                }
                // The damaged field does not contradict the process: it is adopted as it is, and is a child of this test in any case.
                Err(error) => assert!(error.to_string().contains("already exists"), "{what}: {error}"),
            }
            assert_eq!(fixture.count().await, 1, "{what}");
            fixture.end(StopMode::Stop).await;
            assert!(!lives(before.pid), "{what}");
            assert_eq!(stage.records.all(), vec![], "{what}");
        }
    });
}

#[test]
fn a_crash_between_the_intent_and_its_outcome_leaves_nothing_unowned_prc_09() {
    story(|stage| async move {
        // Before the spawn, right after it, and before it was ready.
        for step in ["intended", "spawned, not recorded", "recorded, not ready"] {
            let tag = ProcessTag::new([step.len() as u8; 16]);
            let spec = plugin("exec sleep 60");
            let mut record = ProcessRecord::intent(name("a"), tag, &spec, Timestamp::default());
            let mut child = (step != "intended").then(|| marked(&stage, tag, "sleep 60 & wait"));
            // A process that is about to become another program has no environment for an instant, and so no tag.
            while child.is_some() && tagged(tag).len() < 2 {
                sleep(Duration::from_millis(5)).await;
            }
            if let (Some(child), "recorded, not ready") = (&child, step) {
                record.identity = Some(identity_of(child.id()));
            }
            stage.records.put(record);
            let fixture = stage.open();
            assert!(matches!(fixture.recall("a").await, Recalled::Ended { .. }), "{step}");
            assert!(tagged(tag).is_empty(), "{step}");
            assert_eq!(stage.records.all(), vec![], "{step}");
            let fresh = fixture.launch("a", shell("exec sleep 60")).await.expect("it is launched afresh");
            while tagged(fresh.tag) != [fresh.pid] {
                sleep(Duration::from_millis(5)).await;
            }
            fixture.end(StopMode::Stop).await;
            if let Some(child) = &mut child {
                // The fixture may have reaped the child already.
                let _ = child.wait();
            }
        }
    });
}

/// A script that executes a shell with the same script, without end.
const EXECUTING: &str = "exec /bin/sh -c \"$0\" \"$0\"";

#[test]
fn a_launch_of_a_crashed_run_is_found_and_ended_also_in_the_middle_of_an_exec_prc_09() {
    story(|stage| async move {
        for round in 0..20 {
            let tag = ProcessTag::new([round; 16]);
            let record = ProcessRecord::intent(name("a"), tag, &plugin(EXECUTING), Timestamp::default());
            let mut child = marked(&stage, tag, &format!("exec /bin/sh -c '{EXECUTING}' '{EXECUTING}'"));
            stage.records.put(record);
            let fixture = stage.open();
            assert!(matches!(fixture.recall("a").await, Recalled::Ended { .. }), "round {round}");
            let ended = !lives(child.id());
            fixture.end(StopMode::Stop).await;
            // The fixture may have reaped the child already.
            let _ = child.kill();
            let _ = child.wait();
            assert!(ended, "it was not found in round {round}");
        }
    });
}

#[test]
fn what_an_adopted_process_leads_ends_with_it_also_in_the_middle_of_an_exec_prc_03_prc_04() {
    story(|stage| async move {
        for round in 0..20 {
            let mark = stage.path(&format!("child-{round}"));
            let child = format!("sh -c '{EXECUTING}' '{EXECUTING}' & echo $! > {}; wait", mark.display());
            let pid = orphan(&stage, &child);
            let child = crate::stage::pid_in(&mark).await;
            let fixture = stage.open();
            assert_eq!(proven(fixture.recall("a").await).pid, pid);
            fixture.stop("a", Duration::from_secs(5)).await;
            let ended = !lives(child);
            fixture.end(StopMode::Stop).await;
            if let Some(left) = rustix::process::Pid::from_raw(i32::try_from(child).expect("a pid"))
                && !ended
            {
                rustix::process::kill_process(left, rustix::process::Signal::KILL).expect("it lives");
            }
            assert!(ended, "it was left in round {round}");
        }
    });
}

#[test]
fn a_process_whose_record_is_lost_is_found_by_its_mark_and_ended_prc_09_res_08() {
    story(|stage| async move {
        let lost = left_behind(&stage, shell("sleep 60 & wait")).await;
        stage.records.lose(&name("a"));
        let fixture = stage.open();
        let fresh = fixture.launch("a", shell("exec sleep 60")).await.expect("it is launched");
        assert!(!lives(lost.pid) && tagged(lost.tag).is_empty());
        assert!(lives(fresh.pid));
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_process_that_ended_while_no_host_was_there_is_told_with_its_last_lines_log_01() {
    story(|stage| async move {
        let go = stage.path("go");
        let script =
            format!("while [ ! -e {} ]; do sleep 0.01; done; echo 'panic: boom' >&2; exit 2", go.display());
        let launched = left_behind(&stage, shell(&script)).await;
        std::fs::write(&go, "").expect("it is written");
        is_gone(launched.pid).await;
        let fixture = stage.open();
        match fixture.recall("a").await {
            Recalled::Ended { ending: Some(ending), .. } => {
                assert_eq!(
                    (ending.last_errors, ending.pid),
                    (vec!["panic: boom".to_owned()], Some(launched.pid))
                );
                assert!(!ending.exit.is_success());
            }
            // It is a child of this very process, which runs all hosts of the test, so the next host reaps it.
            Recalled::Proven(again) => {
                let ending = fixture.ended(&again).await;
                assert_eq!((ending.exit, ending.panic.as_deref()), (Exit::Code(2), Some("panic: boom")));
            }
            other @ (Recalled::Ended { ending: None, .. } | Recalled::Unknown) => panic!("{other:?}"),
        }
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_ready_process_hears_nothing_of_a_crash_of_its_owner_prc_04() {
    story(|stage| async move {
        let mut launched = None;
        for _ in 0..5 {
            let fixture: Fixture = stage.open();
            let present = match launched {
                None => fixture.launch("a", shell("exec sleep 60")).await.expect("it starts"),
                Some(_) => proven(fixture.recall("a").await),
            };
            let before = *launched.get_or_insert(present.pid);
            assert_eq!(present.pid, before);
            fixture.kill().await;
            assert!(lives(before));
        }
        let fixture = stage.open();
        assert_eq!(
            fixture.stop("a", Duration::from_secs(5)).await.exit,
            Exit::Signal(15),
            "it is our own child after all"
        );
        fixture.end(StopMode::Stop).await;
    });
}
