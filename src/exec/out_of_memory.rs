//! Whether the kernel killed a task for lack of memory. The kernel counts this per control group, not per process.

use std::path::{Path, PathBuf};

use callboard_actors::process::unified_group_of;

use super::place::KILL;
use super::record::EndStatus;

/// The files with the counter: for the group alone, for the group with its children, and for version 1.
const FILES: [&str; 3] = ["memory.events.local", "memory.events", "memory.oom_control"];

/// The counter of a task's control group at the start of the task.
#[derive(Debug)]
pub(super) struct KillCount {
    file: PathBuf,
    before: u64,
}

impl KillCount {
    /// Reads the counter of the groups that the task enters, else that of this process's group, which the task inherits.
    /// `None` if no such group counts memory: then the cause stays unknown.
    pub(super) fn begin(groups: &[PathBuf]) -> Option<Self> {
        let counted = groups.iter().find_map(|group| Self::in_group(group));
        counted.or_else(|| Self::in_group(&unified_group_of(std::process::id()).ok()?))
    }

    fn in_group(group: &Path) -> Option<Self> {
        let files = FILES.into_iter().map(|file| group.join(file));
        files.into_iter().find_map(|file| Some(Self { before: kills(&file)?, file }))
    }

    /// Whether the task was killed by the kernel for lack of memory: it ended by SIGKILL, not from us, and the counter grew.
    /// In a group shared with others the counter may mean another process.
    pub(super) fn explains(&self, status: &EndStatus, by_us: bool) -> bool {
        *status == EndStatus::Signal(KILL) && !by_us && kills(&self.file).is_some_and(|now| now > self.before)
    }
}

fn kills(file: &Path) -> Option<u64> {
    let events = std::fs::read_to_string(file).ok()?;
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(group: &Path, kills: u64) {
        let events = format!("low 0\nhigh 0\nmax 7\noom 3\noom_kill {kills}\noom_group_kill 9\n");
        std::fs::write(group.join("memory.events"), events).expect("room");
    }

    #[test]
    fn a_task_was_ended_for_want_of_memory_if_it_was_killed_not_by_us_and_the_kernel_has_counted_one_more() {
        let group = tempfile::tempdir().expect("room");
        count(group.path(), 2);
        let counted = KillCount::in_group(group.path()).expect("it counts");
        let killed = EndStatus::Signal(KILL);
        assert!(!counted.explains(&killed, false), "nothing was counted");
        count(group.path(), 3);
        assert!(counted.explains(&killed, false));
        assert!(!counted.explains(&killed, true), "we killed it");
        assert!(
            !counted.explains(&EndStatus::Code(137), false)
                && !counted.explains(&EndStatus::Signal(15), false)
        );
    }

    #[test]
    fn the_count_of_a_group_itself_stands_before_that_of_all_below_it() {
        let group = tempfile::tempdir().expect("room");
        std::fs::write(group.path().join("memory.events.local"), "oom_kill 0\n").expect("room");
        count(group.path(), 5);
        let counted = KillCount::in_group(group.path()).expect("it counts");
        count(group.path(), 6);
        assert!(!counted.explains(&EndStatus::Signal(KILL), false), "that was a group below");
    }

    #[test]
    fn a_group_of_version_1_counts_too_t148() {
        let group = tempfile::tempdir().expect("room");
        let write = |kills| {
            let text = format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n");
            std::fs::write(group.path().join("memory.oom_control"), text).expect("room");
        };
        write(0);
        let groups = [PathBuf::from("/no/such/group"), group.path().to_owned()];
        let counted = KillCount::begin(&groups).expect("it counts");
        write(1);
        assert!(counted.explains(&EndStatus::Signal(KILL), false));
    }

    #[test]
    fn where_no_group_counts_usage_is_unknown() {
        let group = tempfile::tempdir().expect("room");
        assert!(KillCount::in_group(group.path()).is_none());
    }
}
