//! Logs the output of a plugin after its handshake, line by line (D30, D55).

use crate::goplugin::{LineReader, Output, Stdio, tell};
use crate::shell::LogLimit;
use crate::vocabulary::{DriverName, Rate};

/// The limit of logged lines of one plugin; lines above it are only counted, so that a plugin cannot flood the log.
const LINES: Rate = Rate { burst: 1_000, per_minute: 6_000 };

/// Reads the output of a plugin to its end, so that it never blocks the plugin, and logs it line by line.
pub(super) async fn log(driver: DriverName, mut stdio: Stdio) {
    let mut readers = [LineReader::new(), LineReader::new()];
    let limit = LogLimit::new(&driver, LINES);
    loop {
        let printed = match stdio.next().await {
            Ok(Some(printed)) => printed,
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%driver, error = %error, "the output of a plugin is no longer read");
                break;
            }
        };
        let reader = &mut readers[usize::from(printed.output == Output::Stderr)];
        for line in reader.push(&printed.data) {
            limit.say(|| tell(&driver, &line));
        }
    }
    for mut reader in readers {
        if let Some(line) = reader.finish() {
            limit.say(|| tell(&driver, &line));
        }
    }
}
