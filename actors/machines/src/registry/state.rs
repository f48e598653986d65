//! The state of the registry.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::draft::Draft;
use super::fitness::Fitnesses;
use super::members::Members;
use super::messages::{Active, Entry, RegistryView, Standing};
use super::restored::Restored;
use super::waiting::Waiting;
use crate::vocabulary::{
    AllocationId, Backoff, FailoverPolicy, Generation, PluginKey, PluginName, Registration,
    RegistrationNumber, RunNumber, Timestamp,
};

/// The options of the registry.
#[derive(Debug, Clone, Hash)]
pub struct RegistryOptions {
    /// The grace period: how long an unconfirmed restored registration is kept (R8). 60 s by default.
    pub restore_grace: Duration,
    /// The limit of registrations. A million by default.
    pub registrations_max: usize,
    /// The limit of callers that wait for a plugin. 4,096 by default.
    pub waiting_max: usize,
    /// How many identity checks run at once after a restart. 16 by default.
    pub checks_max: usize,
    /// The timeout of one identity check. 5 s by default.
    pub check_deadline: Duration,
    /// How the active registration is chosen where neither [`policies`](Self::policies) nor a registration sets a policy.
    pub policy: FailoverPolicy,
    /// How the active registration of these plugins is chosen, regardless of the policies in their registrations.
    pub policies: BTreeMap<PluginName, FailoverPolicy>,
    /// How long a registration that failed while it was active must be fit before it is active again (R1c). 10 s by default. With each
    /// further failure it doubles, and it is at least twice as long as the registration was fit before the failure, up to 10 minutes. The
    /// doubling starts again after 20 minutes without a failure.
    pub calm: Backoff,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            restore_grace: Duration::from_secs(60),
            registrations_max: 1_000_000,
            waiting_max: 4_096,
            checks_max: 16,
            check_deadline: Duration::from_secs(5),
            policy: FailoverPolicy::default(),
            policies: BTreeMap::new(),
            calm: Backoff {
                first: Duration::from_secs(10),
                longest: Duration::from_secs(600),
                jitter_percent: 0,
                reset_after: Duration::from_secs(600),
            },
        }
    }
}

/// A registration as it is stored.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stored {
    /// Its position in the order of registrations.
    pub number: RegistrationNumber,
    /// The contents from its owner.
    pub registration: Arc<Registration>,
    /// When it was first registered.
    pub since: Timestamp,
    /// The run of the host in which it was last confirmed. It is provisional in every other run (R8).
    pub confirmed_in: RunNumber,
    /// Its generation; zero in rows of plugins that were never confirmed.
    pub generation: Generation,
    /// When it became active under this generation, if it did, and is still active or was fit then. The latest of these is the active one.
    pub active_since: Option<Timestamp>,
}

impl Stored {
    pub(super) fn entry(&self, run: RunNumber) -> Entry {
        let standing = if self.confirmed_in == run { Standing::Confirmed } else { Standing::Provisional };
        Entry {
            number: self.number,
            registration: Arc::clone(&self.registration),
            generation: self.generation,
            standing,
            since: self.since,
        }
    }

    const fn highest_number(&self) -> u64 {
        let (number, generation) = (self.number.get(), self.generation.get());
        if number > generation { number } else { generation }
    }

    pub(super) fn active(&self) -> Option<Active> {
        let since = self.active_since?;
        Some(Active { generation: self.generation, registration: Arc::clone(&self.registration), since })
    }
}

/// The changes on disk by one message: almost always one row.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StoredChange {
    /// Rows to insert or replace.
    pub put: SmallVec<[Stored; 1]>,
    /// Rows to delete.
    pub delete: SmallVec<[RegistrationNumber; 1]>,
    /// The first number after those of the rows that were replaced by later changes in a merge.
    pub merged: u64,
}

impl StoredChange {
    /// The first number after those of its rows. An issued number is in the change of the same step, so a store learns from
    /// this which numbers were never issued.
    #[must_use]
    pub fn ceiling(&self) -> u64 {
        self.merged.max(ceiling(&self.put))
    }
}

/// The stored state of the registry.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// All registrations.
    pub stored: Vec<Stored>,
    /// The first number that was never issued.
    pub ceiling: u64,
    /// The present run of the host.
    pub run: RunNumber,
    /// How long this run has lasted; it counts against the grace period (R8).
    pub run_age: Duration,
}

impl Image {
    /// Builds it from the stored rows. `given` is above the [numbers](StoredChange::ceiling) of all changes of this run.
    #[must_use]
    pub fn of(stored: Vec<Stored>, given: u64, run: RunNumber, run_age: Duration) -> Self {
        Self { ceiling: first_number(run).max(ceiling(&stored)).max(given), stored, run, run_age }
    }
}

/// Asks whether the plugin of a restored registration still answers at its socket, under the same name (R8).
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckIdentity {
    /// The number of the registration.
    pub number: RegistrationNumber,
    /// The registration to check.
    pub registration: Arc<Registration>,
}

