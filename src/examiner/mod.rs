//! A CSI plugin that examines its orchestrator: `callboard plugin examiner`.
//!
//! It is the reference plugin ([`crate::hostpath`]), with its real volumes and its faults, behind services that observe each call and
//! judge it by the rules for orchestrators. `docs/examiner.md` shows how to examine an orchestrator.
//!
//! ```text
//!   arguments   the command line: those of the reference plugin, and of the exam
//!   serve       its lifecycle: as the reference plugin, with a report at the end and on SIGUSR1
//!   services    each call: observed, refused if its form breaks a rule, else passed on to the reference plugin
//!   observe     requests and answers as the judge takes them
//!   recorder    the judge, and the journal of an exam that continues after a restart
//!   surface     what the plugin claims
//! ```
//!
//! [`callboard_actors::examiner`] makes the decisions.

mod arguments;
mod serve;

mod services;

mod observe;
mod recorder;
mod surface;

mod error;

pub use arguments::ExaminerArgs;
pub use error::ExaminerError;
pub use serve::serve;
