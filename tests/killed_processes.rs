//! Tests hosts that are killed, and the processes they leave: bound processes end with them, surviving processes are adopted by the next
//! host, and nothing stays unowned, whatever the moment of the kill.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard::process::Binder;
use callboard_actors::goplugin::HandshakeTerms;
use callboard_actors::persister::{Options, Persister};
use callboard_actors::process::{Executable, Lifetime, ProcessName, ProcessSpec, Surroundings};
use callboard_actors::processes::{
    self, DurableRecords, LaunchProcess, ListProcesses, Processes, ProcessesOptions, RecallProcess, Recalled,
};
use callboard_actors::shell::{Address, Database, IN_FLIGHT_MAX, Notices, Running, Settings, StopMode};

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");
/// The variable that names the data directory, if this program is to run as a host.
const ROLE: &str = "CALLBOARD_TEST_HOST_OF";
const TIMEOUT: Duration = Duration::from_secs(30);
/// A plugin that forks, prints its handshake, and waits.
const PLUGIN: &str = "sleep 600 & echo '1|2|unix|/run/plugin|grpc|'; wait";

fn spec(lifetime: Lifetime) -> ProcessSpec {
    let mut spec = ProcessSpec::new(Executable::at("/bin/sh"));
    spec.arguments = vec!["-c".to_owned(), PLUGIN.to_owned()];
    spec.handshake = Some(HandshakeTerms::nomad(None));
    spec.lifetime = lifetime;
    spec
}

struct Fixture {
    address: Address<Processes>,
    running: Running,
    persister: Persister,
}

impl Fixture {
    async fn open(data_dir: &Path) -> Self {
        let persister = Persister::open(Options::new(data_dir)).await.expect("the database opens");
        let notices = Notices::default();
        let records = DurableRecords::new(&Database::opened(persister.clone(), notices.clone()));
        let binder = Binder::program(CALLBOARD);
        let owner = callboard::actors::ownership::settle(data_dir, true).expect("a mark");
        let surroundings = Surroundings::new(data_dir, owner, Some(binder), false).expect("surroundings");
        let address = Address::vacant("processes", IN_FLIGHT_MAX);
        let secret = std::process::id().to_le_bytes().repeat(4).try_into().expect("sixteen bytes");
        let options = ProcessesOptions::new(secret);
        let settings = Settings { notices, ..Settings::default() };
        let running = processes::start(&address, options, surroundings, records, settings);
        Self { address, running, persister }
    }

    /// The process of this name, adopted or launched.
    async fn have(&self, name: &str, lifetime: Lifetime) -> u32 {
        let name = ProcessName::new(name).expect("a good name");
        let recalled = self.address.ask(RecallProcess { name: name.clone() }).await.expect("it is answered");
        match recalled.expect("not too many wait") {
            Recalled::Proven(launched) => launched.pid,
            Recalled::Ended { .. } | Recalled::Unknown => {
                let launch = LaunchProcess { name, spec: spec(lifetime).into() };
                self.address.ask(launch).await.expect("it is answered").expect("it starts").pid
            }
        }
    }

    async fn end(self, mode: StopMode) {
        self.running.request_stop(mode);
        self.running.ended().await;
        self.persister.close().await.expect("it closes");
    }
}

/// Not a test of its own: the host that the tests below start and kill.
#[test]
fn the_host_of_these_tests() {
    let Some(data_dir) = std::env::var_os(ROLE).map(PathBuf::from) else { return };
    actix_rt::System::new().block_on(async {
        let fixture = Fixture::open(&data_dir).await;
        let (bound, surviving) = (
            fixture.have("bound", Lifetime::Bound).await,
            fixture.have("surviving", Lifetime::Surviving).await,
        );
        let told = data_dir.join("told.new");
        std::fs::write(&told, format!("{bound} {surviving}")).expect("it is written");
        std::fs::rename(told, data_dir.join("told")).expect("it is told");
        std::future::pending::<()>().await;
    });
}

