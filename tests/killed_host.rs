//! Kills a host process with SIGKILL at random moments, again and again on one data directory: no registration that it
//! acknowledged is lost (P4, R2).
//!
//! The host registers and deregisters as fast as it can. Its requests follow from the seed, so this test knows the requests of every
//! life and their order. Writes reach the disk in that order, so a later life must find exactly the result of the first requests
//! of the life before, up to some number: at least to the last registration that was acknowledged, at most to the last request that
//! was made.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use callboard::actors::registry::{
    Deregister, Deregistered, LeaveCause, List, Register, Registered, RegistryNews, Standing,
};
use callboard::actors::shell::{Asking, FeedItem};
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};
use callboard::host::Host;

/// How often the host is killed while it works, and how often while it starts.
const KILLED_AT_WORK: u32 = 51;
const KILLED_AT_START: u32 = 13;
/// The number of requests in flight at once.
const IN_FLIGHT: usize = 24;
/// More time than any step of this test takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

// === The requests ===

const PLUGINS: [(PluginType, &str); 4] = [
    (PluginType::CsiController, "zfs"),
    (PluginType::CsiNode, "zfs"),
    (PluginType::CsiNode, "nfs"),
    (PluginType::Device, "gpu"),
];

/// One request to the registry.
#[derive(Debug, Clone, Copy)]
enum Question {
    Register { plugins: &'static [usize], allocation: u8, socket: u8 },
    Deregister { plugins: &'static [usize], allocation: u8 },
}

/// All requests of one life of the host, in order.
struct Questions(fastrand::Rng);

impl Questions {
    fn of(seed: u64, life: u32) -> Self {
        Self(fastrand::Rng::with_seed(seed ^ (u64::from(life) << 32)))
    }
}

impl Iterator for Questions {
    type Item = Question;

    fn next(&mut self) -> Option<Question> {
        // The first is a monolith: it has both halves or none.
        let plugins: &[usize] = [&[0_usize, 1] as &[_], &[2], &[3], &[1]][self.0.usize(..4)];
        let allocation = self.0.u8(..6);
        if self.0.u8(..5) < 2 {
            return Some(Question::Deregister { plugins, allocation });
        }
        Some(Question::Register { plugins, allocation, socket: self.0.u8(..3) })
    }
}

fn plugin(number: usize) -> PluginKey {
    let (kind, name) = PLUGINS[number];
    PluginKey::new(kind, PluginName::new(name).unwrap())
}

fn allocation(number: u8) -> AllocationId {
    AllocationId::new(format!("a{number}")).unwrap()
}

fn socket(number: u8) -> SocketPath {
    SocketPath::new(format!("/nowhere/{number}.sock")).unwrap()
}

// === The host that is killed ===

const DATA_DIR: &str = "CALLBOARD_TEST_DATA_DIR";
const SEED: &str = "CALLBOARD_TEST_SEED";
const LIFE: &str = "CALLBOARD_TEST_LIFE";

/// Not a test of its own: one life of the host in the test below, in a process that is killed.
#[test]
fn a_host_that_registers_until_it_is_killed() {
    let Some(data_dir) = std::env::var_os(DATA_DIR) else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let questions = Questions::of(number(SEED), u32::try_from(number(LIFE)).unwrap());
    actix::System::new().block_on(async {
        let host = Host::builder(data_dir).start().await.unwrap();
        tell_what_is_there(&host).await;
        work_for_ever(&host, questions).await;
    });
}

/// Reports a line to the test, in one write, as soon as it is true.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

async fn tell_what_is_there(host: &Host) {
    say(&format!("run {}", host.run_number()));
    for entry in host.registry().ask(List).await.unwrap() {
        assert_eq!(entry.standing, Standing::Provisional, "it is not confirmed yet");
        let told = &entry.registration;
        say(&format!("found {} {} {} {}", told.plugin, told.allocation, told.socket, entry.number));
    }
    say("found everything");
}

enum Asked {
    Register(Asking<callboard::actors::registry::Registry, Register>),
    Deregister(Asking<callboard::actors::registry::Registry, Deregister>),
}

async fn work_for_ever(host: &Host, mut questions: Questions) {
    let mut news = host.registry().subscribe("test", 100_000).unwrap();
    let mut asked: VecDeque<Asked> = questions.by_ref().take(IN_FLIGHT).map(|q| ask(host, q)).collect();
    for number in 0_u64.. {
        let answer = match asked.pop_front().unwrap() {
            Asked::Register(asking) => match asking.await.unwrap().unwrap() {
                Registered::New => "new",
                Registered::Updated => "updated",
                Registered::Unchanged => "unchanged",
            },
            Asked::Deregister(asking) => match asking.await.unwrap() {
                Deregistered::Removed(_) => "removed",
                Deregistered::NotRegistered => "not-registered",
            },
        };
        say(&format!("answer {number} {answer}"));
        asked.push_back(ask(host, questions.next().unwrap()));
        while let Some(item) = news.try_next() {
            let FeedItem::Change { news, .. } = item else { continue };
            let entry = match news {
                RegistryNews::Registered(entry) => {
                    say(&format!("number {}", entry.number));
                    entry
                }
                RegistryNews::Updated(entry) | RegistryNews::Renewed(entry) => entry,
                RegistryNews::Deregistered(..) | RegistryNews::ActiveChanged { .. } => continue,
            };
            say(&format!("generation {} {}", entry.registration.plugin, entry.generation));
        }
    }
}

fn ask(host: &Host, question: Question) -> Asked {
    match question {
        Question::Register { plugins, allocation: number, socket: place } => {
            Asked::Register(host.registry().ask(Register {
                policy: None,
                plugins: plugins.iter().map(|number| plugin(*number)).collect(),
                allocation: allocation(number),
                socket: socket(place),
                provider: None,
                version: None,
                options: Arc::default(),
            }))
        }
        Question::Deregister { plugins, allocation: number } => {
            Asked::Deregister(host.registry().ask(Deregister {
                plugins: plugins.iter().map(|number| plugin(*number)).collect(),
                allocation: allocation(number),
                cause: LeaveCause::Stopped,
            }))
        }
    }
}

// === The expected state ===

/// All registrations, the oldest first: the simplest model of the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Books(Vec<(usize, u8, u8)>);

impl Books {
    /// Applies a request, and returns its expected answer.
    fn write(&mut self, question: Question) -> &'static str {
        match question {
            Question::Register { plugins, allocation, socket } => {
                let mut answer = "unchanged";
                for plugin in plugins {
                    let held = self.0.iter_mut().find(|held| (held.0, held.1) == (*plugin, allocation));
                    match held {
                        None => {
                            self.0.push((*plugin, allocation, socket));
                            answer = "new";
                        }
                        Some(held) if held.2 != socket => {
                            held.2 = socket;
                            answer = if answer == "new" { "new" } else { "updated" };
                        }
                        Some(_) => {}
                    }
                }
                answer
            }
            Question::Deregister { plugins, allocation } => {
                let before = self.0.len();
                self.0.retain(|held| !(plugins.contains(&held.0) && held.1 == allocation));
                if self.0.len() < before { "removed" } else { "not-registered" }
            }
        }
    }

    /// The registrations in the format of the host's report.
    fn told(&self) -> Vec<String> {
        let line =
            |held: &(usize, u8, u8)| format!("{} {} {}", plugin(held.0), allocation(held.1), socket(held.2));
        self.0.iter().map(line).collect()
    }
}

// === A life as this test observes it ===

/// The reports of one life so far.
#[derive(Debug, Default)]
struct Said {
    run: Option<u64>,
    found: Vec<String>,
    found_numbers: Vec<u64>,
    found_everything: bool,
    answers: Vec<String>,
    numbers: Vec<u64>,
    generations: Vec<(String, u64)>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let number = |text: &str| text.parse::<u64>().unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["run", run] => self.run = Some(number(run)),
            ["found", "everything"] => self.found_everything = true,
            ["found", plugin, allocation, socket, place] => {
                self.found.push(format!("{plugin} {allocation} {socket}"));
                self.found_numbers.push(number(place));
            }
            ["answer", place, answer] => {
                assert_eq!(number(place), self.answers.len() as u64, "answers come in order");
                self.answers.push(answer.to_owned());
            }
            ["number", place] => self.numbers.push(number(place)),
            ["generation", plugin, generation] => {
                self.generations.push((plugin.to_owned(), number(generation)));
            }
            // The test harness of the process prints something, too.
            _ => {}
        }
    }
}

