//! Where sockets lie, who may use them, and what is left of them (SEC-01, SEC-02, SEC-03, VOL-06).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocations::{
    AdoptAllocation, AllocationPhase, AllocationsNews, PrepareError, TaskEventKind,
};
use callboard_actors::instances::Dispense;
use callboard_actors::shell::{Ending, StopMode};
use tokio::time::Instant;

use crate::fixture::{Fixture, LONG, Plugin, node, story};
use crate::stage::{Minutes, Stage, leave_corpse, listen, options, sockets_below, spec, start};

/// Holds C175.
#[test]
fn names_and_directories_of_two_hundred_characters_work_like_short_ones_sec_01() {
    story(|| async {
        let fixture = Fixture::open();
        let mut stage = Stage::in_fixture(&fixture, &"d".repeat(200));
        let twins = ["1", "2"].map(|end| spec(&("a".repeat(199) + end), &"p".repeat(200)));
        let mut sockets = Vec::new();
        for spec in &twins {
            let context = stage.prepare(spec).await.expect("it can be prepared");
            assert!(context.socket.as_path().starts_with(&stage.runtime_dir), "{}", context.socket);
            let directory = context.socket.as_path().parent().expect("it lies in a directory");
            assert_eq!(fs::metadata(directory).expect("it is there").mode() & 0o7777, 0o700);
            sockets.push(context.socket);
        }
        assert_ne!(sockets[0], sockets[1], "names that differ at their end only have sockets of their own");

        let plugin = Plugin::new("long.example");
        let _serving = plugin.serve(&sockets[0]);
        stage.started(&twins[0]).await;
        stage.until(&twins[0], AllocationPhase::Registered).await;
        let dispense = Dispense { plugin: node(&"p".repeat(200)), within: Duration::from_secs(5) };
        let dispensed = fixture.instances.ask(dispense).await.expect("it runs").expect("it is healthy");
        assert_eq!(dispensed.socket, sockets[0]);

        for spec in &twins {
            assert_eq!(stage.stop(spec).await.remarks, Vec::<String>::new());
        }
        assert!(sockets_below(stage.directory.path()).is_empty());
    });
}

#[test]
fn a_task_that_was_killed_a_thousand_times_leaves_no_socket_sec_02() {
    story(|| async {
        let stage = Stage::open(Rc::new(Minutes::default()));
        let living = spec("living", "zfs");
        let context = stage.prepare(&living).await.expect("it can be prepared");
        let _listener = listen(&context.socket);
        let killed = spec("killed", "zfs");
        for _ in 0..1_000 {
            let context = stage.prepare(&killed).await.expect("a dead socket does not block it");
            leave_corpse(&context.socket);
        }
        stage.prepare(&killed).await.expect("the last one neither");
        assert_eq!(sockets_below(&stage.data_dir), [context.socket.as_path()], "as many as live");
    });
}

