//! Fills a real file system completely.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A file that takes all room of a file system until it is dropped, also room that becomes free later: a database that is reopened after a
/// failed write gives back the room by which it had grown.
pub(crate) struct Filler {
    path: PathBuf,
    is_done: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Filler {
    /// The file system is full when this returns.
    pub(crate) fn take_all_room(path: PathBuf) -> Self {
        let mut file = File::create(&path).expect("there is room for a name");
        while file.write_all(&[7; 4_096]).is_ok() {}
        let is_done = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&is_done);
        let writer = std::thread::spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                while file.write_all(&[7; 4_096]).is_ok() {}
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { path, is_done, writer: Some(writer) }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::SeqCst);
        // Its room becomes free only after it is closed.
        self.writer.take().into_iter().for_each(|writer| writer.join().expect("it only writes"));
        std::fs::remove_file(&self.path).expect("it is ours");
    }
}