fn start_host(data_dir: &Path) -> Child {
    let _ = std::fs::remove_file(data_dir.join("told"));
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_host_of_these_tests", "--nocapture"])
        .env(ROLE, data_dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a host")
}

fn told(data_dir: &Path) -> (u32, u32) {
    let began = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(data_dir.join("told")) {
            let (bound, surviving) = text.split_once(' ').expect("two numbers");
            return (bound.parse().expect("a number"), surviving.parse().expect("a number"));
        }
        assert!(began.elapsed() < TIMEOUT, "the host does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(mut host: Child) {
    host.kill().expect("it is ours");
    host.wait().expect("it ends");
}

fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// The mark of the host of this directory, as in the environment of one of its processes.
fn mark(pid: u32) -> Vec<u8> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("it lives");
    let mut entries = environment.split(|byte| *byte == 0);
    entries.find(|entry| entry.starts_with(b"CALLBOARD_PROCESS_OWNER=")).expect("a mark").to_vec()
}

/// Every living process of this host that leads its own process group.
fn leaders(mark: &[u8]) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").expect("/proc");
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark)
    };
    let leads = |pid: &u32| {
        let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).expect("a number"));
        rustix::process::getpgid(pid).ok() == pid
    };
    numbers.filter(is_marked).filter(leads).collect()
}

#[test]
fn bound_processes_end_with_a_killed_host_within_a_second_and_surviving_ones_are_adopted_prc_04() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path();
    let mut before = None;
    for _ in 0..20 {
        let host = start_host(data_dir);
        let (bound, surviving) = told(data_dir);
        assert!(lives(bound) && lives(surviving));
        assert_eq!(*before.get_or_insert(surviving), surviving, "it was adopted");
        assert_eq!(leaders(&mark(surviving)).len(), 2, "as many as after the first start");
        kill(host);
        let killed = Instant::now();
        while lives(bound) {
            assert!(killed.elapsed() < Duration::from_secs(1), "the bound process lives on");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(lives(surviving));
    }
    end_all(data_dir, before.expect("there was one"));
}

#[test]
fn a_host_that_is_killed_at_any_moment_of_a_launch_leaves_nothing_unowned_and_nothing_twice_prc_09() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path();
    // One whole start measures the time in which the kills are placed.
    let began = Instant::now();
    let host = start_host(data_dir);
    let (_, surviving) = told(data_dir);
    let whole = began.elapsed();
    let mark = mark(surviving);
    kill(host);
    end_all(data_dir, surviving);
    let mut most = 0;
    for round in 1..=40_u32 {
        let host = start_host(data_dir);
        std::thread::sleep(whole * round / 40);
        kill(host);
        let left = leaders(&mark).len();
        most = most.max(left);
        assert!(left <= 3, "{left} processes after round {round}");
        if round % 8 == 0 {
            let host = start_host(data_dir);
            let (bound, surviving) = told(data_dir);
            let mut expected = vec![bound, surviving];
            expected.sort_unstable();
            let mut found = leaders(&mark);
            found.sort_unstable();
            assert_eq!(found, expected, "round {round}: each once, and nothing else");
            kill(host);
            end_all(data_dir, surviving);
        }
    }
    println!("a start takes {whole:?}; at most {most} processes were there right after a kill");
    end_all(data_dir, surviving);
    assert_eq!(leaders(&mark), Vec::<u32>::new());
}

/// Starts the host once more, in this process, and stops it in order: nothing is left.
fn end_all(data_dir: &Path, surviving: u32) {
    actix_rt::System::new().block_on(async {
        let fixture = Fixture::open(data_dir).await;
        for name in ["bound", "surviving"] {
            let name = ProcessName::new(name).expect("a good name");
            fixture
                .address
                .ask(RecallProcess { name })
                .await
                .expect("it is answered")
                .expect("not too many wait");
        }
        let listed = fixture.address.ask(ListProcesses).await.expect("it is answered");
        assert!(listed.len() <= 1, "bound ones were ended: {listed:?}");
        fixture.end(StopMode::Stop).await;
    });
    assert!(!lives(surviving));
}
