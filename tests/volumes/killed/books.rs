//! Records the knowledge of the test about the claims and files of a killed host: the reports of the host, and the mounts of the kernel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use callboard::actors::mounts::{MountId, mounts_of_this_process};

use super::{VOLUMES, every_number, keeper_of, pairs};
use crate::support::PAUSE;

/// An allocation, according to the reports of the host.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Whether its processes live: it may have claimed, and has not reported a release.
    lives: bool,
    /// The number of lines that it has written.
    lines: u64,
    /// The path of its volume, and the mount there when the host was killed.
    found: Option<(PathBuf, Option<MountId>)>,
}

#[derive(Debug, Default)]
pub(super) struct Books {
    known: BTreeMap<String, Known>,
    /// The number of reports of each kind.
    said: BTreeMap<String, u64>,
}

impl Books {
    pub(super) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [verb, allocation, rest @ ..] = words.as_slice() else { return };
        *self.said.entry((*verb).to_owned()).or_default() += 1;
        let known = self.known.entry((*allocation).to_owned()).or_default();
        let number = || rest[0].parse::<u64>().expect("a number");
        match *verb {
            "claiming" => known.lives = true,
            "claimed" => {
                let (is_kept, path) = (rest[0] == "true", PathBuf::from(rest[1]));
                if let Some((before, Some(mount))) = known.found.take().filter(|_| is_kept) {
                    assert_eq!(before, path, "its path stays");
                    assert_eq!(mount_at(&path), Some(mount), "its mount stays");
                }
                known.found = Some((path, None));
            }
            "found" => {
                // The host may have been killed between writing a line and reporting it.
                let (found, said) = (number(), known.lines);
                assert!(found == said || found == said + 1, "{allocation}: {found} lines of {said}");
                known.lines = found;
            }
            "written" => known.lines = number(),
            "releasing" => known.lives = false,
            "released" => known.found = None,
            _ => {}
        }
    }

    pub(super) fn times(&self, said: &str) -> u64 {
        self.said.get(said).copied().unwrap_or_default()
    }

    /// The host was killed: claimed volumes must stay mounted.
    pub(super) fn note_mounts(&mut self) {
        for known in self.known.values_mut() {
            known.found = known.found.take().filter(|_| known.lives).map(|(path, _)| {
                let mount = mount_at(&path);
                assert!(mount.is_some(), "{} is claimed, and not mounted", path.display());
                (path, mount)
            });
        }
    }

    pub(super) fn living(&self) -> String {
        let living = self.known.iter().filter(|(_, known)| known.lives).map(|(id, _)| id.as_str());
        living.collect::<Vec<_>>().join(" ")
    }

    /// The path of the volume for the workload of the test, once it is claimed.
    pub(super) fn path_of_keeper(&self, volume: &str) -> Option<PathBuf> {
        Some(self.known.get(&keeper_of(volume))?.found.as_ref()?.0.clone())
    }

    /// Reads every file of every allocation through the mount of that workload: no line is lost, and no line is there twice.
    pub(super) fn check_files(&self) {
        for (volume, allocation) in pairs() {
            let (Some(path), Some(known)) = (self.path_of_keeper(volume), self.known.get(&allocation)) else {
                continue;
            };
            if known.lines > 0 {
                let text = fs::read_to_string(path.join(&allocation)).expect("it is there");
                let lines = every_number(&text).unwrap_or_else(|| panic!("{allocation}: {text:?}"));
                assert!(lines >= known.lines, "{allocation}: {lines} lines of {}", known.lines);
            }
        }
    }
}

fn mount_at(path: &Path) -> Option<MountId> {
    mounts_of_this_process().expect("it can be read").mounted_at(path).map(|mount| mount.id)
}

// === Workloads that survive everything ===

/// A workload on each volume: it writes all the time, whether plugin or host is killed.
#[derive(Default)]
pub(super) struct Workloads(BTreeMap<&'static str, Workload>);

struct Workload {
    file: PathBuf,
    is_over: Arc<AtomicBool>,
    writing: JoinHandle<u64>,
}

impl Workloads {
    /// Starts the workloads of claimed volumes, and checks that the others still run.
    pub(super) fn go_on(&mut self, books: &Books) {
        for volume in VOLUMES {
            let Some(path) = books.path_of_keeper(volume) else { continue };
            let workload = self.0.entry(volume).or_insert_with(|| Workload::begin(&path));
            assert!(!workload.writing.is_finished(), "the workload on {volume} has failed");
            assert_eq!(workload.file.parent(), Some(&*path), "its path stays");
        }
    }

    /// Ends all workloads; returns how many lines they have written.
    pub(super) fn end(self) -> u64 {
        assert_eq!(self.0.len(), VOLUMES.len(), "each volume has been claimed");
        self.0.into_values().map(Workload::end).sum()
    }
}

impl Workload {
    fn begin(path: &Path) -> Self {
        let file = path.join("workload");
        let (is_over, own) = (Arc::new(AtomicBool::new(false)), file.clone());
        let ends = is_over.clone();
        Self { file, is_over, writing: std::thread::spawn(move || write_until(&own, &ends)) }
    }

    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.writing.join().expect("every write succeeds")
    }
}

/// Writes through one open file, and checks the file by its path.
fn write_until(path: &Path, is_over: &AtomicBool) -> u64 {
    let mut file = File::options().create_new(true).append(true).open(path).expect("it is mounted");
    let (mut lines, mut bytes) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        lines += 1;
        let line = format!("{lines}\n");
        file.write_all(line.as_bytes()).expect("it can be written");
        bytes += line.len() as u64;
        assert_eq!(fs::metadata(path).expect("it is there").len(), bytes, "{}", path.display());
        std::thread::sleep(PAUSE);
    }
    let text = fs::read_to_string(path).expect("it is there");
    assert_eq!(every_number(&text), Some(lines), "{}", path.display());
    lines
}
