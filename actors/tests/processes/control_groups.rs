//! Tests control groups of processes: a group exists as long as something is in it, and no longer.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use callboard_actors::process::{ControlGroups, Executable, ProcessSpec, Reach, unified_group_of};
use callboard_actors::shell::StopMode;

use crate::stage::{Stage, TIMEOUT, shell, story};

/// The directory of the host's control groups, if this machine allows to make any.
fn place(stage: &Stage) -> Option<PathBuf> {
    if ControlGroups::of_this_host(&stage.owner()) == ControlGroups::none() {
        eprintln!("SKIPPED: the control groups of processes are not shown, since none can be made here");
        return None;
    }
    let own = unified_group_of(std::process::id()).expect("it is mounted");
    Some(own.join(format!("callboard-{}", stage.owner())))
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A process that is in this group.
fn sleeper(group: &std::path::Path) -> Child {
    let child = Command::new("sleep").arg("600").spawn().expect("there is a sleep");
    std::fs::write(group.join("cgroup.procs"), child.id().to_string()).expect("it is put in");
    child
}

#[test]
fn a_group_goes_with_its_process_and_the_directory_with_the_last_group_prc_03() {
    story(|mut stage| async move {
        let Some(place) = place(&stage) else { return };
        assert!(!place.exists(), "looking leaves nothing");
        stage.with_control_groups = true;
        let fixture = stage.open();
        let spec = || ProcessSpec { reach: Reach::Everything, ..shell("exec sleep 60") };
        let one = fixture.launch("a", spec()).await.expect("it starts");
        let two = fixture.launch("b", spec()).await.expect("it starts");
        let group = |tag| place.join(format!("{tag}"));
        assert!(group(one.tag).exists() && group(two.tag).exists());
        // A group that the process made in its own goes with it.
        std::fs::create_dir(group(one.tag).join("inner")).expect("it can be made");
        fixture.stop("a", Duration::from_secs(5)).await;
        assert!(!group(one.tag).exists() && group(two.tag).exists());
        fixture.stop("b", Duration::from_secs(5)).await;
        assert!(!place.exists(), "nothing is left");
        let broken = Executable::at(stage.script("broken", "#!/no/such/interpreter\n"));
        let broken = ProcessSpec { reach: Reach::Everything, executable: broken, ..shell("") };
        fixture.launch("c", broken).await.expect_err("there is no such interpreter");
        assert!(!place.exists(), "nor of one that did not start");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn the_next_run_removes_the_empty_groups_of_its_own_owner_only_prc_03_th050() {
    story(|mut stage| async move {
        let Some(place) = place(&stage) else { return };
        let other = place.with_file_name(format!("callboard-{}-other", stage.owner()));
        let elsewhere = other.join("session").join(place.file_name().expect("a name"));
        for group in
            [place.join("dead/inner"), place.join("used"), other.join("dead"), elsewhere.join("dead")]
        {
            std::fs::create_dir_all(group).expect("it can be made");
        }
        let mut living = sleeper(&place.join("used"));
        stage.with_control_groups = true;
        let fixture = stage.open();
        until("what is empty goes", || !place.join("dead").exists() && !elsewhere.exists()).await;
        assert!(place.join("used").exists() && other.join("dead").exists() && other.join("session").exists());
        assert!(living.try_wait().expect("it is our child").is_none(), "nothing is killed");
        living.kill().expect("it lives");
        living.wait().expect("it is our child");
        fixture.end(StopMode::Stop).await;
        let fixture = stage.open();
        until("nothing is left once it is empty", || !place.exists()).await;
        fixture.end(StopMode::Stop).await;
        for group in [other.join("dead"), other.join("session"), other] {
            std::fs::remove_dir(group).expect("it is empty");
        }
    });
}
