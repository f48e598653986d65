//! Tests data directories that no host can use: each is refused with a clear error, and not a byte of it is changed.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard::actors::allocations::{
    AdoptAllocation, AllocationPhase, AllocationSpec, AllocationsNews, ListAllocations, TaskEventKind,
    TaskStarted,
};
use callboard::actors::datadir::DataDirError;
use callboard::actors::persister::OpenError;
use callboard::actors::registry::{List, Register, Registered};
use callboard::actors::vocabulary::{PluginName, Role, SocketPath, TaskName};
use callboard::host::{Host, StartError};
use redb::{Database, TableDefinition};
use rustix::process::{Pid, Signal, kill_process};

use support::{LONG, Stage, Task, Watch, dispense, id, node, until};

/// The database file in a data directory.
const DATABASE: &str = "callboard.redb";

/// Tries to start a host that must be refused.
async fn refusal(data_dir: &Path) -> OpenError {
    match Host::builder(data_dir).start().await {
        Err(StartError::Database(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a host must not start in {}", data_dir.display()),
    }
}

/// Everything at and below a path: kind and mode, and the contents of files and links.
fn picture(path: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let Ok(metadata) = fs::symlink_metadata(path) else { return found };
    let content = match metadata.file_type() {
        kind if kind.is_file() => fs::read(path).unwrap(),
        kind if kind.is_symlink() => fs::read_link(path).unwrap().into_os_string().into_encoded_bytes(),
        _ => Vec::new(),
    };
    found.insert(path.to_owned(), (metadata.mode(), content));
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            found.extend(picture(&entry.unwrap().path()));
        }
    }
    // The lock file only names the process that opened the directory last.
    found.retain(|path, _| !path.ends_with("callboard.lock"));
    found
}

/// Checks that a host is refused with these words, and that it changed nothing.
async fn refused_and_unchanged(data_dir: &Path, words: &[&str]) -> OpenError {
    let before = picture(data_dir);
    let error = refusal(data_dir).await;
    let told = error.to_string();
    println!("{told}");
    for word in words {
        assert!(told.contains(word), "{word:?} is missing in: {told}");
    }
    assert_eq!(told.lines().count(), 1, "{told}");
    let after = picture(data_dir);
    let is_other = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let changed: Vec<_> = before.keys().chain(after.keys()).filter(is_other).collect();
    assert!(changed.is_empty(), "changed in {}: {changed:?}", data_dir.display());
    error
}

/// Runs a host that registers fifty allocations in the data directory of this stage, and stops it.
async fn use_directory(stage: &Stage) {
    let host = stage.host().await;
    for number in 0..50 {
        let register = Register {
            policy: None,
            plugins: vec![node("zfs")],
            allocation: id(&format!("a{number}")),
            socket: SocketPath::new("/nowhere/csi.sock").unwrap(),
            provider: None,
            version: None,
            options: Arc::default(),
        };
        assert_eq!(host.registry().ask(register).await.unwrap(), Ok(Registered::New));
    }
    host.detach().await;
}

/// A file system of four megabytes, unmounted at the end.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// Mounts it, or prints that this user may not mount one.
    fn at(path: &'a Path) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs"]).arg(path).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(path));
        }
        println!("NOT RUN: mounting a file system needs root and the right to mount");
        None
    }

    /// Retries, since the kernel refuses while a file is open for writing, also in a process that another test is just starting.
    async fn become_read_only(&self) {
        let remounted = || Command::new("mount").args(["-o", "remount,ro"]).arg(self.0).output();
        until("it is read-only", async || remounted().is_ok_and(|output| output.status.success())).await;
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // A process that another test is just starting may keep it busy: a lazy unmount takes effect when that process releases it.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// Removes the file that fills a file system. Its room is free once no process that another test is just starting has it open either.
async fn make_room(ballast: &Path) {
    fs::remove_file(ballast).unwrap();
    let directory = ballast.parent().unwrap();
    until("there is room", async || rustix::fs::statvfs(directory).unwrap().f_bavail > 512).await;
}

/// The id of the user `nobody`.
const NOBODY_UID: u32 = 65_534;

/// Plays on a thread without special rights: root's thread drops its own, and everything that it starts belongs to the user `nobody`.
fn as_nobody<F: Future<Output = ()>>(play: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(move || {
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_gid(rustix::process::Gid::from_raw(NOBODY_UID)).unwrap();
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY_UID)).unwrap();
        }
        actix::System::new().block_on(play());
    });
    thread.join().unwrap();
}

