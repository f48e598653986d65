//! The words of one line of a script, and the messages about malformed words.

use std::cell::Cell;
use std::time::Duration;

use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName};
use goldenscript::{Argument, Command};

use crate::duration::parse_duration;

/// A line of a script that cannot be played: what was found, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(String);

impl Mistake {
    /// A mistake with this text: lower case, no full stop, with what was expected.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// The beginnings of texts that take no article: "which actor is missing".
const QUESTIONS: [&str; 5] = ["what ", "which ", "who", "how ", "where "];

/// The words that follow a verb. Each is taken once, and a remaining word is a mistake.
#[derive(Debug)]
pub struct Words<'a> {
    words: Vec<(&'a Argument, Cell<bool>)>,
}

impl<'a> Words<'a> {
    pub(super) fn of(command: &'a Command) -> Self {
        Self { words: command.args.iter().map(|word| (word, Cell::new(false))).collect() }
    }

    /// The next word that is not a `key=value`, if there is one.
    pub fn maybe_next(&mut self) -> Option<&'a str> {
        self.words.iter().filter(|(_, taken)| !taken.get()).find_map(|(word, taken)| match word {
            Argument::Positional(text) => {
                taken.set(true);
                Some(text.as_str())
            }
            _ => None,
        })
    }

    /// The next word that is not a `key=value`.
    ///
    /// # Errors
    /// When there is none; `what` names the missing word.
    pub fn next(&mut self, what: &str) -> Result<&'a str, Mistake> {
        let is_question = QUESTIONS.iter().any(|word| what.starts_with(word));
        let article = if is_question { "" } else { "the " };
        self.maybe_next().ok_or_else(|| Mistake::new(format!("{article}{what} is missing")))
    }

    /// The next word, which must be one of these choices.
    ///
    /// # Errors
    /// When there is none, or it is not one of the choices.
    pub fn one_of<T: Copy>(&mut self, what: &str, choices: &[(&str, T)]) -> Result<T, Mistake> {
        chosen(what, self.next(what)?, choices)
    }

    /// The value of a `key=value`, if it is present.
    pub fn key(&mut self, name: &str) -> Option<&'a str> {
        self.words.iter().find_map(|(word, taken)| match word {
            Argument::KeyValue(key, value) if key == name => {
                taken.set(true);
                Some(value.as_str())
            }
            _ => None,
        })
    }

    /// Every `key=value` with this prefix of the key, with the rest of the key.
    pub fn keys_below(&mut self, prefix: &str) -> Vec<(&'a str, &'a str)> {
        let below = self.words.iter().filter_map(|(word, taken)| match word {
            Argument::KeyValue(key, value) => {
                let rest = key.strip_prefix(prefix)?;
                taken.set(true);
                Some((rest, value.as_str()))
            }
            _ => None,
        });
        below.collect()
    }

    /// The value of a `key=value`, which must be one of these choices.
    ///
    /// # Errors
    /// When it is not one of the choices.
    pub fn key_of<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, Mistake> {
        self.key(name).map(|value| chosen(name, value, choices)).transpose()
    }

    /// A `key=value` whose value is `yes` or `no`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn yes_or_no(&mut self, name: &str) -> Result<Option<bool>, Mistake> {
        self.key_of(name, &[("yes", true), ("no", false)])
    }

    /// A `key=value` whose value is a duration.
    ///
    /// # Errors
    /// When it is not a duration.
    pub fn duration(&mut self, name: &str) -> Result<Option<Duration>, Mistake> {
        let value = self.key(name).map(parse_duration).transpose();
        value.map_err(|error| Mistake::new(format!("{name}: {error}")))
    }

    /// A `key=value` whose value is a whole number.
    ///
    /// # Errors
    /// When it is not a whole number.
    pub fn number(&mut self, name: &str) -> Result<Option<u32>, Mistake> {
        let read = |value: &str| {
            value.parse().map_err(|_| {
                let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                Mistake::new(match is_number {
                    true => format!("{name}: {value} is too much; at most {}", u32::MAX),
                    false => format!("{name}: {value:?} is no whole number"),
                })
            })
        };
        self.key(name).map(read).transpose()
    }

    /// The next word as the name of an allocation.
    ///
    /// # Errors
    /// When it is missing or malformed.
    pub fn allocation(&mut self) -> Result<AllocationId, Mistake> {
        AllocationId::new(self.next("allocation")?).map_err(|error| Mistake::new(error.to_string()))
    }

    /// The next word as the name of a plugin.
    ///
    /// # Errors
    /// When it is missing or malformed.
    pub fn plugin_name(&mut self) -> Result<PluginName, Mistake> {
        PluginName::new(self.next("name of the plugin")?).map_err(|error| Mistake::new(error.to_string()))
    }

    /// The next word as a plugin, `csi-node/zfs` for instance.
    ///
    /// # Errors
    /// When it is missing or malformed.
    pub fn plugin(&mut self) -> Result<PluginKey, Mistake> {
        plugin(self.next("plugin")?)
    }

    /// All further words as plugins.
    ///
    /// # Errors
    /// When one is malformed.
    pub fn plugins(&mut self) -> Result<Vec<PluginKey>, Mistake> {
        std::iter::from_fn(|| self.maybe_next()).map(plugin).collect()
    }

    /// The mistake of the first word that was not taken.
    pub(super) fn left_over(&self) -> Result<(), Mistake> {
        let Some((word, _)) = self.words.iter().find(|(_, taken)| !taken.get()) else { return Ok(()) };
        let is_known = |known: &str| {
            let mut taken = self.words.iter().filter(|(_, taken)| taken.get());
            taken.any(|(word, _)| matches!(word, Argument::KeyValue(key, _) if key == known))
        };
        Err(Mistake::new(match word {
            Argument::KeyValue(key, _) if is_known(key) => format!("{key}= is said twice"),
            word => format!("nothing is known of {word}"),
        }))
    }
}

fn plugin(text: &str) -> Result<PluginKey, Mistake> {
    let halves = text.split_once('/').ok_or_else(|| {
        Mistake::new(format!("{text:?} is no plugin; write its type and its name, as in csi-node/zfs"))
    })?;
    let plugin_type = halves.0.parse().map_err(|error| Mistake::new(format!("{text:?}: {error}")))?;
    let name = PluginName::new(halves.1).map_err(|error| Mistake::new(error.to_string()))?;
    Ok(PluginKey::new(plugin_type, name))
}

fn chosen<T: Copy>(what: &str, word: &str, choices: &[(&str, T)]) -> Result<T, Mistake> {
    let found = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        Mistake::new(format!("{what}: {word:?} is none of {}", names.join(", ")))
    })
}