/// The result of an identity check.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The same plugin answers there.
    Proven,
    /// It is not confirmed: no plugin answers, or another one does.
    NotProven(String),
}

impl CheckOutcome {
    /// Its name, as it is logged.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::NotProven(_) => "not proven",
        }
    }

    /// Why the plugin is not confirmed.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Proven => None,
            Self::NotProven(reason) => Some(reason),
        }
    }
}

/// The size of the range of numbers of each run of the host. So none is issued twice, and none waits until it is reserved on disk.
const NUMBERS_OF_A_RUN: u64 = 1_000_000_000;

/// The first number of a run, and of each opening of its database.
#[must_use]
pub const fn first_number(run: RunNumber) -> u64 {
    run.get().saturating_sub(1).saturating_mul(NUMBERS_OF_A_RUN)
}

fn ceiling(stored: &[Stored]) -> u64 {
    stored.iter().map(Stored::highest_number).max().map_or(0, |highest| highest + 1)
}

/// All plugins. Looked up with every message: std's hashing would dominate the cost; the seed is as random as std's.
pub(super) type Plugins = HashMap<PluginKey, Plugin, RandomState>;

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Plugin {
    pub(super) members: Members,
    /// The active registration: its number, and its contents for the news of its removal.
    pub(super) active: Option<(RegistrationNumber, Active)>,
    pub(super) fitness: Fitnesses,
}

impl Plugin {
    /// The allocations that serve it, newest first.
    pub(super) fn allocations(&self) -> impl Iterator<Item = AllocationId> + '_ {
        self.members.newest_first().map(|stored| stored.registration.allocation.clone())
    }

    /// The policy of its newest confirmed registration that has one.
    pub(super) fn policy(&self, run: RunNumber) -> Option<&FailoverPolicy> {
        let confirmed = self.members.newest_first().filter(|stored| stored.confirmed_in == run);
        confirmed.filter_map(|stored| stored.registration.policy.as_ref()).next()
    }

    /// The registration that was active when its row was written: the latest that became active.
    fn last_active(&self, run: RunNumber) -> Option<(RegistrationNumber, Active)> {
        let confirmed = self.members.newest_first().filter(|stored| stored.confirmed_in == run);
        let active = confirmed.filter_map(|stored| Some((stored.number, stored.active()?)));
        active.max_by_key(|(number, active)| (active.since, *number))
    }
}

/// The registry as a pure machine.
#[derive(Clone)]
pub struct Registry {
    pub(super) options: RegistryOptions,
    pub(super) run: RunNumber,
    /// The next number to issue.
    pub(super) next_number: u64,
    pub(super) plugins: Plugins,
    pub(super) held: usize,
    pub(super) restored: Restored,
    pub(super) waiting: Waiting,
    /// Empty between two messages.
    pub(super) draft: Draft,
}

/// Ordered by plugin, so that equal registries have equal output.
impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options: _, run, next_number, plugins, held, restored, waiting, draft } = self;
        f.debug_struct("Registry")
            .field("run", run)
            .field("next_number", next_number)
            .field("plugins", &plugins.iter().collect::<BTreeMap<_, _>>())
            .field("held", held)
            .field("restored", restored)
            .field("waiting", waiting)
            .field("draft", draft)
            .finish_non_exhaustive()
    }
}

/// Hashes its output.
impl Hash for Registry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { options: _, run, next_number, plugins, held, restored, waiting, draft } = self;
        (run, next_number, plugins.iter().collect::<BTreeMap<_, _>>(), held).hash(state);
        (restored, waiting, draft).hash(state);
    }
}

impl Registry {
    pub(super) fn from_image(options: &RegistryOptions, image: Image) -> Self {
        let mut registry = Self {
            options: options.clone(),
            run: image.run,
            next_number: image.ceiling.max(1),
            plugins: Plugins::default(),
            held: image.stored.len(),
            restored: Restored::with_grace(options.restore_grace, image.run_age),
            waiting: Waiting::default(),
            draft: Draft::default(),
        };
        for stored in image.stored {
            if stored.confirmed_in != image.run {
                registry.restored.expect(stored.number, Arc::clone(&stored.registration));
            }
            let key = stored.registration.plugin.clone();
            registry.plugins.entry(key).or_default().members.insert(stored);
        }
        for plugin in registry.plugins.values_mut() {
            plugin.active = plugin.last_active(image.run);
            // The fitness of other types is not reported, so this would not be corrected.
            if let Some((number, active)) = &plugin.active
                && active.registration.plugin.plugin_type.is_csi()
            {
                plugin.fitness.presume(*number, active.generation, active.since);
            }
        }
        registry
    }

    /// All registrations, oldest first.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let members = self.plugins.values().flat_map(|plugin| plugin.members.newest_first());
        let mut entries: Vec<Entry> = members.map(|stored| stored.entry(self.run)).collect();
        entries.sort_unstable_by_key(|entry| entry.number);
        entries
    }

    pub(super) fn whole_view(&self) -> RegistryView {
        let active = self.plugins.iter().filter_map(|(key, plugin)| Some((key, &plugin.active.as_ref()?.1)));
        RegistryView { entries: self.entries(), active: by_plugin(active) }
    }
}

