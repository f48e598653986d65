//! Explores every small interleaving: a search through all orders of the events in a small world.
//!
//! A world lists its possible next events, and each of these is tried, depth first, in every state that was not seen before. A
//! state is recognized by a hash of 128 bits of all its content, so that different orders that lead to the same state are explored
//! once. Where no further event is possible, the world is settled, and every caller must have its answer.

mod scene;
mod walk;
mod world;

use std::collections::HashSet;
use std::fmt::{self, Debug, Display};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use foldhash::quality::{FixedState, FoldHasher};

pub use self::scene::{Actor, Event as SceneEvent, Fault as SceneFault, Scene};
pub use self::walk::wander;
pub use self::world::{SceneWorld, Stage};
use super::law_checker::Violation;

/// A world in which events happen that can be replayed.
pub trait Play: Clone {
    /// An event of this world.
    type Event: Clone + Debug + Display;

    /// Whether this event is possible now.
    fn can(&self, event: &Self::Event) -> bool;

    /// Applies the event.
    ///
    /// # Errors
    /// The law that was broken.
    fn take(&mut self, event: &Self::Event) -> Result<(), Violation>;

    /// Applies the events that happen by themselves, and checks that every caller has its answer.
    ///
    /// # Errors
    /// The law that was broken.
    fn settle(&mut self) -> Result<(), Violation>;
}

/// A world small enough to try every possible event.
///
/// Its hash covers everything that determines which events are possible next: states with the same hash are treated as equal.
pub trait World: Play + Hash {
    /// The events that are possible now.
    fn events(&self) -> Vec<Self::Event>;
}

/// The extent of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Searched {
    /// Different states.
    pub states: u64,
    /// Steps between them that were taken.
    pub steps: u64,
    /// The longest history.
    pub longest: usize,
    /// Whether the search ended early because it reached its limit.
    pub is_cut_short: bool,
}

/// A history that breaks a law, as short as it gets by leaving events out.
#[derive(Debug, Clone)]
pub struct Counterexample<E> {
    /// The events.
    pub history: Vec<E>,
    /// The law that it breaks.
    pub violation: Violation,
}

impl<E: Display> Display for Counterexample<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.violation)?;
        writeln!(f, "after this history:")?;
        self.history.iter().try_for_each(|event| writeln!(f, "  {event}"))
    }
}

/// Explores all states, up to this number.
///
/// # Errors
/// The first history found that breaks a law, shortened.
pub fn search<W: World>(start: &W, states_max: u64) -> Result<Searched, Counterexample<W::Event>> {
    let mut search =
        Search { seen: HashSet::default(), searched: Searched::default(), path: Vec::new(), states_max };
    search.visit(start).map(|()| search.searched).map_err(|violation| {
        let found = Counterexample { history: search.path, violation };
        shorten(start, found)
    })
}

struct Search<E> {
    seen: HashSet<u128, BuildHasherDefault<Folded>>,
    searched: Searched,
    path: Vec<E>,
    states_max: u64,
}

impl<E: Clone> Search<E> {
    fn visit<W: World<Event = E>>(&mut self, world: &W) -> Result<(), Violation> {
        if self.searched.states >= self.states_max {
            self.searched.is_cut_short = true;
            return Ok(());
        }
        if !self.seen.insert(digest(world)) {
            return Ok(());
        }
        self.searched.states += 1;
        self.searched.longest = self.searched.longest.max(self.path.len());
        world.clone().settle()?;
        for event in world.events() {
            let mut next = world.clone();
            self.searched.steps += 1;
            self.path.push(event);
            let event = self.path.last().expect("it was just put there");
            next.take(event)?;
            self.visit(&next)?;
            self.path.pop();
        }
        Ok(())
    }
}

/// Plays a history, leaving out impossible events, and returns the law that it breaks.
pub fn play<W: Play>(start: &W, history: &[W::Event]) -> Option<(usize, Violation)> {
    let mut world = start.clone();
    for (place, event) in history.iter().enumerate() {
        if world.can(event)
            && let Err(violation) = world.take(event)
        {
            return Some((place + 1, violation));
        }
    }
    world.settle().err().map(|violation| (history.len(), violation))
}

/// How many events are played at most while a history is shortened.
const SHORTENING_MAX: usize = 20_000_000;

/// Leaves out all events without which the same law is broken: first large pieces, then smaller ones, then single events.
pub fn shorten<W: Play>(start: &W, found: Counterexample<W::Event>) -> Counterexample<W::Event> {
    let Counterexample { mut history, mut violation } = found;
    let (mut piece, mut played) = ((history.len() / 2).max(1), 0);
    loop {
        let mut is_shorter = false;
        let mut end = history.len();
        while end > 0 && played < SHORTENING_MAX {
            let begin = end.saturating_sub(piece);
            let mut shorter = history[..begin].to_vec();
            shorter.extend_from_slice(&history[end..]);
            played += shorter.len();
            match play(start, &shorter) {
                Some((length, other)) if other.law == violation.law => {
                    shorter.truncate(length);
                    (history, violation) = (shorter, other);
                    is_shorter = true;
                }
                Some(_) | None => {}
            }
            end = begin.min(history.len());
        }
        if played >= SHORTENING_MAX || piece == 1 && !is_shorter {
            return Counterexample { history, violation };
        }
        piece = if is_shorter && piece == 1 { 1 } else { (piece / 2).max(1) };
    }
}

/// A hash of 128 bits.
fn digest(state: &impl Hash) -> u128 {
    let half = |seed| FixedState::with_seed(seed).build_hasher();
    let mut halves = Halves { high: half(1), low: half(0) };
    state.hash(&mut halves);
    u128::from(halves.high.finish()) << 64 | u128::from(halves.low.finish())
}

/// Two hashes of 64 bits computed at once, so that a state is traversed only once.
struct Halves {
    high: FoldHasher<'static>,
    low: FoldHasher<'static>,
}

macro_rules! written_to_both {
    ($($method:ident: $number:ty),*) => {
        impl Hasher for Halves {
            fn finish(&self) -> u64 {
                self.low.finish()
            }

            fn write(&mut self, bytes: &[u8]) {
                self.high.write(bytes);
                self.low.write(bytes);
            }

            $(fn $method(&mut self, number: $number) {
                self.high.$method(number);
                self.low.$method(number);
            })*
        }
    };
}

written_to_both!(write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_usize: usize);

/// A state that is already a hash needs no further hashing.
#[derive(Hash, Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u128(&mut self, number: u128) {
        self.write(&number.to_le_bytes());
    }
}
