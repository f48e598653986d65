//! CPU lists in the kernel's format: `0-3,8,10`.

use std::collections::BTreeSet;
use std::fmt;

/// The highest CPU number in a list: drivers use 16 bits.
pub const CPU_NUMBER_MAX: u32 = u16::MAX as u32;

/// The length limit of a list, in bytes.
const TEXT_BYTES_MAX: usize = 512 * 1_024;

/// A set of CPUs, by their numbers.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CpuList(BTreeSet<u32>);

/// A malformed CPU list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{excerpt:?} is no list of processors; write numbers from 0 to {CPU_NUMBER_MAX} as in \"0-3,8\"")]
pub struct MalformedCpuList {
    /// The malformed part.
    pub excerpt: String,
}

impl CpuList {
    /// Parses a list. An empty text is an empty list, as the kernel writes it.
    ///
    /// # Errors
    /// When a part of it is neither a number nor a range, a range is descending, or a number is above [`CPU_NUMBER_MAX`].
    pub fn parse(text: &str) -> Result<Self, MalformedCpuList> {
        let malformed = |part: &str| MalformedCpuList { excerpt: part.chars().take(32).collect() };
        if text.len() > TEXT_BYTES_MAX {
            return Err(malformed(text));
        }
        let mut numbers = BTreeSet::new();
        for part in text.trim().split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(malformed(part));
            };
            if first > last {
                return Err(malformed(part));
            }
            numbers.extend(first..=last);
        }
        Ok(Self(numbers))
    }

    /// Whether it holds this processor.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of CPUs in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Adds a processor.
    pub fn insert(&mut self, cpu: u32) {
        self.0.insert(cpu);
    }
}

/// Digits only: a sign is refused.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse::<u32>().ok())??;
    (number <= CPU_NUMBER_MAX).then_some(number)
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    /// In the kernel's format, with ranges.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if(|next| *next == last + 1) {
                last = next;
            }
            match last == first {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuList({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_written_as_the_kernel_does() {
        for text in ["", "0", "0-3", "0-3,8,10-11", "65535"] {
            assert_eq!(CpuList::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CpuList::parse(" 3,1,2,2,0-1\n").unwrap().to_string(), "0-3");
        let list = CpuList::parse("0-1,7").unwrap();
        assert_eq!((list.len(), list.contains(7), list.contains(2)), (3, true, false));
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_part_that_is_none() {
        for text in ["a", "1-", "-1", "3-1", "0,,1", "+1", "65536", "0-4294967295", "1 2", ","] {
            assert!(CpuList::parse(text).is_err(), "{text}");
        }
        assert_eq!(CpuList::parse("0,x-y,3").unwrap_err().excerpt, "x-y");
        assert!(CpuList::parse(&"0,".repeat(400_000)).is_err());
    }
}
