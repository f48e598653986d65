//! Checks that a rebuilt registry equals the content of the disk.

use callboard_actors::registry::{Entry, Registry, Standing};
use callboard_actors::shell::Machine;

use super::super::law::Law;
use super::disk::Rows;
use super::laws::RegistryLaws;

impl RegistryLaws {
    pub(super) fn check_rebuilt(&mut self, machine: &Registry, rows: &Rows) {
        let view = machine.view();
        let told = view.entries.iter().map(|entry| (entry.number, &entry.registration));
        if !told.eq(rows.values().map(|row| (row.number, &row.registration))) {
            let law = if view.entries.len() == rows.len() { Law::R2 } else { Law::Shell2 };
            self.verdict.violation(law, || {
                "the rebuilt registry is not what the disk holds, in its order".to_owned()
            });
        }
        let is_so = |entry: &Entry| {
            let is_confirmed = rows.get(&entry.number).is_some_and(|row| row.confirmed_in == self.run);
            is_confirmed == (entry.standing == Standing::Confirmed)
        };
        if !view.entries.iter().all(is_so) {
            self.verdict
                .violation(Law::R8, || "what was not confirmed in this run counts as confirmed".to_owned());
        }
        let served = self.model.boards.values().filter_map(|board| board.active.as_ref());
        if !view.active.iter().map(|active| active.generation).eq(served.map(|served| served.generation)) {
            self.verdict
                .violation(Law::R1, || "a rebuild has changed who is active, or its generation".to_owned());
        }
    }
}
