//! The conditions that a volume waits for, other than its next try.

use super::state::Volume;

/// A condition that must be met first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Route,
    Node,
    Controller,
    /// Without it, no volume can be attached (C146).
    NodeId,
    InFlight,
    /// The state that claims share is to be undone, and claims are published on it (V3), or not confirmed (V14).
    Others,
    Expansion,
    Vacancy,
    Publication,
    ExpandingPlugin,
    OfferingPlugin,
}

impl Wait {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Route => "the route to the plugin is being read",
            Self::Node => "the plugin has no healthy node instance here",
            Self::Controller => {
                "the plugin has no healthy controller instance here, as an allocation of type controller or monolith has"
            }
            Self::NodeId => "the plugin has not told the id of this node",
            Self::InFlight => "a call is in flight",
            Self::Others => "it has to be set up anew, and other claims hold it",
            Self::Expansion => "it is being expanded, and its plugin expands volumes only offline",
            Self::Vacancy => "it is in use, and its plugin expands volumes only offline",
            Self::Publication => "it grows on this node when it is published here",
            Self::ExpandingPlugin => "the plugin does not expand volumes any more",
            Self::OfferingPlugin => "the plugin does not offer that any more",
        }
    }
}

impl Volume {
    /// The condition in words, with the allocations that have to release the volume.
    pub(super) fn waits_for(&self, wait: Wait) -> String {
        let why = wait.as_str();
        if wait != Wait::Others {
            return why.to_owned();
        }
        let holding = self.in_order().into_iter();
        let holding = holding.filter(|claim| !claim.is_wanted() || claim.record.publish.is_up());
        let holding = holding.map(|claim| &claim.record.allocation).chain(&self.lost);
        let holding: Vec<_> = holding.map(ToString::to_string).collect();
        format!("{why} ({}); it goes on when they are released", holding.join(", "))
    }
}
