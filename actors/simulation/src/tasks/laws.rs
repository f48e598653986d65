//! The laws of the tasks that need only the machine; the [host](super::host) checks those that need the environment.

use callboard_actors::shell::{Effect, Input};
use callboard_actors::tasks::Tasks;
use callboard_actors::vocabulary::Moment;

use crate::{Law, LawChecker, Left, Verdict};

#[derive(Debug, Clone, Default)]
pub(super) struct TasksLaws {
    pub(super) verdict: Verdict,
}

impl LawChecker<Tasks> for TasksLaws {
    fn rebuilt(&mut self, _: Moment, _: &Tasks) {}

    fn stepped(&mut self, _: Moment, _: &Input<Tasks>, _: &[Effect<Tasks>], _: &Tasks) {}

    fn panicked(&mut self, input: &Input<Tasks>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }

    fn left(&mut self, left: &Left<Tasks>, is_durable: bool) {
        if !is_durable {
            self.verdict.violation(Law::Shell1, || {
                format!("{left:?} left before the write in front of it was on disk")
            });
        }
    }
}
