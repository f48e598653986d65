//! Proves that a process is the one that was launched (PRC-01).

use std::fmt;

use super::name::ProcessTag;

/// The environment variable with the tag of a process. Its descendants inherit it.
pub const TAG_VARIABLE: &str = "CALLBOARD_PROCESS_TAG";
/// The environment variable with the owner of a process: the same for every run on one data directory, and unique to it.
pub const OWNER_VARIABLE: &str = "CALLBOARD_PROCESS_OWNER";

/// The environment variable with the PID of the launched process, set by the intermediate stage. Its descendants inherit the
/// variable and have other PIDs.
pub const PROCESS_ID_VARIABLE: &str = "CALLBOARD_PROCESS_ID";
/// The environment variable with the original path of a program that is run from a copy, since its digest is pinned.
pub const PROGRAM_VARIABLE: &str = "CALLBOARD_PROGRAM_PATH";

/// A file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Its device.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} of device {:#x}", self.inode, self.device)
    }
}

/// The unique identity of a process: together with its tag, all of it must match before a process is adopted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its PID, which may be reused later.
    pub pid: u32,
    /// Its start time, in clock ticks since the boot (field 22 of `/proc/<pid>/stat`).
    pub started_ticks: u64,
    /// The boot id of the machine at its start.
    pub boot_id: String,
    /// The program that it ran at its handshake. `None` for a process without one: it may be a wrapper before its exec.
    pub executable: Option<FileId>,
}

/// A process as seen through `/proc`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Its PID.
    pub pid: u32,
    /// Its start time, in clock ticks since the boot.
    pub started_ticks: u64,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Whether it is a zombie: it has ended and is not reaped.
    pub is_zombie: bool,
    /// The program that it runs.
    pub executable: Option<FileId>,
    /// The tag in its environment.
    pub tag: Option<ProcessTag>,
    /// The owner in its environment.
    pub owner: Option<String>,
}

impl Seen {
    /// Whether it has no owner or this one: a tag is stored in the database, which may be copied (TH053).
    #[must_use]
    pub fn may_be_of(&self, owner: &str) -> bool {
        self.owner.as_deref().is_none_or(|found| found == owner)
    }
}

/// The processes found for a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The owner of our processes.
    pub owner: String,
    /// The present boot id.
    pub boot_id: String,
    /// The process that has the recorded PID now.
    pub at_pid: Option<Seen>,
    /// Whether that process is a child of this same host process that has lost its owner.
    pub is_child: bool,
    /// All processes with the recorded tag.
    pub tagged: Vec<Seen>,
    /// The PIDs among these that write to the output files of the launch.
    pub writers: Vec<u32>,
}

/// The result of comparing a record with the findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the recorded process.
    Proven,
    /// It has ended; its PID is free.
    Ended,
    /// The recorded PID is not proven to be the process. Names the mismatch.
    NotProven(String),
}

/// Compares a record with the findings.
#[must_use]
pub fn judge(tag: ProcessTag, identity: &Identity, findings: &Findings) -> Verdict {
    let Identity { pid, started_ticks, boot_id, executable } = identity;
    if *boot_id != findings.boot_id {
        return not_proven(format!("it was started under boot {boot_id}, and this is {}", findings.boot_id));
    }
    let Some(seen) = &findings.at_pid else { return Verdict::Ended };
    if seen.started_ticks != *started_ticks {
        return not_proven(format!("process id {pid} belongs to a process that was started at another time"));
    }
    if seen.is_zombie {
        // A zombie no longer has an environment or a program, and its PID cannot be reused before it is reaped.
        return Verdict::Proven;
    }
    match seen.tag {
        Some(found) if found == tag => {}
        Some(found) => return not_proven(format!("process {pid} carries the tag {found}, not {tag}")),
        // Its environment cannot be read: it has been overwritten, or the process is in the middle of an `exec`. Writing to
        // the output files of this launch is equivalent proof.
        None if findings.writers.contains(pid) => {}
        None => return not_proven(format!("process {pid} carries no tag that can be read")),
    }
    if !seen.may_be_of(&findings.owner) {
        return not_proven(format!(
            "process {pid} belongs to another host, whose database this one is a copy of"
        ));
    }
    match (executable, seen.executable) {
        (Some(recorded), Some(found)) if *recorded != found => {
            not_proven(format!("process {pid} runs {found}, not {recorded}"))
        }
        (Some(_), None) => not_proven(format!("the program of process {pid} cannot be read")),
        (Some(_) | None, _) => Verdict::Proven,
    }
}

