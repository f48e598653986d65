//! Subscribers of a registry, and the state that they derive from its news.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::{Active, Entry, RegistryNews, RegistryView, Standing};
use callboard_actors::shell::{Address, FeedItem};
use callboard_actors::vocabulary::{
    AllocationId, Generation, PluginKey, Registration, RegistrationNumber, RunNumber,
};

use crate::faulty::Rows;
use crate::fragile::Fragile;
use crate::model::may_leave;
use crate::stage::{Feed, handle_what_is_due};

/// Every generation and number that was ever reported, in any life of the registry.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    generations: BTreeMap<Generation, Arc<Registration>>,
    numbers: BTreeMap<RegistrationNumber, (PluginKey, AllocationId)>,
    newest_generation: Generation,
    newest_number: RegistrationNumber,
}

impl Memory {
    /// Checks that a generation never stands for two registrations.
    pub(crate) fn note(&mut self, active: Option<&Active>) {
        let Some(Active { generation, registration, .. }) = active else { return };
        let known = self.generations.entry(*generation).or_insert_with(|| Arc::clone(registration));
        assert_eq!(known, registration, "generation {generation} was another");
    }

    fn note_entry(&mut self, entry: &Entry) {
        let Registration { plugin, allocation, .. } = &*entry.registration;
        let name = (plugin.clone(), allocation.clone());
        let known = self.numbers.entry(entry.number).or_insert_with(|| name.clone());
        assert_eq!(*known, name, "number {} was another", entry.number);
    }

    pub(crate) fn knows(&self, active: &Active) -> bool {
        self.generations.get(&active.generation) == Some(&active.registration)
    }
}

/// The state of the registry as a subscriber sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Picture {
    entries: BTreeMap<RegistrationNumber, Entry>,
    active: BTreeMap<PluginKey, Active>,
}

impl Picture {
    fn of(view: RegistryView) -> Self {
        Self {
            entries: view.entries.into_iter().map(|entry| (entry.number, entry)).collect(),
            active: view
                .active
                .into_iter()
                .map(|active| (active.registration.plugin.clone(), active))
                .collect(),
        }
    }

    /// Whether these rows on disk have the same state.
    pub(crate) fn is_of(&self, rows: &Rows, run: RunNumber) -> bool {
        let is_same = |(entry, row): (&Entry, &callboard_actors::registry::Stored)| {
            let is_confirmed = row.confirmed_in == run;
            entry.number == row.number
                && entry.registration == row.registration
                && entry.since == row.since
                && is_confirmed == (entry.standing == Standing::Confirmed)
        };
        let mut active = BTreeMap::new();
        for row in rows.values().filter(|row| row.confirmed_in == run) {
            let Some(since) = row.active_since else { continue };
            let registration = Arc::clone(&row.registration);
            let this = Active { generation: row.generation, registration, since };
            let last = active.entry(row.registration.plugin.clone()).or_insert_with(|| this.clone());
            if last.since <= since {
                *last = this;
            }
        }
        self.entries.len() == rows.len()
            && self.entries.values().zip(rows.values()).all(is_same)
            && self.active == active
    }

    fn hear(&mut self, news: RegistryNews) {
        match news {
            RegistryNews::Registered(entry) => {
                let newest = self.entries.keys().next_back();
                assert!(newest.is_none_or(|newest| *newest < entry.number), "{entry:?} is not the newest");
                self.entries.insert(entry.number, entry);
            }
            RegistryNews::Updated(entry) | RegistryNews::Renewed(entry) => {
                let old = self.entries.insert(entry.number, entry.clone()).expect("it was there");
                assert_ne!(old, entry, "R3: an equal registration is no update");
            }
            RegistryNews::Deregistered(entry, why) => {
                assert!(may_leave(&entry, why), "{entry:?} left: {why:?}");
                assert_eq!(self.entries.remove(&entry.number), Some(entry), "R4: it names what was there");
            }
            RegistryNews::ActiveChanged { plugin, from, to, reason: _ } => {
                assert_ne!(from, to);
                let before = match to {
                    Some(to) => self.active.insert(plugin, to),
                    None => self.active.remove(&plugin),
                };
                assert_eq!(before, from, "R1: who was active before");
            }
        }
    }
}

/// A subscriber.
pub(crate) struct Listener {
    feed: Feed,
    picture: Option<Picture>,
    number: u64,
    missed: Option<u64>,
    hears_all: bool,
}

