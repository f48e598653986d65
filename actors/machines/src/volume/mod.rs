//! Owns one volume on this node: its claims, its steps at the plugin, and the ledger from which it resumes after any interruption.
//!
//! ```text
//!   Claim ──► ledger: claim ──► attach ──► stage ──► publish ──► look ──► Claimed { path }
//!                               (once for all claims)  (for each claim)
//!
//!   a step:   down ──► going-up ──► up ──► going-down ──► down
//!              ▲          │                    │
//!              │          ▼                    ▼
//!              └────── unknown (up) ◄───► unknown (down)       the same call again, or its inverse
//!
//!   Release ──► ledger: released ──► unpublish ──► claim forgotten
//!                                       │ no claim is left
//!                                       ▼
//!                                    unstage ──► detach ──► volume forgotten
//!
//!   CreateVolume ──► ledger: name, arguments ──► create ──► ledger: the answer, whole ──► Created
//!                                                                │ DeleteVolume, and nothing is claimed or up
//!                                                                ▼
//!                             Deleted ◄── volume forgotten ◄── delete
//! ```
//!
//! An order is a change that a caller requests at the plugin besides these steps: to expand or modify the volume, to take or delete a
//! snapshot or a group of snapshots. It has no inverse.
//!
//! ```text
//!   PlaceOrder ──► ledger: order ──► expand at the controller ──► ledger: size ──► expand on the node ──► order forgotten ──► Done
//!                                     (again while unknown)                         (where it is published)
//!
//!   PlaceOrder ──► ledger: order ──► take the group ──► ready ──► order forgotten ──► Done
//!                                     (again by its name  │ not ready
//!                                      while unknown)     ▼
//!                                                       describe the group, by its ids, after a pause
//! ```
//!
//! Attach, stage and publish are `ControllerPublishVolume`, `NodeStageVolume` and `NodePublishVolume`; a plugin that does not have a
//! step skips it. One operation is in flight at a time (V2). Each begins from the state after the previous one: after every input
//! `planning.rs` chooses the next operation. So a restart, a takeover of the plugin and a lost answer need no path of their own.
//!
//! Invariants:
//!
//! - V1, V5: a claim, and the intent of each step with its exact arguments, are on disk before the call; the result of a call is on disk
//!   before any caller is answered. An unknown outcome needs no write: an intent on disk means unknown after a restart.
//! - V1, V4, V5: the intents of the later steps of a claim are written with the intent of its first step, and the outcomes of the earlier
//!   steps with the outcome of the last one (`ledger.rs`): a crash in between leaves all of them unknown.
//! - V5, V6: while a step is under way, directories are made for the next one, whose intent stays on disk until that call has returned.
//! - V7, V14: a step that is down for certain is not set up over a mount, since such a mount is not of this volume (`before.rs`).
//! - V3, C079, C121 to C132: `targets > 0` implies staged implies attached, for the steps that the plugin has; undoing goes in
//!   reverse, each step only after the one before is confirmed down. What may be set up with other arguments is undone first (C138).
//! - V4: an unclear outcome leaves a step unknown. Unknown counts as up for undoing and as down for setting up. A refusal
//!   after an unclear try proves nothing about that try.
//! - V7: a mount that is handed out was just seen in the kernel's mount table, and is the recorded one. A mount that is gone, replaced or
//!   dead is undone and set up again; one that cannot be looked at is not handed out, and not undone under its users.
//! - V8: a held claim is undone only when a caller has observed the end of its processes, when the host reports after a restart that the
//!   allocation does not live, when it could not be set up, or when the kernel shows that nothing of it is left.
//! - V8: a claim is refused while a release of the same allocation has no answer: after a crash of this actor that release is asked again, and
//!   it would undo the newer claim.
//! - V8, RES-08: a claim whose row was damaged may be in use: until its release, or force, nothing that claims share is undone, and no
//!   other claim is taken. Anything that may be left at its target is audited.
//! - V9: undoing is never given up; a permanently refused undo waits until the plugin changes or a caller asks again, or until it is
//!   forced, which is audited. The audit is in the ledger, by the same write, until it is published. Before the force the ledger has shown
//!   that it takes writes, so that a refused force is never done later.
//! - V4, V5, C050, C061: a volume that may have been created stays in the ledger until it is deleted for certain, or forced, or its owner
//!   reports that another volume here has the id that the plugin has answered: a deletion would delete that other volume ([`Disown`]). It
//!   keeps one name from its first try on. If it is no longer wanted after an unclear try, it is created once more by that name, since only
//!   the answer has the id, and then deleted. A volume that differs from the request is kept, cannot be claimed, and can be deleted.
//! - C059: a volume is deleted only by an id that, as its owner has reported, no other volume here has. The owner reports it with the
//!   deletion request, or, if the id was learned later or by an earlier incarnation of this actor, when the id is reported
//!   ([`AllowDeletion`]).
//! - C062, C065: a volume is deleted only while nothing of it is claimed or set up here. A certain refusal changes nothing.
//! - V5, C050: an order has its arguments on disk before its first call, is repeated with the same ones, and is forgotten when its outcome
//!   is certain, before a caller is answered. The size of a volume is reported only after the plugin has answered it.
//! - C050, C100: a snapshot has one name from its first try on, which every retry repeats until it is ready.
//! - C131, C133: when a claim is given up by force, or its row was damaged, the steps that the claims share are undone only after the
//!   kernel shows nothing at its target and the plugin was asked to undo its publication. The ledger keeps the target until then
//!   (`abandoned.rs`), and the volume is not down before.
//! - C106 to C108: a group of snapshots is an order of the first of its volumes; it names all of them, or all of its snapshots. A group
//!   that is not ready is queried by its ids until it is ready; ids that the plugin refuses are replaced by those that the group's name
//!   returns.
//! - C001, C002: a call names everything that it affects: its volume, and the other volumes, the snapshots and the group of its order. One
//!   call at a time is in flight for each of these.
//! - C109 to C111, C149: an expansion goes to the controller, online or offline as the plugin can, and then to the node, where a claim has
//!   the volume published. Without such a claim the expansion on the node waits for the next one.
//! - V12: claims share a volume only with the same capability, and only if its access mode permits it.
//! - V14: claims of an earlier run are set up or undone only after they are confirmed.
//! - C154: `SINGLE_NODE_WRITER` is replaced by the finer mode that a plugin knows when its first step begins; all steps of a volume have the
//!   same mode (`modes.rs`).
//! - V16: which steps there are is read from the present generation when a step begins; its arguments are repeated until it is resolved.

