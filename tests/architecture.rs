//! Tests the architecture: who may import whom, which files decide without side effects, and which words no text uses.
//!
//! The tables below are the rules. A change to one is a decision for review; a violation fails with a line that names the file and the
//! import.

#[path = "architecture/log_fields.rs"]
mod log_fields;
#[path = "architecture/rule_ids.rs"]
mod rule_ids;
#[path = "architecture/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// Within `actors/machines/src`: each folder, and the folders it may import.
const MACHINES: &[(&str, &[&str])] = &[
    ("vocabulary", &[]),
    ("kernel", &["vocabulary"]),
    ("persister", &[]),
    ("rpc", &["vocabulary"]),
    ("csi", &["vocabulary", "rpc"]),
    ("examiner", &["vocabulary", "rpc", "csi"]),
    ("goplugin", &["vocabulary", "rpc"]),
    ("hclspec", &["vocabulary"]),
    ("process", &["vocabulary", "kernel", "goplugin"]),
    ("processes", &["vocabulary", "kernel", "process"]),
    ("catalog", &["vocabulary", "kernel", "goplugin", "hclspec", "process"]),
    ("leftovers", &["vocabulary", "goplugin", "process"]),
    ("topology", &[]),
    ("mounts", &[]),
    ("cgroups", &["vocabulary", "mounts"]),
    ("logmon", &[]),
    ("session", &["vocabulary", "kernel", "process", "processes"]),
    ("driver", &["vocabulary", "kernel", "rpc", "goplugin", "process", "processes", "session", "topology"]),
    ("eventor", &["vocabulary", "kernel", "driver"]),
    ("registry", &["vocabulary", "kernel"]),
    ("lease", &[]),
    ("instance", &["vocabulary", "kernel", "csi", "lease"]),
    ("supervisor", &["vocabulary", "kernel"]),
    ("drivers", &["vocabulary", "kernel", "process", "driver", "eventor", "lease", "supervisor"]),
    ("instances", &["vocabulary", "kernel", "csi", "registry", "instance", "lease", "supervisor"]),
    (
        "inventory",
        &["vocabulary", "kernel", "instances", "driver", "drivers", "allocations", "volume", "volumes"],
    ),
    ("allocation", &["vocabulary", "kernel", "csi", "registry", "instances"]),
    ("allocations", &["vocabulary", "kernel", "allocation", "supervisor", "volumes"]),
    ("volume", &["vocabulary", "kernel", "csi", "mounts"]),
    ("volumes", &["vocabulary", "kernel", "csi", "instances", "supervisor", "volume"]),
    ("allocdir", &["vocabulary", "driver"]),
    ("task_config", &["topology"]),
    ("agent", &["vocabulary", "kernel", "process", "instances", "allocation", "allocations", "volume"]),
    (
        "tasks",
        &[
            "vocabulary",
            "kernel",
            "rpc",
            "hclspec",
            "process",
            "leftovers",
            "topology",
            "logmon",
            "task_config",
            "driver",
            "drivers",
            "volume",
            "agent",
        ],
    ),
];

