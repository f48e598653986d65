//! Inspects processes through `/proc`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::environment::{Environment, Look, look_until_known};
use super::system::{ProcessStatus, boot_id, living_directory};
use super::{
    FileId, Findings, Identity, OWNER_VARIABLE, PROCESS_ID_VARIABLE, ProcessTag, Seen, TAG_VARIABLE, Verdict,
    judge,
};

pub(super) fn executable_of(pid: u32) -> Option<FileId> {
    // Following the link leads to the file itself, even if its name was removed.
    let metadata = fs::metadata(place(pid).join("exe")).ok()?;
    Some(FileId { device: metadata.dev(), inode: metadata.ino() })
}

/// Inspects a process. `None` if there is none with this PID. One in the middle of an `exec` has no tag and owner.
pub(super) fn look_at(pid: u32) -> Option<Seen> {
    look(pid).map(|look| look.shown)
}

fn look(pid: u32) -> Option<Look<Seen>> {
    let status = status_of(pid)?;
    let environment = if status.is_zombie { Environment::Closed } else { Environment::of(pid) };
    let executable = if status.is_zombie { None } else { executable_of(pid) };
    // Checked again: after PID reuse, tag and owner would belong to another start time.
    let again = status_of(pid)?;
    let is_same = again.started_ticks == status.started_ticks;
    let ProcessStatus { started_ticks, group, session, is_zombie, .. } = again;
    let tag = environment.text(TAG_VARIABLE).and_then(|tag| tag.parse().ok());
    let owner = environment.text(OWNER_VARIABLE).map(str::to_owned);
    let shown = Seen { pid, started_ticks, group, session, is_zombie, executable, tag, owner };
    is_same.then_some(Look { shown, is_unknown: environment.is_unknown() && !is_zombie })
}

pub(super) fn tag_of(pid: u32) -> Option<ProcessTag> {
    look_until_known(vec![pid], look).pop()?.tag
}

/// The identity of a living process of ours.
pub(super) fn identify(pid: u32) -> io::Result<Identity> {
    let status = status_of(pid).ok_or_else(|| io::Error::other("it is not visible in /proc"))?;
    let started_ticks = status.started_ticks;
    Ok(Identity { pid, started_ticks, boot_id: boot_id()?, executable: executable_of(pid) })
}

/// Searches for the process of a record, and for all processes with its tag. Blocks for a bounded time while any of them is
/// in the middle of an `exec`, like all searches of this file.
///
/// The search visits all processes of the machine, so it is skipped if the process itself is proven.
pub(super) fn find(
    owner: &str,
    tag: ProcessTag,
    identity: Option<&Identity>,
    output: &Path,
) -> io::Result<Findings> {
    let at_pid = look_until_known(identity.map(|identity| identity.pid).into_iter().collect(), look).pop();
    let (owner, boot_id) = (owner.to_owned(), boot_id()?);
    let writes = |pid: &u32| writes_below(*pid, output);
    let writers = at_pid.iter().map(|seen| seen.pid).filter(writes).collect();
    let tagged = Vec::new();
    let mut findings = Findings { owner, boot_id, at_pid, is_child: false, tagged, writers };
    let is_proven = identity.is_some_and(|identity| judge(tag, identity, &findings) == Verdict::Proven);
    if !is_proven {
        findings.tagged = search(|seen| seen.tag == Some(tag) && seen.may_be_of(&findings.owner))?;
        findings.writers.extend(findings.tagged.iter().map(|seen| seen.pid).filter(writes));
    }
    Ok(findings)
}

/// All processes for which `is_one` returns true; never zombies, since they have no environment.
pub(super) fn search(is_one: impl Fn(&Seen) -> bool) -> io::Result<Vec<Seen>> {
    let seen = look_until_known(numbers()?, |pid| {
        let environment = Environment::of(pid);
        let may_be_one = environment.is_unknown() || environment.value(TAG_VARIABLE).is_some();
        if may_be_one { look(pid) } else { None }
    });
    Ok(seen.into_iter().filter(is_one).collect())
}

/// The living members of a process group with this tag, and those that have no environment during the whole search: they
/// are about to end, or in the middle of an `exec`.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) tagged: Vec<Seen>,
    pub(super) unknown: Vec<Seen>,
}

