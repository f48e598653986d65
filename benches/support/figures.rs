//! Medians, and the line that reports whether a goal was reached.

use std::time::Duration;

use super::Pace;

/// Measurements of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1).expect("at least one round was run");
        sorted[(last as f64 * percent / 100.0).round() as usize]
    }

    /// Formats `median (least to most)`.
    pub(crate) fn spread(&self, digits: usize) -> String {
        let (least, most) = (self.percentile(0.0), self.percentile(100.0));
        format!("{:.digits$} ({least:.digits$} to {most:.digits$})", self.median())
    }

    /// The ratio for each pair of values, in order.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect())
    }
}

impl Extend<f64> for Samples {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

pub(crate) fn judge(pace: Pace, what: &str, ratio: f64, goal: Goal) {
    let (is_reached, words) = match goal {
        Goal::AtLeast(bound) => (ratio >= bound, format!("at least {bound}")),
        Goal::AtMost(bound) => (ratio <= bound, format!("at most {bound}")),
    };
    let verdict = match (pace, is_reached) {
        (Pace::Quick, _) => "not judged",
        (Pace::Full, true) => "REACHED",
        (Pace::Full, false) => "NOT REACHED",
    };
    println!("{verdict}: {what}: {ratio:.2} times ({words})");
}

pub(crate) fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

pub(crate) fn nanos_each(count: u64, took: Duration) -> f64 {
    took.as_nanos() as f64 / count as f64
}
