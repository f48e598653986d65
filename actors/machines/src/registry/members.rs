//! The registrations of one plugin.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::hash::{Hash, Hasher};
use std::slice;

use smallvec::SmallVec;

use super::state::Stored;
use crate::vocabulary::{AllocationId, RegistrationNumber};

/// Up to this number, members are searched linearly.
const FEW_MAX: usize = 16;

/// The registrations of one plugin, in order of their numbers. Usually they are few and stored contiguously; when they
/// become many, they are indexed, so that the cost per registration stays constant.
#[derive(Debug, Clone)]
pub(super) enum Members {
    /// In order of number, at most [`FEW_MAX`]. Most plugins never have a second one.
    Few(SmallVec<[Stored; 1]>),
    /// In order of number, with an index by allocation.
    Many {
        by_number: BTreeMap<RegistrationNumber, Stored>,
        by_allocation: HashMap<AllocationId, RegistrationNumber>,
    },
}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.newest_first().count().hash(state);
        self.newest_first().for_each(|stored| stored.hash(state));
    }
}

impl Default for Members {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl Members {
    pub(super) fn get(&self, number: RegistrationNumber) -> Option<&Stored> {
        match self {
            Self::Few(members) => members.iter().rfind(|stored| stored.number == number),
            Self::Many { by_number, .. } => by_number.get(&number),
        }
    }

    pub(super) fn get_mut(&mut self, number: RegistrationNumber) -> Option<&mut Stored> {
        match self {
            Self::Few(members) => members.iter_mut().rfind(|stored| stored.number == number),
            Self::Many { by_number, .. } => by_number.get_mut(&number),
        }
    }

    pub(super) fn of(&self, allocation: &AllocationId) -> Option<&Stored> {
        match self {
            Self::Few(members) => {
                members.iter().rfind(|stored| stored.registration.allocation == *allocation)
            }
            Self::Many { by_number, by_allocation } => by_number.get(by_allocation.get(allocation)?),
        }
    }

    pub(super) fn insert(&mut self, stored: Stored) {
        match self {
            Self::Few(members) if members.len() < FEW_MAX => {
                let place = members.partition_point(|other| other.number < stored.number);
                members.insert(place, stored);
            }
            Self::Few(members) => {
                let members = std::mem::take(members);
                *self = Self::Many { by_number: BTreeMap::new(), by_allocation: HashMap::new() };
                members.into_iter().chain([stored]).for_each(|stored| self.insert(stored));
            }
            Self::Many { by_number, by_allocation } => {
                by_allocation.insert(stored.registration.allocation.clone(), stored.number);
                by_number.insert(stored.number, stored);
            }
        }
    }

    pub(super) fn remove(&mut self, allocation: &AllocationId) -> Option<Stored> {
        match self {
            Self::Few(members) => {
                let is_theirs = |stored: &Stored| stored.registration.allocation == *allocation;
                members.iter().rposition(is_theirs).map(|place| members.remove(place))
            }
            Self::Many { by_number, by_allocation } => by_number.remove(&by_allocation.remove(allocation)?),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(members) => members.is_empty(),
            Self::Many { by_number, .. } => by_number.is_empty(),
        }
    }

    /// Whether there is at most one.
    pub(super) fn is_single(&self) -> bool {
        match self {
            Self::Few(members) => members.len() <= 1,
            Self::Many { by_number, .. } => by_number.len() <= 1,
        }
    }

    pub(super) fn newest_first(&self) -> NewestFirst<'_> {
        match self {
            Self::Few(members) => NewestFirst::Few(members.iter()),
            Self::Many { by_number, .. } => NewestFirst::Many(by_number.values()),
        }
    }
}

/// The registrations of one plugin, newest first. Each election iterates over them several times, so it is small.
pub(super) enum NewestFirst<'a> {
    Few(slice::Iter<'a, Stored>),
    Many(btree_map::Values<'a, RegistrationNumber, Stored>),
}

impl<'a> Iterator for NewestFirst<'a> {
    type Item = &'a Stored;

    fn next(&mut self) -> Option<&'a Stored> {
        match self {
            Self::Few(members) => members.next_back(),
            Self::Many(members) => members.next_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::vocabulary::{
        Generation, PluginKey, PluginName, PluginType, Registration, RunNumber, SocketPath, Timestamp,
    };

    fn stored(number: u64) -> Stored {
        let registration = Registration {
            policy: None,
            plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
            allocation: AllocationId::new(format!("a{number}")).unwrap(),
            socket: SocketPath::new("/run/csi.sock").unwrap(),
            provider: None,
            version: None,
            options: Arc::new(BTreeMap::new()),
        };
        Stored {
            number: RegistrationNumber::new(number),
            registration: registration.into(),
            since: Timestamp::default(),
            confirmed_in: RunNumber::default(),
            generation: Generation::default(),
            active_since: None,
        }
    }

    fn numbers(members: &Members) -> Vec<u64> {
        members.newest_first().map(|stored| stored.number.get()).collect()
    }

    #[test]
    fn few_and_many_members_are_kept_in_the_same_order_r2() {
        let mut members = Members::default();
        let mut expected = Vec::new();
        for number in (0..100).map(|step| step * 37 % 100) {
            members.insert(stored(number));
            expected.push(number);
            expected.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(numbers(&members), expected);
            assert_eq!(matches!(members, Members::Few(_)), expected.len() <= FEW_MAX);
            assert_eq!(members.is_single(), expected.len() == 1);
        }
        for number in (0..100).map(|step| step * 61 % 100) {
            let allocation = AllocationId::new(format!("a{number}")).unwrap();
            let one = RegistrationNumber::new(number);
            assert_eq!(members.of(&allocation), Some(&stored(number)));
            assert_eq!(members.get(one), Some(&stored(number)));
            assert_eq!(members.get_mut(one), Some(&mut stored(number)));
            assert_eq!(members.remove(&allocation), Some(stored(number)));
            assert_eq!(members.remove(&allocation), None);
            assert_eq!((members.of(&allocation), members.get(one)), (None, None));
            expected.retain(|kept| *kept != number);
            assert_eq!(numbers(&members), expected);
        }
        assert!(members.is_empty() && members.is_single());
    }
}
