//! A fault of one call: its kind, its moment in the call, and how often it occurs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::csi::{Call, Code};

use crate::duration::parse_duration;

/// What is expected on the command line.
const GRAMMAR: &str = "expected CALL=ACTION[,MOMENT][,WHEN], where ACTION is a gRPC code, hang, slow:DURATION, die, forget or lie; \
                       MOMENT is before, middle or after; and WHEN is nth:N, from:N, chance:PERCENT or while:FILE; for \
                       instance NodeStageVolume=UNAVAILABLE,after,nth:2";

/// A fault of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The call.
    pub call: Call,
    /// The kind of the fault.
    pub action: Action,
    /// Its moment in the call.
    pub moment: Moment,
    /// The affected calls, by their number or condition.
    pub when: When,
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is answered with this error.
    Answer(Code),
    /// It is not answered while the file of [`When::While`] exists, or never answered without such a file.
    Hang,
    /// It takes this much longer.
    Slow(Duration),
    /// The plugin ends at once, with exit code 1.
    Die,
    /// It is answered with success, and its effect is forgotten.
    Forget,
    /// It is answered with something untrue, or with something that no host may accept.
    Lie,
}

/// A moment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before it has had any effect.
    Before,
    /// After the first change that it makes, and before it is complete: between record and mount, if it has both.
    Middle,
    /// After its whole effect, before its answer.
    After,
}

/// The affected calls, counted from 1 since the start of the plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// Each call.
    Always,
    /// This call only.
    Nth(u64),
    /// This call and all later calls.
    From(u64),
    /// Each call with this probability.
    Chance(f64),
    /// Each call that arrives while this file exists.
    While(PathBuf),
}

impl Fault {
    /// Reads a fault from the command line.
    ///
    /// # Errors
    /// When the text is not a fault; the error contains the expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (call, rest) = text.split_once('=').ok_or(GRAMMAR)?;
        let mut parts = rest.split(',');
        let action = Action::parse(parts.next().unwrap_or_default())?;
        let mut fault = Self { call: Call::named(call)?, action, moment: Moment::Before, when: When::Always };
        for part in parts {
            match Moment::parse(part) {
                Some(moment) => fault.moment = moment,
                None => fault.when = When::parse(part)?,
            }
        }
        match (fault.action, fault.moment) {
            (Action::Answer(_) | Action::Hang | Action::Slow(_), Moment::Middle) => {
                Err(format!("only die happens in the middle of a call; {GRAMMAR}"))
            }
            _ => Ok(fault),
        }
    }
}

impl Action {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "hang" => Ok(Self::Hang),
            "die" => Ok(Self::Die),
            "forget" => Ok(Self::Forget),
            "lie" => Ok(Self::Lie),
            _ => match text.strip_prefix("slow:") {
                Some(time) => parse_duration(time).map(Self::Slow).map_err(|error| error.to_string()),
                None => code(text).map(Self::Answer),
            },
        }
    }
}

/// The gRPC code of this name, except OK.
pub(super) fn code(name: &str) -> Result<Code, String> {
    let codes = || Code::ALL.map(Code::as_str)[1..].join(", ");
    let known = Code::ALL.into_iter().find(|known| *known != Code::Ok && known.as_str() == name);
    known.ok_or_else(|| format!("{name:?} is no action; {GRAMMAR}; the codes are {}", codes()))
}

impl Moment {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "before" => Some(Self::Before),
            "middle" => Some(Self::Middle),
            "after" => Some(Self::After),
            _ => None,
        }
    }
}

impl When {
    fn parse(text: &str) -> Result<Self, String> {
        let count = |number: &str| number.parse().ok().filter(|number| *number > 0);
        let found = match text.split_once(':') {
            Some(("nth", number)) => count(number).map(Self::Nth),
            Some(("from", number)) => count(number).map(Self::From),
            Some(("while", path)) => {
                Some(path).filter(|path| !path.is_empty()).map(|path| Self::While(path.into()))
            }
            Some(("chance", percent)) => {
                let percent: Option<f64> = percent.trim_end_matches('%').parse().ok();
                percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|it| Self::Chance(it / 100.0))
            }
            Some(_) | None => None,
        };
        found.ok_or_else(|| format!("{text:?} is neither a moment nor a time; {GRAMMAR}"))
    }

    /// Whether the fault affects this call; `dice` gives a number from 0 to 1, and `is_there` reports whether a file exists.
    pub(super) fn is_now(
        &self,
        number: u64,
        dice: impl FnOnce() -> f64,
        is_there: impl FnOnce(&Path) -> bool,
    ) -> bool {
        match self {
            Self::Always => true,
            Self::Nth(nth) => number == *nth,
            Self::From(first) => number >= *first,
            Self::Chance(chance) => dice() < *chance,
            Self::While(path) => is_there(path),
        }
    }

    /// The file of its condition.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::While(path) => Some(path),
            Self::Always | Self::Nth(_) | Self::From(_) | Self::Chance(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_what_goes_wrong_when_and_how_often() {
        let fault = |text| Fault::parse(text).expect("it is one");
        let plain = fault("Probe=hang");
        assert_eq!((plain.call, plain.action, plain.moment), (Call::Probe, Action::Hang, Moment::Before));
        assert_eq!(plain.when, When::Always);
        let second = fault("NodeStageVolume=UNAVAILABLE,after,nth:2");
        assert_eq!((second.action, second.moment), (Action::Answer(Code::Unavailable), Moment::After));
        assert_eq!(second.when, When::Nth(2));
        assert_eq!(fault("CreateVolume=slow:2s,chance:25").action, Action::Slow(Duration::from_secs(2)));
        assert_eq!(fault("CreateVolume=die,middle,from:3").when, When::From(3));
        let held = fault("NodeStageVolume=hang,after,while:/run/hold");
        assert_eq!((held.moment, held.when), (Moment::After, When::While("/run/hold".into())));
    }

    #[test]
    fn what_is_no_fault_is_refused_with_what_is_expected() {
        for text in [
            "Probe",
            "Probe=",
            "probe=hang",
            "Probe=OK",
            "Probe=hang,middle",
            "Probe=hang,nth:0",
            "Probe=hang,chance:101",
            "Probe=hang,later",
            "Probe=hang,while:",
            "Probe=slow:soon",
        ] {
            assert!(Fault::parse(text).is_err(), "{text}");
        }
        let refused = Fault::parse("Probe=hang,later").expect_err("it is none");
        assert!(refused.contains("\"later\"") && refused.contains("nth:N"), "{refused}");
    }

    #[test]
    fn a_chance_is_a_chance_and_a_number_is_a_number() {
        let is_now = |when: When, number| when.is_now(number, || 0.5, |path| path == Path::new("/there"));
        assert!(is_now(When::Always, 7) && is_now(When::Nth(7), 7) && is_now(When::From(3), 7));
        assert!(!is_now(When::Nth(7), 8) && !is_now(When::From(8), 7));
        assert!(is_now(When::Chance(0.6), 1) && !is_now(When::Chance(0.5), 1));
        assert!(is_now(When::While("/there".into()), 1) && !is_now(When::While("/gone".into()), 1));
    }
}
