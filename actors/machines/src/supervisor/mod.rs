//! The supervisor: starts its children in order, keeps them running, and stops them in reverse order.
//!
//! Terms and semantics are those of OTP: restart types, strategies and a restart budget. Two additions: a backoff
//! before each restart that grows while a child keeps falling, and a report of how each child ended.
//!
//! ```text
//!                                                     ┌── children fall and are started again ──┐
//!                                                     ▼                                         │
//!   finding children ──► opening ── all run ──► open ───────────────────────────────────────────┘
//!            │              │                    │
//!            │              │ one cannot be      │ budget exhausted, or one cannot be ended
//!            │              │ started            │
//!            ▼              ▼                    ▼
//!          closing: last child first ──────────────► on request: the report, then the end
//!                                                    otherwise: ends as failed, and the parent decides
//!
//!   a child:  waiting ──► starting ──► running ──► stopping ──► waiting
//!                │            │           └── ended by itself ─► ended, or it fell: it is restarted,
//!                │            └── failed ─► it fell              and its siblings, by the strategy
//! ```
//!
//! Guarantees:
//!
//! - S1 A permanent child is restarted whenever it ends, a transient one unless it ended normally, a temporary one never.
//!   One-for-all stops and restarts all siblings with it, rest-for-one those that were started later. Each fall is charged
//!   to the budget, a failed restart too. When the budget is exhausted, everything is stopped and the supervisor ends as
//!   [`Ending::Failed`](crate::kernel::Ending::Failed), which its own parent handles as the fall of a child.
//! - S2 Start in order, stop in reverse order. When the first start of a child fails, those before it are stopped again
//!   (rollback).
//! - S3 Stopping is bounded by the sum of the children's deadlines and ends with a [`ShutdownReport`]. The deadline of a
//!   child is that of its [`ChildSpec`], or the bound that the child itself computes from its own children, where the spec
//!   permits that.
//! - Once the supervisor stops, nothing is started; a start in progress is cancelled. This holds in any race of the
//!   two.
//! - A panic in a child's step is handled by its shell, and reaches the supervisor only when that budget is exhausted; a
//!   panic outside of a step, a kill and a child that gives up do so at once.
//! - A child that the supervisor stops for a restart or after giving up is asked to [detach](crate::kernel::StopMode): its
//!   leftovers serve its next life. A shutdown during such a pause does not end what was detached.
//! - It survives its own crash: its children stay alive, and it finds them. However it ends, no
//!   child outlives it (SCL-06).

mod spec;

mod messages;

mod state;

mod behaviour;
mod closing;
mod dynamic;
mod group_restarts;
mod tree;

#[cfg(test)]
mod chances;
#[cfg(test)]
mod scripts;

pub use dynamic::{ChildState, DynamicChild, Ended};
pub use messages::*;
pub use spec::{ChildSpec, Plan, Restart, Strategy, SupervisorSpec};
pub use state::{Call, ChildSeen, FoundChild, Outcome, RestartNumber, Supervisor, Timer};
