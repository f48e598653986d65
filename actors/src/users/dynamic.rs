//! Dynamic users without an entry in any file, for drivers that require a separate user per task (T116, TH070).

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use super::accounts::Account;

/// The default pool of ids.
pub const POOL: RangeInclusive<u32> = 80_000..=89_999;
const PREFIX: &str = "nomad-";
const HOME: &str = "/nonexistent";

/// A user that is only an id: its group has the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DynamicUser(u32);

impl DynamicUser {
    /// The user with this id.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its id, which is that of its group too.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Parses a name such as `nomad-80000`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let digits = name.strip_prefix(PREFIX)?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        is_plain.then(|| digits.parse().ok().map(Self))?
    }

    /// The ids of its processes.
    #[must_use]
    pub fn account(self) -> Account {
        Account { uid: self.0, gid: self.0, home: HOME.to_owned() }
    }
}

impl fmt::Display for DynamicUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

/// Chooses an unused id, by a random number. `None` when all are in use.
#[must_use]
pub fn choose(
    pool: &RangeInclusive<u32>,
    in_use: &BTreeSet<DynamicUser>,
    random: u64,
) -> Option<DynamicUser> {
    let (first, last) = (*pool.start(), *pool.end());
    let count = u64::from(last.checked_sub(first)?) + 1;
    let begin = first + u32::try_from(random % count).ok()?;
    let mut candidates = (begin..=last).chain(first..begin).map(DynamicUser);
    candidates.find(|user| !in_use.contains(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dynamic_users_are_read_as_they_are_written_t116() {
        let user = DynamicUser::new(80_012);
        assert_eq!(DynamicUser::of_name(&user.to_string()), Some(user));
        for odd in ["nomad-", "nomad-080000", "nomad-+8", "nomad-99999999999", "ann", "nomad-8 "] {
            assert_eq!(DynamicUser::of_name(odd), None, "{odd}");
        }
    }

    #[test]
    fn ten_thousand_tasks_get_a_user_each_and_one_more_gets_none_th070() {
        let mut in_use = BTreeSet::new();
        for round in 0..10_000_u64 {
            let user = choose(&POOL, &in_use, round.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
            assert!(POOL.contains(&user.number()) && in_use.insert(user), "{user} was given twice");
        }
        assert_eq!(choose(&POOL, &in_use, 3), None);
        let back = DynamicUser::new(80_003);
        in_use.remove(&back);
        assert_eq!(choose(&POOL, &in_use, 77), Some(back), "what was given back is given again");
    }

    #[test]
    fn the_random_number_decides_where_the_search_begins_and_an_empty_pool_has_none_t116() {
        let none = BTreeSet::new();
        assert_eq!(choose(&POOL, &none, 0), Some(DynamicUser::new(80_000)));
        assert_eq!(choose(&POOL, &none, 10_001), Some(DynamicUser::new(80_001)));
        assert_eq!(
            choose(&POOL, &BTreeSet::from([DynamicUser::new(89_999)]), 9_999),
            Some(DynamicUser::new(80_000))
        );
        let (first, last) = (5, 4);
        assert_eq!(choose(&(first..=last), &none, 3), None);
    }
}
