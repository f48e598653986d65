//! Pseudo-random numbers that a seed determines, on every machine and in every version.

/// A sequence of pseudo-random numbers (splitmix64).
#[derive(Debug, Clone, Copy)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence; the same seed gives the same numbers.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed ^ 0x5CA1_AB1E_0DDB_A115)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// A number below this one; 0 below 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    /// An index below `count`; 0 if `count` is 0.
    pub fn place(&mut self, count: u32) -> u32 {
        u32::try_from(self.below(count.into())).unwrap_or(0)
    }

    /// An element of a slice that is not empty.
    ///
    /// # Panics
    /// When the slice is empty.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }

    /// True once in `times` calls on average.
    pub const fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// A number that appears unrelated to the given one, and is always the same for it.
pub(crate) const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}