/// Within `actors/src`: each folder, and the folders it may import. The folder of a shell includes that of its machine, which has the
/// same name in `actors/machines/src`.
const ACTORS: &[(&str, &[&str])] = &[
    ("pauses", &[]),
    ("persister", &["pauses", "vocabulary"]),
    ("shell", &["pauses", "vocabulary", "persister", "kernel"]),
    ("rpc", &["vocabulary"]),
    ("csi", &["pauses", "vocabulary", "rpc", "lease"]),
    ("goplugin", &["pauses", "vocabulary", "rpc"]),
    ("hclspec", &[]),
    ("machine", &[]),
    ("datadir", &[]),
    ("users", &["machine", "datadir"]),
    ("mounts", &["pauses", "datadir"]),
    ("cgroups", &["vocabulary", "mounts"]),
    ("process", &["vocabulary", "kernel", "shell", "goplugin", "datadir"]),
    ("ownership", &["vocabulary", "machine", "process"]),
    ("processes", &["vocabulary", "persister", "shell", "goplugin", "process"]),
    ("leftovers", &["vocabulary", "goplugin", "process"]),
    ("logmon", &["machine", "datadir"]),
    ("catalog", &["vocabulary", "shell", "goplugin", "process", "processes", "hclspec"]),
    ("topology", &[]),
    (
        "driver",
        &["pauses", "vocabulary", "shell", "rpc", "goplugin", "process", "processes", "topology", "lease"],
    ),
    ("eventor", &["vocabulary", "shell", "goplugin", "driver"]),
    ("drivers", &["vocabulary", "shell", "process", "processes", "driver", "eventor", "lease"]),
    ("allocdir", &["vocabulary", "users", "datadir", "mounts", "driver"]),
    ("task_config", &["vocabulary", "driver", "topology", "cgroups", "allocdir"]),
    ("registry", &["vocabulary", "persister", "shell", "csi"]),
    ("lease", &["vocabulary", "rpc"]),
    ("instance", &["vocabulary", "shell", "csi", "lease"]),
    ("instances", &["vocabulary", "shell", "csi", "registry", "instance", "lease"]),
    ("volume", &["pauses", "vocabulary", "persister", "shell", "csi", "lease", "instances", "mounts"]),
    ("volumes", &["vocabulary", "persister", "shell", "csi", "instances", "volume"]),
    (
        "inventory",
        &["vocabulary", "shell", "instances", "driver", "drivers", "allocation", "allocations", "volumes"],
    ),
    ("allocation", &["vocabulary", "shell", "csi", "registry", "instances", "volumes", "datadir"]),
    ("allocations", &["vocabulary", "shell", "machine", "allocation", "datadir"]),
    ("supervisor", &["pauses", "vocabulary", "shell"]),
];

/// The names that pure files must not use: runtimes, clocks, sockets, databases, random sources, the operating system.
const IMPURE: &[&str] = &[
    "actix",
    "tokio",
    "tonic",
    "redb",
    "rustix",
    "fastrand",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::env",
    "Instant::now",
    "SystemTime",
    "async fn",
    ".await;",
    ".await?",
    ".await.",
    ".await)",
];

/// The files that decide. Each is a path below the repository.
const PURE: &[&str] = &[
    "actors/src/csi/check.rs",
    "actors/src/csi/convert.rs",
    "actors/src/csi/wire/mod.rs",
    "actors/src/csi/wire/field.rs",
    "actors/src/csi/wire/messages.rs",
    "actors/src/csi/wire/parts.rs",
    "actors/src/goplugin/info.rs",
    "actors/src/driver/client/node_to_wire.rs",
    "actors/src/driver/client/handle.rs",
    "actors/src/driver/client/to_wire.rs",
    "actors/src/driver/client/from_wire.rs",
    "actors/src/driver/client/from_wire/driver.rs",
    "actors/src/driver/client/from_wire/events.rs",
    "actors/src/driver/client/from_wire/tasks.rs",
    "actors/src/task_config/builder.rs",
    "actors/src/task_config/capabilities.rs",
    "actors/src/task_config/environment.rs",
    "actors/src/task_config/error.rs",
    "actors/src/task_config/resources.rs",
    "actors/src/hclspec/wire.rs",
    "actors/src/ownership/deciding.rs",
    "actors/src/ownership/kept.rs",
    "actors/src/users/dynamic.rs",
    "actors/src/process/words.rs",
    "actors/src/processes/row.rs",
    "actors/src/registry/row.rs",
    "actors/src/volume/parts.rs",
    "actors/src/volume/step_parts.rs",
    "actors/src/volume/creation_parts.rs",
    "actors/src/volume/row.rs",
    "actors/src/volume/order_row.rs",
    "actors/src/volumes/row.rs",
    "src/launch/order.rs",
    "src/exec/record.rs",
    "src/exec/signals.rs",
    "src/plugin/authority.rs",
    "src/plugin/line.rs",
    "src/plugin/events/journal.rs",
    "src/plugin/events/position.rs",
    "src/plugin/schema.rs",
    "src/tasks/handle.rs",
    "src/tasks/kept_row.rs",
    "src/tasks/former_row.rs",
    "src/tasks/row.rs",
    "src/usage/plan.rs",
    "src/admin/compose.rs",
    "src/admin/volumes.rs",
    "src/config/problem.rs",
    "src/config/resources.rs",
    "src/config/suggest.rs",
    "src/config/secrets.rs",
    "src/config/table.rs",
    "src/config/task.rs",
    "src/config/volume.rs",
    "src/config/volume_config.rs",
    "src/config/volume_use.rs",
    "src/config/volume_words.rs",
    "src/config/words.rs",
    "src/timeline/line.rs",
    "src/timeline/news_lines.rs",
    "src/timeline/agent.rs",
    "src/timeline/allocations.rs",
    "src/timeline/registry.rs",
    "src/timeline/instances.rs",
    "src/timeline/inventory.rs",
    "src/timeline/drivers.rs",
    "src/timeline/tasks.rs",
    "src/timeline/volumes.rs",
    "src/timeline/processes.rs",
    "src/timeline/supervisor.rs",
    "src/timeline/answers.rs",
    "src/timeline/teller.rs",
    "src/picture/label.rs",
    "src/picture/layout.rs",
    "src/picture/mermaid.rs",
    "src/picture/model.rs",
    "src/picture/spans.rs",
    "src/picture/svg.rs",
    "src/script/diff.rs",
    "src/script/lines.rs",
    "src/script/told.rs",
    "src/timeline/drawn.rs",
    "src/timeline/played.rs",
    "src/demo/status_view.rs",
    "src/demo/check.rs",
    "src/demo/lines.rs",
    "src/demo/mounted.rs",
];

