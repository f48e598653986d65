//! Draws the curves of `docs/performance.md` from the CSV files of the benches.
//!
//! ```text
//! cargo bench --bench interleaved -- --csv docs/pictures/interleaved.csv
//! cargo run --example curves
//! ```
//!
//! Each picture is an SVG with two logarithmic axes, for light and dark pages.

mod chart;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use chart::{Chart, Line, Look, Panel, Unit};

/// The directory of the CSV files and of the pictures.
fn pictures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures")
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows = read_rows(&pictures())?;
    for (name, chart) in charts(&rows) {
        let path = pictures().join(format!("{name}.svg"));
        fs::write(&path, chart.svg())?;
        println!("{}", path.display());
    }
    Ok(())
}

// === Rows ===

/// The measurements of a bench at one point, by column.
struct Row(Vec<(String, String)>);

impl Row {
    fn text(&self, column: &str) -> &str {
        self.0.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value)
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }
}

/// All rows of all CSV files in a directory, in the order of the file names.
fn read_rows(directory: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut paths: Vec<_> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let mut lines = text.lines();
        let head: Vec<_> = lines.next().unwrap_or_default().split(',').map(str::to_owned).collect();
        rows.extend(
            lines.map(|line| Row(head.iter().cloned().zip(line.split(',').map(str::to_owned)).collect())),
        );
    }
    Ok(rows)
}

