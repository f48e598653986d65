//! The owner of the volumes: knows them, keeps one actor for each that is in use, and gives it its messages.
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
//! A volume that is *known* can be claimed; its row is in the owner's store. One that is *in use* has claims, steps that are not down, or an order
//! that is not done; these are in the ledger of its own actor. The ledger survives a restart of the host and a crash of that actor; a new
//! actor goes on from it.
//!
//! Invariants:
//!
//! - A volume never has two living actors, so that one call is in flight for it (V2). A message that comes while one ends waits for
//!   the next one.
//! - What is in use has an actor, or one that is started again; one that fell too often is shown, and the next message starts it.
//! - An actor is stopped only when its volume is proven vacant: by an answer to what was asked after the last claim. A report proves
//!   nothing, for it may be older than a claim.
//! - V8, C059: no claim is sent behind a release of the same allocation without an answer, and no creation behind a deletion without one. After a
//!   crash of this actor the release is asked again, and would undo the newer claim; after a fall of the volume's actor the answer to the deletion
//!   would say nothing of what was created since.
//! - Each message is answered once. If the actor of a volume falls before it answers, its caller gets an error that says to ask again
//!   (V15). What waits for a volume's actor delays no other volume (V9).
//! - V12, C137, C147, C148: a claim is refused if the volume is unknown, cannot be reached from this node, or would exceed the plugin's
//!   limit of volumes. Claims take at most half of the places for waiting callers, so that releases always find one.
//! - V13: a plugin is unused when no volume of it is in use, or was left so by the stop of the host. At the deadline the answer
//!   says which volumes are in use, and by whom.
//!   While that is waited for, and until the plugin has left, it takes no new claims and volumes.
//! - V14: what the host confirms is sent to every volume in use, and again to each actor that starts later in this run.
//! - RES-05: the route of a plugin is that of the last news of the instances. A takeover changes the route, and neither claims nor actors.
//! - A volume is replaced or forgotten only while it is not in use, and not if it was created here: then it is deleted.
//! - C059: a volume that was created is known by the answer of its plugin, and one that was deleted is not known any more. Whether it
//!   exists is learned from its actor's answer to what was asked after the last creation or deletion, and again after a restart: there the first
//!   report of the actor is enough, if it says what is known already, and no creation or deletion was sent or is due. That a
//!   deletion was asked for is on disk before the actor hears of it, until it is known what became of it. Each new life of the actor is asked
//!   again meanwhile, since an earlier one may have deleted it, and forgotten it without a word.
//! - No two known volumes are the same one at their plugin: what is done to one name would be done to the other. Where an earlier version, or a
//!   plugin that answers with an id that was there, has made two names of one volume, neither is deleted.
//! - A creation that the plugin answers with the id of a known volume is refused, and leaves nothing: the volume of the refused name forgets
//!   it without a deletion, which would take the data of the known one. The known one is on disk before, and not about to be deleted: then
//!   its id may have been given once more, to a volume of its own. Until it is forgotten, the refused name is shown as in use, and the known
//!   one is not deleted. What is found in a ledger after a restart ends in the same way.
//! - What only reads goes to the plugin by its present route, leaves nothing in any ledger, and holds the turn of its volume for ten seconds
//!   at most, so that no claim waits longer for it.
//! - A volume is known to be larger only after its plugin has answered that, and never to be smaller than it was known to be.
//! - C001, C002: an order of a group of snapshots is kept by the first of its volumes by key, whatever order they are named in, so that the same
//!   group is one order. While it is open, none of its volumes is deleted, and no other group of that name is taken. That no call of
//!   another of its volumes is in flight beside its own is the part of the turns that each call takes ([`VolumeCall::turns`](crate::volume::VolumeCall::turns)).
//! - C013: while an order of a snapshot is open, its name is not taken for another volume of the plugin, as far as the volumes have shown what
//!   their ledgers have: one that was just started is waited for.
//! - Late reports of an earlier life of an actor are ignored (REG-08), but no audit is. When this actor's own machine is rebuilt, its
//!   children are killed and started from the ledger.

// The interface: messages, their errors, and news.
mod errors;
mod group_errors;
mod messages;
mod news;
mod order_errors;
mod reads;
mod reasons;

// What it has, what it does with each input, and which volumes it knows.
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

// The actors of the volumes, and where their calls go.
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
