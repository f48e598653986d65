//! The ids and names under which drivers know the tasks of this host.
//!
//! ```text
//!  allocation id   a UUID, derived from the data directory's mark and the task's name: the same in every run of the host,
//!                  different for each task and for each host (T041, TH053)
//!  task name       the name in the configuration
//!  task id         ALLOCATION-ID/NAME/1a2b3c4d, different for each run (T053, T070)
//! ```
//!
//! Drivers name directories, control groups and containers after these, so they are unique on the machine.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::driver::{TaskId, TaskKey};
use crate::vocabulary::{AllocationId, Attempt, TaskName, hex};

/// The prefix of the digest for an allocation id; it separates this digest from all others.
const ALLOCATION: &[u8] = b"callboard allocation id\0";
/// The same for the node id.
const NODE: &[u8] = b"callboard node id\0";

/// Derives the ids of one host's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskIdentities {
    owner: Arc<str>,
}

/// The ids of one task: the same in every run of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskIdentity {
    /// The allocation id: a UUID as text, of 36 characters.
    pub allocation: AllocationId,
    /// The name within the allocation: the task's name in the configuration.
    pub task: TaskName,
}

impl TaskIdentities {
    /// The identities for a host whose data directory has this mark (`Host::owner_mark`).
    #[must_use]
    pub fn of_owner(owner: &str) -> Self {
        Self { owner: owner.into() }
    }

    /// The mark of the host's data directory.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The ids of the task with this name in the configuration.
    ///
    /// # Panics
    /// Never: the rules for names of allocations and of tasks are the same.
    #[must_use]
    pub fn of(&self, name: &AllocationId) -> TaskIdentity {
        let allocation =
            AllocationId::new(self.uuid(ALLOCATION, name.as_str())).expect("a UUID is a good name");
        let task = TaskName::new(name.as_str()).expect("the rules for both kinds of names are the same");
        TaskIdentity { allocation, task }
    }

    /// The node id that tasks get: a UUID, the same in every run of the host.
    #[must_use]
    pub fn node(&self) -> String {
        self.uuid(NODE, "")
    }

    /// A UUID of version 8 (custom bits), of the variant of RFC 9562.
    fn uuid(&self, purpose: &[u8], name: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(purpose);
        hasher.update(self.owner.as_bytes());
        hasher.update([0]);
        hasher.update(name.as_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes[6] = (bytes[6] & 0x0f) | 0x80;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let digits = hex(&bytes);
        [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
    }
}

impl TaskIdentity {
    /// The key of the task in events.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        TaskKey::new(self.allocation.clone(), self.task.clone())
    }

    /// The id of one run. `random` makes it differ from ids in a lost database, the attempt from the id of the run before.
    ///
    /// # Panics
    /// Never: names are short and contain no control characters.
    #[must_use]
    pub fn run(&self, attempt: Attempt, random: u64) -> TaskId {
        let [.., a, b, c, d] = attempt.get().wrapping_add(random >> 32).to_be_bytes();
        let number = u32::from_be_bytes([a, b, c, d]);
        let id = format!("{}/{}/{number:08x}", self.allocation, self.task);
        TaskId::new(id).expect("names are short and hold no control characters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> AllocationId {
        AllocationId::new(name).unwrap()
    }

    #[test]
    fn a_task_has_the_same_ids_in_every_run_of_its_host_and_shares_none_with_another_th053() {
        let (one, two) = (TaskIdentities::of_owner("0a"), TaskIdentities::of_owner("0b"));
        let web = one.of(&name("web"));
        assert_eq!(web, TaskIdentities::of_owner("0a").of(&name("web")));
        assert_eq!(web.task.as_str(), "web");
        assert_ne!(web.allocation, two.of(&name("web")).allocation);
        assert_ne!(web.allocation, one.of(&name("job")).allocation);
        assert_ne!(one.node(), two.node());
        // The boundary between the mark and the name matters.
        let moved = TaskIdentities::of_owner("0aw").of(&name("eb"));
        assert_ne!(web.allocation, moved.allocation);
    }

    #[test]
    fn the_id_of_an_allocation_is_a_uuid_of_36_characters_t041() {
        let id = TaskIdentities::of_owner("0a").of(&name("web")).allocation;
        let parts: Vec<_> = id.as_str().split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(id.as_str().chars().all(|digit| digit == '-' || digit.is_ascii_hexdigit()), "{id}");
        assert!(parts[2].starts_with('8') && "89ab".contains(&parts[3][..1]), "{id}");
    }

    #[test]
    fn the_id_of_a_run_has_three_parts_and_is_new_for_each_run_t070() {
        let web = TaskIdentities::of_owner("0a").of(&name("web"));
        let run = |attempt, random| web.run(Attempt::new(attempt), random).as_str().to_owned();
        let first = run(1, 0xdead_beef_0000_0000);
        let parts: Vec<_> = first.split('/').collect();
        assert_eq!(parts, [web.allocation.as_str(), "web", "deadbef0"]);
        assert_ne!(first, run(2, 0xdead_beef_0000_0000));
        assert_eq!(run(1, u64::MAX), format!("{}/web/00000000", web.allocation));
    }

    #[test]
    fn the_longest_name_has_ids_too() {
        let longest = "n".repeat(super::super::config::NAME_BYTES_MAX);
        let identity = TaskIdentities::of_owner("0a").of(&name(&longest));
        assert!(identity.run(Attempt::new(1), 0).as_str().len() < 255);
    }
}
