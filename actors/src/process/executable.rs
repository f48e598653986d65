//! Opens a program once, checks what was opened, and runs nothing but that (SEC-05, SEC-07).
//!
//! The program is executed through its descriptor: it becomes the standard input of the child, at its end, and the child
//! executes `/proc/self/fd/0`. So no name is looked up a second time, a script's interpreter opens the very file that was
//! checked, no descriptor has to be inherited by accident, and a plugin that reads its standard input finds nothing there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::launch_error::ExecutableError;
use super::spec::Executable;
use crate::vocabulary::hex;

/// The path by which the child executes what was opened.
pub(super) const DESCRIPTOR_PATH: &str = "/proc/self/fd/0";

/// What must not change between the check and the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A program that may be run.
#[derive(Debug)]
pub(super) struct Opened {
    file: File,
    executable: Executable,
    stamp: Stamp,
}

/// Opens a program and checks it. This reads the file if a digest is pinned, and may take a while then.
pub(super) fn open_program(executable: &Executable) -> Result<Opened, ExecutableError> {
    let mut file = open_file(executable)?;
    let stamp = check(executable, &file)?;
    if let Some(pinned) = executable.sha256 {
        check_digest(executable, &mut file, pinned)?;
    }
    let failed = |source: io::Error| system(executable, "read", &source);
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    Ok(Opened { file, executable: executable.clone(), stamp })
}

impl Opened {
    /// The descriptor, for the child.
    pub(super) fn descriptor(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Whether it is still what was checked. Asked after the start: a program that runs cannot be written to any more.
    pub(super) fn check_unchanged(&self) -> Result<(), ExecutableError> {
        let stamp = stamp(&self.file).map_err(|error| system(&self.executable, "look at", &error))?;
        if self.executable.sha256.is_some() && stamp != self.stamp {
            return Err(ExecutableError::Changed { path: self.executable.place() });
        }
        Ok(())
    }

    /// What can be seen of the file, for the error of a launch that failed (D34).
    pub(super) fn diagnosis(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Ok(metadata) = self.file.metadata() {
            let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            notes.push(format!(
                "path {}, mode {:04o}, owner {} and group {} (the host's are {user} and {group})",
                self.executable.place().display(),
                metadata.mode() & 0o7777,
                metadata.uid(),
                metadata.gid()
            ));
        }
        let mut head = [0; 20];
        let is_read =
            std::os::unix::fs::FileExt::read_at(&self.file, &mut head, 0).is_ok_and(|n| n == head.len());
        notes.extend(is_read.then(|| machine_note(&head)).flatten());
        notes
    }
}

fn open_file(executable: &Executable) -> Result<File, ExecutableError> {
    // Not blocking: opening a pipe would wait for its other end. Reading a regular file does not mind.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let path = &executable.path;
    let opened = match &executable.root {
        None if !path.is_absolute() => return Err(ExecutableError::NotAbsolute { path: path.clone() }),
        None => open(path, flags, Mode::empty()),
        Some(root) if !is_name(path) => {
            return Err(ExecutableError::NotAName { path: path.clone(), root: root.clone() });
        }
        Some(root) => {
            let directory = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            directory.and_then(|directory| open_beneath(&directory, path, flags))
        }
    };
    match opened {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(Errno::LOOP | Errno::XDEV) => Err(ExecutableError::Escapes { path: executable.place() }),
        Err(error) => Err(system(executable, "open", &error.into())),
    }
}

fn open_beneath(
    directory: &impl std::os::fd::AsFd,
    name: &Path,
    flags: OFlags,
) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(directory, name, flags, Mode::empty(), resolve) {
        // Refused by an old kernel or a filter of system calls. For a single name, not to follow a link is as much.
        Err(Errno::NOSYS | Errno::PERM) => openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        outcome => outcome,
    }
}

/// Whether this is the name of a file and nothing more: no separator, no climbing, no odd bytes.
fn is_name(path: &Path) -> bool {
    let mut components = path.components();
    let Some(Component::Normal(name)) = components.next() else { return false };
    let Some(text) = path.to_str() else { return false };
    components.next().is_none() && name == path.as_os_str() && !text.chars().any(char::is_control)
}

fn check(executable: &Executable, file: &File) -> Result<Stamp, ExecutableError> {
    let path = || executable.place();
    let metadata = file.metadata().map_err(|error| system(executable, "look at", &error))?;
    if !metadata.is_file() {
        return Err(ExecutableError::NotAFile { path: path() });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o111 == 0 {
        return Err(ExecutableError::NotExecutable { path: path(), mode });
    }
    if !is_program(file).map_err(|error| system(executable, "read", &error))? {
        return Err(ExecutableError::NotAProgram { path: path() });
    }
    stamp(file).map_err(|error| system(executable, "look at", &error))
}

/// Whether it is an ELF program or a script that names its interpreter. Of anything else the C library would make a shell
/// script, so that a damaged program would be read as commands.
fn is_program(file: &File) -> io::Result<bool> {
    let mut head = [0; 4];
    let length = std::os::unix::fs::FileExt::read_at(file, &mut head, 0)?;
    Ok(head[..length].starts_with(b"#!") || head[..length] == *b"\x7fELF")
}

fn stamp(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok(Stamp {
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

fn check_digest(executable: &Executable, file: &mut File, pinned: [u8; 32]) -> Result<(), ExecutableError> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 256 * 1_024];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => hasher.update(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(system(executable, "read", &error)),
        }
    }
    let found: [u8; 32] = hasher.finalize().into();
    if found == pinned {
        return Ok(());
    }
    Err(ExecutableError::Digest { path: executable.place(), found: hex(&found), pinned: hex(&pinned) })
}

fn system(executable: &Executable, attempted: &'static str, error: &io::Error) -> ExecutableError {
    ExecutableError::System { attempted, path: executable.place(), message: error.to_string() }
}

/// What the first bytes of a file say of the machine that it was built for.
fn machine_note(head: &[u8; 20]) -> Option<String> {
    if head.starts_with(b"#!") {
        return Some("it is a script".to_owned());
    }
    if !head.starts_with(b"\x7fELF") {
        return Some("it is no ELF program and no script".to_owned());
    }
    let machine = match head[5] {
        2 => u16::from_be_bytes([head[18], head[19]]),
        _ => u16::from_le_bytes([head[18], head[19]]),
    };
    let name = match machine {
        3 => "x86",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        22 => "s390x",
        21 => "powerpc64",
        _ => return Some(format!("built for machine {machine}")),
    };
    Some(format!("built for {name} (the host is {})", std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_sec_05() {
        for path in ["", ".", "..", "a/b", "/a", "a/", "./a", "../a", "a/..", "a\nb", "a\0b"] {
            assert!(!is_name(Path::new(path)), "{path:?}");
        }
        for path in ["a", "plugin-v1.2", "..a", "ünïcode"] {
            assert!(is_name(Path::new(path)), "{path:?}");
        }
    }
}