/// Folders in which every file decides.
const PURE_FOLDERS: &[&str] = &["actors/machines/src", "actors/simulation/src"];

/// Each crate, and the crates of this repository that it may depend on, also in its tests.
const CRATES: &[(&str, &[&str])] = &[
    ("proto", &[]),
    ("actors/machines", &[]),
    ("actors", &["callboard-machines", "callboard-proto"]),
    ("actors/simulation", &["callboard-actors", "callboard-machines"]),
    ("", &["callboard-proto", "callboard-machines", "callboard-actors", "callboard-simulation"]),
];

/// The dependencies of the crate that decides: encodings, digests, collections and errors; nothing that waits or has side effects.
const DECIDING_DEPENDENCIES: &[&str] = &[
    "bincode",
    "crc32fast",
    "foldhash",
    "goldenscript",
    "hcl-rs",
    "rmp",
    "semver",
    "serde",
    "serde_json",
    "sha2",
    "smallvec",
    "thiserror",
    "toml",
];

/// The production code of all crates.
const SOURCES: &[&str] = &["src", "actors/src", "actors/machines/src", "actors/simulation/src", "proto/src"];

/// The messages that only actors send to each other and to their shells, by folder of `actors/machines/src`. Calls, outcomes, timers,
/// changes and images are internal as well; they are found by the implementations of `Machine`.
const INTERNAL: &[(&str, &[&str])] = &[
    ("supervisor", &["RestartNumber", "FoundChild"]),
    ("process", &["EndProcess", "ProcessConfig"]),
    ("processes", &["ChildEnded", "ProcessReported"]),
    (
        "session",
        &[
            "SessionMode",
            "SessionCall",
            "SessionTimer",
            "Step",
            "Reached",
            "Outcome",
            "Trouble",
            "TroubleKind",
        ],
    ),
    (
        "driver",
        &[
            "RestartNow",
            "DescribeTroubles",
            "DriverConfig",
            "DriverStep",
            "DriverTold",
            "Reached",
            "StartStep",
        ],
    ),
    ("eventor", &["SubscribeTo", "Watch", "Forget", "RecentOf"]),
    ("drivers", &["ChildEnded", "ChildKind", "DriverReported", "EventorReported", "DriversImage"]),
    ("registry", &["Image", "Stored", "ReportFitness", "Renew"]),
    ("instance", &["LookNow", "Retire", "ConnectionEnded", "Half", "InstanceConfig", "Reached"]),
    ("instances", &["ChildEnded", "InstanceReported", "RegistryItem"]),
    ("inventory", &["AllocationsItem", "DriversItem", "DriversKnown", "InstancesItem", "VolumesItem"]),
    (
        "allocation",
        &[
            "MakeReady",
            "NoteStart",
            "NoteExit",
            "StopSupervision",
            "DescribeAllocation",
            "AllocationConfig",
            "Task",
        ],
    ),
    ("allocations", &["AllocationReported", "Order", "OrderAnswer", "Record", "SupervisorEnded"]),
];