/// The key of a curve: operation, store, and axis.
type Curve = (&'static str, &'static str, &'static str);

/// The value of a row that is drawn.
#[derive(Clone, Copy)]
enum Drawn {
    /// A column, unchanged.
    Column(&'static str),
    /// Microseconds per operation, from a column in operations per second.
    MicrosEach(&'static str),
}

fn line(rows: &[Row], (operation, store, along): Curve, drawn: Drawn, label: &str, look: Look) -> Line {
    let is_of = |row: &&Row| {
        row.text("operation") == operation && row.text("store") == store && row.text("along") == along
    };
    let point = |row: &Row| {
        let y = match drawn {
            Drawn::Column(column) => row.number(column)?,
            Drawn::MicrosEach(column) => 1e6 / row.number(column)?,
        };
        Some((row.number("x")?, y))
    };
    Line { label: label.to_owned(), look, points: rows.iter().filter(is_of).filter_map(point).collect() }
}

// === Pictures ===

/// The pictures by name, without those that have no rows.
fn charts(rows: &[Row]) -> Vec<(&'static str, Chart)> {
    let mut charts = vec![
        ("in-flight", in_flight(rows)),
        ("latency", latency(rows)),
        ("allocations", allocations(rows)),
        ("plugins", plugins(rows)),
        ("audience", audience(rows)),
        ("streams", streams(rows)),
    ];
    charts.retain(|(_, chart)| chart.has_points());
    charts
}

const ONE_SUBSCRIBER: &str = "registry, one subscriber";
const BARE_ACTIX: &str = "bare actix";

fn in_flight(rows: &[Row]) -> Chart {
    let (ours, bare) = (Drawn::Column("per_second"), Drawn::Column("bare_per_second"));
    let (memory, disk) = (("register", "memory", "in flight"), ("register", "disk", "in flight"));
    let unread = ("register-unread", "memory", "in flight");
    let panel = |title: &str, lines| Panel::new(title, "messages in flight", Unit::PerSecond, lines);
    Chart {
        title: "Register and deregister: messages per second".to_owned(),
        panels: vec![
            panel(
                "in memory",
                vec![
                    line(rows, memory, ours, ONE_SUBSCRIBER, Look::First),
                    line(rows, unread, ours, "registry, no subscriber", Look::Second),
                    line(rows, memory, bare, BARE_ACTIX, Look::Bare),
                ],
            ),
            panel(
                "on disk",
                vec![
                    line(rows, disk, ours, ONE_SUBSCRIBER, Look::First),
                    line(rows, disk, bare, "redb alone, as many in a commit", Look::Bare),
                ],
            ),
        ],
    }
}

fn latency(rows: &[Row]) -> Chart {
    let panel = |title: &str, curve: Curve, bare: &str| {
        let lines = vec![
            line(rows, curve, Drawn::Column("p999_us"), "p99.9", Look::Third),
            line(rows, curve, Drawn::Column("p99_us"), "p99", Look::Second),
            line(rows, curve, Drawn::Column("median_us"), "median", Look::First),
            line(rows, curve, Drawn::Column("bare_p999_us"), &format!("{bare}, p99.9"), Look::BareWorst),
            line(rows, curve, Drawn::Column("bare_median_us"), &format!("{bare}, median"), Look::Bare),
        ];
        Panel::new(title, "messages in flight", Unit::Micros, lines)
    };
    Chart {
        title: "Register and deregister: from question to answer".to_owned(),
        panels: vec![
            panel("in memory", ("register", "memory", "in flight"), BARE_ACTIX),
            panel("on disk", ("register", "disk", "in flight"), "redb's commit"),
        ],
    }
}

/// The cost of a message, in memory and on disk, along an axis.
fn cost(rows: &[Row], along: &'static str, axis: &str) -> Vec<Panel> {
    let (ours, bare) = (Drawn::MicrosEach("per_second"), Drawn::MicrosEach("bare_per_second"));
    let panel = |title: &str, store: &'static str, bare_label: &str| {
        let curve = ("register", store, along);
        let lines = vec![
            line(rows, curve, ours, ONE_SUBSCRIBER, Look::First),
            line(rows, curve, bare, bare_label, Look::Bare),
        ];
        Panel::new(title, axis, Unit::Micros, lines)
    };
    vec![
        panel("in memory, 64 in flight", "memory", BARE_ACTIX),
        panel("on disk, 512 in flight", "disk", "redb alone, 512 in a commit"),
    ]
}

fn allocations(rows: &[Row]) -> Chart {
    Chart {
        title: "Register and deregister: time per message, along the allocations held".to_owned(),
        panels: cost(rows, "allocations", "allocations held"),
    }
}

fn plugins(rows: &[Row]) -> Chart {
    Chart {
        title: "The same with 10,000 allocations held, along the plugins they serve".to_owned(),
        panels: cost(rows, "plugins", "plugins"),
    }
}

fn audience(rows: &[Row]) -> Chart {
    let panel = |title: &str, axis: &str, curve: Curve, bare: &str| {
        let lines = vec![
            line(rows, curve, Drawn::Column("p999_us"), "p99.9", Look::Third),
            line(rows, curve, Drawn::Column("median_us"), "median", Look::First),
            line(rows, curve, Drawn::Column("bare_median_us"), &format!("{bare}, median"), Look::Bare),
        ];
        Panel::new(title, axis, Unit::Micros, lines)
    };
    Chart {
        title: "Takeover, wait and subscribe".to_owned(),
        panels: vec![
            panel(
                "takeover in memory",
                "allocations held",
                ("takeover", "memory", "allocations"),
                "bare round trip",
            ),
            panel(
                "takeover on disk",
                "allocations held",
                ("takeover", "disk", "allocations"),
                "redb's commit",
            ),
            panel(
                "from Register to those who wait",
                "clients, each waits for its own",
                ("wait", "memory", "in flight"),
                BARE_ACTIX,
            ),
            panel(
                "from Register to the last subscriber",
                "subscribers",
                ("news", "memory", "subscribers"),
                BARE_ACTIX,
            ),
            panel(
                "from subscribe to the snapshot",
                "allocations held",
                ("subscribe", "memory", "allocations"),
                "a bare list",
            ),
        ],
    }
}

fn streams(rows: &[Row]) -> Chart {
    let (ours, bare) = (Drawn::Column("per_second"), Drawn::Column("bare_per_second"));
    let panel = |title: &str, axis: &str, curve: Curve, label: &str, bare_label: &str| {
        let lines = vec![
            line(rows, curve, ours, label, Look::First),
            line(rows, curve, bare, bare_label, Look::Bare),
        ];
        Panel::new(title, axis, Unit::PerSecond, lines)
    };
    Chart {
        title: "Over sockets: task events and looks at plugins, per second".to_owned(),
        panels: vec![
            panel(
                "task events",
                "tasks",
                ("task-event", "none", "tasks"),
                "plugin to handlers",
                "bare tonic stream",
            ),
            panel(
                "looks at a plugin, 64 at once",
                "plugins",
                ("fingerprint", "none", "plugins"),
                "through its instance",
                "bare tonic probe",
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_show_the_rows_that_lie_beside_them() {
        let rows = read_rows(&pictures()).unwrap();
        for (name, chart) in charts(&rows) {
            let drawn = fs::read_to_string(pictures().join(format!("{name}.svg"))).unwrap_or_default();
            assert!(drawn == chart.svg(), "{name}.svg is older than its rows: cargo run --example curves");
        }
    }
}
