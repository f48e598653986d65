//! Parses CPUs and their speeds from `/proc/cpuinfo`.

use std::collections::BTreeMap;

use super::cpu_list::CPU_NUMBER_MAX;

/// The CPUs in the text, each with its speed in MHz if given.
#[must_use]
pub fn cpuinfo(text: &str) -> BTreeMap<u32, Option<u64>> {
    let mut found = BTreeMap::new();
    let mut present = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "processor" | "cpu number" => {
                present = value.parse::<u32>().ok().filter(|number| *number <= CPU_NUMBER_MAX);
                if let Some(number) = present {
                    found.entry(number).or_insert(None);
                }
            }
            // x86 and others; POWER; s390. BogoMIPS are not a speed.
            "cpu MHz" | "clock" | "cpu MHz static" => {
                if let (Some(number), Some(speed)) = (present, megahertz(value)) {
                    found.insert(number, Some(speed));
                }
            }
            _ => {}
        }
    }
    found
}

fn megahertz(text: &str) -> Option<u64> {
    let text = text.strip_suffix("MHz").unwrap_or(text).trim();
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let speed = whole.parse::<u64>().ok()?;
    (speed > 0).then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_in_the_words_of_several_architectures_t017() {
        let x86 = "processor\t: 0\ncpu MHz\t\t: 2445.430\n\nprocessor\t: 3\ncpu MHz\t\t: 2000\n";
        assert_eq!(cpuinfo(x86), [(0, Some(2445)), (3, Some(2000))].into());
        let power = "processor\t: 0\ncpu\t\t: POWER9\nclock\t\t: 3800.000000MHz\n";
        assert_eq!(cpuinfo(power), [(0, Some(3800))].into());
        let s390 = "vendor_id : IBM/S390\ncpu number : 1\ncpu MHz dynamic : 5208\ncpu MHz static : 5208\n";
        assert_eq!(cpuinfo(s390), [(1, Some(5208))].into());
        let arm = "processor\t: 0\nBogoMIPS\t: 108.00\n\nprocessor\t: 1\nBogoMIPS\t: 108.00\n";
        assert_eq!(cpuinfo(arm), [(0, None), (1, None)].into());
    }

    #[test]
    fn nonsense_says_nothing() {
        for text in ["", ":", "processor: x\ncpu MHz: 7", "processor: 99999999", "cpu MHz: 7"] {
            assert_eq!(cpuinfo(text), BTreeMap::new(), "{text}");
        }
        let wrong = "processor: 0\ncpu MHz: nan\ncpu MHz: -7\ncpu MHz: 0.5\ncpu MHz: 99999999999999999999999";
        assert_eq!(cpuinfo(wrong), [(0, None)].into());
    }
}
