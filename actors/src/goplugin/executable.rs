//! Inspects an executable file, for a diagnosis (D34).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use rustix::process::{getegid, geteuid};

use super::{Diagnosis, ExecutableFacts};
use super::{HEAD_BYTES_MAX, HostMachine, Program};

const HOST: HostMachine =
    HostMachine { name: std::env::consts::ARCH, is_little_endian: cfg!(target_endian = "little") };

/// Explains why an executable may not have started, from the present file and its output before it ended.
///
/// It blocks while it reads a little of the file. It never fails: unknown facts are omitted.
#[must_use]
pub fn diagnose<'a>(path: &Path, printed: impl IntoIterator<Item = &'a str>) -> Diagnosis {
    Diagnosis::new(path.to_owned(), &facts_of(path), &HOST, printed)
}

fn facts_of(path: &Path) -> ExecutableFacts {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) => return ExecutableFacts::Unreachable { detail: error.to_string() },
    };
    if !found.is_file() {
        let what = if found.is_dir() { "a directory" } else { "a special file" };
        return ExecutableFacts::NoFile { what };
    }
    let program = head_of(path).ok().map(|head| Program::of(&head));
    let has_runner =
        program.as_ref().and_then(Program::runner).is_none_or(|runner| Path::new(runner).exists());
    ExecutableFacts::File {
        mode: found.permissions().mode() & 0o7777,
        owner: (found.uid(), found.gid()),
        ours: (geteuid().as_raw(), getegid().as_raw()),
        may_be_executed: accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok(),
        program,
        has_runner,
    }
}

/// Reads the beginning of a file. Does not block if a FIFO has replaced it meanwhile.
fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES_MAX as u64).read_to_end(&mut head)?;
    Ok(head)
}
