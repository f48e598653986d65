//! Tests who may use the admin socket, and which existing files and sockets a host may replace with it.

mod program;

use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use callboard::actors::vocabulary::SocketPath;
use callboard::admin::AdminClient;
use program::{CALLBOARD, Stage, TIMEOUT, refusal, until_true};
use rustix::net::RecvFlags;
use rustix::process::Signal;

/// The id of a user that is neither root nor the user of this test.
const NOBODY_UID: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a host that must refuse to start; returns the last line of its error output.
fn refused(stage: &Stage) -> String {
    let output =
        Command::new(CALLBOARD).args(["run", "--config"]).arg(stage.config()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).lines().last().expect("it says why").to_owned()
}

/// Asks for the status as another user. Returns `None`, and reports it in the output, if that user cannot run the program.
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
    assert!(said.contains("exists and is not a socket"), "{said}");
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

/// The error that a client reports about a listener that is not a host.
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
        // It stays connected until the client hangs up.
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
    // All of these connect; the host closes half of them to make room for the others.
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
        assert_eq!(refused.to_string(), "limit of 24 watching clients reached; end one of them");
        one_more.status().await.expect("it may ask for everything else");
        // To make room, the host closes connections without a call, but not those that watch.
        let idle: Vec<_> =
            (0..100).map(|_| UnixStream::connect(socket.as_path()).expect("it listens")).collect();
        assert!(host.ask(&["status"]).status.success());
        assert_eq!(host.refusal(&["stop", "nothing"]).0, 1);
        drop(idle);
        watching.pop();
        let mut another = AdminClient::connect(&socket).await.expect("there is room");
        while another.watch().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for (_, told) in &mut watching {
            // Its stream is still open: it has news or no news yet, but no end.
            let news = tokio::time::timeout(Duration::from_millis(1), told.next()).await;
            assert!(!matches!(news, Ok(Ok(None) | Err(_))), "{news:?}");
        }
    });
}

/// A client that implements HTTP/2 itself. It sends as much as the host accepts, and may read nothing.
struct RawClient {
    stream: UnixStream,
    /// How many bytes of requests the host accepts on this connection now.
    window: usize,
    /// Received bytes that are not a complete frame yet.
    received: Vec<u8>,
}

impl RawClient {
    /// Connects, and gives the host the largest window that the protocol allows.
    fn connect(stage: &Stage) -> Self {
        let stream = UnixStream::connect(stage.data_dir().join("admin.sock")).expect("there is room");
        stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a socket");
        let mut client = Self { stream, window: 65_535, received: Vec::new() };
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        // SETTINGS_INITIAL_WINDOW_SIZE, and the same for the connection.
        client.frame(4, 0, 0, &[&[0, 4][..], &i32::MAX.to_be_bytes()].concat());
        client.frame(8, 0, 0, &(i32::MAX - 65_535).to_be_bytes());
        client
    }

    /// The host may have closed the connection to make room for another one.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.send(&[&head, payload].concat());
    }

    /// Begins a request to this method.
    fn ask(&mut self, stream: u32, method: &str) {
        let path = format!("/callboard.admin.v1.Admin/{method}");
        let header = |(name, value): (&str, &str)| {
            // A literal that is not indexed, with a new name (RFC 7541, section 6.2.2).
            let [name, value] = [name, value].map(|text| {
                let length = u8::try_from(text.len()).expect("a short text");
                [&[length], text.as_bytes()].concat()
            });
            [&[0][..], &name, &value].concat()
        };
        let headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", &*path),
            (":authority", "host"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        // As many additional headers as a host accepts in a request.
        let padding = "x".repeat(120);
        let more = [("x-more", &*padding)].repeat(20);
        self.frame(1, 4, stream, &headers.into_iter().chain(more).flat_map(header).collect::<Vec<_>>());
    }

    /// Sends a message that claims `claimed` bytes, and sends `bytes` of them. Returns false if the window has no room for them now.
    fn say(&mut self, stream: u32, claimed: u32, bytes: usize) -> bool {
        self.read_windows();
        if self.window < 5 + bytes {
            return false;
        }
        self.window -= 5 + bytes;
        self.frame(0, 0, stream, &[&[0][..], &claimed.to_be_bytes()].concat());
        for piece in vec![b'x'; bytes].chunks(16_384) {
            self.frame(0, 0, stream, piece);
        }
        true
    }

    /// Reads the received frames, and enlarges the window by what the host grants for the connection.
    fn read_windows(&mut self) {
        let mut piece = [0; 4_096];
        while let Ok((_, read @ 1..)) = rustix::net::recv(&self.stream, &mut piece, RecvFlags::DONTWAIT) {
            self.received.extend_from_slice(&piece[..read]);
        }
        while let [high, middle, low, kind, _, stream @ ..] = &self.received[..] {
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            let Some((stream, payload)) = stream.split_first_chunk() else { return };
            let Some(payload) = payload.get(..length) else { return };
            if (*kind, *stream) == (8, [0; 4]) {
                let more = payload.try_into().map(u32::from_be_bytes).expect("four bytes");
                self.window += more as usize;
            }
            self.received.drain(..9 + length);
        }
    }
}

