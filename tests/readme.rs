//! Tests that the examples in the README run when they are copied.

mod program;

use std::path::Path;

use program::driven::find;
use program::{CALLBOARD, Stage, plugin};

/// The first block of TOML after these words.
fn block<'t>(text: &'t str, behind: &str) -> &'t str {
    let (_, rest) = text.split_once(behind).expect("the README says so");
    let (_, rest) = rest.split_once("```toml\n").expect("a block follows");
    rest.split_once("\n```").expect("it ends").0
}

#[test]
fn the_volume_that_the_readme_claims_is_configured_where_it_says_and_is_free() {
    let read = |file| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (readme, page) = (read("README.md"), read("docs/volumes.md"));
    let (_, example) = readme.split_once("`callboard volume claim ").expect("the README says so");
    let volume = example.split(' ').next().expect("a name follows");
    let configuration = block(&page, "This configuration runs as root");
    let table: toml::Table = configuration.parse().expect("it is well formed");
    let volumes = table["volume"].as_array().expect("a list");
    assert!(volumes.iter().any(|entry| entry["name"].as_str() == Some(volume)), "{volume}");
    // A volume that a task holds is refused to all others.
    let mut users = configuration.lines().filter(|line| line.starts_with("volumes = "));
    assert!(users.all(|line| !line.contains(&format!("\"{volume}\""))), "{volume} is in use");
}

#[test]
fn the_configuration_of_the_readme_runs_a_plugin_and_a_task() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let configuration = block(&readme, "This configuration runs as it is");
    let (first, rest) = configuration.split_once('\n').expect("more than one line");
    // Only the directory differs: the stage has its own.
    let data_dir = first.strip_prefix("data_dir = \"").and_then(|rest| rest.split('"').next());
    let data_dir = data_dir.expect("it begins with the directory");
    assert!(Path::new(data_dir).is_absolute(), "{data_dir}: a relative one is refused");
    let stage = Stage::new(rest);
    let here = Path::new(CALLBOARD).parent().expect("it lies in a directory").display();
    let path = format!("{here}:{}", std::env::var("PATH").unwrap_or_default());
    let program = stage.run_as(&[], &[("PATH", &path)]);
    program.until("the plugin and the task", |status| {
        plugin(status, "csi-node", "hostpath")["health"] == "healthy"
            && find(status, "tasks", "hello")["state"] == "running"
    });
    program.until("what the task writes", |_| program.ask(&["logs", "hello"]).stdout.starts_with(b"hello\n"));
    assert!(program.ask(&["shutdown"]).status.success());
}
