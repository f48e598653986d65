//! Checks the published packages: their metadata, their files and their dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The published packages, each after the packages that it needs, with the folder of each.
const PACKAGES: &[(&str, &str)] = &[
    ("callboard-proto", "proto"),
    ("callboard-machines", "actors/machines"),
    ("callboard-actors", "actors"),
    ("callboard-simulation", "actors/simulation"),
    ("callboard", ""),
];

/// The files that every package contains.
const FILES: &[&str] =
    &["CHANGELOG.md", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Runs cargo without a network, and without the build directory of the build that runs this test.
fn cargo(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO")).args(arguments).arg("--offline").current_dir(root()).output().unwrap();
    assert!(status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The manifests of the workspace.
fn manifests() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn manifest(package: &str) -> Value {
    manifests().into_iter().find(|manifest| manifest["name"] == package).unwrap()
}

fn files(package: &str) -> Vec<String> {
    let list = cargo(&["package", "--list", "--allow-dirty", "--package", package]);
    list.lines().map(str::to_owned).collect()
}

#[test]
fn every_package_of_the_workspace_is_one_that_is_published() {
    let mut names: Vec<String> =
        manifests().iter().map(|manifest| manifest["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    let mut published: Vec<&str> = PACKAGES.iter().map(|(name, _)| *name).collect();
    published.sort_unstable();
    assert_eq!(names, published);
}

#[test]
fn every_package_says_what_it_is() {
    for (package, _) in PACKAGES {
        let manifest = manifest(package);
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(
                manifest[field].as_str().is_some_and(|text| !text.is_empty()),
                "{package} has no {field}"
            );
        }
        assert_eq!(manifest["rust_version"], "1.90", "{package}");
        for (field, most) in [("keywords", 5), ("categories", 5), ("authors", 1)] {
            let count = manifest[field].as_array().unwrap().len();
            assert!((1..=most).contains(&count), "{package} has {count} {field}");
        }
        assert!(manifest["metadata"]["docs"]["rs"]["targets"].is_array(), "{package}");
    }
}

#[test]
fn every_package_holds_its_licences_and_its_readme_and_nothing_of_the_workspace() {
    for (package, folder) in PACKAGES {
        let files = files(package);
        for file in FILES.iter().filter(|file| **file != "CHANGELOG.md" || folder.is_empty()) {
            assert!(files.iter().any(|found| found == file), "{package} has no {file}");
        }
        let strange = |file: &&String| {
            let first = Path::new(file.as_str()).components().next().unwrap();
            let is_hidden = first.as_os_str().to_string_lossy().starts_with('.');
            let is_known = file.as_str() == ".cargo_vcs_info.json";
            let is_ours = ["target", "tests", "benches", "fuzz", "actors", "machines", "simulation"]
                .iter()
                .any(|own| first.as_os_str() == *own);
            is_ours || is_hidden && !is_known
        };
        let strange: Vec<_> = files.iter().filter(strange).collect();
        assert!(strange.is_empty(), "{package} holds {strange:?}");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = |path: PathBuf| std::fs::read_to_string(path).unwrap();
            assert_eq!(text(root().join(folder).join(licence)), text(root().join(licence)), "{package}");
        }
    }
}

/// A requirement of exactly one version would conflict with other users of the same package in a program.
#[test]
fn no_package_asks_for_one_version_of_another_and_no_other() {
    for manifest in manifests() {
        let needed = manifest["dependencies"].as_array().unwrap();
        for needed in needed.iter().filter(|needed| needed["kind"] != "dev") {
            let version = needed["req"].as_str().unwrap();
            let is_open = version.starts_with('^') && !version.contains(',');
            assert!(is_open, "{} asks for {} {version}", manifest["name"], needed["name"]);
        }
    }
}

/// The packages that a build of `callboard` with these features contains, each with its own features.
fn compiled(features: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let fixed = ["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p} {f}"];
    let tree = cargo(&[&fixed[..], &["--package", "callboard"], features].concat());
    let line = |line: &str| {
        let mut words = line.split(' ').filter(|word| !word.starts_with('('));
        let (name, _version) = (words.next()?.to_owned(), words.next()?);
        let features = words.flat_map(|list| list.split(',')).filter(|feature| !feature.is_empty());
        Some((name, features.map(str::to_owned).collect()))
    };
    tree.lines().filter_map(line).collect()
}

#[test]
fn a_host_program_without_the_program_compiles_nothing_that_is_there_for_its_sake() {
    let (library, program) = (compiled(&["--no-default-features"]), compiled(&[]));
    for package in [
        "axum",
        "callboard-simulation",
        "clap",
        "goldenscript",
        "rmp-serde",
        "similar",
        "tempfile",
        "tracing-subscriber",
    ] {
        assert!(program.contains_key(package), "{package} is not needed at all");
        assert!(!library.contains_key(package), "{package} is compiled by programs that embed the library");
    }
    println!("{} packages, and {} with the program", library.len(), program.len());
    assert!(library.len() <= 120, "there are {}: {:?}", library.len(), library.keys());
    let manifest = manifest("callboard");
    let binaries = manifest["targets"].as_array().unwrap().iter().filter(|target| target["kind"][0] == "bin");
    let needed: Vec<_> = binaries.map(|binary| binary["required-features"].clone()).collect();
    assert_eq!(needed, [serde_json::json!(["cli"])]);
}

/// With a pausable clock every reading of the clock takes a lock, and the clock of a program could be paused.
#[test]
fn only_the_program_makes_tokio_have_a_clock_that_can_be_stopped() {
    let can_be_stopped = |features: &[&str]| compiled(features)["tokio"].contains("test-util");
    assert!(can_be_stopped(&[]), "message scripts are played on such a clock");
    assert!(!can_be_stopped(&["--no-default-features"]));
    assert!(!can_be_stopped(&["--no-default-features", "--features", "plugin"]));
}

/// The guarantee that a panic costs one message (rule 4 of the shell) requires panics that unwind.
#[test]
fn a_build_in_which_panics_abort_is_refused_with_what_to_do_shell_4() {
    let library = std::fs::read_to_string(root().join("actors/src/lib.rs")).unwrap();
    assert!(library.contains("\nmod unwinding;\n"));
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let directory = tempfile::tempdir().unwrap();
    let compile = |panic: &str| {
        let mut command = Command::new(&compiler);
        command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-C", panic]);
        command.arg("--out-dir").arg(directory.path()).arg(root().join("actors/src/unwinding.rs"));
        command.output().unwrap()
    };
    let unwinding = compile("panic=unwind");
    assert!(unwinding.status.success(), "{}", String::from_utf8_lossy(&unwinding.stderr));
    let aborting = compile("panic=abort");
    let said = String::from_utf8_lossy(&aborting.stderr);
    assert!(
        !aborting.status.success() && said.contains("Take panic = \"abort\" out of the profile"),
        "{said}"
    );
}
