//! Model checks the actor that reads the output of a plugin, and the thread that writes its lines to the log.

use callboard_actors::goplugin::{LineReader, PluginLine};
use callboard_actors::process::ProcessName;
use shuttle::future;
use tokio::sync::Notify;

use crate::process::plugin_log::{PluginLog, Progress, Spoken};
use crate::sync::Arc;
use crate::under_many_schedules;

/// The length of each line.
const LINE_BYTES: u64 = 3;

fn line() -> PluginLine {
    LineReader::default().push(b"ab\n").remove(0)
}

fn read(plugin_log: &PluginLog, progress: &Arc<Progress>, number: u64) -> bool {
    let position = number * LINE_BYTES;
    let plugin = ProcessName::new("plugin").unwrap();
    let spoken = Spoken { plugin, line: line(), position, progress: Arc::clone(progress) };
    plugin_log.tell(spoken, position - LINE_BYTES)
}

#[test]
fn the_position_that_is_kept_is_never_beyond_a_line_that_is_not_in_the_log_prc_07() {
    under_many_schedules(|| {
        let plugin_log = PluginLog::start().unwrap();
        let advanced = Arc::new(Notify::new());
        let progress = Arc::new(Progress::new(Arc::clone(&advanced)));
        let mut before = 0;
        for number in 1..=2 {
            assert!(read(&plugin_log, &progress, number), "there is room");
            let position = progress.position(number * LINE_BYTES);
            assert!(
                position >= before && position <= number * LINE_BYTES && position.is_multiple_of(LINE_BYTES)
            );
            before = position;
        }
        // A position that stays stale would be waited for without end, which the model checker reports as a deadlock.
        loop {
            let more = advanced.notified();
            if progress.position(2 * LINE_BYTES) == 2 * LINE_BYTES {
                break;
            }
            future::block_on(more);
        }
        future::block_on(progress.settled());
    });
}
