//! Plays scripts: each line with its verb, each script on a stage of its own.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use callboard_actors::shell::Machine;
use goldenscript::{Command, Context, Runner};

use super::error::ScriptError;
use super::file::{self, read};
use super::lines::{completed, mistake};
use super::stage::Stage;
use super::verbs;
use super::words::{Mistake, Words};
use crate::config::suggest::advice;
use crate::launch::{AnyPart, Part};
use crate::picture::Picture;

/// The maximum time of playing a script, in real time.
const PLAYED_MAX: Duration = Duration::from_secs(600);

/// The action of a verb: it acts on the stage and takes its words. Its requests and news are shown below the block.
pub(super) type Play = Box<dyn FnMut(&mut Stage, &mut Words<'_>) -> Result<(), Mistake>>;

/// One verb of the script language.
pub(super) struct Verb {
    /// The form of its line.
    pub(super) usage: String,
    /// Whether time passes while it is played; then its responses are shown with their times.
    pub(super) takes_time: bool,
    pub(super) play: Play,
}

/// A script that was played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// The script with the responses of each block below it.
    pub text: String,
    /// The run as a picture.
    pub picture: Picture,
}

/// The result of checking a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The responses are as recorded.
    Same,
    /// The responses differ.
    Different {
        /// The difference, as a unified diff.
        diff: String,
    },
}

/// Plays scripts. A host program can add verbs of its own.
pub struct Player {
    verbs: BTreeMap<String, Verb>,
    parts: Vec<AnyPart>,
    is_over: Box<dyn Fn() -> bool>,
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("verbs", &self.verbs.keys()).finish()
    }
}

impl Default for Player {
    fn default() -> Self {
        Self::new()
    }
}

impl Player {
    /// A player with the verbs of `docs/scripts.md`.
    #[must_use]
    pub fn new() -> Self {
        Self { verbs: verbs::all(), parts: vec![], is_over: Box::new(|| false) }
    }

    /// Gives a script up at its next line once this returns true. Nothing of it is left, and the line is a mistake.
    pub fn give_up_once(&mut self, is_over: impl Fn() -> bool + 'static) {
        self.is_over = Box::new(is_over);
    }

    /// Adds a verb, replacing a verb of the same name. `usage` shows the form of its line in error messages: `mount VOLUME
    /// allocation=NAME`. The state of the verb is kept from one script to the next.
    pub fn add_verb(
        &mut self,
        name: impl Into<String>,
        usage: impl Into<String>,
        play: impl FnMut(&mut Stage, &mut Words<'_>) -> Result<(), Mistake> + 'static,
    ) {
        let verb = Verb { usage: usage.into(), takes_time: false, play: Box::new(play) };
        self.verbs.insert(name.into(), verb);
    }

    /// Adds a part of the host program to every host that a script starts. Its verbs send requests to the address of the part.
    pub fn add_part<M: Machine>(&mut self, part: Part<M>) {
        self.parts.push(part.into());
    }

    /// The form of each verb's line, by verb.
    #[must_use]
    pub fn usages(&self) -> Vec<&str> {
        self.verbs.values().map(|verb| verb.usage.as_str()).collect()
    }

    /// Plays a script that is not in a file.
    ///
    /// # Errors
    /// [`ScriptError::Mistake`] names the line, under the name `script`.
    pub fn play(&mut self, text: &str) -> Result<Played, ScriptError> {
        self.play_as(Path::new("script"), text)
    }

    /// Plays the script of a file, and changes nothing.
    ///
    /// # Errors
    /// When it cannot be read, or has a mistake.
    pub fn play_file(&mut self, path: impl AsRef<Path>) -> Result<Played, ScriptError> {
        let path = path.as_ref();
        self.play_as(path, &read(path)?)
    }

    /// Plays the script of a file, and compares the responses with those recorded in it.
    ///
    /// # Errors
    /// When it cannot be read, or has a mistake.
    pub fn check(&mut self, path: impl AsRef<Path>) -> Result<Verdict, ScriptError> {
        Ok(self.check_and_draw(path)?.0)
    }

    /// The same, with the run as a picture.
    ///
    /// # Errors
    /// When it cannot be read, or has a mistake.
    pub fn check_and_draw(&mut self, path: impl AsRef<Path>) -> Result<(Verdict, Picture), ScriptError> {
        let path = path.as_ref();
        let recorded = read(path)?;
        let Played { text: came, picture } = self.play_as(path, &recorded)?;
        let verdict = if came == recorded {
            Verdict::Same
        } else {
            Verdict::Different { diff: super::diff(path, &recorded, &came) }
        };
        Ok((verdict, picture))
    }

    /// Plays the script of a file, and records the responses in it. False means that they were already recorded.
    ///
    /// # Errors
    /// When it cannot be read or written, or has a mistake; then the file is unchanged.
    pub fn update(&mut self, path: impl AsRef<Path>) -> Result<bool, ScriptError> {
        let path = path.as_ref();
        let recorded = read(path)?;
        let came = self.play_as(path, &recorded)?.text;
        if came == recorded {
            return Ok(false);
        }
        file::write(path, &came)?;
        Ok(true)
    }

    fn play_as(&mut self, path: &Path, text: &str) -> Result<Played, ScriptError> {
        file::check(path, text)?;
        let stage = Stage::open(self.parts.clone()).map_err(ScriptError::Stage)?;
        let Self { verbs, is_over, .. } = self;
        let mut performance = Performance { verbs, is_over, stage, began: Instant::now() };
        let came = goldenscript::generate(&mut performance, &completed(text));
        let came = came.map_err(|error| mistake(path, text, &error.to_string()))?;
        let title = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().replace('_', " ");
        Ok(Played { text: came, picture: Picture { title, marks: performance.stage.marks() } })
    }
}

/// One script while it is played.
struct Performance<'a> {
    verbs: &'a mut BTreeMap<String, Verb>,
    is_over: &'a dyn Fn() -> bool,
    stage: Stage,
    began: Instant,
}

impl Performance<'_> {
    fn perform(&mut self, command: &Command) -> Result<String, Mistake> {
        if (self.is_over)() {
            return Err(Mistake::new("the script was given up before this line"));
        }
        if self.began.elapsed() > PLAYED_MAX {
            let what = format!("the script has been played for {PLAYED_MAX:?}, the limit of a script");
            return Err(Mistake::new(format!("{what}; let less time pass, or split it into several")));
        }
        let Some(verb) = self.verbs.get_mut(&command.name) else {
            let known: Vec<_> = self.verbs.keys().map(String::as_str).collect();
            let advice = advice(&command.name, &known);
            return Err(Mistake::new(format!("there is no verb {:?}; {advice}", command.name)));
        };
        let mut words = Words::of(command);
        let runtime = self.stage.runtime();
        let _entered = runtime.enter();
        let began = verb.takes_time.then(|| self.stage.elapsed());
        self.stage.begin_line(command.to_string());
        let played = (verb.play)(&mut self.stage, &mut words).and_then(|()| words.left_over());
        match played {
            Ok(()) => Ok(self.stage.end_line(began)),
            Err(mistake) => Err(Mistake::new(format!("{mistake}; say: {}", verb.usage))),
        }
    }
}

impl Runner for Performance<'_> {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        self.perform(command).map_err(|mistake| self.stage.masked(&mistake.to_string()).into())
    }
}
