//! The names of tables and owners in the database of a host that belong to our own actors: host programs may not use them.

use callboard_actors::persister::{Table, TakenNames};
use callboard_actors::{processes, registry, volume, volumes};

/// The names of every host, of the tasks of `callboard run`, which may have run on the same data directory, and of the persister.
pub(super) const TAKEN: TakenNames = TakenNames {
    tables: &[
        registry::REGISTRATION_TABLE,
        processes::PROCESS_TABLE,
        volumes::KNOWN_TABLE,
        volumes::DELETION_TABLE,
        volume::VOLUME_TABLE,
        volume::CLAIM_TABLE,
        volume::LOST_CLAIM_TABLE,
        volume::ABANDONED_TABLE,
        volume::AUDIT_TABLE,
        volume::ORDER_TABLE,
        Table("task-courses"),
        Table("task-events"),
        Table("task-drivers"),
        Table("meta"),
        Table("quarantine"),
    ],
    owners: &[
        registry::OWNER.kind(),
        processes::OWNER.kind(),
        volumes::OWNER.kind(),
        volume::OWNER_KIND,
        "tasks",
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    const ROOT: &str = env!("CARGO_MANIFEST_DIR");

    fn rust_files(below: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(below).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => rust_files(&path),
                false => vec![path],
            })
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .collect()
    }

    /// Every text after this prefix in the production code of our actors: `Table("` of `const TABLE: Table = Table("rows");`.
    fn named_in_code(behind: &str) -> BTreeSet<String> {
        let files = ["src", "actors/src"].map(|folder| rust_files(&Path::new(ROOT).join(folder))).concat();
        let files =
            files.iter().filter(|file| !file.ends_with("tests.rs") && !file.ends_with("launch/taken.rs"));
        let mut names = BTreeSet::new();
        for file in files {
            let text = fs::read_to_string(file).expect("it can be read");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let found =
                lines.flat_map(|line| line.split(behind).skip(1)).filter_map(|rest| rest.split('"').next());
            names.extend(found.map(str::to_owned));
        }
        names
    }

    #[test]
    fn every_table_and_owner_of_our_own_actors_is_taken() {
        let tables: BTreeSet<String> = TAKEN.tables.iter().map(|table| table.0.to_owned()).collect();
        let owners: BTreeSet<String> = TAKEN.owners.iter().map(|owner| (*owner).to_owned()).collect();
        let (used, kinds) = (named_in_code("Table(\""), named_in_code("Owner::new(\""));
        assert!(used.contains("registrations") && kinds.contains("registry"), "it looks at the right files");
        assert_eq!(used.difference(&tables).collect::<Vec<_>>(), Vec::<&String>::new(), "tables");
        assert_eq!(kinds.difference(&owners).collect::<Vec<_>>(), Vec::<&String>::new(), "owners");
    }

    #[test]
    fn every_taken_name_stands_in_the_documentation_of_a_ledger() {
        let path = Path::new(ROOT).join("actors/src/shell/ledger.rs");
        let text = fs::read_to_string(path).expect("it can be read");
        let names = TAKEN.tables.iter().map(|table| table.0).chain(TAKEN.owners.iter().copied());
        let left_out: Vec<_> = names.filter(|name| !text.contains(&format!("`{name}`"))).collect();
        assert!(left_out.is_empty(), "{left_out:?}");
    }
}
