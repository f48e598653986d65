//! Points of curves: measurements side by side, as a line of a table and as a row of a CSV file for the charts.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use super::figures::{Samples, per_second};

/// One measurement: a number of messages, their total time, and some latencies.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// The number of messages.
    messages: u64,
    /// Their total time.
    took: Duration,
    /// The latencies of some, in nanoseconds.
    latencies: Samples,
}

impl Stretch {
    pub(crate) const fn new(messages: u64, took: Duration, latencies: Samples) -> Self {
        Self { messages, took, latencies }
    }

    /// Runs something repeatedly, one at a time, and measures each run.
    pub(crate) async fn of(times: u64, mut one: impl AsyncFnMut()) -> Self {
        let (begun, mut latencies) = (Instant::now(), Samples::default());
        for _ in 0..times {
            let asked = Instant::now();
            one().await;
            latencies.push(nanos(asked.elapsed()));
        }
        Self::new(times, begun.elapsed(), latencies)
    }

    fn micros(&self, percent: f64) -> f64 {
        self.latencies.percentile(percent) / 1_000.0
    }
}

/// The total time that this process's threads have waited for a CPU, as Linux counts it; zero where Linux does not.
fn waited() -> Duration {
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    Duration::from_nanos(threads.filter_map(of_thread).sum())
}

pub(crate) fn nanos(took: Duration) -> f64 {
    took.as_nanos() as f64
}

/// The measurements of one side, round by round.
#[derive(Debug, Default)]
struct Side {
    per_second: Samples,
    median_us: Samples,
    p99_us: Samples,
    p999_us: Samples,
}

impl Side {
    fn add(&mut self, stretch: &Stretch) {
        self.per_second.push(per_second(stretch.messages, stretch.took));
        self.median_us.push(stretch.micros(50.0));
        self.p99_us.push(stretch.micros(99.0));
        self.p999_us.push(stretch.micros(99.9));
    }
}

/// One point of a curve: Callboard and its baseline, measured in turn.
#[derive(Debug, Default)]
pub(crate) struct Point {
    ours: Side,
    bare: Side,
}

impl Point {
    pub(crate) fn add(&mut self, ours: &Stretch, bare: &Stretch) {
        self.ours.add(ours);
        self.bare.add(bare);
    }

    /// Our messages per second relative to the baseline's, in the median round.
    pub(crate) fn rate(&self) -> f64 {
        self.ours.per_second.over(&self.bare.per_second).median()
    }

    /// Our median latency relative to the baseline's, in the median round.
    pub(crate) fn median(&self) -> f64 {
        self.ours.median_us.over(&self.bare.median_us).median()
    }

    /// The same for the 99.9th percentile.
    pub(crate) fn p999(&self) -> f64 {
        self.ours.p999_us.over(&self.bare.p999_us).median()
    }

    /// Our messages per second, round by round.
    pub(crate) const fn ours_per_second(&self) -> &Samples {
        &self.ours.per_second
    }
}

/// The column titles of the table and of the file.
const COLUMNS: [&str; 14] = [
    "operation",
    "store",
    "along",
    "x",
    "per_second",
    "bare_per_second",
    "times_rate",
    "median_us",
    "p99_us",
    "p999_us",
    "bare_median_us",
    "bare_p99_us",
    "bare_p999_us",
    "times_median",
];

/// The curve of a point: operation, store, and axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Curve {
    pub(crate) operation: &'static str,
    pub(crate) store: &'static str,
    pub(crate) along: &'static str,
}

/// The output of points: the table on the screen and, with `--csv FILE`, a file.
#[derive(Debug)]
pub(crate) struct Rows(Option<File>);

impl Rows {
    /// Prints the head of the table, and creates the file if the arguments name one.
    pub(crate) fn begin() -> Self {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--csv");
        let file = arguments.nth(1).map(|path| File::create(path).expect("the file can be made"));
        let mut rows = Self(file);
        println!("{}", COLUMNS.join(" | "));
        rows.write(&COLUMNS.map(str::to_owned));
        rows
    }

    /// Measures Callboard and its baseline at each point of a curve in turn, repeatedly, and writes the points.
    ///
    /// It runs twice as many rounds as count: at each point, the rounds count in which this process waited least for a CPU,
    /// since other load on the machine disturbs the rest.
    pub(crate) async fn draw<S>(
        &mut self,
        curve: Curve,
        rounds: usize,
        stages: &mut [(u64, S)],
        mut round: impl AsyncFnMut(u64, &mut S) -> (Stretch, Stretch),
    ) -> Vec<Point> {
        let mut measured: Vec<_> = stages.iter().map(|_| Vec::new()).collect();
        for _ in 0..2 * rounds {
            for ((x, stage), measured) in stages.iter_mut().zip(&mut measured) {
                let (begun, waited_before) = (Instant::now(), waited());
                let (ours, bare) = round(*x, stage).await;
                let share = nanos(waited().saturating_sub(waited_before)) / nanos(begun.elapsed());
                measured.push((share, ours, bare));
            }
        }
        let mut points = Vec::new();
        for ((x, _), mut measured) in stages.iter().zip(measured) {
            measured.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
            let mut point = Point::default();
            measured.iter().take(rounds).for_each(|(_, ours, bare)| point.add(ours, bare));
            self.add(curve, *x, &point);
            points.push(point);
        }
        points
    }

    fn add(&mut self, curve: Curve, x: u64, point: &Point) {
        let Curve { operation, store, along } = curve;
        let Point { ours, bare } = point;
        let text = |samples: &Samples, digits: usize| format!("{:.digits$}", samples.median());
        let row = [
            operation.to_owned(),
            store.to_owned(),
            along.to_owned(),
            x.to_string(),
            text(&ours.per_second, 0),
            text(&bare.per_second, 0),
            format!("{:.3}", point.rate()),
            text(&ours.median_us, 3),
            text(&ours.p99_us, 3),
            text(&ours.p999_us, 3),
            text(&bare.median_us, 3),
            text(&bare.p99_us, 3),
            text(&bare.p999_us, 3),
            format!("{:.3}", point.median()),
        ];
        println!("{}", row.join(" | "));
        self.write(&row);
    }

    fn write(&mut self, row: &[String]) {
        if let Some(file) = &mut self.0 {
            writeln!(file, "{}", row.join(",")).expect("the file can be written");
        }
    }
}