fn not_proven(reason: String) -> Verdict {
    Verdict::NotProven(reason)
}

/// The processes that are proven to be ours, although the record as a whole does not match, so that none stays unowned
/// (PRC-09). Without an identity the crash preceded readiness, and every process with its tag belongs to the launch.
///
/// A tagged process that is neither the recorded one nor in its group left the group on purpose; it is left running.
#[must_use]
pub fn ours(tag: ProcessTag, identity: Option<&Identity>, findings: &Findings) -> Vec<Seen> {
    let Some(identity) = identity else { return findings.tagged.clone() };
    let fits_in_part = |seen: &Seen| seen.pid == identity.pid || seen.started_ticks == identity.started_ticks;
    // For the case that the whole identity belongs to another process: a task has its own output files.
    let looks_launched = |seen: &Seen| findings.writers.contains(&seen.pid);
    // We create process groups and no sessions, so a session leader is an executor or a task, even if started in the same
    // tick (TH032).
    let is_launched = |seen: &Seen| seen.pid == seen.group && seen.session != seen.pid;
    let leads = |seen: &&Seen| is_launched(seen) && (fits_in_part(seen) || looks_launched(seen));
    let leader = findings.tagged.iter().find(leads);
    let group = leader.map_or(identity.pid, |leader| leader.pid);
    let tagged = findings.tagged.iter().filter(|seen| seen.tag == Some(tag) && seen.group == group);
    // A record with another tag, of a process that is ours and matches in all else.
    let fits = |seen: &&Seen| {
        seen.started_ticks == identity.started_ticks
            && identity.boot_id == findings.boot_id
            && seen.owner.as_ref() == Some(&findings.owner)
            && seen.tag != Some(tag)
    };
    tagged.chain(findings.at_pid.iter().filter(fits)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: ProcessTag = ProcessTag::new([7; 16]);
    const FILE: FileId = FileId { device: 1, inode: 2 };

    fn identity() -> Identity {
        Identity { pid: 10, started_ticks: 100, boot_id: "b".to_owned(), executable: Some(FILE) }
    }

    fn seen() -> Seen {
        Seen {
            pid: 10,
            started_ticks: 100,
            group: 10,
            session: 1,
            is_zombie: false,
            executable: Some(FILE),
            tag: Some(TAG),
            owner: Some("us".to_owned()),
        }
    }

    fn found(at_pid: Option<Seen>, tagged: Vec<Seen>) -> Findings {
        Findings {
            owner: "us".to_owned(),
            boot_id: "b".to_owned(),
            at_pid,
            is_child: false,
            tagged,
            writers: vec![],
        }
    }

    #[test]
    fn only_a_process_that_fits_in_everything_is_proven_prc_01() {
        assert_eq!(judge(TAG, &identity(), &found(Some(seen()), vec![])), Verdict::Proven);
        assert_eq!(judge(TAG, &identity(), &found(None, vec![])), Verdict::Ended);
        let others = [
            Seen { started_ticks: 101, ..seen() },
            Seen { tag: None, ..seen() },
            Seen { tag: Some(ProcessTag::new([8; 16])), ..seen() },
            Seen { executable: Some(FileId { device: 1, inode: 3 }), ..seen() },
            Seen { executable: None, ..seen() },
            Seen { owner: Some("they".to_owned()), ..seen() },
        ];
        for other in others {
            let verdict = judge(TAG, &identity(), &found(Some(other.clone()), vec![]));
            assert!(matches!(verdict, Verdict::NotProven(_)), "{other:?}: {verdict:?}");
        }
        let silent = Seen { tag: None, ..seen() };
        let writes = Findings { writers: vec![10], ..found(Some(silent.clone()), vec![]) };
        assert_eq!(judge(TAG, &identity(), &writes), Verdict::Proven);
        for other in [Seen { started_ticks: 101, ..silent.clone() }, Seen { executable: None, ..silent }] {
            let verdict = judge(TAG, &identity(), &Findings { at_pid: Some(other), ..writes.clone() });
            assert!(matches!(verdict, Verdict::NotProven(_)), "{verdict:?}");
        }
        let rebooted = Findings { boot_id: "c".to_owned(), ..found(Some(seen()), vec![]) };
        assert!(matches!(judge(TAG, &identity(), &rebooted), Verdict::NotProven(_)));
    }

    #[test]
    fn of_a_foreign_process_nothing_is_ours_prc_01() {
        let foreign = Seen { tag: None, owner: None, ..seen() };
        assert_eq!(ours(TAG, Some(&identity()), &found(Some(foreign), vec![])), vec![]);
        let of_another_host =
            Seen { tag: Some(ProcessTag::new([1; 16])), owner: Some("they".into()), ..seen() };
        assert_eq!(ours(TAG, Some(&identity()), &found(Some(of_another_host), vec![])), vec![]);
    }

    #[test]
    fn whatever_field_of_a_record_is_damaged_the_process_is_still_found_to_be_ours_res_07() {
        let damaged = [
            Identity { pid: 11, ..identity() },
            Identity { started_ticks: 1, ..identity() },
            Identity { boot_id: "?".to_owned(), ..identity() },
            Identity { executable: Some(FileId { device: 0, inode: 0 }), ..identity() },
        ];
        for record in damaged {
            let at_pid = (record.pid == 10).then(seen);
            assert_eq!(ours(TAG, Some(&record), &found(at_pid, vec![seen()])), vec![seen()], "{record:?}");
        }
        let other_tag = ProcessTag::new([9; 16]);
        assert_eq!(ours(other_tag, Some(&identity()), &found(Some(seen()), vec![])), vec![seen()]);
    }

    #[test]
    fn a_record_of_another_process_does_not_hide_the_one_that_was_launched_prc_09() {
        let other = Identity { pid: 99, started_ticks: 990, ..identity() };
        let mut findings = found(None, vec![seen()]);
        assert_eq!(ours(TAG, Some(&other), &findings), vec![], "it may be a task of it");
        findings.writers = vec![10];
        assert_eq!(ours(TAG, Some(&other), &findings), vec![seen()]);
    }

    #[test]
    fn what_left_the_group_on_purpose_is_not_ended_with_it_prc_03() {
        let task = Seen { pid: 30, group: 30, session: 30, started_ticks: 300, ..seen() };
        let child = Seen { pid: 31, started_ticks: 300, ..seen() };
        let findings = found(None, vec![task.clone(), child.clone()]);
        assert_eq!(ours(TAG, Some(&identity()), &findings), vec![child.clone()]);
        // Before it was ready it had no tasks; every process with the tag was made by the launch.
        assert_eq!(ours(TAG, None, &findings), vec![task, child]);
    }

    #[test]
    fn an_executor_is_never_taken_for_the_driver_that_started_it_th032() {
        let executor = Seen { pid: 30, group: 30, session: 30, ..seen() };
        let findings = Findings { writers: vec![30], ..found(None, vec![executor]) };
        assert_eq!(ours(TAG, Some(&Identity { boot_id: "?".to_owned(), ..identity() }), &findings), vec![]);
    }

    #[test]
    fn a_file_is_told_by_its_number_and_its_device() {
        assert_eq!(FileId { device: 0x10, inode: 2 }.to_string(), "file 2 of device 0x10");
    }
}