/// Sorts the active registrations by plugin. The prefixes of the names are compared first, from one contiguous array, since
/// dereferencing each whole name would dominate the cost.
fn by_plugin<'a>(active: impl Iterator<Item = (&'a PluginKey, &'a Active)>) -> Vec<Active> {
    let mut active: Vec<_> =
        active.map(|(key, active)| ((key.plugin_type, first_letters(key)), key, active)).collect();
    active.sort_unstable_by(|(one, key, _), (other, other_key, _)| {
        one.cmp(other).then_with(|| key.cmp(other_key))
    });
    active.into_iter().map(|(_, _, active)| active.clone()).collect()
}

/// The first sixteen bytes of a plugin's name, as a number in their order. No name contains the zero byte that pads it.
fn first_letters(key: &PluginKey) -> u128 {
    let mut letters = [0; 16];
    letters.iter_mut().zip(key.name.as_str().bytes()).for_each(|(letter, byte)| *letter = byte);
    u128::from_be_bytes(letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{PluginName, PluginType, SocketPath};

    fn key(plugin_type: PluginType, name: &str) -> PluginKey {
        PluginKey::new(plugin_type, PluginName::new(name).unwrap())
    }

    fn registration(plugin: PluginKey) -> Arc<Registration> {
        Arc::new(Registration {
            policy: None,
            plugin,
            allocation: AllocationId::new("a1").unwrap(),
            socket: SocketPath::new("/run/csi.sock").unwrap(),
            provider: None,
            version: None,
            options: Arc::default(),
        })
    }

    #[test]
    fn each_run_has_numbers_of_its_own_and_none_is_below_what_is_stored() {
        let first = |run: u64| first_number(RunNumber::new(run));
        assert_eq!([0, 1, 2, 3].map(first), [0, 0, 1_000_000_000, 2_000_000_000]);
        assert_eq!(first(u64::MAX), u64::MAX, "there are no more");
        let key = key(PluginType::CsiNode, "zfs");
        let stored = Stored {
            number: RegistrationNumber::new(7),
            registration: registration(key),
            since: Timestamp::default(),
            confirmed_in: RunNumber::default(),
            generation: Generation::new(2_000_000_003),
            active_since: None,
        };
        let image = |given: u64| Image::of(vec![stored.clone()], given, RunNumber::new(2), Duration::ZERO);
        assert_eq!([0, 3_000_000_000].map(|given| image(given).ceiling), [2_000_000_004, 3_000_000_000]);
        let change = StoredChange { put: [stored].into_iter().collect(), ..StoredChange::default() };
        assert_eq!((change.ceiling(), StoredChange::default().ceiling()), (2_000_000_004, 0));
    }

    #[test]
    fn registries_that_are_equal_look_equal() {
        let stored = |(number, name): (u64, &str)| Stored {
            number: RegistrationNumber::new(number),
            registration: registration(key(PluginType::CsiNode, name)),
            since: Timestamp::default(),
            confirmed_in: RunNumber::default(),
            generation: Generation::default(),
            active_since: None,
        };
        let rows = [(1, "zfs"), (2, "nfs"), (3, "lvm"), (4, "ceph")];
        let shown = |rows: Vec<(u64, &str)>| {
            let image = Image { stored: rows.into_iter().map(stored).collect(), ..Image::default() };
            format!("{:?}", Registry::from_image(&RegistryOptions::default(), image))
        };
        assert_eq!(shown(rows.to_vec()), shown(rows.into_iter().rev().collect()));
        assert!(shown(rows.to_vec()).contains("zfs"));
        assert_ne!(shown(rows.to_vec()), shown(rows[1..].to_vec()));
    }

    #[test]
    fn what_is_active_is_shown_in_the_order_of_its_plugins_whatever_their_names_share_r6() {
        let names = ["zfs", "a", "ab", "a-very-long-name-2", "a-very-long-name-10", "ä", "a-very-long-name"];
        let keys = [PluginType::CsiNode, PluginType::CsiController]
            .into_iter()
            .flat_map(|plugin_type| names.map(|name| key(plugin_type, name)));
        let letters = |name: &str| first_letters(&key(PluginType::CsiNode, name));
        assert!(letters("a") < letters("ab") && letters("ab") < letters("b"), "most are told apart by these");
        assert_eq!(letters("a-very-long-name-2"), letters("a-very-long-name-10"));
        let active = |plugin: PluginKey| Active {
            generation: Generation::new(1),
            registration: registration(plugin),
            since: Timestamp::default(),
        };
        let all: Vec<(PluginKey, Active)> = keys.map(|key| (key.clone(), active(key))).collect();
        let shown = by_plugin(all.iter().map(|(key, active)| (key, active)));
        let mut expected: Vec<_> = all.iter().map(|(key, _)| key.clone()).collect();
        expected.sort();
        let shown: Vec<_> = shown.iter().map(|active| active.registration.plugin.clone()).collect();
        assert_eq!(shown, expected);
    }
}
