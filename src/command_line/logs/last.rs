//! Reads the last lines of several logs. Each log is read on a thread of its own, so that a file system that does not respond affects only
//! its own logs.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use callboard_actors::logmon::LogReader;
use callboard_actors::vocabulary::text::bounded;

use super::PIECE_BYTES;
use super::find::find;

/// The longest line that is shown.
const LINE_BYTES_MAX: usize = 500;
/// The timeout of a log.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// How many logs are read at once.
const AT_ONCE: usize = 32;

/// Identifies a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command_line) struct LogName {
    /// A name that is not ambiguous.
    pub(in crate::command_line) full_name: String,
    /// Whether it is a task's standard error instead of its standard output.
    pub(in crate::command_line) stderr: bool,
}

/// Why a log is not shown.
#[derive(Debug, thiserror::Error)]
pub(in crate::command_line) enum Unread {
    #[error("cannot be read: no answer within {} s", READ_WITHIN.as_secs())]
    NoAnswer,
    #[error("was not read, because another log gave no answer within {} s", READ_WITHIN.as_secs())]
    NotTried,
    #[error("cannot be read: {0}")]
    System(#[from] io::Error),
}

/// The last lines of each of these logs below a data directory; none where there is no log.
pub(in crate::command_line) fn last_lines(
    data_dir: &Path,
    logs: &[LogName],
    lines: u64,
) -> Vec<Result<Vec<String>, Unread>> {
    let data_dir = data_dir.to_owned();
    read_all(logs, READ_WITHIN, &move |log: &LogName| last_lines_of(&data_dir, log, lines))
}

fn last_lines_of(data_dir: &Path, log: &LogName, lines: u64) -> io::Result<Vec<String>> {
    let Some(found) = find(data_dir, &log.full_name, log.stderr)?.pop() else { return Ok(Vec::new()) };
    let mut reader = LogReader::from_tail(found.place, lines)?;
    let (mut text, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    while let count @ 1.. = reader.read(&mut piece)? {
        text.extend_from_slice(&piece[..count]);
        // Of endless lines only the end is shown.
        let surplus = text.len().saturating_sub(PIECE_BYTES);
        text.drain(..surplus);
    }
    Ok(String::from_utf8_lossy(&text).lines().map(|line| bounded(line, LINE_BYTES_MAX)).collect())
}

/// Reads logs, a number of them at a time. When one has hung, no further logs are started, so that many hung logs take no longer than one.
fn read_all<R>(logs: &[LogName], within: Duration, read: &R) -> Vec<Result<Vec<String>, Unread>>
where
    R: Fn(&LogName) -> io::Result<Vec<String>> + Clone + Send + 'static,
{
    let mut all = Vec::new();
    for some in logs.chunks(AT_ONCE) {
        if all.iter().any(|read| matches!(read, Err(Unread::NoAnswer))) {
            all.extend(some.iter().map(|_| Err(Unread::NotTried)));
            continue;
        }
        let until = Instant::now() + within;
        let begun: Vec<_> = some.iter().map(|log| begin(log, read)).collect();
        all.extend(begun.into_iter().map(|begun| awaited(&begun?, until)));
    }
    all
}

/// The result of a reading thread.
type Answer = Receiver<io::Result<Vec<String>>>;

fn begin<R>(log: &LogName, read: &R) -> io::Result<Answer>
where
    R: Fn(&LogName) -> io::Result<Vec<String>> + Clone + Send + 'static,
{
    let (tell, answer) = channel();
    let (log, read) = (log.clone(), read.clone());
    Builder::new().name("log".to_owned()).spawn(move || {
        // The receiver may have timed out.
        let _ = tell.send(read(&log));
    })?;
    Ok(answer)
}

fn awaited(answer: &Answer, until: Instant) -> Result<Vec<String>, Unread> {
    match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(lines) => Ok(lines?),
        Err(RecvTimeoutError::Timeout) => Err(Unread::NoAnswer),
        Err(RecvTimeoutError::Disconnected) => Err(Unread::System(io::Error::other("its reader panicked"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str) -> LogName {
        LogName { full_name: name.to_owned(), stderr: false }
    }

    /// Blocks forever on a log with this name.
    fn read(log: &LogName) -> io::Result<Vec<String>> {
        match &*log.full_name {
            "hangs" => loop {
                std::thread::park();
            },
            "forbidden" => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            name => Ok(vec![name.to_owned()]),
        }
    }

    fn told(logs: &[LogName], within: Duration) -> Vec<String> {
        let said = |read: Result<Vec<String>, Unread>| {
            read.map_or_else(|error| error.to_string(), |lines| lines.concat())
        };
        read_all(logs, within, &read).into_iter().map(said).collect()
    }

    #[test]
    fn a_log_that_hangs_is_given_up_and_the_others_are_read() {
        let logs = ["a", "hangs", "forbidden", "b"].map(log);
        let expected =
            ["a", "cannot be read: no answer within 2 s", "cannot be read: permission denied", "b"];
        assert_eq!(told(&logs, READ_WITHIN), expected);
    }

    #[test]
    fn many_logs_that_hang_take_no_longer_than_one() {
        let mut logs = vec![log("hangs"); AT_ONCE * 50];
        logs.insert(0, log("a"));
        let (began, within) = (Instant::now(), Duration::from_millis(500));
        let told = told(&logs, within);
        assert!(began.elapsed() < within * 50, "{:?}", began.elapsed());
        assert_eq!(told[0], "a");
        assert_eq!(told[AT_ONCE - 1], "cannot be read: no answer within 2 s");
        assert_eq!(told[AT_ONCE], "was not read, because another log gave no answer within 2 s");
    }

    #[test]
    fn many_logs_that_answer_are_all_read() {
        let logs: Vec<_> = (0..AT_ONCE * 3).map(|number| log(&number.to_string())).collect();
        let expected: Vec<_> = logs.iter().map(|log| log.full_name.clone()).collect();
        assert_eq!(told(&logs, Duration::from_secs(60)), expected);
    }
}
