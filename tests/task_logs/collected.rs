//! Tests the logs of tasks as a host program gets them: nothing lost, nothing doubled, no task blocked.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard::actors::logmon::{
    Collection, LogPlace, LogProgram, LogReader, LogSpec, LogState, LogStream, Logs, LogsError, LogsOptions,
    LogsView, Retention, places,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::program::{CALLBOARD, TIMEOUT, lives};

/// A directory with allocations in it, and the logs of their tasks.
struct Stage {
    directory: TempDir,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir_all(directory.path().join("allocs/a/alloc/logs")).expect("a directory");
        Self { directory }
    }

    fn ours(&self) -> PathBuf {
        self.directory.path().join("logmon")
    }

    fn place(&self) -> PathBuf {
        self.directory.path().join("allocs/a/alloc/logs")
    }

    async fn logs(&self) -> Logs {
        let options = LogsOptions { directory: self.ours(), program: LogProgram::callboard(CALLBOARD) };
        Logs::start(options).await.expect("they start")
    }

    fn spec(&self, key: &str, collection: Collection) -> LogSpec {
        LogSpec {
            key: key.to_owned(),
            name: key.to_owned(),
            root: self.directory.path().join("allocs"),
            directory: PathBuf::from("a/alloc/logs"),
            collection,
        }
    }

    fn reader(&self, key: &str) -> LogReader {
        let places = places(&self.ours()).expect("they can be read");
        let place = places.into_iter().find(|(name, stream, _)| name == key && *stream == LogStream::Stdout);
        LogReader::from_start(place.expect("it is known").2).expect("it can be read")
    }

    fn text(&self, key: &str) -> String {
        read(&mut self.reader(key))
    }
}

fn read(reader: &mut LogReader) -> String {
    let (mut all, mut bytes) = (Vec::new(), [0; 65_536]);
    while let count @ 1.. = reader.read(&mut bytes).expect("it can be read") {
        all.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8(all).expect("it is text")
}

const fn keep(files_max: u64, file_bytes_max: u64) -> Collection {
    Collection::Keep(Retention { files_max, file_bytes_max })
}

async fn until(what: &str, logs: &Logs, holds: impl Fn(&LogsView) -> bool) -> LogsView {
    let mut view = logs.view();
    let found = timeout(TIMEOUT, view.wait_for(|view| holds(view))).await;
    found.unwrap_or_else(|_| panic!("{what}: {:?}", logs.view().borrow())).expect("they run").clone()
}

async fn until_true(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("a pid"), signal).expect("it lives");
}

/// A process that writes numbered lines into a pipe, which it opens as drivers do: for writing only, and with blocking writes.
fn writer(pipe: &Path, lines: u32, pause: &str) -> Child {
    let script = format!("i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo \"line $i\"; {pause} done");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).stdin(Stdio::null());
    command.stdout(OpenOptions::new().write(true).open(pipe).expect("it has a reader"));
    command.spawn().expect("it starts")
}

