//! The plugin's standard output after the handshake line, kept until a host reads it (D30, D55).
//!
//! Standard output belongs to the handshake; a host may read one line of it and nothing more. So it is redirected into a
//! pipe of the process itself, from there into a bounded buffer, and from there to the client of `StreamStdio`. Printing
//! never blocks the plugin, whether a client reads or not.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::Notify;

/// The limit of the buffer; older output is dropped.
const KEPT_BYTES_MAX: usize = 256 * 1_024;
/// The size of one message (D55).
const CHUNK_BYTES: usize = 1_024;
const STACK_BYTES: usize = 128 * 1_024;

/// Output that has not been read yet. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Printed(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<VecDeque<u8>>,
    grown: Notify,
}

/// The standard output that the host made. It stays open, so that the host does not take its end for the plugin's.
#[derive(Debug)]
pub(crate) struct HostOutput(#[allow(dead_code, reason = "held, so that it stays open")] OwnedFd);

impl Printed {
    pub(crate) fn begin(&self) -> io::Result<HostOutput> {
        let host = io::stdout().as_fd().try_clone_to_owned()?;
        let (reader, writer) = io::pipe()?;
        rustix::stdio::dup2_stdout(&writer)?;
        let kept = self.clone();
        let reading = thread::Builder::new().name("printed output".to_owned()).stack_size(STACK_BYTES);
        reading.spawn(move || kept.read(reader))?;
        Ok(HostOutput(host))
    }

    fn read(&self, mut pipe: PipeReader) {
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            match pipe.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(length @ 1..) => self.keep(&chunk[..length]),
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(KEPT_BYTES_MAX);
        kept.drain(..surplus);
        drop(kept);
        self.0.grown.notify_one();
    }

    /// Waits for unread bytes, and takes them.
    pub(crate) async fn next(&self) -> Vec<u8> {
        loop {
            let grown = self.0.grown.notified();
            let chunk: Vec<u8> = {
                let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
                let length = kept.len().min(CHUNK_BYTES);
                kept.drain(..length).collect()
            };
            if !chunk.is_empty() {
                return chunk;
            }
            grown.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_read_is_kept_in_little_room_and_the_newest_of_it_d55() {
        let printed = Printed::default();
        printed.keep(&vec![b'a'; KEPT_BYTES_MAX]);
        printed.keep(b"the end");
        let mut taken = Vec::new();
        while taken.len() < KEPT_BYTES_MAX {
            let chunk = printed.next().await;
            assert!(chunk.len() <= CHUNK_BYTES);
            taken.extend(chunk);
        }
        assert!(taken.ends_with(b"the end"));
        assert_eq!(taken.len(), KEPT_BYTES_MAX);
    }
}