// === Refused ===

#[actix::test]
async fn a_file_in_the_place_of_a_data_directory_is_refused() {
    let stage = Stage::new();
    fs::write(stage.data_dir(), "precious").unwrap();
    refused_and_unchanged(&stage.data_dir(), &["not a directory", stage.data_dir().to_str().unwrap()]).await;
    assert_eq!(fs::read(stage.data_dir()).unwrap(), b"precious");
}

#[test]
fn a_directory_that_is_not_ours_to_write_is_refused() {
    let stage = Stage::new();
    let (outer, data_dir) = (stage.path(""), stage.data_dir());
    fs::set_permissions(&outer, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&data_dir).unwrap();
    fs::write(data_dir.join("precious"), "kept").unwrap();
    // A directory of root that others may read; without root, our own directory without write permission.
    fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o555)).unwrap();
    let tried = data_dir.clone();
    let is_root = rustix::process::geteuid().is_root();
    as_nobody(move || async move {
        if is_root {
            let error = Host::builder(&tried).start().await.unwrap_err();
            assert!(matches!(error, StartError::Directory(DataDirError::NotOurs { .. })), "{error}");
            return;
        }
        let error = refused_and_unchanged(&tried, &["Permission denied", tried.to_str().unwrap()]).await;
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    });
    assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 1);
    fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o755)).unwrap();
}

#[actix::test]
async fn a_directory_that_others_may_write_to_and_a_link_are_refused_and_unchanged_sec_02() {
    let stage = Stage::new();
    let data_dir = stage.data_dir();
    use_directory(&stage).await;
    let link = stage.path("link");
    std::os::unix::fs::symlink(&data_dir, &link).unwrap();
    fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o777)).unwrap();
    let before = picture(&data_dir);
    for (path, words) in [(&data_dir, "others may write to it (mode 0777)"), (&link, "it is a link to")] {
        let error = Host::builder(path).start().await.unwrap_err();
        assert!(matches!(error, StartError::Directory(_)) && !error.is_transient(), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(picture(&data_dir), before);
    fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o700)).unwrap();
    let lock = data_dir.join("callboard.lock");
    let precious = stage.path("precious");
    fs::write(&precious, "kept").unwrap();
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&precious, &lock).unwrap();
    let told = refusal(&data_dir).await.to_string();
    assert!(told.contains("it is a symbolic link") && told.contains("put the file itself"), "{told}");
    assert_eq!(
        fs::read_to_string(&precious).unwrap(),
        "kept",
        "a link in the place of the lock is not followed"
    );
    fs::remove_file(&lock).unwrap();
    let database = data_dir.join(DATABASE);
    fs::rename(&database, stage.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(stage.path("elsewhere"), &database).unwrap();
    refused_and_unchanged(&data_dir, &["it is a symbolic link", "put the file itself", DATABASE]).await;
}

#[actix::test]
async fn directories_below_one_that_others_may_write_to_are_refused_and_unchanged_sec_02() {
    let stage = Stage::new();
    let (above, safe) = (stage.path("above"), stage.data_dir());
    let (data_dir, runtime_dir) = (above.join("data"), above.join("run"));
    Host::builder(&data_dir).start().await.unwrap().stop().await;
    fs::create_dir(&runtime_dir).unwrap();
    fs::set_permissions(&above, fs::Permissions::from_mode(0o777)).unwrap();
    let before = picture(&above);
    for (data_dir, runtime_dir) in [(&data_dir, &safe), (&safe, &runtime_dir), (&above.join("new"), &safe)] {
        let error = Host::builder(data_dir).runtime_dir(runtime_dir).start().await.unwrap_err();
        assert!(matches!(error, StartError::Directory(DataDirError::OpenAbove { .. })), "{error}");
        assert!(!error.is_transient());
        assert!(error.to_string().contains(&format!("chmod go-w {}", above.display())), "{error}");
    }
    assert_eq!(picture(&above), before);
    fs::set_permissions(&above, fs::Permissions::from_mode(0o1777)).unwrap();
    Host::builder(&data_dir).start().await.unwrap().stop().await;
}