/// How much memory a process holds, in MiB.
fn resident_mib(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_024
}

/// How long clients keep sending when the host accepts nothing more, and how long while it has not accepted enough to prove anything.
const PATIENCE: Duration = Duration::from_millis(50);
const LONG_PATIENCE: Duration = Duration::from_secs(20);
/// How many requests must be half sent in each round, and how many pieces of an endless request: a few of each need no memory of the host.
const SENT_MIN: usize = 1_000;
const TAKEN_MIN: usize = 16;

/// Whether clients continue to send, if the host last accepted something at this time.
fn go_on(last: Instant, is_enough: bool) -> bool {
    last.elapsed() < if is_enough { PATIENCE } else { LONG_PATIENCE }
}

/// How much more memory a host may hold for the worst clients, in MiB: the maximum of connections, each with the maximum of requests,
/// each of the maximum size, and the part of it that the allocator keeps.
const GROWTH_MAX_MIB: u64 = 100;

#[test]
fn clients_that_send_as_much_as_they_can_and_read_nothing_take_bounded_memory_and_keep_no_other_out() {
    let idle = program::allocation("a", "zfs", "node", &[], "start = false");
    let stage = Stage::new(&idle);
    let host = stage.run();
    let pid = host.json(&["status"])["host"]["pid"].to_string();
    let before = resident_mib(&pid);
    let mut most = before;
    let mut look = |what: &str| {
        assert!(host.ask(&["status"]).status.success(), "{what}: there is room for one more");
        most = most.max(resident_mib(&pid));
        println!("{what}: {} MiB, {before} at first", resident_mib(&pid));
        assert!(most <= before + GROWTH_MAX_MIB, "{what}: {before} MiB became {most}");
    };
    // Requests of the largest allowed size, and larger ones.
    for (round, bytes) in [(1, 16_000), (2, 60_000), (3, 16_000)] {
        // More connections than allowed, each with the maximum of requests, each half sent.
        let mut clients: Vec<_> = (0..80).map(|_| RawClient::connect(&stage)).collect();
        let (mut waiting, mut sent) = (Vec::new(), 0);
        for stream in (1..=63).step_by(2) {
            clients.iter_mut().for_each(|client| client.ask(stream, "GetStatus"));
            waiting.extend((0..clients.len()).map(|client| (client, stream)));
            let mut last = Instant::now();
            while !waiting.is_empty() && go_on(last, stream < 63 || sent >= SENT_MIN) {
                let before = waiting.len();
                waiting
                    .retain(|&(client, stream)| !clients[client].say(stream, bytes, bytes as usize - 1_000));
                if waiting.len() < before {
                    (sent, last) = (sent + before - waiting.len(), Instant::now());
                }
            }
        }
        assert!(sent >= SENT_MIN, "only {sent} questions of {bytes} bytes got there");
        look(&format!("{sent} questions of {bytes} bytes that are half sent, round {round}"));
        // A request that claims a size beyond all limits, and is sent for as long as the host accepts it.
        let mut large = RawClient::connect(&stage);
        large.ask(1, "GetStatus");
        let (mut taken, mut last) = (0, Instant::now());
        while taken < 2_000 && go_on(last, taken >= TAKEN_MIN) {
            if large.say(1, u32::MAX, 16_384) {
                (taken, last) = (taken + 1, Instant::now());
            }
        }
        assert!(taken >= TAKEN_MIN, "only {taken} pieces got there");
        look(&format!("a question without end, of which {taken} pieces were taken, round {round}"));
    }
    // Clients that watch and never read, while there is news all the time.
    let mut watching: Vec<_> = (0..24).map(|_| RawClient::connect(&stage)).collect();
    for client in &mut watching {
        client.ask(1, "Watch");
        client.frame(0, 1, 1, &[0; 5]);
    }
    for round in 1..=10 {
        for words in [["start", "a"], ["stop", "a"]] {
            assert!(host.ask(&words).status.success(), "{words:?}");
        }
        look(&format!("watchers that read nothing, round {round}"));
    }
    drop(watching);
    look("none of them");
}
