//! The gates of one actor, put between its news in the order in which all of it happened.

use std::collections::VecDeque;

use callboard_proto::admin::v1 as wire;

use super::line::{Line, Voice};
use super::merge::Rank;
use crate::host::{Gate, GateTurn};

/// Gates that wait until it is known where among the news of their actor they stand.
#[derive(Debug, Default)]
pub(super) struct WaitingGates(VecDeque<Gate>);

impl WaitingGates {
    pub(super) fn push(&mut self, gate: Gate) {
        self.0.push_back(gate);
    }

    /// Takes the lines of those that come before the news with this number.
    pub(super) fn before(&mut self, number: u64) -> Vec<(Rank, Line)> {
        let count = self.0.iter().take_while(|gate| gate.published < number).count();
        self.0.drain(..count).map(|gate| told(&gate)).collect()
    }

    /// Takes the lines of all, since nothing more is known of where they stand.
    pub(super) fn all(&mut self) -> Vec<(Rank, Line)> {
        self.0.drain(..).map(|gate| told(&gate)).collect()
    }
}

/// A gate as a line. That the registry writes follows from what it was asked; nobody else waits for long.
pub(super) fn told(gate: &Gate) -> (Rank, Line) {
    let actor = || Voice::Actor(gate.actor.clone());
    let line = match gate.turn {
        GateTurn::Closes(write) => {
            Line::new(actor(), Voice::Disk, format!("write {write}")).of_gate(wire::Gate::Closes, write)
        }
        GateTurn::Opens(through) => {
            Line::new(Voice::Disk, actor(), "on disk").of_gate(wire::Gate::Opens, through)
        }
        GateTurn::Falls => Line::new(Voice::Disk, actor(), "not on disk, and what waited is refused")
            .of_gate(wire::Gate::Falls, 0),
    };
    (if gate.actor == "registry" { Rank::Registry } else { Rank::First }, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(turn: GateTurn, published: u64) -> Gate {
        Gate { actor: "registry".to_owned(), published, turn }
    }

    fn words(lines: &[(Rank, Line)]) -> Vec<String> {
        lines.iter().map(|(_, line)| format!("{} → {}: {}", line.from, line.to, line.message)).collect()
    }

    #[test]
    fn a_gate_stands_before_the_news_that_waited_behind_it_and_after_those_that_did_not_shell_1() {
        let mut waiting = WaitingGates::default();
        for (turn, published) in [
            (GateTurn::Closes(7), 2),
            (GateTurn::Opens(7), 3),
            (GateTurn::Closes(8), 5),
            (GateTurn::Falls, 5),
        ] {
            waiting.push(gate(turn, published));
        }
        assert_eq!(words(&waiting.before(2)), Vec::<String>::new());
        assert_eq!(words(&waiting.before(3)), ["registry → disk: write 7"]);
        assert_eq!(words(&waiting.before(5)), ["disk → registry: on disk"]);
        assert_eq!(
            words(&waiting.all()),
            ["registry → disk: write 8", "disk → registry: not on disk, and what waited is refused"]
        );
        assert_eq!(words(&waiting.all()), Vec::<String>::new());
    }

    #[test]
    fn a_gate_travels_with_the_number_of_its_write() {
        let travelled = |turn| {
            let said = told(&gate(turn, 0)).1.said(1, Default::default());
            (said.gate(), said.write)
        };
        assert_eq!(travelled(GateTurn::Closes(7)), (wire::Gate::Closes, 7));
        assert_eq!(travelled(GateTurn::Opens(9)), (wire::Gate::Opens, 9));
        assert_eq!(travelled(GateTurn::Falls), (wire::Gate::Falls, 0));
    }

    #[test]
    fn the_registry_writes_because_it_was_asked_and_whoever_else_writes_comes_first() {
        let rank = |actor: &str| told(&Gate { actor: actor.to_owned(), ..gate(GateTurn::Falls, 0) }).0;
        assert_eq!((rank("registry"), rank("processes")), (Rank::Registry, Rank::First));
    }
}
