//! One order for what several actors have said.

use std::collections::VecDeque;

use super::line::Line;

/// The place of a line in the course of things: what is further down follows from what is further up. It decides only
/// between lines of different actors that are there at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It comes before everything.
    First,
    /// The agent begins something, or hears that a process has ended.
    Order,
    /// An allocation prepares.
    Prepared,
    /// A process begins.
    Run,
    /// An allocation waits and probes.
    Asking,
    /// The registry decides.
    Registry,
    /// An allocation has got its answer from the registry.
    Answered,
    /// Instances begin, look and retire.
    Instances,
    /// The inventory publishes.
    Inventory,
    /// An allocation is deregistered, or has something to tell of what came before.
    Books,
    /// A process is ended.
    End,
}

/// Lines of several actors, each in its own order, as one list: always the one next that is furthest up in the course of
/// things; of equals, that of the actor that stands first.
pub(super) fn merge(mut queues: Vec<VecDeque<(Rank, Line)>>) -> Vec<Line> {
    let mut merged = Vec::with_capacity(queues.iter().map(VecDeque::len).sum());
    loop {
        let waiting = queues.iter_mut().filter(|queue| !queue.is_empty());
        let Some(next) = waiting.min_by_key(|queue| queue.front().map(|(rank, _)| *rank)) else {
            return merged;
        };
        merged.extend(next.pop_front().map(|(_, line)| line));
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Voice;
    use super::*;

    fn queue(lines: &[(Rank, &str)]) -> VecDeque<(Rank, Line)> {
        let line = |message: &str| Line::new(Voice::Registry, Voice::Everyone, message);
        lines.iter().map(|(rank, message)| (*rank, line(message))).collect()
    }

    fn messages(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.message.as_str()).collect()
    }

    #[test]
    fn a_cause_stands_before_its_consequence_whichever_actor_was_read_first() {
        let merged = merge(vec![
            queue(&[(Rank::Instances, "begin")]),
            queue(&[(Rank::Asking, "registering"), (Rank::Answered, "registered")]),
            queue(&[(Rank::Registry, "Register"), (Rank::Registry, "active")]),
        ]);
        assert_eq!(messages(&merged), ["registering", "Register", "active", "registered", "begin"]);
    }

    #[test]
    fn what_one_actor_said_is_never_reordered() {
        let merged = merge(vec![
            queue(&[(Rank::Answered, "registered"), (Rank::Asking, "probing")]),
            queue(&[(Rank::Registry, "Register")]),
        ]);
        assert_eq!(messages(&merged), ["Register", "registered", "probing"]);
    }

    #[test]
    fn of_equals_the_actor_that_stands_first_speaks_first() {
        let merged = merge(vec![
            queue(&[(Rank::Registry, "one"), (Rank::Registry, "two")]),
            queue(&[(Rank::Registry, "three")]),
        ]);
        assert_eq!(messages(&merged), ["one", "two", "three"]);
    }
}
