//! The pseudoterminal of a command beside a task: the command has one end and the driver the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use callboard_proto::drivers::exec_task_streaming_request::TerminalSize;
use rustix::fs::{Uid, fchown};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::record::TaskUser;
use super::task;

/// The character that a terminal takes as end of file at the beginning of a line (EOT).
const END_OF_INPUT: u8 = 4;

/// The driver's end of a terminal. Drop hangs up the terminal of the command's session.
#[derive(Debug)]
pub(super) struct Terminal(AsyncFd<OwnedFd>);

impl Terminal {
    /// Opens a terminal, and returns the end for a command of this user.
    pub(super) fn open(user: Option<&TaskUser>) -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        if let Some(user) = user {
            fchown(&theirs, Some(Uid::from_raw(user.uid)), None)?;
        }
        ioctl_fionbio(&ours, true)?;
        let ours = task::watched(ours, Interest::READABLE | Interest::WRITABLE)?;
        Ok((Self(ours), theirs))
    }

    /// Reads the command's output. 0 is end of file: no process has the other end open.
    pub(super) async fn read(&self, chunk: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let tried = ready.try_io(|ours| Ok(read(ours.as_fd(), &mut *chunk)?));
            match tried {
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(0),
                Ok(result) => return result,
                Err(_) => {}
            }
        }
    }

    pub(super) async fn type_all(&self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            let mut ready = self.0.writable().await?;
            if let Ok(written) = ready.try_io(|ours| Ok(write(ours.as_fd(), text)?)) {
                text = &text[written?..];
            }
        }
        Ok(())
    }

    /// Types end of file: twice if a line was begun, since the first one only flushes it.
    pub(super) async fn type_end(&self, line_is_begun: bool) -> io::Result<()> {
        let ends: &[u8] = if line_is_begun { &[END_OF_INPUT; 2] } else { &[END_OF_INPUT] };
        self.type_all(ends).await
    }

    /// Resizes it; the command gets SIGWINCH. An impossible size is ignored.
    pub(super) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let (Ok(ws_row), Ok(ws_col)) = (u16::try_from(size.height), u16::try_from(size.width)) else {
            return Ok(());
        };
        Ok(tcsetwinsize(&self.0, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?)
    }
}