#[actix::test]
async fn a_directory_that_is_read_only_is_refused_with_a_database_or_without() {
    let stage = Stage::new();
    let data_dir = stage.data_dir();
    let Some(mounted) = Mounted::at(&data_dir) else { return };
    use_directory(&stage).await;
    mounted.become_read_only().await;
    for path in [data_dir.clone(), data_dir.join("below")] {
        let error = refused_and_unchanged(&path, &["Read-only file system", "name another"]).await;
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    }
}

#[actix::test]
async fn a_directory_that_is_full_is_refused_until_there_is_room() {
    let stage = Stage::new();
    let data_dir = stage.data_dir();
    let Some(_mounted) = Mounted::at(&data_dir) else { return };
    let ballast = data_dir.join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).unwrap_err();
    let error = refused_and_unchanged(&data_dir, &["no space is left", "free some"]).await;
    assert!(error.is_transient());
    make_room(&ballast).await;
    use_directory(&stage).await;
}

#[actix::test]
async fn a_used_directory_that_became_full_loses_nothing_p3() {
    let stage = Stage::new();
    let data_dir = stage.data_dir();
    let Some(_mounted) = Mounted::at(&data_dir) else { return };
    use_directory(&stage).await;
    let ballast = data_dir.join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).unwrap_err();
    match stage.builder().start().await {
        Ok(host) => {
            println!("it opens");
            assert_eq!(host.registry().ask(List).await.unwrap().len(), 50);
            host.detach().await;
        }
        Err(error) => println!("{error}"),
    }
    make_room(&ballast).await;
    let host = stage.host().await;
    assert_eq!(host.registry().ask(List).await.unwrap().len(), 50);
    host.stop().await;
}

#[actix::test]
async fn a_damaged_database_is_refused_and_left_for_its_repair_res_08() {
    let stage = Stage::new();
    use_directory(&stage).await;
    let (data_dir, file) = (stage.data_dir(), stage.data_dir().join(DATABASE));
    let whole = fs::read(&file).unwrap();
    let zeroed = [vec![0; 4_096], whole[4_096..].to_vec()].concat();
    for damaged in [b"this is no database".to_vec(), Vec::new(), zeroed, whole[..whole.len() / 2].to_vec()] {
        fs::write(&file, damaged).unwrap();
        let error = refused_and_unchanged(&data_dir, &["damaged", "move it away", DATABASE]).await;
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    }
    fs::write(&file, whole).unwrap();
    let host = stage.host().await;
    assert_eq!(host.registry().ask(List).await.unwrap().len(), 50);
    host.stop().await;
}

#[actix::test]
async fn a_database_of_a_later_version_is_refused_and_not_touched_p2() {
    let stage = Stage::new();
    use_directory(&stage).await;
    make_newer(&stage.data_dir().join(DATABASE));
    let error = refused_and_unchanged(&stage.data_dir(), &["schema", "run the version that wrote it"]).await;
    assert!(matches!(error, OpenError::Newer { .. }), "{error:?}");
}

