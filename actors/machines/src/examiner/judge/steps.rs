//! The steps of volumes as known to their orchestrator: down, up or unknown (table C.4).

use std::collections::BTreeMap;

use crate::csi::Call;
use crate::examiner::request::Request;
use crate::rpc::Code;

/// A kind of step, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Published to a node by the controller.
    Attached,
    /// Staged at a path.
    Staged,
    /// Published at a target.
    Published,
}

/// A step of a volume: the node, staging path or target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) volume: String,
    pub(super) kind: Kind,
    pub(super) at: String,
}

/// Why the state of a step is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// A call is in flight.
    InFlight,
    /// The caller left before the answer.
    Left,
    /// The code does not show the effect.
    Code(Code),
}

/// A step that is not down.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// The call that took it.
    pub(super) number: u64,
    pub(super) request: Request,
    /// `None`: it is up.
    pub(super) doubt: Option<Doubt>,
    /// Whether an undo was called for it.
    pub(super) undo_called: bool,
    /// Whether the plugin has since refused a step that needs this one, so that it may have forgotten it.
    pub(super) is_denied: bool,
}

impl Step {
    pub(super) const fn is_up(&self) -> bool {
        self.doubt.is_none()
    }

    /// The state in words.
    pub(super) fn state(&self) -> String {
        match self.doubt {
            None => format!("up since call {}", self.number),
            Some(Doubt::InFlight) => "unknown, since a call on it is in flight".to_owned(),
            Some(Doubt::Left) => "unknown, since its caller left before the answer".to_owned(),
            Some(Doubt::Code(code)) => format!("unknown after {code}"),
        }
    }
}

/// All steps that are not down.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steps(BTreeMap<Place, Step>);

/// The steps that a call changes, as they were before it, and the change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    is_undo: bool,
    before: Vec<(Place, Option<Step>)>,
}

impl Steps {
    pub(super) fn get(&self, volume: &str, kind: Kind, at: &str) -> Option<&Step> {
        self.0.get(&Place { volume: volume.to_owned(), kind, at: at.to_owned() })
    }

    /// The steps of a volume, with the kind.
    pub(super) fn of<'a>(&'a self, volume: &'a str, kind: Kind) -> impl Iterator<Item = (&'a str, &'a Step)> {
        let first = Place { volume: volume.to_owned(), kind, at: String::new() };
        let rest =
            self.0.range(first..).take_while(move |(place, _)| place.volume == volume && place.kind == kind);
        rest.map(|(place, step)| (place.at.as_str(), step))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Place, &Step)> {
        self.0.iter()
    }

    /// A call on steps begins: until its end their state is unknown, except when it repeats a step that is up.
    pub(super) fn begin(&mut self, number: u64, call: Call, request: &Request) -> Option<Change> {
        let (kind, is_undo) = kind_of(call)?;
        let at = match kind {
            Kind::Attached => &request.node_id,
            Kind::Staged => &request.staging_target_path,
            Kind::Published => &request.target_path,
        };
        let volume = &request.volume_id;
        let places: Vec<Place> = if is_undo && at.is_empty() {
            // An unset node means all nodes (C080).
            self.of(volume, kind).map(|(at, _)| at.to_owned()).collect()
        } else {
            vec![at.clone()]
        }
        .into_iter()
        .map(|at| Place { volume: volume.clone(), kind, at })
        .collect();
        let before: Vec<_> =
            places.into_iter().map(|place| (place.clone(), self.0.get(&place).cloned())).collect();
        for (place, step) in &before {
            let begun = match step {
                Some(step) if is_undo => {
                    Step { doubt: Some(Doubt::InFlight), undo_called: true, ..step.clone() }
                }
                Some(step) if step.is_up() => step.clone(),
                None if is_undo => continue,
                Some(_) | None => {
                    let doubt = Some(Doubt::InFlight);
                    Step { number, request: request.clone(), doubt, undo_called: false, is_denied: false }
                }
            };
            self.0.insert(place.clone(), begun);
        }
        Some(Change { is_undo, before })
    }

    /// The call on steps has ended: with success, without effect, or with a doubt.
    pub(super) fn end(&mut self, number: u64, request: &Request, change: Change, end: End) {
        for (place, before) in change.before {
            let after = match (end, change.is_undo) {
                (End::Done, false) => Some(Step {
                    number,
                    request: request.clone(),
                    doubt: None,
                    undo_called: false,
                    is_denied: false,
                }),
                (End::Done, true) => None,
                (End::Nothing, _) => before,
                (End::Unknown(doubt), false) => match before {
                    Some(step) if step.is_up() => Some(step),
                    Some(_) | None => Some(Step {
                        number,
                        request: request.clone(),
                        doubt: Some(doubt),
                        undo_called: false,
                        is_denied: false,
                    }),
                },
                (End::Unknown(doubt), true) => {
                    before.map(|step| Step { doubt: Some(doubt), undo_called: true, ..step })
                }
            };
            match after {
                Some(step) => self.0.insert(place, step),
                None => self.0.remove(&place),
            };
        }
    }

    /// The plugin refuses to publish a volume: it may have forgotten that it has staged it.
    pub(super) fn deny_staging(&mut self, volume: &str) {
        self.staging_is_denied(volume, true);
    }

    /// The plugin has published a volume: it knows that it has staged it.
    pub(super) fn confirm_staging(&mut self, volume: &str) {
        self.staging_is_denied(volume, false);
    }

    fn staging_is_denied(&mut self, volume: &str, is_denied: bool) {
        let is_its = |place: &Place| place.volume == volume && place.kind == Kind::Staged;
        self.0.iter_mut().filter(|(place, _)| is_its(place)).for_each(|(_, step)| step.is_denied = is_denied);
    }

    /// The volume is gone, with all its steps.
    pub(super) fn forget(&mut self, volume: &str) {
        self.0.retain(|place, _| place.volume != volume);
    }
}

/// The effect of a call, as far as its end shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It took effect.
    Done,
    /// It had no effect.
    Nothing,
    /// It may have had an effect.
    Unknown(Doubt),
}

impl End {
    /// The effect of a call that ended with this code (table C.6). To undo an object that is not found counts as done. Implementations
    /// differ on `RESOURCE_EXHAUSTED`; the examiner demands no undo after it.
    pub(super) fn of(code: Code, is_undo: bool) -> Self {
        match code {
            Code::Ok => Self::Done,
            Code::NotFound if is_undo => Self::Done,
            Code::ResourceExhausted if !is_undo => Self::Nothing,
            _ if code.class() == crate::rpc::Class::Unclear => Self::Unknown(Doubt::Code(code)),
            _ => Self::Nothing,
        }
    }
}

/// The kind of step that a call takes or undoes, and whether it undoes it.
pub(super) const fn kind_of(call: Call) -> Option<(Kind, bool)> {
    match call {
        Call::ControllerPublishVolume => Some((Kind::Attached, false)),
        Call::ControllerUnpublishVolume => Some((Kind::Attached, true)),
        Call::NodeStageVolume => Some((Kind::Staged, false)),
        Call::NodeUnstageVolume => Some((Kind::Staged, true)),
        Call::NodePublishVolume => Some((Kind::Published, false)),
        Call::NodeUnpublishVolume => Some((Kind::Published, true)),
        _ => None,
    }
}