/// The machines whose calls, outcomes, timers, changes and images are documented: those of volumes, and those of the program.
const DOCUMENTED_WHOLE: &[&str] = &["agent", "tasks", "volume", "volumes"];

/// The maximum length of the production code of one file, in lines.
const FILE_LINES_MAX: usize = 400;

/// The maximum length of a function of the production code, in lines, from its `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 60;

/// The functions that are longer, each with its file. Those of the simulation are matches over all its events.
const LONG_FUNCTIONS: &[(&str, &str)] = &[
    ("actors/simulation/src/drivers/model/answering.rs", "driver_outcome"),
    ("actors/simulation/src/drivers/model/carrying.rs", "order"),
    ("actors/simulation/src/instances/parent.rs", "stepped"),
    ("actors/simulation/src/instances/world.rs", "take"),
    ("actors/simulation/src/processes/world.rs", "take"),
    ("actors/simulation/src/registry/world.rs", "take"),
    ("actors/simulation/src/simulator/playing.rs", "apply_kind"),
    ("actors/simulation/src/simulator/history_script.rs", "text_of"),
    ("actors/simulation/src/volume/world.rs", "take"),
];

/// The files below `src` that hold the stage of tests.
const TEST_STAGES: &[&str] =
    &["actors/machines/src/stage.rs", "actors/machines/src/leftovers/stage.rs", "actors/src/volume/stage.rs"];

/// The folders whose `messages.rs` and `state.rs` import each other.
const CYCLES: &[&str] = &[];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(below) else { return files };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The text of a file without the tests at its end. A declaration of tests that are in their own file does not cut the text.
fn without_tests(text: &str) -> &str {
    let begins = |at: usize| text[at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    let tests = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(|at| begins(*at));
    &text[..tests.unwrap_or(text.len())]
}

/// The code of a file: without comments, and without the tests at its end.
fn production_code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = without_tests(&text).lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn below_root(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| matches!(name.to_str(), Some("scripts.rs" | "tests.rs")))
        || path.components().any(|part| part.as_os_str() == "tests")
        || TEST_STAGES.iter().any(|stage| path.ends_with(stage))
}

fn complain(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The folders of `actors/src` that a text names after `crate::`, also in a list of imports.
fn imported_folders(code: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let is_macro_path = at > 0 && code.as_bytes()[at - 1] == b'$';
        let rest = &code[at + "crate::".len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split_once("};").map_or(list, |(list, _)| list);
                list.split(',').map(|item| item.trim().split("::").next().unwrap_or_default()).collect()
            }
            None => vec![rest],
        };
        for name in names.into_iter().filter(|_| !is_macro_path) {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            folders.push(name[..end].to_owned());
        }
    }
    folders
}

#[test]
fn only_the_tests_at_the_end_of_a_file_are_left_out() {
    let code = "#[cfg(test)]\nmod scripts;\nfn decide() {}\n";
    assert_eq!(without_tests(&format!("{code}#[cfg(test)]\nmod tests {{\n}}\n")), code);
    assert_eq!(without_tests(code), code);
}

