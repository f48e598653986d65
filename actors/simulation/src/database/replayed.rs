//! A volume that can be copied: it consists of its history, and is replayed from the beginning where needed.
//!
//! An open database cannot be copied, and a copy of its file that is opened is not the same: it has begun a new run,
//! and has forgotten which syncs failed. The result of an action follows from the actions before it, so each history is played
//! once, however many worlds share it, and all copies share the result.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use super::volume::{Action, ActionOutcome, Medium, Reader, Volume};

/// The results of all histories that were played.
#[derive(Debug)]
struct Known {
    outcomes: HashMap<u128, Rc<ActionOutcome>>,
    /// The last history that was played, and the volume after it.
    last: Option<(u128, Volume)>,
    readers: &'static [Reader],
}

/// A volume with this history. Copies share the results.
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

/// The history with one more action.
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

/// Its content is known from the results of reading it, and its history is not part of its state.
impl Hash for Replayed {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
