//! What a plugin prints after its handshake, as lines of our own log (D30, D55).

use std::time::Duration;

use crate::goplugin::{LineLevel, LineReader, Output, PluginLine, Stdio};
use crate::vocabulary::DriverName;

/// How many lines are logged within one [`WINDOW`]; more are counted and not logged, so that a plugin cannot flood the log.
const LINES_MAX: u32 = 1_000;
/// The span of time for which that holds.
const WINDOW: Duration = Duration::from_secs(10);

/// Reads what a plugin prints until it prints no more, so that it is never held up by that, and logs it line by line.
pub(super) async fn log(driver: DriverName, mut stdio: Stdio) {
    let mut readers = [LineReader::new(), LineReader::new()];
    let (mut lines, mut began) = (0, tokio::time::Instant::now());
    loop {
        let printed = match stdio.next().await {
            Ok(Some(printed)) => printed,
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%driver, error = %error, "the plugin's output is not read any more");
                break;
            }
        };
        let reader = &mut readers[usize::from(printed.output == Output::Stderr)];
        for line in reader.push(&printed.data) {
            if began.elapsed() >= WINDOW {
                if lines > LINES_MAX {
                    let dropped = lines - LINES_MAX;
                    tracing::warn!(%driver, dropped, "the plugin printed more lines than are logged");
                }
                (lines, began) = (0, tokio::time::Instant::now());
            }
            lines += 1;
            if lines <= LINES_MAX {
                tell(&driver, &line);
            }
        }
    }
    for mut reader in readers {
        if let Some(line) = reader.finish() {
            tell(&driver, &line);
        }
    }
}

fn tell(driver: &DriverName, line: &PluginLine) {
    let PluginLine { level, message, fields, .. } = line;
    match level {
        LineLevel::Trace => tracing::trace!(%driver, ?fields, "plugin: {message}"),
        LineLevel::Debug => tracing::debug!(%driver, ?fields, "plugin: {message}"),
        LineLevel::Info => tracing::info!(%driver, ?fields, "plugin: {message}"),
        LineLevel::Warn => tracing::warn!(%driver, ?fields, "plugin: {message}"),
        LineLevel::Error => tracing::error!(%driver, ?fields, "plugin: {message}"),
    }
}
