//! Formats the resource usage of tasks.

use callboard_proto::admin::v1 as wire;

use super::times::ago;

/// The placeholder for a figure that a driver does not report.
const NOT_TOLD: &str = "not told";

fn figure<T>(
    task: &wire::TaskStatus,
    of: impl Fn(&wire::TaskUsage) -> Option<T>,
    words: impl Fn(T) -> String,
) -> String {
    let Some(usage) = &task.usage else { return String::new() };
    match (&*usage.state, of(usage)) {
        ("awaited", _) => String::new(),
        (_, Some(figure)) => words(figure),
        (_, None) => NOT_TOLD.to_owned(),
    }
}

/// Processor time of a task, in percent of one processor, else in MHz.
pub(super) fn cpu(task: &wire::TaskStatus) -> String {
    let percent = |usage: &wire::TaskUsage| usage.cpu_percent.map(|percent| format!("{percent:.1} %"));
    let mhz = |usage: &wire::TaskUsage| usage.cpu_mhz.map(|mhz| format!("{mhz:.0} MHz"));
    figure(task, |usage| percent(usage).or_else(|| mhz(usage)), |words| words)
}

/// Memory of a task.
pub(super) fn memory(task: &wire::TaskStatus) -> String {
    figure(task, |usage| usage.memory_bytes, bytes)
}

/// Why the resource usage of a task is unknown, or how old the figures are.
pub(super) fn missing(task: &wire::TaskStatus) -> Option<String> {
    let usage = task.usage.as_ref()?;
    match &*usage.state {
        "missing" => Some(format!("resource usage unknown: {}", usage.reason)),
        "told" if is_old(usage.at_unix_ms) => {
            Some(format!("resource usage reported {} ago", ago(usage.at_unix_ms)))
        }
        _ => None,
    }
}

/// The age of figures from which it is shown: more than any interval between two of them.
const OLD_MS: u64 = 30_000;

fn is_old(at_unix_ms: u64) -> bool {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_millis() > u128::from(at_unix_ms.saturating_add(OLD_MS))
}

/// A number of bytes in the largest unit that is not above it, with one decimal digit.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(usage: Option<wire::TaskUsage>) -> wire::TaskStatus {
        wire::TaskStatus { usage, ..Default::default() }
    }

    fn shown(usage: wire::TaskUsage) -> (String, String, Option<String>) {
        let task = task(Some(usage));
        (cpu(&task), memory(&task), missing(&task))
    }

    #[test]
    fn what_a_task_uses_is_shown_as_far_as_its_driver_tells_th081() {
        let state = |state: &str| wire::TaskUsage {
            state: state.to_owned(),
            at_unix_ms: u64::MAX,
            ..Default::default()
        };
        let told = wire::TaskUsage { cpu_percent: Some(12.34), memory_bytes: Some(3 << 19), ..state("told") };
        assert_eq!(shown(told.clone()), ("12.3 %".to_owned(), "1.5 MiB".to_owned(), None));
        let other = wire::TaskUsage { cpu_percent: None, cpu_mhz: Some(250.4), memory_bytes: None, ..told };
        assert_eq!(shown(other), ("250 MHz".to_owned(), "not told".to_owned(), None));
        assert_eq!(shown(state("awaited")), (String::new(), String::new(), None));
        let missing = wire::TaskUsage { reason: "no".to_owned(), ..state("missing") };
        let reason = Some("resource usage unknown: no".to_owned());
        assert_eq!(shown(missing), ("not told".to_owned(), "not told".to_owned(), reason));
        let old = wire::TaskUsage { at_unix_ms: 1, ..state("told") };
        assert!(shown(old).2.is_some_and(|remark| remark.starts_with("resource usage reported ")));
        assert_eq!((cpu(&task(None)), memory(&task(None))), (String::new(), String::new()));
    }

    #[test]
    fn bytes_are_told_in_the_largest_unit() {
        let told = [0, 1_023, 1_024, 1_048_575, 10 << 20, (5 << 30) + (1 << 29)].map(bytes);
        assert_eq!(told, ["0 B", "1023 B", "1.0 KiB", "1023.9 KiB", "10.0 MiB", "5.5 GiB"]);
    }
}
