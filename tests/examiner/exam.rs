//! Runs an examiner and reads its report.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{Clients, LONG, Namespace};

pub(crate) struct Exam {
    pub(crate) namespace: Namespace,
    pub(crate) clients: Clients,
}

impl Exam {
    /// Begins an exam; or returns `None`, after reporting what is skipped.
    pub(crate) async fn or_say(what: &str, arguments: &str) -> Option<Self> {
        let namespace = Namespace::or_say(what)?;
        Some(Self::begin(namespace, arguments).await)
    }

    /// Starts the examiner, and restarts it with another seed whenever it dies.
    async fn begin(mut namespace: Namespace, arguments: &str) -> Self {
        let file = |name: &str| namespace.path(name).display().to_string();
        let files = format!(
            "--report {} --report {} --journal {}",
            file("report.json"),
            file("report.txt"),
            file("journal")
        );
        let pid = file("pid");
        let started_by = move |command: &str| {
            let exec = format!("sh -c 'echo $$ > {pid}; exec \"$@\"' sh {command} {files} {arguments}");
            format!("(seed=1; until {exec} --fault-seed $seed; do seed=$((seed + 1)); done) &")
        };
        let clients = namespace.start_plugin("examiner", started_by).await;
        Self { namespace, clients }
    }

    fn pid(&self) -> Pid {
        let text = fs::read_to_string(self.namespace.path("pid")).expect("it has started");
        Pid::from_raw(text.trim().parse().expect("a number")).expect("a process")
    }

    /// The report after SIGUSR1, while the exam continues.
    pub(crate) fn interim(&self) -> Value {
        kill_process(self.pid(), Signal::USR1).expect("it lives");
        self.report()
    }

    /// The report after its end.
    pub(crate) fn end(&self) -> Value {
        for earlier in ["report.json", "report.txt"] {
            let _ = fs::remove_file(self.namespace.path(earlier));
        }
        kill_process(self.pid(), Signal::TERM).expect("it lives");
        self.report()
    }

    /// The report as text for people.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.namespace.path("report.txt")).expect("it is written")
    }

    fn report_file(&self) -> PathBuf {
        self.namespace.path("report.json")
    }

    fn report(&self) -> Value {
        let began = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(self.report_file())
                && self.namespace.path("report.txt").exists()
            {
                return serde_json::from_str(&text).expect("it is written whole");
            }
            assert!(began.elapsed() < LONG, "no report: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn journal(&self) -> String {
        fs::read_to_string(self.namespace.path("journal")).unwrap_or_default()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.namespace.path("log")).unwrap_or_default()
    }
}

/// The rules of a report for which this number is not 0.
pub(crate) fn rules(report: &Value, number: &str) -> Vec<String> {
    let rules = report["rules"].as_array().expect("a list").iter();
    let found = rules.filter(|rule| rule[number].as_u64().expect("a number") > 0);
    found.map(|rule| rule["id"].as_str().expect("a text").to_owned()).collect()
}