struct Life {
    process: Child,
    lines: Receiver<String>,
    said: Said,
}

impl Life {
    fn begin(data_dir: &std::path::Path, seed: u64, life: u32) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_host_that_registers_until_it_is_killed", "--nocapture"])
            .env(DATA_DIR, data_dir)
            .env(SEED, seed.to_string())
            .env(LIFE, life.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines, said: Said::default() }
    }

    /// Reads reports until a condition holds for them.
    fn listen(&mut self, mut until: impl FnMut(&Said) -> bool) {
        let began = Instant::now();
        while !until(&self.said) {
            match self.lines.recv_timeout(LONG.saturating_sub(began.elapsed())) {
                Ok(line) => self.said.hear(&line),
                Err(error) => panic!("{error}: {:?}", self.said),
            }
        }
    }

    fn kill(mut self) -> Said {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        // Everything that was acknowledged before the kill is in the pipe.
        loop {
            match self.lines.recv_timeout(LONG) {
                Ok(line) => self.said.hear(&line),
                Err(RecvTimeoutError::Disconnected) => return std::mem::take(&mut self.said),
                Err(RecvTimeoutError::Timeout) => panic!("the pipe stays open"),
            }
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The knowledge about all lives.
#[derive(Debug, Default)]
struct Memory {
    /// The possible states: one for each number of requests that may have reached the disk. A deregistration that was answered may be
    /// missing on disk.
    possible: Vec<Books>,
    answers: usize,
    unanswered_that_lasted: usize,
    last_run: u64,
    greatest_number: u64,
    generations: HashMap<String, u64>,
}

impl Memory {
    fn learn(&mut self, said: &Said, questions: Questions) {
        if let Some(run) = said.run {
            assert!(run > self.last_run, "run {run} after {}", self.last_run);
            self.last_run = run;
        }
        if !said.found_everything {
            // It was killed before it made any request.
            assert!(said.answers.is_empty());
            return;
        }
        let books = self.compare(said);
        self.check_numbers(said);
        self.follow(books, said, questions);
    }

    /// Checks that this life found one of the possible states. Order counts.
    fn compare(&mut self, said: &Said) -> Books {
        let found = self.possible.iter().position(|books| books.told() == said.found);
        let Some(more) = found else {
            panic!(
                "acknowledged:\n{:#?}\nat most:\n{:#?}\nfound:\n{:#?}",
                self.possible[0].told(),
                self.possible.last().unwrap().told(),
                said.found
            );
        };
        assert!(said.found_numbers.is_sorted(), "{:?}", said.found_numbers);
        self.unanswered_that_lasted += more;
        self.possible.swap_remove(more)
    }

    /// No life reuses a number that any life has given out, and generations only grow.
    fn check_numbers(&mut self, said: &Said) {
        for number in said.numbers.iter().chain(said.generations.iter().map(|(_, number)| number)) {
            assert!(*number > self.greatest_number, "{number} after {}", self.greatest_number);
        }
        for (plugin, generation) in &said.generations {
            let last = self.generations.entry(plugin.clone()).or_default();
            assert!(generation > last, "{plugin}: generation {generation} after {last}");
            *last = *generation;
        }
        let told = said.numbers.iter().chain(self.generations.values()).chain(&said.found_numbers);
        self.greatest_number = told.copied().max().unwrap_or(0).max(self.greatest_number);
    }

    fn follow(&mut self, mut books: Books, said: &Said, mut questions: Questions) {
        self.possible = vec![books.clone()];
        for (place, answer) in said.answers.iter().enumerate() {
            let question = questions.next().unwrap();
            let is_registration = matches!(question, Question::Register { .. });
            assert_eq!(books.write(question), answer, "answer {place}");
            // Only a registration is promised, and with it everything before it (SHELL-1A).
            if is_registration && answer != "unchanged" {
                self.possible.clear();
            }
            self.possible.push(books.clone());
        }
        self.answers += said.answers.len();
        for question in questions.take(IN_FLIGHT) {
            books.write(question);
            self.possible.push(books.clone());
        }
    }
}

#[test]
fn a_host_that_is_killed_at_random_moments_loses_nothing_that_it_acknowledged_p4_r2() {
    let seed =
        std::env::var("CALLBOARD_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CALLBOARD_SEED={seed} repeats this");
    let mut random = fastrand::Rng::with_seed(seed);
    let data_dir = tempfile::tempdir().unwrap();
    let mut memory = Memory { possible: vec![Books::default()], ..Memory::default() };
    for number in 0..KILLED_AT_WORK + KILLED_AT_START {
        let mut life = Life::begin(data_dir.path(), seed, number);
        if number % 5 == 4 {
            std::thread::sleep(Duration::from_micros(random.u64(..60_000)));
        } else {
            let enough = random.usize(1..400);
            life.listen(|said| said.answers.len() >= enough);
            std::thread::sleep(Duration::from_micros(random.u64(..2_000)));
        }
        memory.learn(&life.kill(), Questions::of(seed, number));
    }
    let mut last = Life::begin(data_dir.path(), seed, u32::MAX);
    last.listen(|said| said.found_everything);
    memory.learn(&last.kill(), Questions::of(seed, u32::MAX));
    println!(
        "{} answers in {} runs; of what was asked and not promised, {} changes lasted",
        memory.answers, memory.last_run, memory.unanswered_that_lasted
    );
    assert!(memory.answers >= KILLED_AT_WORK as usize);
}