fn assert_numbered(text: &str, lines: u32) {
    for (place, line) in text.lines().enumerate() {
        assert_eq!(line, format!("line {}", place + 1), "each line once, in order and whole");
    }
    assert_eq!(text.lines().count(), lines as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_writer_that_is_killed_again_and_again_costs_no_line_and_doubles_none_th020_th021() {
    const LINES: u32 = 400_000;
    let stage = Stage::new();
    let logs = stage.logs().await;
    let paths = logs.open(stage.spec("web", keep(500, 256 * 1_024))).await.expect("they are opened");
    let mut writer = writer(&paths.stdout, LINES, "");
    let mut random = fastrand::Rng::with_seed(20);
    let mut last = None;
    for _ in 0..25 {
        let view = until("a log writer", &logs, |view| view.pid.is_some() && view.pid != last).await;
        last = view.pid;
        until("the task is collected again", &logs, |view| view.tasks["web"].state == LogState::Collected)
            .await;
        sleep(Duration::from_millis(random.u64(0..40))).await;
        signal(last.expect("it runs"), Signal::KILL);
    }
    let ended = tokio::task::spawn_blocking(move || writer.wait()).await.expect("no panic").expect("it ends");
    assert!(ended.success(), "nothing ended it: {ended}");
    let closed = logs.close("web", TIMEOUT).await.expect("they are closed");
    assert_eq!(closed.lost, 0);
    assert_numbered(&stage.text("web"), LINES);
    logs.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_host_that_comes_back_finds_its_log_writer_and_its_pipes_and_the_task_hears_nothing_th020_t068() {
    const LINES: u32 = 3_000;
    let stage = Stage::new();
    let mut random = fastrand::Rng::with_seed(21);
    let logs = stage.logs().await;
    let paths = logs.open(stage.spec("web", keep(10, 1 << 20))).await.expect("they are opened");
    let pid = until("a log writer", &logs, |view| view.pid.is_some()).await.pid;
    let mut writer = writer(&paths.stdout, LINES, "sleep 0.001;");
    // The host's side is dropped without a message, as when the host is killed.
    drop(logs);
    for _ in 0..10 {
        sleep(Duration::from_millis(random.u64(0..60))).await;
        let logs = stage.logs().await;
        let view = until("the same log writer", &logs, |view| view.pid.is_some()).await;
        assert_eq!(view.pid, pid);
        until("the task is collected", &logs, |view| view.tasks["web"].state == LogState::Collected).await;
    }
    let ended = tokio::task::spawn_blocking(move || writer.wait()).await.expect("no panic").expect("it ends");
    assert!(ended.success(), "{ended}");
    let logs = stage.logs().await;
    assert_eq!(logs.close("web", TIMEOUT).await.expect("they are closed").lost, 0);
    assert_numbered(&stage.text("web"), LINES);
    logs.stop().await;
    until_true("the log writer has ended", || !lives(pid.expect("it ran").into())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_fills_its_pipe_waits_and_goes_on_t063_t193_th020() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    let paths = logs.open(stage.spec("web", keep(10, 16 << 20))).await.expect("they are opened");
    let pid = until("a log writer", &logs, |view| view.pid.is_some()).await.pid.expect("it runs");
    signal(pid, Signal::STOP);
    let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it has a reader");
    let (told, mut written) = tokio::sync::mpsc::unbounded_channel();
    let writing = std::thread::spawn(move || {
        for number in 0..64_u8 {
            pipe.write_all(&[b'a' + number % 26; 65_536]).expect("it is not closed");
            told.send(number).expect("it is heard");
        }
    });
    // It blocks while nothing reads: only as much as the pipe holds was written.
    until_true("the pipe is full", || is_full(&paths.stdout)).await;
    let mut count = 0;
    while written.try_recv().is_ok() {
        count += 1;
    }
    assert!(count < 64, "{count} pieces");
    signal(pid, Signal::CONT);
    until_true("it goes on to its end", || writing.is_finished()).await;
    assert_eq!(logs.close("web", TIMEOUT).await.expect("they are closed").lost, 0);
    let text = stage.text("web");
    assert_eq!(text.len(), 64 * 65_536);
    assert!(
        text.as_bytes()
            .chunks(65_536)
            .enumerate()
            .all(|(number, piece)| { piece.iter().all(|byte| usize::from(*byte - b'a') == number % 26) })
    );
    logs.stop().await;
}

fn is_full(pipe: &Path) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let pipe = OpenOptions::new().write(true).open(pipe).expect("it has a reader");
    let mut polled = [PollFd::new(&pipe, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("it can be asked") == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pipes_are_made_for_the_host_alone_and_removed_after_the_end_th023_t060_t069() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    for round in 0..3 {
        let paths = logs.open(stage.spec("web", keep(10, 1 << 20))).await.expect("they are opened");
        for path in [&paths.stdout, &paths.stderr] {
            let seen = std::fs::symlink_metadata(path).expect("it is there");
            assert!(seen.file_type().is_fifo());
            assert_eq!(seen.permissions().mode() & 0o7777, 0o600);
        }
        let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it has a reader");
        writeln!(pipe, "round {round}").expect("there is room");
        drop(pipe);
        assert_eq!(logs.close("web", TIMEOUT).await.expect("they are closed").lost, 0);
        assert!(!paths.stdout.exists() && !paths.stderr.exists());
    }
    // A new run appends to the log of the run before (T064), and the mode is the one that readers expect (T066).
    assert_eq!(stage.text("web"), "round 0\nround 1\nround 2\n");
    let file = std::fs::metadata(stage.place().join("web.stdout.0")).expect("it is there");
    assert_eq!(file.permissions().mode() & 0o7777, 0o644);
    assert_eq!(logs.close("nothing", TIMEOUT).await.expect("nothing of it is open").lost, 0);
    logs.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_link_in_the_place_of_a_pipe_or_a_directory_is_refused_and_nothing_begins_th023() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    let victim = stage.directory.path().join("victim");
    std::fs::write(&victim, "text").expect("a file");
    std::os::unix::fs::symlink(&victim, stage.place().join(".web.stderr.fifo")).expect("a link");
    let error = logs.open(stage.spec("web", keep(10, 1 << 20))).await.expect_err("a link is no pipe");
    assert!(error.to_string().contains("is a link") && !error.is_transient(), "{error}");
    std::fs::rename(stage.place(), stage.directory.path().join("real")).expect("it can be moved");
    std::os::unix::fs::symlink(stage.directory.path().join("real"), stage.place()).expect("a link");
    let error = logs.open(stage.spec("job", keep(10, 1 << 20))).await.expect_err("a link is no directory");
    assert!(error.to_string().contains("no link"), "{error}");
    let error = logs.open(LogSpec { name: "../x".to_owned(), ..stage.spec("x", keep(1, 1 << 20)) }).await;
    assert!(matches!(error, Err(LogsError::Malformed(_))));
    assert_eq!(std::fs::read_to_string(victim).expect("it is there"), "text");
    logs.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_two_log_writers_for_one_directory_the_second_refuses_and_a_second_host_shares_the_first_th021() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    let pid = until("a log writer", &logs, |view| view.pid.is_some()).await.pid;
    let second = Command::new(CALLBOARD).args(["log-writer", "--directory"]).arg(stage.ours()).output();
    let second = second.expect("it runs");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another log writer serves"), "{said}");
    let other = stage.logs().await;
    assert_eq!(until("the same one", &other, |view| view.pid.is_some()).await.pid, pid);
    drop(other);
    logs.stop().await;
    until_true("it has ended", || !lives(pid.expect("it ran").into())).await;
    assert!(!stage.ours().join("control.sock").exists(), "no socket is left (S4)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_not_to_be_kept_is_read_and_thrown_away_t065() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    let paths = logs.open(stage.spec("web", Collection::Discard)).await.expect("they are opened");
    let writing = std::thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it has a reader");
        pipe.write_all(&vec![b'x'; 8 << 20])
    });
    until_true("no writer waits", || writing.is_finished()).await;
    writing.join().expect("no panic").expect("it is taken");
    until("it is said", &logs, |view| view.tasks["web"].state == LogState::Discarded).await;
    logs.close("web", TIMEOUT).await.expect("they are closed");
    assert_eq!(std::fs::read_dir(stage.place()).expect("it is there").count(), 0);
    logs.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_writer_without_a_directory_or_without_anybody_ends_by_itself() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    logs.open(stage.spec("web", keep(1, 1 << 20))).await.expect("they are opened");
    let pid = until("a log writer", &logs, |view| view.pid.is_some()).await.pid.expect("it runs");
    drop(logs);
    assert!(lives(pid.into()), "it has pipes to read");
    // The log writer creates its files after the answer. A directory in which a file is created meanwhile cannot be removed.
    let is_made = |stream| stage.place().join(format!("web.{stream}.0")).exists();
    until_true("its files are there", || is_made("stdout") && is_made("stderr")).await;
    stage.directory.close().expect("nothing is made in it any more");
    until_true("it has ended with its directory", || !lives(pid.into())).await;
}

/// A file system of this many kilobytes, mounted over the allocations. `None` if none can be mounted.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(place: &Path, kilobytes: u32) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "callboard-test"])
            .arg(place)
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(place.to_owned()));
        }
        eprintln!("SKIPPED: what a full disk costs is not shown, since no file system can be mounted here");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_disk_costs_counted_bytes_and_blocks_no_task_for_ever_th022_t067() {
    let stage = Stage::new();
    let Some(_disk) = SmallDisk::mount(&stage.directory.path().join("allocs"), 8 * 1_024) else { return };
    std::fs::create_dir_all(stage.place()).expect("there is room");
    let ballast = stage.place().join("ballast");
    std::fs::write(&ballast, vec![0; 7 * 1_024 * 1_024 + 512 * 1_024]).expect("there is room");
    let logs = stage.logs().await;
    let paths = logs.open(stage.spec("web", keep(100, 16 << 20))).await.expect("they are opened");
    let writing = std::thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it has a reader");
        let line = [&[b'x'; 1_023][..], b"\n"].concat();
        (0..4_096).try_for_each(|_| pipe.write_all(&line)).map(|()| pipe)
    });
    let view = until("the disk is full", &logs, |view| view.tasks["web"].fault().is_some()).await;
    assert!(view.tasks["web"].fault().expect("it is said").contains("No space"), "{view:?}");
    until_true("the task is not blocked for ever", || writing.is_finished()).await;
    let mut pipe = writing.join().expect("no panic").expect("nothing breaks the pipe");
    until("what was dropped is counted", &logs, |view| view.tasks["web"].dropped() > 0).await;

    // There is room again: writing continues, and the log reports what is missing.
    std::fs::remove_file(ballast).expect("it can be removed");
    let view = until("it is written again", &logs, |view| view.tasks["web"].fault().is_none()).await;
    let dropped = view.tasks["web"].dropped();
    until_true("the log says so", || stage.text("web").contains("bytes of this output are missing")).await;
    assert!(
        stage
            .text("web")
            .contains(&format!("[callboard: {dropped} bytes of this output are missing: No space"))
    );
    pipe.write_all(b"\nafter\n").expect("there is room");
    drop(pipe);
    logs.close("web", TIMEOUT).await.expect("they are closed");
    assert!(stage.text("web").contains("\nafter\n"));
    logs.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_disk_that_hangs_holds_up_neither_a_task_nor_other_disks_th022() {
    let stage = Stage::new();
    let Some(disk) = FrozenDisk::mount(&stage) else { return };
    let logs = stage.logs().await;
    let spec = LogSpec {
        root: disk.place.clone(),
        directory: PathBuf::new(),
        ..stage.spec("web", keep(9, 1 << 20))
    };
    let paths = logs.open(spec).await.expect("they are opened");
    let other = logs.open(stage.spec("other", keep(9, 1 << 20))).await.expect("they are opened");
    let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it has a reader");
    pipe.write_all(b"before\n").expect("there is room");
    let place = LogPlace::Numbered {
        root: disk.place.clone(),
        directory: PathBuf::new(),
        prefix: "web.stdout.".to_owned(),
        owner: rustix::process::geteuid().as_raw(),
    };
    let text =
        || LogReader::from_start(place.clone()).map(|mut reader| read(&mut reader)).unwrap_or_default();
    until_true("it is written", || text() == "before\n").await;
    disk.freeze();
    let writing = std::thread::spawn(move || (0..64).try_for_each(|_| pipe.write_all(&[b'x'; 65_536])));
    let began = Instant::now();
    while !writing.is_finished() && began.elapsed() < TIMEOUT {
        sleep(Duration::from_millis(20)).await;
    }
    // Another disk is written meanwhile, and a hung log writer does not cause the start of more.
    let mut pipe = OpenOptions::new().write(true).open(&other.stdout).expect("it has a reader");
    pipe.write_all(b"meanwhile\n").expect("there is room");
    let began = Instant::now();
    while stage.text("other") != "meanwhile\n" && began.elapsed() < TIMEOUT {
        sleep(Duration::from_millis(20)).await;
    }
    let (is_finished, meanwhile) = (writing.is_finished(), stage.text("other"));
    // The disk is thawed before anything can fail: a frozen disk cannot be unmounted.
    disk.thaw();
    assert!(is_finished, "the task goes on: {:?}", logs.view().borrow());
    assert_eq!(meanwhile, "meanwhile\n");
    until("what was dropped is counted", &logs, |view| view.tasks["web"].dropped() > 0).await;
    until("the disk answers again", &logs, |view| view.tasks["web"].fault().is_none()).await;
    until_true("the log says what is missing", || text().contains("missing: the disk did not answer]")).await;
    for key in ["web", "other"] {
        logs.close(key, TIMEOUT).await.expect("they are closed");
    }
    logs.stop().await;
}

/// A disk that can be made to hang. `None` if there cannot be one.
struct FrozenDisk {
    place: PathBuf,
}

impl FrozenDisk {
    fn mount(stage: &Stage) -> Option<Self> {
        let (image, place) = (stage.directory.path().join("image"), stage.directory.path().join("disk"));
        File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("there is room");
        std::fs::create_dir(&place).expect("a directory");
        let run = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let is_mounted = run(Command::new("mkfs.ext4").arg("-q").arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).args([&image, &place]));
        if is_mounted && run(Command::new("fsfreeze").arg("-f").arg(&place)) {
            let disk = Self { place };
            disk.thaw();
            return Some(disk);
        }
        if is_mounted {
            let _ = Command::new("umount").arg(&place).status();
        }
        eprintln!(
            "SKIPPED: what a disk that hangs costs is not shown, since none can be mounted and frozen here"
        );
        None
    }

    fn freeze(&self) {
        assert!(Command::new("fsfreeze").arg("-f").arg(&self.place).status().expect("it runs").success());
    }

    fn thaw(&self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.place).stderr(Stdio::null()).status();
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        self.thaw();
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn lines_of_32_kib_stay_whole_over_a_rotation_of_real_files_th024_t066() {
    let stage = Stage::new();
    let logs = stage.logs().await;
    let paths = logs.open(stage.spec("web", keep(500, 200_000))).await.expect("they are opened");
    let writing = std::thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(&paths.stdout).expect("it has a reader");
        let mut random = fastrand::Rng::with_seed(24);
        let mut expected = String::new();
        for number in 0..600 {
            let line = format!("{number} {}\n", "x".repeat(random.usize(0..32_000)));
            pipe.write_all(line.as_bytes()).expect("it is not closed");
            expected += &line;
        }
        expected
    });
    until_true("it is written", || writing.is_finished()).await;
    let expected = writing.join().expect("no panic");
    logs.close("web", TIMEOUT).await.expect("they are closed");
    assert!(stage.text("web") == expected, "nothing is lost or doubled");
    let files = std::fs::read_dir(stage.place()).expect("it is there");
    for file in files.map(|entry| entry.expect("it can be read").path()) {
        let mut text = String::new();
        File::open(&file).and_then(|mut file| file.read_to_string(&mut text)).expect("it can be read");
        // Nothing was written to the other stream.
        let is_whole = text.is_empty() || text.ends_with('\n');
        assert!(text.len() <= 200_000 && is_whole, "{}", file.display());
    }
    logs.stop().await;
}
