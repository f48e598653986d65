//! Describes for people what is not on disk yet.

use std::collections::BTreeSet;

use callboard_actors::persister::{Table, UnwrittenRow};
use callboard_actors::{processes, registry, volume, volumes};

/// The table of the tasks of `callboard run`, which other host programs do not have.
const COURSES: Table = Table("task-courses");
const EVENTS: Table = Table("task-events");
const DRIVERS: Table = Table("task-drivers");

/// The maximum number of shown names.
const NAMES_MAX: usize = 20;

/// The writes that a sick disk has not taken yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// The names of some of it: `registration csi-node/zfs of red`, `task web`.
    pub names: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

impl Unwritten {
    /// Names each object once, however many rows it has.
    pub(crate) fn of(rows: &[UnwrittenRow]) -> Self {
        let mut names: Vec<String> = rows.iter().map(name).collect::<BTreeSet<_>>().into_iter().collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        Self { names, more }
    }

    /// As one line; empty if everything is on disk.
    #[must_use]
    pub fn line(&self) -> String {
        let names = self.names.join(", ");
        if self.more == 0 { names } else { format!("{names} and {} more", self.more) }
    }

    /// As text after the word "writes"; empty if everything is on disk.
    pub(crate) fn aside(&self) -> String {
        if self.names.is_empty() { String::new() } else { format!(" ({})", self.line()) }
    }
}

fn name(row: &UnwrittenRow) -> String {
    let table = row.table;
    let by_key = || String::from_utf8_lossy(&row.key).into_owned();
    let of_volume = || volume::name_of_key(&row.key).unwrap_or_else(by_key);
    let (kind, name) = match table {
        registry::REGISTRATION_TABLE => {
            ("registration", registry::name_of_row(row).unwrap_or_else(|| "of an unknown name".to_owned()))
        }
        processes::PROCESS_TABLE => ("process", by_key()),
        volumes::KNOWN_TABLE | volume::VOLUME_TABLE | volume::AUDIT_TABLE => ("volume", of_volume()),
        volumes::DELETION_TABLE => ("deletion of volume", of_volume()),
        volume::CLAIM_TABLE | volume::LOST_CLAIM_TABLE => ("claim to volume", of_volume()),
        volume::ABANDONED_TABLE => ("target of volume", of_volume()),
        volume::ORDER_TABLE => ("order of volume", of_volume()),
        COURSES | EVENTS => ("task", by_key()),
        DRIVERS => ("driver", by_key()),
        other => (other.0, by_key()),
    };
    let end = if row.record.is_none() { " (removed)" } else { "" };
    format!("{kind} {name}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: Table, key: &[u8], is_removed: bool) -> UnwrittenRow {
        let record = (!is_removed).then(Vec::new);
        UnwrittenRow { table, key: key.to_vec(), record, name: String::new() }
    }

    #[test]
    fn what_is_not_on_disk_is_named_as_people_call_it() {
        let removed = UnwrittenRow {
            name: "csi-node/zfs of red".to_owned(),
            ..row(registry::REGISTRATION_TABLE, &[0, 7], true)
        };
        let rows = [
            removed,
            row(COURSES, b"web", false),
            row(EVENTS, b"web", false),
            row(processes::PROCESS_TABLE, b"plugin-red", true),
            row(volume::CLAIM_TABLE, b"\0\x07default\0\x04datared", false),
            row(volumes::DELETION_TABLE, b"\0\x07default\0\x04data", false),
            row(volume::ORDER_TABLE, b"\0\x07default\0\x04data\0\0\0\0\0\0\0\x01", false),
            row(Table("own"), b"key", false),
        ];
        let expected = [
            "claim to volume default/data",
            "deletion of volume default/data",
            "order of volume default/data",
            "own key",
            "process plugin-red (removed)",
            "registration csi-node/zfs of red (removed)",
            "task web",
        ];
        assert_eq!(Unwritten::of(&rows).names, expected);
    }

    #[test]
    fn of_many_names_some_are_told_and_the_rest_is_counted() {
        let rows: Vec<_> = (0..50)
            .map(|number| row(processes::PROCESS_TABLE, format!("p{number}").as_bytes(), false))
            .collect();
        let told = Unwritten::of(&rows);
        assert_eq!((told.names.len(), told.more), (20, 30));
        assert!(told.line().ends_with("and 30 more"), "{}", told.line());
        assert_eq!(Unwritten::of(&[]).line(), "");
    }
}
