//! Fuzz targets of this crate: configurations, scripts and records; and the replay of their findings.
//!
//! Like `callboard_actors::fuzzing` for the actors. `docs/fuzzing.md` describes how to run them, and their findings.

/// A target with its name, also the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of this crate.
pub const TARGETS: &[Target] = &[
    ("configs", crate::config::fuzzing::configs),
    ("scripts", crate::script::fuzzing::scripts),
    ("task_records", crate::tasks::fuzzing::records),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::TARGETS;

    fn below_fuzz(folder: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder)
    }

    #[test]
    fn everything_that_the_fuzzers_kept_is_played_again() {
        for (name, target) in TARGETS {
            let files =
                std::fs::read_dir(below_fuzz("corpus").join(name)).expect("every target has a corpus");
            let inputs: Vec<_> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
            inputs.iter().for_each(|input| target(input));
            println!("{name}: {} inputs", inputs.len());
            assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        }
    }

    #[test]
    fn every_target_has_its_program_and_every_corpus_its_target() {
        let names = |folder: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(below_fuzz(folder)).unwrap();
            entries.map(|entry| entry.unwrap().path().file_stem().unwrap().display().to_string()).collect()
        };
        assert_eq!(names("corpus"), names("fuzz_targets"));
        let manifest = std::fs::read_to_string(below_fuzz("Cargo.toml")).unwrap();
        for name in names("fuzz_targets") {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
        }
    }
}
