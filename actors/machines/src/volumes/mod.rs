//! Owns the volumes: knows them, keeps one actor for each volume that is in use, and sends it its messages.
//!
//! ```text
//!   Claim, or rows in the ledger              its actor ended unexpectedly
//!  (no actor) ───────────────────────► Running ─────────────────────────► Pausing ── too often ──► GivenUp
//!      ▲                                │  ▲ ▲                               │                        │
//!      │      proven vacant, no caller  │  │ └────── the pause is over ──────┘                        │
//!      │                                ▼  │                                                          │
//!      └───── nothing waits ───── Stopping ┘ a message waits                                          │
//!                                          ▲                                                          │
//!                                          └─ the next message ───────────────────────────────────────┘
//! ```
//!
//! A volume that is *known* can be claimed; its row is in the owner's store. A volume that is *in use* has claims, steps that are not down,
//! or an order that is not done; these are in the ledger of its own actor. The ledger survives a restart of the host and a crash of that
//! actor; a new actor resumes from it.
//!
//! Invariants:
//!
//! - A volume never has two living actors, so that one call is in flight for it (V2). A message that arrives while an actor ends waits for
//!   the next actor.
//! - A volume in use has an actor, or one that is being restarted; if its actor crashed too often, that is shown, and the next message
//!   restarts it.
//! - An actor is stopped only when its volume is proven vacant: by an answer to a question that was asked after the last claim. A report
//!   proves nothing, since it may be older than a claim.
//! - V8, C059: no claim is sent behind an unanswered release of the same allocation, and no creation behind an unanswered deletion. After a
//!   crash of this actor the release is asked again, and would undo the newer claim; after a crash of the volume's actor the answer to the
//!   deletion would not cover the later creation.
//! - Each message is answered once. If the actor of a volume crashes before it answers, its caller gets an error that tells it to ask again
//!   (V15). Messages that wait for a volume's actor delay no other volume (V9).
//! - V12, C137, C147, C148: a claim is refused if the volume is unknown, cannot be reached from this node, or would exceed the plugin's
//!   limit of volumes. Claims take at most half of the places for waiting callers, so that releases always find a place.
//! - V13: a plugin is unused when no volume of it is in use, or all that are were left so by the stop of the host. At the deadline the
//!   answer lists the volumes in use, with their users. During that wait, and until the plugin has left, it takes no new claims and
//!   volumes.
//! - V14: a confirmation of the host is sent to every volume in use, and again to each actor that starts later in this run.
//! - RES-05: the route of a plugin is that of the latest news of the instances. A takeover changes the route, and neither claims nor
//!   actors.
//! - A volume is replaced or forgotten only while it is not in use, and only if it was not created here: a created volume is deleted.
//! - C059: a volume that was created is known by the answer of its plugin, and a deleted volume is no longer known. Whether it exists is
//!   learned from its actor's answer to a question after the last creation or deletion, and again after a restart: there the first report
//!   of the actor is enough, if it equals the known state, and no creation or deletion was sent or is due. A requested deletion is on disk
//!   before the actor receives it, until its outcome is known. Each new incarnation of the actor is asked again meanwhile, since an earlier
//!   one may have deleted the volume, and forgotten it without a report.
//! - No two known volumes are the same one at their plugin: an operation on one name would affect the other. Where an earlier version, or a
//!   plugin that answers with an existing id, has made two names of one volume, neither is deleted.
//! - A creation that the plugin answers with the id of a known volume is refused, and leaves nothing: the volume of the refused name
//!   forgets the id without a deletion, which would take the data of the known volume. The known volume is on disk before, and not about to
//!   be deleted: otherwise its id may have been reused for another volume. Until the id is forgotten, the refused name is shown as in use,
//!   and the known volume is not deleted. Such an id found in a ledger after a restart ends in the same way.
//! - A question that only reads goes to the plugin by its present route, leaves nothing in any ledger, and holds the turn of its volume for
//!   ten seconds at most, so that no claim waits longer for it.
//! - A volume is known to be larger only after its plugin has answered that, and its known size never shrinks.
//! - C001, C002: an order of a group of snapshots is kept by the first of its volumes by key, in whatever sequence they are named, so that
//!   the same group is one order. While the order is open, none of its volumes is deleted, and no other group of that name is taken. The
//!   turns that each call takes ([`VolumeCall::turns`](crate::volume::VolumeCall::turns)) ensure that no call of its other volumes is in
//!   flight beside its own.
//! - C013: while an order of a snapshot is open, its name is not taken for another volume of the plugin, by what the volumes have shown of
//!   their ledgers. A volume that was just started is waited for.
//! - Late reports of an earlier incarnation of an actor are ignored (REG-08), but audits never are. When this actor's own machine is
//!   rebuilt, its children are killed and started from the ledger.

// The interface: messages, their errors, and news.
mod errors;
mod group_errors;
mod messages;
mod news;
mod order_errors;
mod reads;
mod reasons;

// The state, the handling of each input, and the known volumes.
mod state;

mod behaviour;
mod known;

// One file for each kind of message, and for each rule that several of them need.
mod admission;
mod batches;
mod claimants;
mod contested_ids;
mod existing;
mod forcing;
mod groups;
mod open_orders;
mod ordering;
mod purposes;
mod reading;
mod requests;
mod snapshots;
mod unconfirmed;
mod unused;

// The actors of the volumes, and the routes of their calls.
mod children;
mod routes;

#[cfg(test)]
mod scripts;

pub use errors::*;
pub use group_errors::GroupError;
pub use messages::*;
pub use news::{VolumeActor, VolumeReport, VolumesNews, VolumesView};
pub use order_errors::OrderError;
pub use reads::*;
pub use reasons::{InUse, NoAnswer, SameVolume, TooManyCallers, UnknownVolume};
pub use state::{
    ChildEnded, InstancesItem, KnownVolume, Volumes, VolumesCall, VolumesChange, VolumesConfig, VolumesImage,
    VolumesOptions, VolumesOutcome, VolumesTimer,
};
