//! Who may use the admin socket, and whose place it takes.

mod program;

use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use callboard::actors::vocabulary::SocketPath;
use callboard::admin::AdminClient;
use program::{CALLBOARD, Stage, TIMEOUT, refusal, until_true};
use rustix::process::Signal;

/// A user that is neither root nor us.
const NOBODY_UID: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a host that is expected to refuse; gives its last line.
fn refused(stage: &Stage) -> String {
    let output =
        Command::new(CALLBOARD).args(["run", "--config"]).arg(stage.config()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).lines().last().expect("it says why").to_owned()
}

/// Asks as another user. `None` when that user cannot even run the program, which is said in the output.
fn ask_as_nobody(stage: &Stage) -> Option<Output> {
    let ask = |words: &[&str]| Command::new(CALLBOARD).args(words).uid(NOBODY_UID).gid(NOBODY_UID).output();
    if !is_root() || !ask(&["--version"]).is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: only root can ask as another user, and only where that user may run {CALLBOARD}");
        return None;
    }
    let socket = stage.data_dir().join("admin.sock").display().to_string();
    Some(ask(&["status", "--socket", &socket]).expect("it runs"))
}

#[test]
fn the_socket_is_for_its_owner_only() {
    let stage = Stage::new("");
    let _host = stage.run();
    let found = std::fs::metadata(stage.data_dir().join("admin.sock")).expect("it is there");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o7777, 0o600);
}

#[test]
fn another_user_is_kept_out_by_the_file_system_and_told_so() {
    let stage = Stage::new("");
    let _host = stage.run();
    let Some(output) = ask_as_nobody(&stage) else { return };
    let (code, said) = refusal(&output);
    assert_eq!(code, 1);
    assert!(said.contains("user 65534 may not use") && said.contains("as root"), "{said}");
}

#[test]
fn another_user_is_kept_out_by_the_host_itself_where_the_file_system_does_not() {
    let stage = Stage::new("");
    let _host = stage.run();
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    open(stage.directory.path(), 0o755);
    open(&stage.data_dir(), 0o755);
    open(&stage.data_dir().join("admin.sock"), 0o666);
    let Some(output) = ask_as_nobody(&stage) else { return };
    let (code, said) = refusal(&output);
    assert_eq!(code, 1);
    assert_eq!(said, "callboard: this host answers user 0 and root, not user 65534");
}

#[test]
fn the_socket_of_a_living_process_is_left_alone_sec_02() {
    let stage = Stage::new("");
    let socket = stage.directory.path().join("other.sock");
    let _other = UnixListener::bind(&socket).expect("a socket");
    stage.configure(&format!("admin_socket = {socket:?}"));
    let said = refused(&stage);
    let pid = std::process::id();
    assert!(
        said.contains(&format!("a process listens on {} already (pid {pid})", socket.display())),
        "{said}"
    );
    assert!(UnixStream::connect(&socket).is_ok(), "it is there and answers as before");
}

#[test]
fn the_socket_of_a_dead_process_is_replaced_sec_02() {
    let stage = Stage::new("");
    let socket = stage.directory.path().join("other.sock");
    drop(UnixListener::bind(&socket).expect("a socket"));
    stage.configure(&format!("admin_socket = {socket:?}"));
    let host = stage.run();
    assert!(host.json(&["status"])["host"]["pid"].is_u64(), "the data directory says where the socket is");
}

#[test]
fn of_two_hosts_with_one_admin_socket_the_first_keeps_it_and_leaves_nothing_to_the_second_sec_02() {
    let (first, second) = (Stage::new(""), Stage::new(""));
    let socket = first.directory.path().join("shared.sock");
    for stage in [&first, &second] {
        stage.configure(&format!("admin_socket = {socket:?}"));
    }
    let host = first.run();
    let pid = host.json(&["status"])["host"]["pid"].to_string();
    let said = refused(&second);
    assert!(said.contains(&format!("listens on {} already (pid {pid})", socket.display())), "{said}");
    assert_eq!(host.json(&["status"])["host"]["pid"].to_string(), pid, "it is reached as before");
    host.signal(Signal::TERM);
    assert!(host.ended().0.success());
    let names = std::fs::read_dir(first.directory.path()).expect("it is there");
    let names: Vec<_> = names.map(|entry| entry.expect("it is there").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("shared.sock")), "{names:?}");
    second.run().kill();
    assert!(socket.exists(), "it was not removed");
    assert!(first.run().ask(&["status"]).status.success(), "a killed host has no claim to it");
}

