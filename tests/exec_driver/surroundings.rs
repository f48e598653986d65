//! Tests the surroundings of a task: its user, its network, its program and its outputs.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};

use callboard_proto::drivers::network_isolation_spec::NetworkIsolationMode;
use callboard_proto::drivers::*;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::UnshareFlags;
use tonic::Code;

use crate::rig::{LONG, Place, until};

fn is_root_or_say(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: {what} is not shown, since only root can do that");
    }
    is_root
}

#[tokio::test]
async fn a_user_that_the_host_made_up_needs_no_file_that_knows_it_t116_t176() {
    if !is_root_or_say("a task of a user that its host made up") {
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut plugin = place.start(&[]).await;
    let task =
        TaskConfig { user: "nomad-80123".to_owned(), ..place.shell("t1", "id -u; id -g; id -G; sleep 1000") };
    plugin.start(task).await.expect("it starts");
    place.until("t1.out", "80123\n80123\n80123\n").await;
    let output = plugin.exec("t1", &["/usr/bin/id", "-u"], LONG).await.expect("it runs");
    assert_eq!(&*output.stdout, b"80123\n");
    plugin.destroy("t1", true).await.expect("it is killed");
    for user in ["nomad-0", "nomad-x", "nomad-1"] {
        let task = TaskConfig { user: user.to_owned(), ..place.shell("t2", "exit 0") };
        let refused = plugin.start(task).await.expect_err("such a user cannot be chosen");
        assert_eq!(refused.code(), Code::InvalidArgument, "{user}");
    }
}

/// Settings of a task for the dynamic linker must not affect any process that does not run as the task's user yet.
#[tokio::test]
async fn nothing_obeys_the_environment_of_a_task_before_it_is_the_tasks_user() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let mut task =
        place.shell("t1", "echo $LD_PRELOAD; cat /proc/self/environ | tr '\\0' '\\n' | grep -c ^task[.]");
    task.env.insert("LD_PRELOAD".to_owned(), "/no/such/library.so".to_owned());
    plugin.start(task).await.expect("it starts");
    assert_eq!(plugin.wait("t1").await.0, 1, "grep counts none");
    assert_eq!(place.read("t1.out"), "/no/such/library.so\n0\n");
    let complaints = place.read("t1.err");
    assert!(!complaints.contains("callboard"), "{complaints}");
}

/// A process in its own network namespace.
struct OwnNetwork(Child);

impl OwnNetwork {
    async fn begin() -> Option<Self> {
        let command = ["--net", "sleep", "1000"];
        let child = Command::new("unshare").args(command).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = child else { return None };
        let pid = child.id().cast_signed();
        until("it has its network or ends", || {
            Place::command_of(pid).starts_with("sleep") || !crate::rig::lives(pid)
        })
        .await;
        matches!(child.try_wait(), Ok(None)).then_some(Self(child))
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }
}