#[test]
fn a_socket_with_a_listener_is_refused_and_left_alone_sec_02() {
    story(|| async {
        let stage = Stage::open(Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let _listener = listen(&context.socket);
        let error = stage.prepare(&spec).await.expect_err("a process listens");
        assert_eq!(error, PrepareError::SocketInUse { socket: context.socket.clone() });
        assert!(context.socket.as_path().exists());
    });
}

/// Holds C174.
#[test]
fn what_lies_in_the_place_of_a_socket_gets_another_name_and_stays_sec_02_vol_06() {
    story(|| async {
        let stage = Stage::open(Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let socket = stage.prepare(&spec).await.expect("it can be prepared").socket;
        let place = socket.as_path().to_owned();
        let aside = |number: u32| std::path::PathBuf::from(format!("{socket}.aside-{number}"));
        fs::write(&place, "kept").expect("it can be written");
        stage.prepare(&spec).await.expect("a file is moved out of the way");
        assert_eq!(fs::read_to_string(aside(1)).expect("it is there"), "kept");
        fs::create_dir(&place).expect("the place is free");
        stage.prepare(&spec).await.expect("a directory is moved out of the way");
        symlink(aside(1), &place).expect("the place is free");
        stage.prepare(&spec).await.expect("a link is moved out of the way");
        assert!(aside(2).is_dir() && aside(3).is_symlink() && !place.exists());

        let left = stage.stop(&spec).await.remarks.join(" ");
        assert!(left.contains("csi.sock.aside-1, csi.sock.aside-2, csi.sock.aside-3"), "{left}");
        assert_eq!(fs::read_to_string(aside(1)).expect("it is there"), "kept");
    });
}

#[test]
fn sixteen_files_beside_a_socket_are_enough_and_the_next_one_is_told_sec_02() {
    story(|| async {
        let stage = Stage::open(Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let socket = stage.prepare(&spec).await.expect("it can be prepared").socket;
        for _ in 0..16 {
            fs::write(socket.as_path(), "").expect("it can be written");
            stage.prepare(&spec).await.expect("it is moved out of the way");
        }
        fs::write(socket.as_path(), "").expect("it can be written");
        let told = stage.prepare(&spec).await.expect_err("there are too many").to_string();
        assert!(told.contains("a regular file is at the path of the socket"), "{told}");
    });
}

#[test]
fn a_task_that_outlived_its_host_is_adopted_with_its_socket_s3() {
    story(|| async {
        let mut stage = Stage::open(Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let _serving = Plugin::new("zfs.example").serve(&context.socket);
        stage.started(&spec).await;
        stage.until(&spec, AllocationPhase::Registered).await;
        stage.running.request_stop(StopMode::Detach);
        assert_eq!(tokio::time::timeout(LONG, stage.running.ended()).await, Ok(Ending::Normal));
        assert!(context.socket.as_path().exists(), "everything was left in place");

        // The next run of the host finds the plugin running.
        let minutes = Minutes::default();
        let next = options(&stage.data_dir, &stage.runtime_dir);
        let (allocations, running) = start(next, Rc::new(minutes.clone()));
        (stage.allocations, stage.running) = (allocations, running);
        stage.news = stage.allocations.subscribe("test", 64).expect("it runs");
        assert!(stage.prepare(&spec).await.is_err(), "a start would be one too many");
        let adopted = stage.allocations.ask(AdoptAllocation { spec: spec.clone() }).await.expect("it runs");
        assert_eq!(adopted, Ok(context), "it has what it was started with (RES-02)");
        stage.started(&spec).await;
        stage.until(&spec, AllocationPhase::Registered).await;
        assert_eq!(
            minutes.take(),
            ["register", "health"],
            "and its place in the order of registrations (R2)"
        );
    });
}

#[test]
fn a_socket_that_others_keep_from_us_is_told_within_a_second_sec_03() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("csi.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).expect("the path is free");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours to change");
    // Only root can create a socket of another user, but the owner can remove the right from every user.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o555)).expect("ours to change");
    let owner = fs::metadata(&path).expect("it is there").uid();
    let told = path.to_str().expect("readable").to_owned();
    let refused = move || {
        become_nobody();
        story(|| async { refused_within_a_second(&told, owner).await });
    };
    std::thread::spawn(refused).join().expect("no panic");
}

/// Gives up the rights of this thread if it is root's: root may do everything. All that it starts then belongs to the user `nobody`.
fn become_nobody() {
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_groups(&[]).expect("root may");
        rustix::thread::set_thread_gid(rustix::process::Gid::from_raw(65534)).expect("root may");
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).expect("root may");
    }
}

async fn refused_within_a_second(socket: &str, owner: u32) {
    let mut stage = Stage::open(Rc::new(Minutes::default()));
    let mut spec = spec("a", "zfs");
    // The plugin listens on it already, so it is adopted; the supervisor must find out by itself that the socket cannot be used.
    spec.environment.insert("CSI_ENDPOINT".to_owned(), format!("unix://{socket}"));
    let adopted = stage.allocations.ask(AdoptAllocation { spec: spec.clone() }).await.expect("it runs");
    assert_eq!(adopted.expect("its directory can be made").socket.as_str(), socket);
    let began = Instant::now();
    stage.started(&spec).await;
    let event = stage.event(TaskEventKind::SocketRefused).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let us = rustix::process::geteuid().as_raw();
    for named in ["permission denied", socket, &format!("{owner}:"), "mode 0555", &format!("we are {us}:")] {
        assert!(event.message.contains(named), "{named:?} is not named: {}", event.message);
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    let restarts =
        stage.rest().into_iter().filter(|news| matches!(news, AllocationsNews::RestartRequested { .. }));
    assert_eq!(restarts.count(), 0, "a restart would not help");
    assert_eq!(stage.list().await[0].phase, AllocationPhase::AwaitingRestart);
}

#[test]
fn a_link_in_the_place_of_a_directory_is_refused_and_not_followed_vol_06() {
    story(|| async {
        let stage = Stage::open(Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let precious = stage.directory.path().join("precious");
        fs::create_dir(&precious).expect("it can be made");
        fs::write(precious.join("data"), "kept").expect("it can be written");
        let plugins = stage.data_dir.join("csi/plugins");
        let other = spec_of_another(&stage).await;
        symlink(&precious, plugins.join("a")).expect("it can be made");
        let error = stage.prepare(&spec).await.expect_err("a link is no directory");
        assert!(
            matches!(&error, PrepareError::Directory { path, .. } if *path == plugins.join("a")),
            "{error}"
        );
        assert!(stage.list().await.iter().all(|status| status.allocation == other), "it is not known then");
        assert_eq!(fs::read_to_string(precious.join("data")).expect("it is there"), "kept");
        assert!(!precious.join("csi.sock").exists());
    });
}

/// Prepares another allocation, so that the parent directories exist.
async fn spec_of_another(stage: &Stage) -> callboard_actors::vocabulary::AllocationId {
    let other = spec("other", "zfs");
    stage.prepare(&other).await.expect("it can be prepared");
    other.allocation
}

#[test]
fn a_directory_that_lets_others_in_is_refused_and_says_what_to_do() {
    story(|| async {
        let stage = Stage::open_at(&"d".repeat(200), Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let own = context.socket.as_path().parent().expect("it lies in a directory");
        let above = own.parent().expect("it lies in a directory");

        // The plugin may have opened up its own directory; the next preparation restores the mode.
        fs::set_permissions(own, fs::Permissions::from_mode(0o755)).expect("ours to change");
        stage.prepare(&spec).await.expect("it can be prepared");
        assert_eq!(fs::metadata(own).expect("it is there").mode() & 0o7777, 0o700);

        fs::set_permissions(above, fs::Permissions::from_mode(0o777)).expect("ours to change");
        let error = stage.prepare(&spec).await.expect_err("anybody could have put it there").to_string();
        assert!(
            error.contains(above.to_str().expect("readable")) && error.contains("set it to 0700"),
            "{error}"
        );
    });
}
