//! A minimal FUSE server: it answers, hangs, or dies.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, mount};

/// The kernel refuses a smaller buffer.
const REQUEST_BYTES: usize = 256 * 1_024;
const HEADER_BYTES: usize = 40;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
/// Requests without an answer: FORGET, INTERRUPT, BATCH_FORGET.
const UNANSWERED: [u32; 3] = [2, 36, 42];
const NOT_IMPLEMENTED: i32 = -38;

/// A mounted server of an empty directory.
pub(crate) struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_silent: Mutex<bool>,
    changed: Condvar,
    is_over: AtomicBool,
}

impl Server {
    /// Mounts a server; the error is the reason why this machine cannot have one.
    pub(crate) fn mount(target: &Path) -> std::io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let options = std::ffi::CString::new(options)?;
        mount("callboard", target, "fuse", MountFlags::NODEV | MountFlags::NOSUID, options.as_c_str())?;
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(device, &its));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Later requests, and those that wait, get no answer, or are answered again.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        *self.shared.is_silent.lock().unwrap() = is_silent;
        self.shared.changed.notify_all();
    }

    /// Ends the server. Its mount stays.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.set_silent(false);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn serve(mut device: File, shared: &Shared) {
    let mut request = vec![0; REQUEST_BYTES];
    let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !shared.is_over.load(Ordering::SeqCst) {
        // Checks regularly whether it is to end.
        let has_request =
            poll(&mut [PollFd::new(&device, PollFlags::IN)], Some(&pause)).is_ok_and(|found| found > 0);
        if !has_request {
            continue;
        }
        let Ok(length) = device.read(&mut request) else { continue };
        if length < HEADER_BYTES {
            continue;
        }
        let silent = shared.is_silent.lock().unwrap();
        drop(shared.changed.wait_while(silent, |silent| *silent).unwrap());
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let opcode = u32::from_ne_bytes(request[4..8].try_into().unwrap());
        if UNANSWERED.contains(&opcode) {
            continue;
        }
        let (error, body) = answer(opcode);
        let mut reply = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        reply.extend(error.to_ne_bytes());
        reply.extend(&request[8..16]);
        reply.extend(body);
        // A request may have been interrupted meanwhile.
        let _ = device.write(&reply);
    }
}

fn answer(opcode: u32) -> (i32, Vec<u8>) {
    match opcode {
        INIT => {
            // Version 7.31, no readahead, no flags; writes of a page.
            let mut body = words(&[7, 31, 0, 0, 0, 4_096, 1]);
            body.resize(64, 0);
            (0, body)
        }
        GETATTR => {
            // Not cached. A directory of mode 755 with the inode 1 and two links.
            let mut body = vec![0; 16];
            body.extend(1_u64.to_ne_bytes());
            body.resize(16 + 60, 0);
            body.extend(words(&[0o40_755, 2, 0, 0, 0, 4_096, 0]));
            (0, body)
        }
        STATFS => {
            let mut body = vec![0; 40];
            body.extend(words(&[4_096, 255, 4_096, 0]));
            body.resize(80, 0);
            (0, body)
        }
        _ => (NOT_IMPLEMENTED, Vec::new()),
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