impl Drop for OwnNetwork {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_task_and_what_runs_beside_it_join_the_network_of_their_allocation_t078_t176() {
    if !is_root_or_say("a task in the network of its allocation") {
        return;
    }
    let Some(network) = OwnNetwork::begin().await else {
        eprintln!(
            "SKIPPED: a task in the network of its allocation is not shown, since `unshare --net` is refused here"
        );
        return;
    };
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let spec = |mode: NetworkIsolationMode, path: &str| NetworkIsolationSpec {
        mode: mode.into(),
        path: path.to_owned(),
        ..Default::default()
    };
    let with = |id: &str, spec| TaskConfig {
        network_isolation_spec: Some(spec),
        ..place.shell(id, "readlink /proc/self/ns/net; sleep 1000")
    };
    plugin.start(with("t1", spec(NetworkIsolationMode::Group, &network.path()))).await.expect("it starts");
    let expected = fs::read_link(network.path()).expect("a namespace").display().to_string();
    place.until("t1.out", &format!("{expected}\n")).await;
    let output = plugin.exec("t1", &["/bin/readlink", "/proc/self/ns/net"], LONG).await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{expected}\n"));
    plugin.destroy("t1", true).await.expect("it is killed");
    plugin.start(with("t2", spec(NetworkIsolationMode::Host, ""))).await.expect("no path is the host's");
    plugin.destroy("t2", true).await.expect("it is killed");
    let gone = plugin.start(with("t3", spec(NetworkIsolationMode::Group, "/no/such/network"))).await;
    let gone = gone.expect_err("it cannot be entered");
    assert!(gone.message().contains("network namespace /no/such/network"), "{gone}");
    let none =
        plugin.start(with("t4", spec(NetworkIsolationMode::None, ""))).await.expect_err("there is none");
    assert_eq!(none.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_bare_name_is_looked_for_in_the_tasks_own_directory_first_t044() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let task = place.task("t1", &["greet"]);
    let local = place.path("alloc/t1-task/local");
    fs::create_dir_all(&local).expect("room");
    fs::write(local.join("greet"), "#!/bin/sh\necho good evening\n").expect("room");
    fs::set_permissions(local.join("greet"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    plugin.start(task).await.expect("it starts");
    assert_eq!(plugin.wait("t1").await, (0, 0, String::new()));
    assert_eq!(place.read("t1.out"), "good evening\n");
    let refused = plugin.start(place.task("t2", &["no-such-program"])).await.expect_err("it is nowhere");
    assert!(refused.message().contains("no-such-program"), "{refused}");
}

#[tokio::test]
async fn output_goes_where_the_host_says_and_makes_no_file_of_a_device_or_a_fifo_t062_t065() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let fifo = place.path("t1.err");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).expect("room");
    let text = "\\033[1mbold\\033[0m \\377 no line end";
    let task = TaskConfig {
        stdout_path: "/dev/null".to_owned(),
        ..place.shell("t1", &format!("echo lost; printf '{text}' >&2"))
    };
    let mut reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("a FIFO");
    plugin.start(task).await.expect("it starts");
    assert_eq!(plugin.wait("t1").await, (0, 0, String::new()));
    let mut read = vec![0; 100];
    let length = std::io::Read::read(&mut reader, &mut read).expect("it was written");
    assert_eq!(&read[..length], b"\x1b[1mbold\x1b[0m \xff no line end", "each byte as it was written");
    assert!(fs::metadata(&fifo).expect("it is there").file_type().is_fifo());
    assert!(fs::metadata("/dev/null").expect("it is there").file_type().is_char_device());
}

fn mount(place: &Place, host: &str, task: &str) -> Mount {
    Mount {
        host_path: place.path(host).display().to_string(),
        task_path: place.path(task).display().to_string(),
        ..Default::default()
    }
}

#[tokio::test]
async fn what_is_mounted_into_a_task_is_seen_by_it_and_by_commands_beside_it_and_by_no_other_process_t077() {
    if !is_root_or_say("a task with mounts") {
        return;
    }
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    for name in ["volume", "read", "mnt", "mnt-read"] {
        fs::create_dir(place.path(name)).expect("room");
    }
    fs::write(place.path("read/word"), "given").expect("room");
    let script = format!(
        "cd {}; echo kept > mnt/file; cat mnt-read/word; touch mnt-read/more 2>/dev/null || echo ' read-only'; sleep 1000",
        place.directory.path().display()
    );
    let mounts =
        vec![mount(&place, "volume", "mnt"), Mount { readonly: true, ..mount(&place, "read", "mnt-read") }];
    plugin.start(TaskConfig { mounts, ..place.shell("t1", &script) }).await.expect("it starts");
    place.until("t1.out", "given read-only\n").await;
    assert_eq!(place.read("volume/file"), "kept\n");
    assert!(!place.path("mnt/file").exists(), "the host sees its own directory");
    let file = place.path("mnt/file").display().to_string();
    let output = plugin.exec("t1", &["/bin/cat", &file], LONG).await.expect("it runs");
    assert_eq!(&*output.stdout, b"kept\n");
    plugin.destroy("t1", true).await.expect("it is killed");
    fs::remove_dir(place.path("mnt")).expect("nothing is mounted there, and it is empty");

    let mounts = vec![mount(&place, "volume", "mnt")];
    let refused = plugin.start(TaskConfig { mounts, ..place.shell("t2", "exit 0") }).await;
    let refused = refused.expect_err("it has no such mount point");
    assert!(refused.message().contains("create an empty directory there"), "{refused}");
}

/// The task's user may create a link where root mounts.
#[tokio::test]
async fn nothing_is_mounted_through_a_link_and_the_link_is_named_t077_v6_vol_06() {
    if !is_root_or_say("a task with mounts") {
        return;
    }
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    for name in ["volume", "other/mnt"] {
        fs::create_dir_all(place.path(name)).expect("room");
    }
    symlink(place.path("other/mnt"), place.path("last")).expect("room");
    symlink("other", place.path("parent")).expect("room");
    symlink("volume", place.path("source")).expect("room");
    let cases =
        [("volume", "last", "last"), ("volume", "parent/mnt", "parent"), ("source", "other/mnt", "source")];
    for (host, task, link) in cases {
        let mounts = vec![mount(&place, host, task)];
        let script = format!("grep -c {} /proc/self/mountinfo", place.path("other").display());
        let refused = plugin.start(TaskConfig { mounts, ..place.shell("t1", &script) }).await;
        let refused = refused.expect_err("there is a link in one of the paths");
        let named = format!("{} is a symbolic link", place.path(link).display());
        assert!(refused.message().contains(&named), "{refused}");
        assert!(refused.message().contains("remove the link, or write the path"), "{refused}");
        assert_eq!(place.read("t1.out"), "", "the command does not run");
    }
    let plain = vec![mount(&place, "volume", "other/mnt")];
    plugin.start(TaskConfig { mounts: plain, ..place.shell("t2", "exit 0") }).await.expect("it has no link");
    assert_eq!(plugin.wait("t2").await, (0, 0, String::new()));
}

/// Moves this thread, and what it starts, into its own mount namespace that shares nothing.
#[allow(deprecated, reason = "what takes its place is unsafe, for flags that are not used here")]
fn in_private_mounts() -> rustix::io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

#[tokio::test]
async fn a_task_holds_no_volume_of_another_where_mounts_are_private_and_the_host_keeps_them_t077_v8() {
    if !is_root_or_say("a task beside the volumes of others") {
        return;
    }
    if let Err(error) = in_private_mounts() {
        eprintln!("SKIPPED: a task beside the volumes of others is not shown, since unshare says {error}");
        return;
    }
    let place = Place::new();
    let (own, other) = ("csi/node/p/per-alloc/a/default/own/rw", "csi/node/p/staging/default/other/rw");
    for name in [own, other, "mnt"] {
        fs::create_dir_all(place.path(name)).expect("room");
        if name != "mnt" {
            rustix::mount::mount(
                "none",
                place.path(name),
                "tmpfs",
                MountFlags::empty(),
                None::<&std::ffi::CStr>,
            )
            .expect("a tmpfs");
        }
    }
    fs::write(place.path(own).join("word"), "own").expect("room");
    fs::write(place.path(other).join("word"), "other").expect("room");
    let mut plugin = place.start(&[]).await;
    // Other hosts of this machine may have volumes, too.
    let of_this_host = place.directory.path().display();
    let script = format!(
        "cat {of_this_host}/mnt/word; cut -d' ' -f5 /proc/self/mountinfo | grep ^{of_this_host}/ | grep -o csi/node.* || echo none"
    );
    let mounts = vec![mount(&place, own, "mnt")];
    plugin.start(TaskConfig { mounts, ..place.shell("t1", &script) }).await.expect("it starts");
    assert_eq!(plugin.wait("t1").await, (0, 0, String::new()));
    assert_eq!(place.read("t1.out"), format!("own{own}\n"), "its own volume, and no other");
    assert_eq!(place.read(&format!("{other}/word")), "other", "the host still has it");
    for name in [own, other] {
        unmount(place.path(name), UnmountFlags::empty()).expect("it is mounted at the host");
    }
}
