//! Explains trouble of the disk below a demo that failed.

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::workspace::Workspace;
use crate::admin::AdminClient;
use crate::host::Unwritten;
use crate::output::harmless;

/// The timeout for the report of the host.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// With less room than this, not even the host's log can be written.
const LEAST_ROOM_BYTES: u64 = 64 * 1_024;

/// Advice if the disk takes no writes. Everything that a demo writes is below the directory for temporary files.
pub(super) const ELSEWHERE: &str = "make room there, or set TMPDIR to a directory on another disk";

/// The trouble of the disk below the demo as reported by its host or by the file system, and what to do. `None` if neither reports any.
pub(super) async fn trouble(workspace: &Workspace) -> Option<String> {
    let told = timeout(ANSWER_TIMEOUT, sick(workspace)).await.ok().flatten();
    let what = told.or_else(|| is_full(workspace.path()).then(|| "no space is left".to_owned()))?;
    Some(format!("the disk below {} takes no writes: {what}; {ELSEWHERE}", workspace.path().display()))
}

/// The host's report about a sick disk.
async fn sick(workspace: &Workspace) -> Option<String> {
    let status = AdminClient::connect(workspace.socket()).await.ok()?.status().await.ok()?;
    let disk = status.host?.disk.filter(|disk| disk.health != "sound")?;
    let names = disk.unwritten_names.iter().map(|name| harmless(name)).collect();
    let unwritten = Unwritten { names, more: usize::try_from(disk.unwritten_more).unwrap_or(usize::MAX) };
    let unwritten = match unwritten.line() {
        names if names.is_empty() => names,
        names => format!("; not on disk: {names}"),
    };
    Some(harmless(&disk.reason) + &unwritten)
}

fn is_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_bavail * found.f_frsize < LEAST_ROOM_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_with_room_and_one_that_is_not_there_are_not_full() {
        assert!(!is_full(Path::new("/proc/self/nothing")) && !is_full(&std::env::temp_dir()));
    }
}
