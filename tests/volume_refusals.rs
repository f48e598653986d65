//! Tests mistakes of an operator with volumes, on a running program: each gives a clear error with advice, and changes nothing.

mod program;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{CALLBOARD, Program, Stage, allocation};
use serde_json::Value;

/// A namespace in which every user may mount.
const NAMESPACE: [&str; 5] = ["unshare", "--user", "--map-root-user", "--mount", "--"];

/// Whether this system permits such a namespace. Otherwise reports that the test is skipped.
fn is_permitted() -> bool {
    let mut unshare = Command::new(NAMESPACE[0]);
    unshare.args(&NAMESPACE[1..]).arg("true");
    let is_permitted = unshare.output().is_ok_and(|output| output.status.success());
    if !is_permitted {
        eprintln!("SKIPPED: volumes are not shown, since `unshare --user --mount` is refused here");
    }
    is_permitted
}

/// A host with a plugin, whose volume `data` has 2 MiB, a snapshot, and a claim of `web`.
struct Asked<'s> {
    host: Program<'s>,
    kept: PathBuf,
    /// The requests that were not refused as they should be.
    complaints: RefCell<Vec<String>>,
}

impl<'s> Asked<'s> {
    fn begin(stage: &'s Stage, kept: &Path) -> Self {
        let host = stage.run_through(&NAMESPACE);
        host.until_active("csi-node", "zfs", "plugin");
        for words in [
            "volume create data --plugin zfs --capacity 2MiB",
            "volume create logs --plugin zfs --capacity 1MiB",
            "volume snapshot create data --name nightly",
            "volume snapshot create data --name weekly",
            "volume claim data --allocation web",
        ] {
            host.json(&words.split(' ').collect::<Vec<_>>());
        }
        Self { host, kept: kept.to_owned(), complaints: RefCell::default() }
    }

    /// The state that must not change: the volumes that the host shows, the mounts, and everything that the plugin stores.
    fn state(&self) -> (Value, usize, BTreeMap<PathBuf, Vec<u8>>) {
        let status = self.host.json(&["status"]);
        let table =
            fs::read_to_string(format!("/proc/{}/mountinfo", status["host"]["pid"])).expect("it runs");
        let mut files = BTreeMap::new();
        read(&self.kept, &mut files);
        (status["volumes"].clone(), table.lines().count(), files)
    }

    /// Sends a wrong request: it must fail with this code and all of these texts, and must change nothing.
    fn is_refused(&self, line: &str, code: i32, parts: &[&str]) {
        let before = self.state();
        let output = self.host.ask(&line.split(' ').collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr);
        let is_said = parts.iter().all(|part| said.contains(part)) && said.len() < 2_000;
        let has_changed = self.state() != before;
        if output.status.code() != Some(code) || !is_said || has_changed {
            let line = line.get(..120).unwrap_or(line);
            let ended = output.status;
            let complaint =
                format!("{line}: {ended}, changed: {has_changed}, expected: {parts:?}, said: {said}");
            self.complaints.borrow_mut().push(complaint);
        }
    }
}

fn read(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            read(&path, files);
        } else {
            let content = fs::read(&path).expect("it can be read");
            files.insert(path, content);
        }
    }
}

/// A text of this many bytes.
fn long(bytes: usize) -> String {
    "n".repeat(bytes)
}

