//! Limits the disk usage of processes that survive their host, while no host reads their output.
//!
//! A process appends its output to a file independent of any reader; a host reads that and punches holes to free the space.
//! When a host ends and leaves processes running, its keeper starts a guard: it checks these files several times a second,
//! and frees the front of one that has grown too large. The next host detects the gap and logs it. There is one guard per
//! directory, which it locks; it ends with the last process that writes there, and is harmless beside a host.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use rustix::process::setsid;

use super::bound::Binder;
use super::look;

/// The subcommand and option of our program that call [`guard`].
const SUBCOMMAND: [&str; 2] = ["keeper", "--guard"];
/// The limit of the output of one stream on disk, and how much is kept when it is exceeded: more than a host keeps.
const ROOM_BYTES_MAX: u64 = 32 * 1_024 * 1_024;
const LEFT_BYTES: u64 = 8 * 1_024 * 1_024;
const BLOCK_BYTES: u64 = 4_096;
/// The pause between two checks of the files, and the number of them between two searches for processes.
const PAUSE: Duration = Duration::from_millis(200);
const LOOKS: u32 = 20;

/// Starts a guard for the outputs below this directory, if processes write there.
pub(super) fn begin(directory: &Path) -> io::Result<()> {
    if !look::is_written_below(directory)? {
        return Ok(());
    }
    let mut command =
        Binder::this_program().command_of_its_own(Path::new("/proc/self/exe"), Some(Path::new("callboard")));
    command.args(SUBCOMMAND).arg(directory).env_clear().current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

/// Runs as the guard of the outputs below this directory, until no process writes there.
///
/// # Errors
/// When the directory, the files or the list of processes cannot be read.
pub fn guard(directory: &Path) -> io::Result<()> {
    setsid()?;
    let lock = File::open(directory)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(()),
        outcome => outcome?,
    }
    // The path may lead elsewhere later.
    let held = PathBuf::from(format!("/proc/self/fd/{}", lock.as_raw_fd()));
    while look::is_written_below(directory)? {
        for _ in 0..LOOKS {
            bound_all(&held)?;
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Frees the excess of every output below this directory.
fn bound_all(directory: &Path) -> io::Result<()> {
    for process in fs::read_dir(directory)? {
        let files = fs::read_dir(process?.path()).into_iter().flatten().filter_map(Result::ok);
        files.map(|file| file.path()).filter(is_output).try_for_each(|path| bound(&path))?;
    }
    Ok(())
}

fn is_output(path: &PathBuf) -> bool {
    let is_log = path.extension().is_some_and(|extension| extension == "log");
    is_log
        && fs::symlink_metadata(path)
            .is_ok_and(|found| found.is_file() && found.blocks() * 512 > ROOM_BYTES_MAX)
}

fn bound(path: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let until = file.metadata()?.len().saturating_sub(LEFT_BYTES) / BLOCK_BYTES * BLOCK_BYTES;
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(&file, mode, 0, until)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_output_without_a_reader_is_bounded_and_its_end_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let process = directory.path().join("driver-a");
        fs::create_dir(&process).expect("it can be made");
        let (large, small) = (process.join("stderr.log"), process.join("stdout.log"));
        fs::write(&small, vec![b'x'; 1 << 20]).expect("room");
        let mut file = File::create(&large).expect("room");
        for _ in 0..40 {
            file.write_all(&vec![b'x'; 1 << 20]).expect("room");
        }
        file.write_all(b"the end\n").expect("room");
        bound_all(directory.path()).expect("it can be bounded");
        let found = fs::metadata(&large).expect("it is there");
        assert_eq!(found.len(), (40 << 20) + 8);
        assert!(found.blocks() * 512 <= LEFT_BYTES + 2 * BLOCK_BYTES, "{} blocks", found.blocks());
        assert!(fs::read(&large).expect("it is there").ends_with(b"x\x78the end\n"));
        assert_eq!(fs::metadata(&small).expect("it is there").blocks() * 512, 1 << 20);
    }
}
