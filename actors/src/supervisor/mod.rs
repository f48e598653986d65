//! The supervisor: starts its children in order, keeps them running, and stops them in reverse.
//!
//! Words and semantics are those of OTP: restart types, strategies and a restart budget. What OTP lacks is added: a pause
//! before each restart that grows while a child keeps falling, and a report of how everything ended.
//!
//! ```text
//!                                                 ┌── children fall and are started again ──┐
//!                                                 ▼                                         │
//!   taking stock ──► opening ── all run ──► open ───────────────────────────────────────────┘
//!        │              │                    │
//!        │              │ one cannot be      │ the budget is spent, or one cannot be ended
//!        │              │ started            │
//!        ▼              ▼                    ▼
//!      closing: last child first ──────────────► asked for: the report, then the end
//!                                                otherwise: ends as failed, and the parent decides
//!
//!   a child:  waiting ──► starting ──► running ──► stopping ──► waiting
//!                │            │           └── ended by itself ─► ended, or it fell: a course brings it
//!                │            └── failed ─► it fell              and those who share its fate down and up
//! ```
//!
//! What it promises:
//!
//! - S1 A permanent child is started again whenever it ends, a transient one unless it ended normally, a temporary one never.
//!   One-for-all takes all siblings down with it and up again, rest-for-one those that were started later. Each fall is
//!   charged to the budget, a restart that fails too; when it is spent, everything is stopped and the supervisor ends as
//!   [`Ending::Failed`](crate::shell::Ending::Failed), which its own parent takes for the fall of a child.
//! - S2 Start in order, stop in reverse. When a child cannot be started in the first place, those before it are stopped again.
//! - S3 Stopping is bounded by the sum of the children's deadlines and ends with a [`ShutdownReport`]. The deadline of a child
//!   is that of its [`ChildSpec`], or what the child itself says that it needs for what is below it, where the spec permits that.
//! - Once it stops, nothing is started any more, whichever comes first; a start that is under way is called back.
//! - A panic in a child's step is the business of its shell, and only the end of that budget comes here; a panic outside of a
//!   step, a kill and a child that gives up do so at once.
//! - Whatever it stops of its own accord, for a restart or when it gives up, is asked to [detach](crate::shell::StopMode):
//!   what a child left in place serves its next life. A shutdown that falls into such a pause finds nobody to end it.
//! - It holds through a crash of its own: its children live on, and it takes stock of them. When it ends, by whatever means,
//!   no child outlives it (SCL-06).

mod spec;

mod messages;

mod state;

mod behaviour;
mod closing;
mod courses;
mod tree;

mod actor;
mod child;

#[cfg(test)]
mod chances;
#[cfg(test)]
mod scripts;

pub use actor::start;
pub use child::Child;
pub use messages::*;
pub use spec::{ChildSpec, Plan, Restart, Strategy, SupervisorSpec};
pub use state::{Call, CourseNumber, Outcome, Standing, Supervisor, Timer};
