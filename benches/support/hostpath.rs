//! The reference CSI plugin, as one process for any number of connections.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard_actors::csi::{Connection, Limits};
use callboard_actors::vocabulary::SocketPath;

use super::drivers::{CALLBOARD, TIMEOUT};

/// The process; killed on drop.
pub(crate) struct HostPath(Child);

impl HostPath {
    /// Starts it as a node plugin, and waits until it listens.
    pub(crate) async fn serve(socket: &SocketPath) -> Self {
        let child = Command::new(CALLBOARD)
            .args(["plugin", "hostpath", "--role", "node", "--endpoint"])
            .arg(format!("unix://{}", socket.as_path().display()))
            .env("RUST_LOG", "error")
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let (process, begun) = (Self(child), Instant::now());
        while Connection::dial(socket, Limits::default()).await.is_err() {
            assert!(begun.elapsed() < TIMEOUT, "the plugin does not listen");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        process
    }
}

impl Drop for HostPath {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