impl Listener {
    /// Subscribes. With no limit of its queue it receives everything, and checks that numbers are new.
    pub(crate) fn to(registry: &Address<Fragile>, capacity: usize) -> Self {
        let feed = registry.subscribe("test", capacity).expect("it runs");
        Self { feed, picture: None, number: 0, missed: None, hears_all: capacity == usize::MAX }
    }

    /// Reads this many items, if there are as many.
    pub(crate) fn read(&mut self, count: usize, memory: &mut Memory) {
        for _ in 0..count {
            let Some(item) = self.feed.try_next() else { break };
            self.take(item, memory);
        }
    }

    /// Reads until no item comes. False if none came.
    pub(crate) async fn catch_up(&mut self, memory: &mut Memory) -> bool {
        let mut has_come = false;
        while let Some(item) = self.next_within_a_moment().await {
            has_come = true;
            self.take(item, memory);
        }
        assert_eq!(self.missed, None, "a gap was never mended");
        has_come
    }

    async fn next_within_a_moment(&mut self) -> Option<FeedItem<RegistryNews, RegistryView>> {
        if let Some(item) = self.feed.try_next() {
            return Some(item);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        handle_what_is_due().await;
        self.feed.try_next()
    }

    fn take(&mut self, item: FeedItem<RegistryNews, RegistryView>, memory: &mut Memory) {
        match item {
            FeedItem::Snapshot { number, view } => {
                let expected = self.number + self.missed.take().unwrap_or(0);
                assert!(self.picture.is_none() || number == expected, "snapshot {number} after {expected}");
                view.entries.iter().for_each(|entry| memory.note_entry(entry));
                view.active.iter().for_each(|active| memory.note(Some(active)));
                self.number = number;
                self.picture = Some(Picture::of(view));
            }
            FeedItem::Change { number, news } => {
                assert_eq!(self.missed, None, "a change before the snapshot that mends a gap");
                self.number += 1;
                assert_eq!(number, self.number, "R6: numbered without a hole");
                self.remember(&news, memory);
                self.picture.as_mut().expect("R6: a snapshot comes first").hear(news);
            }
            FeedItem::Lagged { missed } => {
                assert!(missed > 0 && self.missed.is_none() && !self.hears_all, "{missed} missed");
                self.missed = Some(missed);
            }
        }
    }

    /// Checks that a subscriber that receives everything gets only numbers that are newer than all before.
    fn remember(&self, news: &RegistryNews, memory: &mut Memory) {
        match news {
            RegistryNews::Registered(entry) => {
                if self.hears_all {
                    assert!(entry.number > memory.newest_number, "R2: {entry:?}");
                    memory.newest_number = entry.number;
                }
                self.remember_generation(entry, memory);
            }
            RegistryNews::Updated(entry) | RegistryNews::Renewed(entry) => {
                self.remember_generation(entry, memory);
            }
            RegistryNews::Deregistered(entry, _) => memory.note_entry(entry),
            RegistryNews::ActiveChanged { to, .. } => memory.note(to.as_ref()),
        }
    }

    fn remember_generation(&self, entry: &Entry, memory: &mut Memory) {
        if self.hears_all {
            assert!(entry.generation > memory.newest_generation, "{entry:?} has an old generation");
            memory.newest_generation = entry.generation;
        }
        memory.note_entry(entry);
    }

    /// The active one is the newest confirmed one, of every plugin (R1).
    pub(crate) fn check_active(&self) {
        let Some(picture) = &self.picture else { return };
        let mut newest = BTreeMap::new();
        for entry in picture.entries.values().filter(|entry| entry.standing == Standing::Confirmed) {
            newest.insert(&entry.registration.plugin, &entry.registration);
        }
        let active: BTreeMap<_, _> =
            picture.active.iter().map(|(plugin, active)| (plugin, &active.registration)).collect();
        assert_eq!(active, newest, "R1");
    }

    /// The state that it has derived, once it has received something.
    pub(crate) fn view(&self) -> Option<&Picture> {
        self.picture.as_ref()
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.picture.iter().flat_map(|picture| picture.entries.values().cloned()).collect()
    }

    pub(crate) fn active(&self, plugin: &PluginKey) -> Option<&Active> {
        self.picture.as_ref()?.active.get(plugin)
    }
}
