//! Finds logs by name.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use callboard_actors::logmon::{LogPlace, LogStream, places};
use callboard_proto::admin::v1 as wire;

use crate::command_line::run::LOGMON_DIRECTORY;
use crate::config::{Config, PROCESS_PREFIX, suggest};

/// One log.
#[derive(Debug)]
pub(super) struct Found {
    /// The kind of its writer: `task`, `allocation` or `driver`.
    pub(super) kind: &'static str,
    /// Its name.
    pub(super) name: String,
    /// The stream; both streams for an allocation.
    pub(super) stream: &'static str,
    /// Its location.
    pub(super) place: LogPlace,
}

impl Found {
    /// A name that is not ambiguous.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// The kinds of writers of logs.
const KINDS: [&str; 3] = ["task", "allocation", "driver"];

/// The kind in a name, if it has one, and the name itself.
fn kind(name: &str) -> (Option<&'static str>, &str) {
    match name.split_once('/') {
        Some((word, name)) => match KINDS.into_iter().find(|kind| *kind == word) {
            Some(kind) => (Some(kind), name),
            None => (None, name),
        },
        None => (None, name),
    }
}

/// Every log below a data directory that matches a name.
pub(super) fn find(data_dir: &Path, name: &str, stderr: bool) -> io::Result<Vec<Found>> {
    let (wanted, name) = kind(name);
    let is_wanted = |kind| wanted.is_none_or(|wanted| wanted == kind);
    let mut found = Vec::new();
    // A name must not lead to another directory.
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        return Ok(found);
    }
    if is_wanted("task") {
        let wanted = if stderr { LogStream::Stderr } else { LogStream::Stdout };
        let places = places(&data_dir.join(LOGMON_DIRECTORY))?;
        let places = places.into_iter().filter(|(key, stream, _)| key == name && *stream == wanted);
        found.extend(places.map(|(name, stream, place)| Found {
            kind: "task",
            name,
            stream: stream.as_str(),
            place,
        }));
    }
    if is_wanted("allocation")
        && let Some(place) = of_allocation(data_dir, name)
    {
        found.push(Found { kind: "allocation", name: name.to_owned(), stream: "output", place });
    }
    let driver = data_dir.join("processes").join(format!("driver-{name}"));
    if is_wanted("driver") && driver.is_dir() {
        found.push(Found {
            kind: "driver",
            name: name.to_owned(),
            stream: "stderr",
            place: of_process(&driver),
        });
    }
    Ok(found)
}

/// The log of a process of the owner of processes.
fn of_process(directory: &Path) -> LogPlace {
    LogPlace::Renamed { path: directory.join("stderr.log"), before: directory.join("stderr.previous.log") }
}

/// The log of an allocation: of a process that survives its host, or of a bound process, whichever was written last.
fn of_allocation(data_dir: &Path, name: &str) -> Option<LogPlace> {
    let logs = data_dir.join("logs");
    let bound = LogPlace::Renamed {
        path: logs.join(format!("{name}.log")),
        before: logs.join(format!("{name}.log.1")),
    };
    let surviving = of_process(&data_dir.join("processes").join(format!("{PROCESS_PREFIX}{name}")));
    let written = |place: &LogPlace| match place {
        LogPlace::Renamed { path, .. } => path.metadata().and_then(|file| file.modified()).ok(),
        _ => None,
    };
    let places = [bound, surviving].into_iter().filter_map(|place| Some((written(&place)?, place)));
    places.max_by_key(|(at, _)| *at).map(|(_, place)| place)
}

/// Names that are known although they may have no logs.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<(&'static str, String)>);

impl Names {
    /// Adds the names of a configuration.
    pub(super) fn add_config(&mut self, config: &Config) {
        let tasks = config.tasks.iter().map(|task| ("task", task.name.to_string()));
        let allocations =
            config.allocations.iter().map(|allocation| ("allocation", allocation.name.to_string()));
        let drivers = config.drivers.iter().map(|driver| ("driver", driver.name.to_string()));
        self.0.extend(tasks.chain(allocations).chain(drivers));
    }

    /// Adds the names that a running host knows.
    pub(super) fn add_status(&mut self, status: &wire::GetStatusResponse) {
        let tasks = status.tasks.iter().map(|task| ("task", task.name.clone()));
        let allocations = status.allocations.iter().map(|allocation| ("allocation", allocation.name.clone()));
        let drivers = status.drivers.iter().map(|driver| ("driver", driver.name.clone()));
        self.0.extend(tasks.chain(allocations).chain(drivers));
    }

    /// The kind of object with this name, if it is known.
    pub(super) fn what(&self, name: &str) -> Option<String> {
        let (wanted, name) = kind(name);
        let mut known = self.0.iter();
        let is_meant = |kind: &str, known: &str| known == name && wanted.is_none_or(|wanted| wanted == kind);
        known.find(|(kind, known)| is_meant(kind, known)).map(|(kind, name)| format!("{kind} {name}"))
    }

    /// The rest of the message about an unknown name.
    pub(super) fn advice(&self, name: &str) -> String {
        let known: Vec<&str> = self.0.iter().map(|(_, name)| name.as_str()).collect();
        match suggest::nearest(kind(name).1, &known) {
            Some(word) => format!("; did you mean {word:?}?"),
            None if known.is_empty() => {
                "; name the configuration, or start the host, to see which there are".to_owned()
            }
            None => "; `callboard status` shows which there are".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_say_what_it_is_of_and_leads_nowhere_else() {
        let data = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir_all(data.path().join("processes/driver-web")).expect("a directory");
        std::fs::create_dir(data.path().join("logs")).expect("a directory");
        std::fs::write(data.path().join("logs/web.log"), "").expect("a file");
        let names = |name: &str| -> Vec<String> {
            find(data.path(), name, false).expect("it can be read").iter().map(Found::full_name).collect()
        };
        assert_eq!(names("web"), ["allocation/web", "driver/web"]);
        assert_eq!(names("driver/web"), ["driver/web"]);
        assert!(names("task/web").is_empty());
        for name in ["", ".", "..", "driver/../x", "logs/web"] {
            assert!(names(name).is_empty() || name == "logs/web", "{name}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_one_is_suggested() {
        let names = Names([("task", "web-server".to_owned()), ("driver", "exec".to_owned())].into());
        assert_eq!(names.what("web-server").as_deref(), Some("task web-server"));
        assert_eq!(names.what("driver/web-server"), None);
        assert_eq!(names.advice("web-servr"), "; did you mean \"web-server\"?");
        assert!(names.advice("something").contains("callboard status"));
    }
}
