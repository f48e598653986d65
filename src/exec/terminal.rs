//! The terminal of a command beside a task: a pair of devices of which the command has one and the driver the other.

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

/// What a terminal takes for the end of the input when it stands at the beginning of a line.
const END_OF_INPUT: u8 = 4;

/// The driver's end of a terminal. Once it is dropped, the command's session hears that its terminal hung up.
#[derive(Debug)]
pub(super) struct Terminal(AsyncFd<OwnedFd>);

impl Terminal {
    /// Opens a terminal, and gives the end for a command of this user.
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

    /// Reads what the command shows. 0 is the end: nobody has the other end open.
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

    /// Types this.
    pub(super) async fn type_all(&self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            let mut ready = self.0.writable().await?;
            if let Ok(written) = ready.try_io(|ours| Ok(write(ours.as_fd(), text)?)) {
                text = &text[written?..];
            }
        }
        Ok(())
    }

    /// Types the end of the input: once to end the line that was begun, if one was, and once for the end.
    pub(super) async fn type_end(&self, line_is_begun: bool) -> io::Result<()> {
        let ends: &[u8] = if line_is_begun { &[END_OF_INPUT; 2] } else { &[END_OF_INPUT] };
        self.type_all(ends).await
    }

    /// Gives it another size; the command hears of that by SIGWINCH. One that no terminal can have changes nothing.
    pub(super) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let (Ok(ws_row), Ok(ws_col)) = (u16::try_from(size.height), u16::try_from(size.width)) else {
            return Ok(());
        };
        Ok(tcsetwinsize(&self.0, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?)
    }
}
