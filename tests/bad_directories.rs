//! Data directories that no host can use: each is refused with a clear error, and not a byte of it is changed.

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::Stage;

/// Starts processes as fast as it can, on a thread of its own, until it is dropped.
struct Spawner {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Spawner {
    fn begin() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[actix::test]
async fn a_directory_is_free_once_its_host_has_stopped_whatever_is_just_being_started_p5() {
    let stage = Stage::new();
    let _spawners = [Spawner::begin(), Spawner::begin(), Spawner::begin()];
    for _ in 0..30 {
        stage.host().await.stop().await;
    }
}
