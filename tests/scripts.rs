//! Tests the message scripts: every story of `tests/scripts/`, and every example of `docs/scripts.md`, has its recorded result.
//!
//! To record the present results: `cargo run -- script --update tests/scripts/*`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use callboard::actors::registry::List;
use callboard::picture::svg;
use callboard::script::{Played, Player, ScriptError, Verdict, diff};

/// The minimum number of stories.
const STORIES_MIN: usize = 60;
/// The number of stories that are played at the same time.
const PLAYERS: usize = 2;

fn below_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn stories() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below_root("tests/scripts")).unwrap();
    let mut stories: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    stories.sort();
    stories
}

/// The fault of a story: its responses differ, or its picture contains a path of this machine.
fn complaint(player: &mut Player, story: &Path) -> Option<String> {
    let told = std::fs::read_to_string(story).unwrap();
    match player.play_file(story) {
        Ok(Played { text, .. }) if text != told => Some(diff(story, &told, &text)),
        Ok(Played { picture, .. }) if svg(&picture).contains("/tmp/") => {
            Some(format!("the picture of {} shows where it was played", story.display()))
        }
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn every_story_comes_out_as_it_is_told_and_is_drawn_without_a_place_of_this_machine() {
    let left = Mutex::new(stories());
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                let mut player = Player::new();
                loop {
                    let Some(story) = left.lock().unwrap().pop() else { break };
                    if let Some(complaint) = complaint(&mut player, &story) {
                        complaints.lock().unwrap().push(complaint);
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn there_are_many_stories_and_each_is_named_after_what_it_shows() {
    let stories = stories();
    assert!(stories.len() >= STORIES_MIN, "stories are gone: {} are left", stories.len());
    for story in stories {
        let name = story.file_name().unwrap().to_str().unwrap();
        assert!(name.split('_').count() >= 4, "{name} is no sentence");
        let text = std::fs::read_to_string(&story).unwrap();
        assert!(text.starts_with('#'), "{name} does not begin with what it is about");
    }
}

/// The scripts of a page: all blocks that are marked as `script`.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("```script\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_examples_of_the_page_about_scripts_come_out_as_they_are_shown() {
    let page = std::fs::read_to_string(below_root("docs/scripts.md")).unwrap();
    let examples = examples(&page);
    assert!(examples.len() >= 8, "{} examples are left", examples.len());
    let mut player = Player::new();
    for example in examples {
        let came = player.play(&example).unwrap().text;
        assert!(came == example, "\n{}", diff(Path::new("docs/scripts.md"), &example, &came));
    }
}

#[test]
fn every_verb_is_told_of_on_the_page_about_scripts() {
    let page = std::fs::read_to_string(below_root("docs/scripts.md")).unwrap();
    for usage in Player::new().usages() {
        assert!(page.contains(usage), "docs/scripts.md does not tell of: {usage}");
    }
}

/// The error of a script, as a person reads it.
fn mistake(script: &str) -> String {
    let error = Player::new().play(script).unwrap_err();
    assert!(matches!(error, ScriptError::Mistake { .. }) && !error.is_transient());
    error.to_string()
}

#[test]
fn a_mistake_names_its_line_and_what_was_expected() {
    for (script, expected) in [
        (
            "host start\nregistr red csi-node/zfs\n---\n",
            "script:2: there is no verb \"registr\"; did you mean `register`?",
        ),
        (
            "host start\n\nwait csi-node/zfs\n---\n",
            "script:3: within=DURATION is missing; say: wait PLUGIN within=DURATION",
        ),
        (
            "pass 5\n---\n",
            "script:1: \"5\" is no duration; write a whole number and a unit, as in 1500ms, 2s, 5m or 1h; say: pass DURATION",
        ),
        ("list\n---\n", "script:1: no host runs; say `host start` before; say: list"),
        ("host start\nlist all\n---\n", "script:2: nothing is known of all; say: list"),
        (
            "host start\nregister red zfs\n---\n",
            "script:2: \"zfs\" is no plugin; write its type and its name, as in csi-node/zfs",
        ),
        ("host start\nregister red a,b\n---\n", "script:2: this is no line of a script: register red a,b;"),
        (
            "host fly\n---\n",
            "script:1: what the host does: \"fly\" is none of start, start-beside, stop, detach, kill",
        ),
    ] {
        let told = mistake(script);
        assert!(told.starts_with(expected), "{told}\nwas to begin with\n{expected}");
    }
}

#[test]
fn a_host_program_says_words_of_its_own_and_keeps_what_they_remember() {
    let mut player = Player::new();
    let mut said = 0;
    player.add_verb("census", "census [of=TEXT]", move |stage, words| {
        said += 1;
        let of = words.key("of").unwrap_or("this stage").to_owned();
        let registry = stage.host()?.registry().clone();
        stage.ask("registry", registry.ask(List), move |all| format!("census {said} of {of}: {}", all.len()));
        Ok(())
    });
    let script = "(host start)\n(register red csi-node/zfs)\ncensus\ncensus of=here\n---\n";
    for numbers in [(1, 2), (3, 4)] {
        let played = player.play(script).unwrap();
        let expected = format!("census {} of this stage: 1\ncensus {} of here: 1\n", numbers.0, numbers.1);
        assert!(played.text.ends_with(&expected), "{}", played.text);
    }
    let error = player.play("(host start)\ncensus now\n---\n").unwrap_err().to_string();
    assert_eq!(error, "script:2: nothing is known of now; say: census [of=TEXT]");
}

#[test]
fn a_script_comes_out_the_same_every_time_and_leaves_nothing_behind() {
    let script = std::fs::read_to_string(&stories()[0]).unwrap();
    let mut player = Player::new();
    let first = player.play(&script).unwrap();
    for _ in 0..20 {
        assert_eq!(player.play(&script).unwrap().text, first.text);
    }
}

#[test]
fn a_mistake_that_names_a_place_of_the_script_is_the_same_every_time() {
    let script = "host start\nprepare red zfs\nstop red\n!plugin red\n---\n";
    let played = Player::new().play(script).unwrap().text;
    assert!(played.contains("/stage/data/csi/plugins/red/csi.sock: "), "{played}");
    assert_eq!(Player::new().play(script).unwrap().text, played);
}

#[test]
fn two_long_names_that_differ_in_their_last_letter_have_short_sockets_of_their_own() {
    let (red, blue) = ("a".repeat(120) + "1", "a".repeat(120) + "2");
    let script = format!(
        "(host start)\n(hear nothing)\n(plugin {red})\n(plugin {blue})\n(register {red} csi-node/zfs)\n\
         (register {blue} csi-node/nfs)\npass 1s\n(kill {blue})\ncheck csi-node/zfs\ncheck csi-node/nfs\n---\n"
    );
    let played = Player::new().play(&script).unwrap().text;
    assert!(played.contains(&format!("csi-node/zfs of {red} @2 is healthy")), "{played}");
    let died = format!("csi-node/nfs of {blue} @5 is unhealthy: Dial on /stage/sockets/long/2.sock failed");
    assert!(played.contains(&died), "{played}");
}

#[test]
fn updating_writes_what_came_back_and_checking_then_finds_no_difference() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a_story_of_one_line");
    std::fs::write(&path, "host start\nlist\n---\na plugin\n").unwrap();
    let mut player = Player::new();
    let Verdict::Different { diff } = player.check(&path).unwrap() else { panic!("it differs") };
    assert!(diff.contains("-a plugin\n") && diff.contains("+no plugin is registered\n"), "{diff}");
    assert!(player.update(&path).unwrap() && !player.update(&path).unwrap());
    assert_eq!(player.check(&path).unwrap(), Verdict::Same);
}
