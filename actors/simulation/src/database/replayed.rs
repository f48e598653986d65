//! A volume that can be copied: it is its history, and is played again from the beginning where it is needed.
//!
//! An open database cannot be copied, and one that is opened on a copy of its file is not what it was: it has begun a new run,
//! and has forgotten which syncs failed. What comes of an action follows from the actions before it, so each history is played
//! once, however many worlds share it, and all copies know what comes of it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use super::volume::{Action, ActionOutcome, Medium, Reader, Volume};

/// What is known of all histories that were played.
#[derive(Debug)]
struct Known {
    outcomes: HashMap<u128, Rc<ActionOutcome>>,
    /// The last one that was played, and the volume as it is behind it.
    last: Option<(u128, Volume)>,
    readers: &'static [Reader],
}

/// A volume with this history. Copies share what is known.
#[derive(Debug, Clone)]
pub(super) struct Replayed {
    actions: Vec<Action>,
    history: u128,
    known: Rc<RefCell<Known>>,
}

impl Replayed {
    /// An empty disk.
    pub(super) fn new(readers: &'static [Reader]) -> Self {
        let known = Known { outcomes: HashMap::new(), last: None, readers };
        Self { actions: Vec::new(), history: 0, known: Rc::new(RefCell::new(known)) }
    }
}

/// The history that comes of one more action.
fn extended(history: u128, action: &Action) -> u128 {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, history, action).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    hash(0) << 64 | hash(1)
}

impl Medium for Replayed {
    fn carry_out(&mut self, action: Action) -> Rc<ActionOutcome> {
        let history = extended(self.history, &action);
        let mut known = self.known.borrow_mut();
        let outcome = match known.outcomes.get(&history) {
            Some(outcome) => Rc::clone(outcome),
            None => {
                let readers = known.readers;
                let mut volume = match known.last.take() {
                    Some((last, volume)) if last == self.history => volume,
                    Some(_) | None => {
                        let mut volume = Volume::new(readers);
                        for action in &self.actions {
                            volume.carry_out(action.clone());
                        }
                        volume
                    }
                };
                let outcome = volume.carry_out(action.clone());
                known.last = Some((history, volume));
                known.outcomes.insert(history, Rc::clone(&outcome));
                outcome
            }
        };
        drop(known);
        self.actions.push(action);
        self.history = history;
        outcome
    }

    fn history(&self) -> u128 {
        self.history
    }
}

/// What lies on it is known from what comes of reading it, and how it came to be is no part of its state.
impl Hash for Replayed {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
