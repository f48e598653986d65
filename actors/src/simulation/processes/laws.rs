//! The laws of the owner of the processes that need no more than itself; the world checks those that need processes.

use super::super::law::Law;
use super::super::witness::{Verdict, Witness};
use crate::processes::Processes;
use crate::shell::{Effect, Input};
use crate::vocabulary::Moment;

/// Sees everything that the owner of the processes does.
#[derive(Debug, Clone, Default)]
pub struct ProcessesLaws {
    /// What is found of it.
    pub(in super::super) verdict: Verdict,
}

impl Witness<Processes> for ProcessesLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Processes) {}

    fn stepped(&mut self, _: Moment, _: &Input<Processes>, _: &[Effect<Processes>], _: &Processes) {}

    fn panicked(&mut self, input: &Input<Processes>) {
        self.verdict.cry(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