// The interface: messages, their errors, and news.
mod messages;
mod news;

mod force;
mod lifecycle;

// Orders of a volume.
mod group;
mod order;
mod order_messages;
mod ordered;

// The contents of the ledger.
mod mark;
mod record;

mod existence;
mod snapshots;

// The calls: what each one affects, and its result.
mod before;
mod modes;
mod outcome;
mod turns;

mod paths;

mod operation;

mod ledger;

// The state, and the handling of each input.
mod state;

mod behaviour;

// One file for each kind of message.
mod creating;
mod deleting;
mod doubled;
mod existing;

mod abandoned;
mod claiming;
mod releasing;

mod controller_orders;
mod expanding;
mod orders;

// The next call: how it is chosen and begun, and what its outcome means.
mod planning;
mod steps;
mod waits;

mod looking;
mod returning;
mod step_result;

mod shown;

#[cfg(test)]
mod scripts;

pub use before::Before;
pub use existence::{CreateArgs, Existence, NewVolume, Origin};
pub use force::{Abandoned, ForceError, ForceRelease, ForceScope, Forced, PrepareForce};
pub use group::{GroupMember, GroupOrder};
pub use lifecycle::*;
pub use mark::{Mark, Proof};
pub use messages::*;
pub use news::*;
pub use order::{GrowArgs, Order, OrderCall, OrderRecord, OrderResult};
pub use order_messages::*;
pub use outcome::{
    ControllerRoute, Expands, Failure, Known, NodeRoute, Route, Seen, VolumeCall, VolumeOutcome,
};
pub use paths::VolumeLayout;
pub use record::{
    AttachArgs, Audit, ClaimRecord, Desired, Intent, PublishArgs, StageArgs, Step, Towards, Usage,
    VolumeChange, VolumeImage, VolumeKey, VolumeRecord, VolumeSpec,
};
pub use snapshots::check_alone;
pub use state::{Volume, VolumeConfig, VolumeOptions, VolumeTimer};
pub use turns::Turn;
