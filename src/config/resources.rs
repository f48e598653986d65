//! Reads the table `resources` of a task.

use callboard_actors::task_config::MemoryMax;

use super::TaskResources;
use super::problem::Faults;
use super::table::{Found, Table, Whole};

const KEYS: &[&str] = &["cpu", "cores", "memory", "memory_max"];
/// The most MHz of a task.
const CPU_MHZ_MAX: u32 = 1_000_000_000;
/// The most cores of a task: the range of a driver's core ids.
const CORES_MAX: u32 = u16::MAX as u32 + 1;
/// The most memory of a task, in MiB: 4 EiB.
const MEMORY_MIB_MAX: u64 = 1 << 42;
/// The units of memory, in MiB.
const UNITS: [(&str, u64); 3] = [("MiB", 1), ("GiB", 1 << 10), ("TiB", 1 << 20)];
/// The word for no limit.
const UNLIMITED: &str = "unlimited";

pub(super) fn read(task: &Table<'_>, faults: &mut Faults) -> TaskResources {
    let usual = TaskResources::default();
    let Some((entries, span)) = task.table("resources", faults) else { return usual };
    let table = Table::open(entries, &span, "`resources`", KEYS, faults);
    if table.has("cpu") && table.has("cores") {
        faults.add(
            table.at,
            "`resources` has both `cpu` and `cores`; exclusive cores count whole: give one of them",
        );
    }
    let cpu_mhz = positive(&table, "cpu", CPU_MHZ_MAX, faults);
    let cores = table.number("cores", CORES_MAX, faults);
    let memory = table.whole_or_text("memory", faults).and_then(|found| memory("memory", &found, faults));
    let most = table.whole_or_text("memory_max", faults).and_then(|found| most(&found, faults));
    let memory_mib = memory.unwrap_or(usual.memory_mib);
    if let Some((MemoryMax::Mib(max), at)) = most
        && max < memory_mib
    {
        faults.add(
            at,
            format!("`memory_max` is {max} MiB and `memory` {memory_mib} MiB; give at least as much"),
        );
    }
    TaskResources {
        cpu_mhz: cpu_mhz.unwrap_or(usual.cpu_mhz),
        cores: cores.unwrap_or(usual.cores),
        memory_mib,
        memory_max: most.map_or(usual.memory_max, |(max, _)| max),
    }
}

fn positive(table: &Table<'_>, key: &str, most: u32, faults: &mut Faults) -> Option<u32> {
    let number = table.number(key, most, faults)?;
    if number == 0 {
        faults.add(table.at, format!("`{key}` is 0; give at least 1, or leave it out"));
    }
    (number > 0).then_some(number)
}

/// Converts an amount of memory to MiB: a whole number of MiB, or a text with a unit.
fn memory(key: &str, found: &Found<Whole>, faults: &mut Faults) -> Option<u64> {
    let mib = match &found.value {
        Whole::Number(number) => u64::try_from(*number).ok(),
        Whole::Text(text) => UNITS.iter().find_map(|(unit, mib)| {
            let number = text.strip_suffix(unit)?.trim_end();
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| number.parse::<u64>().ok()?.checked_mul(*mib))?
        }),
    };
    let mib = mib.filter(|mib| (1..=MEMORY_MIB_MAX).contains(mib));
    if mib.is_none() {
        let message = format!(
            "`{key}` {} is no amount of memory; give a whole number of MiB from 1 on, or one with a unit, as in \"300MiB\" or \"2GiB\"",
            found.value
        );
        faults.add(found.at, message);
    }
    mib
}

fn most(found: &Found<Whole>, faults: &mut Faults) -> Option<(MemoryMax, usize)> {
    let max = match &found.value {
        Whole::Number(-1) => MemoryMax::Unlimited,
        Whole::Text(text) if text == UNLIMITED => MemoryMax::Unlimited,
        Whole::Number(0) => MemoryMax::Promised,
        Whole::Number(_) | Whole::Text(_) => MemoryMax::Mib(memory("memory_max", found, faults)?),
    };
    Some((max, found.at))
}