/// Writes facts of another schema into a file, as a later version would: checksum and schema, then arbitrary data.
fn make_newer(file: &Path) {
    let mut rest = u32::MAX.to_le_bytes().to_vec();
    rest.extend_from_slice(b"facts of an unknown schema");
    let facts = [crc32fast::hash(&rest).to_le_bytes().as_slice(), &rest].concat();
    let table: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
    let database = Database::open(file).unwrap();
    let transaction = database.begin_write().unwrap();
    for copy in ["first", "second"] {
        transaction.open_table(table).unwrap().insert(copy, facts.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

/// A process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[actix::test]
async fn a_directory_in_which_another_process_is_a_host_is_refused_and_names_it_p5() {
    let stage = Stage::new();
    let data_dir = stage.data_dir();
    let config = stage.path("callboard.toml");
    fs::write(&config, format!("data_dir = {data_dir:?}\n")).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_callboard"));
    run.args(["run", "--config"]).arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
    let first = Killed(run.spawn().unwrap());
    let answers = || {
        let mut status = Command::new(env!("CARGO_BIN_EXE_callboard"));
        status.arg("status").arg("--config").arg(&config);
        status.output().unwrap().status.success()
    };
    until("the first host answers", async || answers()).await;
    // The first host is stopped, since its own writes would be taken for changes by the second host.
    kill_process(Pid::from_child(&first.0), Signal::STOP).unwrap();
    let holder = format!("process {}", first.0.id());
    let error = refused_and_unchanged(&data_dir, &[&holder, "stop that host first"]).await;
    assert!(error.is_transient());
    drop(first);
    stage.host().await.stop().await;
}

// === Allowed ===

#[actix::test]
async fn a_directory_a_plugin_and_allocations_of_two_hundred_characters_work_sec_01() {
    let stage = Stage::new();
    let (data_dir, name) = (stage.path(&"d".repeat(200)), "n".repeat(200));
    let host = Host::builder(&data_dir).runtime_dir(stage.path("")).start().await.unwrap();
    let mut tasks = ["1", "2"].map(|number| {
        let mut task = Task::new(&stage, number, &name, Role::Monolith);
        task.spec.allocation = id(&format!("{}-{number}", "a".repeat(198)));
        task
    });
    let mut sockets = Vec::new();
    for task in &mut tasks {
        task.start(&host).await;
        until("it is handed out", async || {
            let dispensed = dispense(&host, &node(&name), LONG).await.unwrap();
            let is_it = dispensed.allocation == task.spec.allocation;
            if is_it {
                sockets.push(dispensed.socket);
            }
            is_it
        })
        .await;
    }
    assert_ne!(sockets[0], sockets[1]);
    for task in &mut tasks {
        assert!(task.stop(&host).await.remarks.is_empty());
    }
    host.stop().await;
    assert!(stage.sockets().is_empty());
}

#[test]
fn a_plugin_whose_socket_belongs_to_someone_else_is_refused_within_a_second_sec_03() {
    if !rustix::process::geteuid().is_root() {
        println!("NOT RUN: a socket of someone else needs root");
        return;
    }
    let stage = Stage::new();
    let (data_dir, run, theirs) = (stage.data_dir(), stage.path("run"), stage.path("theirs"));
    for (directory, owner) in
        [(&stage.path(""), 0), (&data_dir, NOBODY_UID), (&run, NOBODY_UID), (&theirs, 0)]
    {
        fs::create_dir_all(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        chown(directory, Some(owner), Some(owner)).unwrap();
    }
    let socket = theirs.join("csi.sock");
    let mut plugin = Command::new(env!("CARGO_BIN_EXE_callboard"));
    plugin.args(["plugin", "hostpath", "--endpoint"]).arg(&socket).stderr(Stdio::null());
    let _plugin = Killed(plugin.spawn().unwrap());
    let began = Instant::now();
    while !socket.exists() {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(support::PAUSE);
    }
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o755)).unwrap();
    as_nobody(move || async move {
        let host = Host::builder(&data_dir).runtime_dir(&run).start().await.unwrap();
        refused_socket(&host, &socket).await;
        host.stop().await;
        assert!(socket.exists(), "what is not ours is left where it is");
    });
}

async fn refused_socket(host: &Host, socket: &Path) {
    let mut allocations = Watch::on(host.allocations());
    let (task, plugin) = (TaskName::new("plugin").unwrap(), PluginName::new("zfs").unwrap());
    let mut spec = AllocationSpec::new(id("a"), task, plugin, Role::Node);
    spec.environment.insert("CSI_ENDPOINT".to_owned(), format!("unix://{}", socket.display()));
    host.allocations().ask(AdoptAllocation { spec }).await.unwrap().unwrap();
    let began = Instant::now();
    host.allocations().ask(TaskStarted { allocation: id("a") }).await.unwrap().unwrap();
    let refused = |news: &AllocationsNews| match news {
        AllocationsNews::Task(event) if event.kind == TaskEventKind::SocketRefused => {
            Some(event.message.clone())
        }
        _ => None,
    };
    let told = allocations.until("the refusal", refused).await;
    println!("{told}");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let us = format!("we are {NOBODY_UID}:");
    for word in ["permission denied", socket.to_str().unwrap(), "0:0", "mode 0755", &us] {
        assert!(told.contains(word), "{word:?} is missing in: {told}");
    }
    let listed = host.allocations().ask(ListAllocations).await.unwrap();
    assert_eq!(listed[0].phase, AllocationPhase::AwaitingRestart);
    assert_eq!(listed[0].last_event, told);
}