#[test]
fn imports_between_the_actors_go_one_way() {
    let mut complaints = Vec::new();
    let tables = [("actors/machines/src", MACHINES), ("actors/src", ACTORS)];
    let rows = tables.iter().flat_map(|(source, table)| table.iter().map(move |row| (source, row)));
    for (source, (folder, allowed)) in rows {
        for file in rust_files(&root().join(source).join(folder)) {
            if is_test_file(&file) {
                continue;
            }
            for imported in imported_folders(&production_code(&file)) {
                let is_folder = MACHINES.iter().chain(ACTORS).any(|(name, _)| *name == imported);
                if is_folder && imported != *folder && !allowed.contains(&imported.as_str()) {
                    complaints.push(format!("{} must not import crate::{imported}", below_root(&file)));
                }
            }
        }
    }
    complain(&complaints);
}

#[test]
fn every_folder_of_the_actors_stands_in_the_table() {
    let mut complaints = Vec::new();
    for (source, table) in [("actors/machines/src", MACHINES), ("actors/src", ACTORS)] {
        let entries = fs::read_dir(root().join(source)).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.filter(|path| path.is_dir()) {
            let is_known = table.iter().any(|(folder, _)| path.ends_with(folder));
            if !is_known {
                complaints.push(format!(
                    "{} has no line in tests/architecture.rs that says what it may import",
                    below_root(&path)
                ));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn crates_depend_one_way() {
    let mut complaints = Vec::new();
    for (folder, allowed) in CRATES {
        let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let named =
                manifest.get(kind).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            let ours =
                named.filter(|name| name.starts_with("callboard") && !allowed.contains(&name.as_str()));
            complaints.extend(ours.map(|name| format!("{folder}/Cargo.toml must not depend on {name}")));
        }
    }
    complain(&complaints);
}

#[test]
fn the_crate_that_decides_depends_on_no_runtime() {
    let text = fs::read_to_string(root().join("actors/machines/Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let named: Vec<&str> = manifest["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
    assert_eq!(named, DECIDING_DEPENDENCIES);
}

#[test]
fn files_that_decide_do_not_touch_the_world() {
    let mut complaints = Vec::new();
    let folders = PURE_FOLDERS.iter().flat_map(|folder| rust_files(&root().join(folder)));
    let folders = folders.filter(|path| !is_test_file(path));
    for path in PURE.iter().map(|file| root().join(file)).chain(folders) {
        let file = below_root(&path);
        if !path.exists() {
            complaints.push(format!("{file} is listed as pure and does not exist"));
            continue;
        }
        let code = production_code(&path);
        let named = IMPURE.iter().filter(|word| code.contains(**word));
        complaints.extend(named.map(|word| format!("{file} decides and must not name {word}")));
    }
    complain(&complaints);
}

/// The names that machines must not use, since another owner could change such a value between two steps.
const SHARED: &[&str] =
    &["Cell<", "RefCell", "Mutex", "RwLock", "OnceLock", "LazyLock", "thread_local!", "Atomic"];

#[test]
fn the_state_of_a_machine_has_one_owner() {
    let mut complaints = Vec::new();
    for path in rust_files(&root().join("actors/machines/src")).into_iter().filter(|path| !is_test_file(path))
    {
        let code = production_code(&path);
        let named = SHARED.iter().filter(|word| code.contains(**word));
        complaints
            .extend(named.map(|word| format!("{} decides and must not share {word}", below_root(&path))));
    }
    complain(&complaints);
}

#[test]
fn the_deciding_files_of_every_actor_are_listed_as_pure() {
    let mut complaints = Vec::new();
    for file in rust_files(&root().join("actors/src")) {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let decides = matches!(name, "behaviour.rs" | "state.rs" | "messages.rs");
        let path = below_root(&file);
        let is_doing = path.starts_with("actors/src/persister");
        if decides && !is_doing && !PURE.contains(&path.as_str()) {
            complaints.push(format!("{path} decides and is not listed as pure in tests/architecture.rs"));
        }
    }
    complain(&complaints);
}

#[test]
fn mutants_are_made_of_the_files_that_decide() {
    let text = fs::read_to_string(root().join(".cargo/mutants.toml")).unwrap();
    let config: toml::Table = text.parse().unwrap();
    let globs = config["examine_globs"].as_array().unwrap().iter().filter_map(toml::Value::as_str);
    let examined: Vec<&str> = globs.collect();
    let folders = PURE_FOLDERS.iter().map(|folder| format!("{folder}/**/*.rs"));
    let decide = folders.chain(PURE.iter().map(|file| (*file).to_owned()));
    assert_eq!(examined, decide.filter(|file| !file.contains("/simulation/")).collect::<Vec<_>>());
}

#[test]
fn no_file_is_too_long_to_read_in_one_sitting() {
    let mut complaints = Vec::new();
    for below in SOURCES.iter().chain(&["examples"]) {
        for file in rust_files(&root().join(below)) {
            let text = fs::read_to_string(&file).unwrap();
            let lines = without_tests(&text).lines().count();
            if !is_test_file(&file) && lines > FILE_LINES_MAX {
                complaints
                    .push(format!("{} has {lines} lines; {FILE_LINES_MAX} are allowed", below_root(&file)));
            }
        }
    }
    complain(&complaints);
}

/// The functions of a file that have a body of several lines, each with its length in the layout of `rustfmt`. Functions whose name is
/// generated by a macro are left out.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut functions = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let indentation = &line[..line.len() - line.trim_start().len()];
        let Some((before, rest)) = line.trim_start().split_once("fn ") else { continue };
        let is_qualifier =
            |word: &str| word.starts_with("pub") || word.ends_with(')') || word == "const" || word == "async";
        let opens = lines[first..].iter().position(|line| line.trim_end().ends_with(['{', ';', '}']));
        let is_named = before.split_whitespace().all(is_qualifier) && !rest.starts_with('$');
        let Some(opens) = opens.filter(|_| is_named) else { continue };
        if lines[first + opens].trim_end().ends_with('{') {
            let closing = format!("{indentation}}}");
            let length = lines[first..].iter().position(|line| line.trim_end() == closing);
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            functions.push((name.to_owned(), length.expect("the function ends") + 1));
        }
    }
    functions
}

#[test]
fn no_function_is_too_long_to_see_at_once() {
    let mut long = Vec::new();
    for below in SOURCES {
        for file in rust_files(&root().join(below)).into_iter().filter(|file| !is_test_file(file)) {
            let code = production_code(&file);
            let too_long = functions(&code).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
            long.extend(too_long.map(|(name, lines)| (below_root(&file), name, lines)));
        }
    }
    let is_listed = |file: &str, name: &str| LONG_FUNCTIONS.contains(&(file, name));
    let unlisted = long.iter().filter(|(file, name, _)| !is_listed(file, name));
    let mut complaints: Vec<String> = unlisted
        .map(|(file, name, lines)| {
            format!("{file}: {name} has {lines} lines; {FUNCTION_LINES_MAX} are allowed")
        })
        .collect();
    let is_long = |file: &str, name: &str| long.iter().any(|found| found.0 == file && found.1 == name);
    let short = LONG_FUNCTIONS.iter().filter(|(file, name)| !is_long(file, name));
    complaints.extend(short.map(|(file, name)| format!("{file}: {name} is listed as long and is not")));
    complain(&complaints);
}

/// Whether the code of one file imports another file of its folder, by the module or by a name that the module exports to the folder.
fn imports(code: &str, module: &str, of_module: &str) -> bool {
    let declared = |name: &str| {
        ["struct", "enum", "type"].iter().any(|kind| {
            let declaration = format!("{kind} {name}");
            let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            of_module.match_indices(&declaration).any(|(at, _)| ends(&of_module[at + declaration.len()..]))
        })
    };
    code.match_indices("super::").any(|(at, _)| {
        let rest = &code[at + "super::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
            None => vec![rest],
        };
        names.into_iter().map(str::trim).any(|name| {
            let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            name == module || !name.is_empty() && declared(name)
        })
    })
}

#[test]
fn messages_and_state_of_an_actor_do_not_import_each_other() {
    let mut complaints = Vec::new();
    for below in SOURCES {
        let messages =
            rust_files(&root().join(below)).into_iter().filter(|file| file.ends_with("messages.rs"));
        for folder in messages.filter_map(|file| file.parent().map(Path::to_owned)) {
            let file = folder.join("state.rs");
            if !file.exists() {
                continue;
            }
            let (messages, state) = (production_code(&folder.join("messages.rs")), production_code(&file));
            let is_cycle = imports(&messages, "state", &state) && imports(&state, "messages", &messages);
            let folder = below_root(&folder);
            match (is_cycle, CYCLES.contains(&folder.as_str())) {
                (true, false) => {
                    complaints.push(format!("{folder}: messages.rs and state.rs must not import each other"));
                }
                (false, true) => complaints.push(format!("{folder} is listed with a cycle and has none")),
                (true, true) | (false, false) => {}
            }
        }
    }
    complain(&complaints);
}

/// Whether a type of this folder is hidden in the documentation; `None` if the folder declares no such public type.
fn is_hidden(folder: &Path, name: &str) -> Option<bool> {
    let is_declaration = |line: &str| {
        ["struct", "enum", "type"].iter().any(|kind| {
            let rest = line.strip_prefix(&format!("pub {kind} {name}"));
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    rust_files(folder).iter().find_map(|file| {
        let code = production_code(file);
        let lines: Vec<&str> = code.lines().collect();
        let declared = lines.iter().position(|line| is_declaration(line))?;
        let attributes = lines[..declared].iter().rev().take_while(|line| line.starts_with("#["));
        Some(attributes.into_iter().any(|line| *line == "#[doc(hidden)]"))
    })
}

/// Such a type is hidden at its declaration: a glob re-export by another crate shows what only a `pub use` hides.
#[test]
fn what_only_actors_say_to_each_other_is_not_on_the_documented_surface() {
    let mut complaints = Vec::new();
    let machines = root().join("actors/machines/src");
    for (folder, names) in INTERNAL {
        for name in *names {
            match is_hidden(&machines.join(folder), name) {
                Some(true) => {}
                Some(false) => complaints.push(format!("{folder}: {name} must be #[doc(hidden)]")),
                None => complaints.push(format!("{folder}: {name} is listed as internal and does not exist")),
            }
        }
    }
    let folders = MACHINES.iter().map(|(folder, _)| machines.join(folder));
    let folders = folders.filter(|folder| !DOCUMENTED_WHOLE.iter().any(|name| folder.ends_with(name)));
    for folder in folders {
        let behaviour = folder.join("behaviour.rs");
        let code = if behaviour.exists() { production_code(&behaviour) } else { String::new() };
        let assigned = code.lines().filter_map(|line| line.trim().strip_prefix("type ")?.split_once(" = "));
        let inner = ["Image", "Call", "Outcome", "Timer", "Change"];
        for (_, name) in assigned.filter(|(kind, _)| inner.contains(kind)) {
            if is_hidden(&folder, name.trim_end_matches(';')) == Some(false) {
                complaints.push(format!("{}: {name} must be #[doc(hidden)]", below_root(&folder)));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn production_code_does_not_unwrap() {
    let mut complaints = Vec::new();
    for below in SOURCES {
        for file in rust_files(&root().join(below)).into_iter().filter(|file| !is_test_file(file)) {
            let code = production_code(&file);
            if code.contains(".unwrap()") {
                complaints.push(format!("{} must say with expect() why it cannot fail", below_root(&file)));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn nothing_is_left_open_or_skipped_in_silence() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore"), concat!("todo", "!(")];
    let mut complaints = Vec::new();
    for below in ["src", "actors", "proto/src", "proto/tests", "tests", "examples", "benches"] {
        for file in rust_files(&root().join(below)) {
            let text = fs::read_to_string(&file).unwrap();
            let found = marks.iter().filter(|mark| text.contains(**mark));
            complaints.extend(found.map(|mark| format!("{} holds {mark}", below_root(&file))));
        }
    }
    complain(&complaints);
}