/// The living members of a process group, without those that surely have another tag or none.
pub(super) fn members_of(group: u32, tag: ProcessTag) -> io::Result<Members> {
    let is_member = |seen: &Seen| seen.group == group && !seen.is_zombie;
    let member = |pid| {
        let Look { shown, is_unknown } = look(pid).filter(|look| is_member(&look.shown))?;
        Some(Look { shown: (shown, is_unknown), is_unknown })
    };
    let is_in_group = |pid: &u32| status_of(*pid).is_some_and(|status| status.group == group);
    let members = look_until_known(numbers()?.into_iter().filter(is_in_group).collect(), member);
    let (unknown, known): (Vec<_>, Vec<_>) = members.into_iter().partition(|(_, is_unknown)| *is_unknown);
    let seen = |members: Vec<(Seen, bool)>| members.into_iter().map(|(seen, _)| seen);
    Ok(Members {
        tagged: seen(known).filter(|seen| seen.tag == Some(tag)).collect(),
        unknown: seen(unknown).collect(),
    })
}

/// Group leaders with our owner variable, without any of these tags, that write below this directory: the leftovers of
/// launches with lost records (RES-08).
pub(super) fn unrecorded(owner: &str, known: &[ProcessTag], output: &Path) -> io::Result<Vec<Seen>> {
    search(|seen| {
        let is_ours = seen.owner.as_deref() == Some(owner);
        let is_known = seen.tag.is_none_or(|tag| known.contains(&tag));
        let leads = seen.pid == seen.group && seen.session != seen.pid;
        is_ours && !is_known && leads && is_itself(seen.pid) && writes_below(seen.pid, output)
    })
}

/// Whether a process has a file below this directory open for writing.
pub(super) fn is_written_below(directory: &Path) -> io::Result<bool> {
    Ok(numbers()?.into_iter().any(|pid| writes_below(pid, directory)))
}

/// Whether this may be a launched process itself: the intermediate stage stores its PID in the environment; descendants
/// inherit that value and have other PIDs (TH032).
fn is_itself(pid: u32) -> bool {
    let says_so = |environment: &Environment| {
        let is_read = matches!(environment, Environment::Read(_));
        is_read && environment.text(PROCESS_ID_VARIABLE).is_none_or(|said| said == pid.to_string())
    };
    look_until_known(vec![pid], |pid| Environment::look(pid, says_so)) == [true]
}

fn writes_below(pid: u32, directory: &Path) -> bool {
    let place = place(pid);
    ["fd/1", "fd/2"]
        .into_iter()
        .any(|stream| fs::read_link(place.join(stream)).is_ok_and(|target| target.starts_with(directory)))
}

/// Sends a signal to the very process that was inspected. False if it is gone.
pub(super) fn signal(seen: &Seen, signal: Signal) -> bool {
    let Some(pid) = number(seen.pid) else { return false };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    // Checked again after the file descriptor is open: from here on PID reuse is impossible. A process that is in the middle
    // of an `exec` by now has no environment to compare, and is still the same one.
    let is_it = look(seen.pid).is_some_and(|Look { shown: now, is_unknown }| {
        let has_its_marks = (now.tag, &now.owner) == (seen.tag, &seen.owner);
        now.started_ticks == seen.started_ticks && (has_its_marks || is_unknown)
    });
    is_it && pidfd_send_signal(&process, signal).is_ok()
}

pub(super) fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The PIDs of all visible processes.
pub(super) fn numbers() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn place(pid: u32) -> PathBuf {
    living_directory(PathBuf::from(format!("/proc/{pid}")))
}

fn status_of(pid: u32) -> Option<ProcessStatus> {
    ProcessStatus::of(i32::try_from(pid).ok()?)
}

/// The values of this variable in the environments of all processes. Unreadable ones, of other users, are skipped.
pub(super) fn values_of(name: &str) -> io::Result<BTreeSet<OsString>> {
    let value = |found: &Environment| Some(OsStr::from_bytes(found.value(name)?).to_owned());
    let values = look_until_known(numbers()?, |pid| Environment::look(pid, value));
    Ok(values.into_iter().flatten().collect())
}

/// Runs a search on a blocking thread.
pub(super) async fn beside<T: Send + 'static>(
    search: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    actix_rt::task::spawn_blocking(search).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_see_ourselves() {
        let us = std::process::id();
        let seen = look_at(us).expect("we are there");
        assert_eq!(identify(us).expect("we are there").started_ticks, seen.started_ticks);
        assert_eq!(seen.executable, executable_of(us));
        assert!(look_at(u32::MAX).is_none());
    }
}