#[test]
fn what_is_no_socket_is_not_touched() {
    let stage = Stage::new("");
    let file = stage.directory.path().join("precious");
    std::fs::write(&file, "data").expect("a file");
    stage.configure(&format!("admin_socket = {file:?}"));
    let said = refused(&stage);
    assert!(said.contains("is there and is no socket"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "data");
}

#[test]
fn what_belongs_to_another_user_is_not_touched() {
    let stage = Stage::new("");
    let socket = stage.directory.path().join("other.sock");
    drop(UnixListener::bind(&socket).expect("a socket"));
    stage.configure(&format!("admin_socket = {socket:?}"));
    if chown(&socket, Some(NOBODY_UID), None).is_err() {
        eprintln!("NOT RUN: only root can give a socket to another user");
        return;
    }
    let said = refused(&stage);
    assert!(said.contains("belongs to user 65534, and this host runs as user 0"), "{said}");
    assert_eq!(std::fs::symlink_metadata(&socket).expect("it is there").uid(), NOBODY_UID);
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let stage = Stage::new("");
    let open = stage.directory.path().join("open");
    std::fs::create_dir(&open).expect("a directory");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    stage.configure(&format!("admin_socket = {:?}", open.join("a.sock")));
    let said = refused(&stage);
    assert!(said.contains("others may write to") && said.contains("(mode 0777"), "{said}");
}

/// What a listener that is no host gets from a client.
fn asked_of(answer: impl Fn(UnixStream) + Send + 'static) -> String {
    let stage = Stage::new("");
    let socket = stage.directory.path().join("other.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
    let output = Command::new(CALLBOARD).args(["status", "--socket"]).arg(&socket).output().expect("it runs");
    let (code, said) = refusal(&output);
    assert_eq!(code, 1);
    said
}

const NO_HOST: &str = "does not answer as a Callboard host of this version, or has just ended";

#[test]
fn what_listens_and_speaks_another_language_is_no_host() {
    let said = asked_of(|mut stream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it listens");
        // It stays until the other side has had enough.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(said.contains(NO_HOST), "{said}");
}

#[test]
fn what_listens_and_hangs_up_is_no_host() {
    let said = asked_of(drop);
    assert!(said.contains(NO_HOST), "{said}");
}

#[test]
fn clients_that_forget_to_leave_take_a_bounded_number_of_descriptors_and_keep_no_other_out() {
    let stage = Stage::new("");
    let host = stage.run();
    let pid = host.json(&["status"])["host"]["pid"].to_string();
    let descriptors = || std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors").count();
    let before = descriptors();
    let socket = stage.data_dir().join("admin.sock");
    // All of these connect, and half of them are closed for the others.
    let idle: Vec<_> = (0..120).map(|_| UnixStream::connect(&socket).expect("there is room")).collect();
    until_true("all places are taken", TIMEOUT, || descriptors() >= before + 60);
    assert!(host.ask(&["status"]).status.success(), "there is room for one more");
    assert!(descriptors() <= before + 70, "{} descriptors", descriptors());
    drop(idle);
    until_true("all places are free again", TIMEOUT, || descriptors() <= before + 5);
    assert!(host.ask(&["status"]).status.success());
}

#[test]
fn so_many_watch_and_no_more_and_room_for_others_remains() {
    let stage = Stage::new("");
    let host = stage.run();
    let socket = stage.data_dir().join("admin.sock");
    let socket = SocketPath::new(socket.to_str().expect("readable")).expect("a short path");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut watching = Vec::new();
        for _ in 0..24 {
            let mut client = AdminClient::connect(&socket).await.expect("there is room");
            let mut told = client.watch().await.expect("so many may watch");
            told.next().await.expect("the host runs").expect("it begins with the whole status");
            watching.push((client, told));
        }
        let mut one_more = AdminClient::connect(&socket).await.expect("there is room");
        let refused = one_more.watch().await.expect_err("so many watch already");
        assert_eq!(
            refused.to_string(),
            "24 clients watch this host already and no more may; end one of them"
        );
        one_more.status().await.expect("it may ask for everything else");
        // Connections without a call are closed for others, and those that watch are not.
        let idle: Vec<_> =
            (0..100).map(|_| UnixStream::connect(socket.as_path()).expect("it listens")).collect();
        assert!(host.ask(&["status"]).status.success());
        assert_eq!(host.refusal(&["stop", "nothing"]).0, 1);
        drop(idle);
        watching.pop();
        let mut another = AdminClient::connect(&socket).await.expect("there is room");
        while another.watch().await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        for (_, told) in &mut watching {
            // Its stream is open: there is news or nothing yet, and no end.
            let news = tokio::time::timeout(std::time::Duration::from_millis(1), told.next()).await;
            assert!(!matches!(news, Ok(Ok(None) | Err(_))), "{news:?}");
        }
    });
}
