//! The table `logs` of a task: how much of its output is kept.

use std::ops::Range;

use callboard_actors::logmon::Retention;
use toml::de::DeTable;

use super::TaskLogs;
use super::problem::Faults;
use super::table::Table;

const KEYS: &[&str] = &["max_files", "max_file_size", "disabled"];
/// The most files per stream.
const FILES_MAX: u32 = 500;
/// The limits for the size of a file, in bytes.
const FILE_BYTES_MIN: u64 = 4 * 1_024;
const FILE_BYTES_MAX: u64 = 1 << 40;
/// The units of sizes, with their powers of two.
const UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];

/// Reads the table, or returns the default.
pub(super) fn read(table: Option<(&DeTable<'_>, Range<usize>)>, faults: &mut Faults) -> TaskLogs {
    let Some((entries, span)) = table else { return TaskLogs::default() };
    let table = Table::open(entries, &span, "`logs`", KEYS, faults);
    let usual = Retention::default();
    let files_max = match table.number("max_files", FILES_MAX, faults) {
        Some(0) => {
            faults.add(table.at, "`max_files` is 0; give at least 1, or `disabled = true` to keep nothing");
            usual.files_max
        }
        Some(number) => number.into(),
        None => usual.files_max,
    };
    let file_bytes_max = table.text("max_file_size", faults).and_then(|found| {
        let size = size(&found.value).filter(|size| (FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(size));
        if size.is_none() {
            let message = "is no size of a file; write a whole number and a unit, as in 512KiB, 10MiB or 1GiB, of at least 4KiB";
            faults.add(found.at, format!("`max_file_size` {:?} {message}", found.value));
        }
        size
    });
    let retention = Retention { files_max, file_bytes_max: file_bytes_max.unwrap_or(usual.file_bytes_max) };
    TaskLogs { retention, is_disabled: table.boolean("disabled", faults).unwrap_or(false) }
}

fn size(text: &str) -> Option<u64> {
    let (number, shift) = UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))?;
    let is_plain = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_plain)?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn logs(text: &str) -> Result<TaskLogs, String> {
        let text = format!(
            "data_dir = \"/d\"\n[[driver]]\nname = \"exec\"\n[[task]]\nname = \"web\"\ndriver = \"exec\"\n[task.logs]\n{text}\n"
        );
        let read = Config::parse(Path::new("host.toml"), &text).map_err(|error| error.to_string())?;
        Ok(read.tasks[0].logs)
    }

    #[test]
    fn how_much_is_kept_of_the_output_of_a_task_can_be_said_t066() {
        assert_eq!(logs("").unwrap(), TaskLogs::default());
        let said = logs("max_files = 3\nmax_file_size = \"512KiB\"\ndisabled = true").unwrap();
        let retention = Retention { files_max: 3, file_bytes_max: 512 * 1_024 };
        assert_eq!(said, TaskLogs { retention, is_disabled: true });
    }

    #[test]
    fn what_cannot_be_kept_is_told_with_its_place() {
        for (text, told) in [
            ("max_files = 0", "at least 1"),
            ("max_files = 501", "from 0 to 500"),
            ("max_file_size = \"10\"", "host.toml:8:17"),
            ("max_file_size = \"1KiB\"", "of at least 4KiB"),
            ("max_file_size = \"99999999999999999GiB\"", "as in 512KiB"),
            ("max_filesize = \"1MiB\"", "did you mean `max_file_size`"),
        ] {
            let error = logs(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
