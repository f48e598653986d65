//! Remembers the last notification of a machine.

use super::context::StepContext;
use super::machine::Machine;

/// The last published notification. An equal one is not published again (SCL-05).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LastNews<N>(Option<N>);

impl<N> Default for LastNews<N> {
    fn default() -> Self {
        Self(None)
    }
}

impl<N: Clone + PartialEq> LastNews<N> {
    /// Publishes this, unless it was published last.
    pub fn publish<M: Machine<News = N>>(&mut self, news: &N, cx: &mut StepContext<M>) {
        if self.0.as_ref() != Some(news) {
            cx.publish(news.clone());
            self.0 = Some(news.clone());
        }
    }
}
