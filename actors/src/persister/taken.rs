//! The names of tables and owners in a database that belong to others.

use callboard_machines::persister::{Operation, Owner, Table};

/// Names that the users of a [`Database`](crate::shell::Database) may not use, since others store their records under them.
#[derive(Debug, Clone, Copy)]
pub struct TakenNames {
    /// The tables.
    pub tables: &'static [Table],
    /// The kinds of owners.
    pub owners: &'static [&'static str],
}

/// Why a ledger is refused. Nothing was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameTaken {
    /// Its owner.
    #[error(
        "cannot open a ledger of owner {owner:?}: an actor of Callboard has this name; give the owner another name"
    )]
    Owner {
        /// The kind of the owner.
        owner: &'static str,
    },
    /// One of its tables.
    #[error(
        "cannot use table {table:?}: it belongs to an actor of Callboard; give the table of these records another name"
    )]
    Table {
        /// The table.
        table: &'static str,
    },
}

impl TakenNames {
    /// Every name may be used.
    pub const NONE: Self = Self { tables: &[], owners: &[] };

    pub(crate) fn check_owner(self, owner: Owner) -> Result<(), NameTaken> {
        let owner = owner.kind();
        if self.owners.contains(&owner) { Err(NameTaken::Owner { owner }) } else { Ok(()) }
    }

    pub(crate) fn check_table(self, table: Table) -> Result<(), NameTaken> {
        if self.tables.contains(&table) { Err(NameTaken::Table { table: table.0 }) } else { Ok(()) }
    }

    pub(crate) fn check_write(self, owner: Owner, operations: &[Operation]) -> Result<(), NameTaken> {
        self.check_owner(owner)?;
        operations.iter().try_for_each(|operation| match operation {
            Operation::Put { table, .. } | Operation::Delete { table, .. } => self.check_table(*table),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKEN: TakenNames = TakenNames { tables: &[Table("rows")], owners: &["registry", "volume"] };

    fn delete(table: &'static str) -> Operation {
        Operation::Delete { table: Table(table), key: vec![1], name: String::new() }
    }

    #[test]
    fn taken_names_are_refused_wherever_they_stand_and_others_are_not() {
        let own = Owner::new("own");
        assert_eq!(TAKEN.check_write(own, &[delete("mine"), delete("mine too")]), Ok(()));
        let refused =
            TAKEN.check_write(own, &[delete("mine"), delete("rows")]).expect_err("a table is taken");
        assert_eq!(
            refused.to_string(),
            "cannot use table \"rows\": it belongs to an actor of Callboard; give the table of these records another name"
        );
        let one_of_many =
            TAKEN.check_write(Owner::numbered("volume", 7), &[]).expect_err("the owner is taken");
        assert_eq!(
            one_of_many.to_string(),
            "cannot open a ledger of owner \"volume\": an actor of Callboard has this name; give the owner another name"
        );
        assert_eq!(TakenNames::NONE.check_write(Owner::new("registry"), &[delete("rows")]), Ok(()));
    }
}