#[test]
fn what_is_wrong_with_an_order_about_volumes_says_what_to_do_and_changes_nothing_c004_c005_c007_c058_v8_v12()
{
    if !is_permitted() {
        return;
    }
    let stage = Stage::new("");
    let kept = stage.directory.path().join("volumes");
    let arguments = ["--volumes", kept.to_str().expect("it is text")];
    stage.configure(&allocation("plugin", "zfs", "monolith", &arguments, ""));
    let asked = Asked::begin(&stage, &kept);
    let usage = 2;
    let refused = 1;

    // Creation of a volume.
    let create = |more: &str| format!("volume create new {more}");
    asked.is_refused(&create("--capacity 1MiB"), usage, &["--plugin <NAME>"]);
    asked.is_refused(
        &create("--plugin zfs --block --fs-type ext4"),
        usage,
        &["--block", "cannot be used with"],
    );
    for size in ["-1", "0", "10GB", "99999999TiB", "x"] {
        let words = create(&format!("--plugin zfs --capacity {size}"));
        asked.is_refused(
            &words,
            usage,
            &["is no size of a volume; give a whole number of bytes from 1 to 2^63 - 1"],
        );
    }
    asked.is_refused(
        &create("--plugin zfs --capacity 4MiB --limit 3MiB"),
        refused,
        &["limit_bytes is 3145728, below the required_bytes of 4194304"],
    );
    let words = create(&format!("--plugin zfs --parameter a={}", long(4_096)));
    asked.is_refused(&words, refused, &["parameters has 4097 bytes, at most 4096 are allowed"]);
    let words = create(&format!("--plugin zfs --mount-flag {}", long(4_097)));
    asked.is_refused(&words, refused, &["mount_flags has 4097 bytes, at most 4096 are allowed"]);
    asked.is_refused(
        &create("--plugin zfs --parameter a=1 --parameter a=2"),
        usage,
        &["give each parameter once"],
    );
    asked.is_refused(&create("--plugin zfs --parameter =1"), usage, &["is no parameter; give its key"]);
    asked.is_refused(
        &create("--plugin nfs"),
        refused,
        &["serves plugin nfs as controller; did you mean `zfs`?"],
    );
    asked.is_refused(&create("--plugin zfs --access-mode writer"), usage, &["single-node-writer"]);
    let words = create(&format!("--plugin zfs --from-snapshot {}", long(1_025)));
    asked.is_refused(&words, refused, &["snapshot_id has 1025 bytes, at most 1024 are allowed"]);
    let words = create("--plugin zfs --from-snapshot a --from-volume b");
    asked.is_refused(&words, usage, &["cannot be used with"]);
    let words = format!("volume create {} --plugin zfs", long(129));
    asked.is_refused(&words, usage, &["name has 129 bytes, at most 128 are allowed"]);
    asked.is_refused("volume create a/../b --plugin zfs", usage, &["is no name of a volume"]);
    asked.is_refused("volume create .. --plugin zfs", usage, &["would leave its directory"]);

    // A claim and its release.
    let claim = |more: &str| format!("volume claim data --allocation {more}");
    let other = ["allocation web holds volume default/data with another usage; release that claim first"];
    asked.is_refused(&claim("web --read-only"), refused, &other);
    let block = ["it was created as file system, and not as block device; claim it as file system"];
    asked.is_refused(&claim("web --block"), refused, &block);
    asked.is_refused(&claim("db"), refused, &["is held by web", "it can be claimed once that is released"]);
    let words = format!("volume claim logs --allocation db --mount-flag {}", long(4_097));
    asked.is_refused(&words, refused, &["mount_flags has 4097 bytes, at most 4096 are allowed"]);
    asked.is_refused("volume claim logs --allocation a/b", usage, &["allocation"]);
    asked.is_refused(
        "volume claim unknown --allocation db",
        refused,
        &["there is no volume default/unknown; create it first"],
    );
    asked.is_refused(
        "volume release data --allocation db",
        refused,
        &["db has no claim to volume default/data"],
    );
    asked.is_refused(
        "volume release unknown --allocation db",
        refused,
        &["there is no volume default/unknown"],
    );
    let force = "volume release data --allocation web --force";
    asked.is_refused(force, usage, &["--reason"]);
    asked.is_refused(
        &format!("{force} --reason tired"),
        usage,
        &["standard input is no terminal", "add --yes"],
    );
    asked.is_refused(&format!("{force} --reason tired --yes"), refused, &["release that claim first"]);

    // Deletion, and other changes of a volume.
    asked.is_refused("volume delete data --yes", refused, &["is not deleted", "web", "release"]);
    asked.is_refused("volume delete logs", usage, &["standard input is no terminal", "add --yes"]);
    asked.is_refused(
        "volume delete unknown --yes",
        refused,
        &["has no volume default/unknown", "volume list"],
    );
    let expand = |more: &str| format!("volume expand data --capacity {more}");
    asked.is_refused(
        &expand("1MiB"),
        refused,
        &["has 2097152 bytes, and cannot be made smaller; ask for as many or more"],
    );
    asked.is_refused(
        &expand("4MiB --limit 3MiB"),
        refused,
        &["limit_bytes is 3145728, below the required_bytes of 4194304"],
    );
    for size in ["-1", "0"] {
        asked.is_refused(&expand(size), usage, &["is no size of a volume; give a whole number"]);
    }
    asked.is_refused(
        "volume expand unknown --capacity 1MiB",
        refused,
        &["there is no volume default/unknown"],
    );
    asked.is_refused("volume modify data", usage, &["give --parameter KEY=VALUE"]);

    // Snapshots and lists.
    let snapshot = |more: &str| format!("volume snapshot {more}");
    asked.is_refused(
        &snapshot("create unknown --name a"),
        refused,
        &["there is no volume default/unknown; create it first"],
    );
    asked.is_refused(&snapshot("create data --name "), usage, &["a value is required for '--name <NAME>'"]);
    asked.is_refused(
        &snapshot("group create data logs --name "),
        usage,
        &["a value is required for '--name <NAME>'"],
    );
    let words = snapshot(&format!("create data --name {}", long(129)));
    asked.is_refused(&words, refused, &["name has 129 bytes, at most 128 are allowed"]);
    let words = snapshot(&format!("delete data --id {} --yes", long(1_025)));
    asked.is_refused(&words, refused, &["snapshot_id has 1025 bytes, at most 1024 are allowed"]);
    asked.is_refused(&snapshot("delete data --id a"), usage, &["standard input is no terminal", "add --yes"]);
    asked.is_refused(
        &snapshot("group create data data --name a"),
        refused,
        &["names volume default/data twice"],
    );
    asked.is_refused(
        &snapshot("group create data unknown --name a"),
        refused,
        &["there is no volume default/unknown"],
    );
    let page = asked.host.json(&["volume", "list-plugin", "zfs", "--max", "1"]);
    let token = page["next_token"].as_str().expect("there is another page").to_owned();
    let begin_again = ["start the list again without a token"];
    asked.is_refused(&snapshot(&format!("list --plugin zfs --token {token}")), refused, &begin_again);
    asked.is_refused("volume list-plugin zfs --token of-another-list", refused, &begin_again);
    asked.is_refused("volume list-plugin zfs --max -1", usage, &["--max"]);
    asked.is_refused(
        "volume list-plugin nfs",
        refused,
        &["serves plugin nfs as controller; did you mean `zfs`?"],
    );

    let complaints = asked.complaints.take();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_host_does_not_start_with_what_is_wrong_with_its_volumes_and_makes_no_directory_c004_c005_c007_c023_c058()
{
    let plugin = allocation("plugin", "zfs", "monolith", &[], "");
    let volume = |lines: &str| format!("[[volume]]\nname = 'data'\nplugin = 'zfs'\n{lines}\n");
    let flags = format!("id = 'v'\nmount.flags = ['{}']", long(4_097));
    let context = format!("id = 'v'\ncontext = {{ a = '{}' }}", long(4_096));
    let secrets = "id = 'v'\nsecrets = { 'pass word' = { env = 'A' } }";
    for (volume, part) in [
        ("[[volume]]\nname = 'data'\nid = 'v'\n".to_owned(), "the volume has no `plugin`, which is required"),
        (
            volume("id = 'v'\nmount = {}\nblock = true"),
            "the volume has both `mount` and `block`; give one of them",
        ),
        (volume("id = 'v'\ncapacity = -1"), "`capacity` -1 is no size of a volume; give a whole number"),
        (volume(&flags), "mount_flags has 4097 bytes, at most 4096 are allowed"),
        (volume(&context), "volume_context has 4097 bytes, at most 4096 are allowed"),
        (volume(secrets), "secrets have a key that is empty or holds more than letters"),
        (
            volume("id = 'v'").replace("'data'", &format!("'{}'", long(129))),
            "name has 129 bytes, at most 128",
        ),
    ] {
        let stage = Stage::new(&format!("{plugin}{volume}"));
        let mut run = Command::new(CALLBOARD);
        let output = run.args(["run", "--config"]).arg(stage.config()).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{part}: {said}");
        assert!(said.contains(part) && !said.contains("nnnnnnnn"), "{part}: {said}");
        assert!(!stage.data_dir().exists(), "{part}");
    }
}
