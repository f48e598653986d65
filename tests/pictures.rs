//! Tests pictures of runs: the picture in the README is up to date, and no text in a picture overlaps another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard::picture::{Arrow, Mark, Picture, Sign, mermaid, svg};
use callboard::script::Player;

const STORY: &str = "tests/scripts/a_takeover_and_a_crash_as_the_readme_shows_them";
const PLAIN: &str = "tests/scripts/r3_an_equal_registration_is_no_news_and_another_one_is";
const KEPT: &str = "tests/pictures";
const PICTURE: &str = "docs/pictures/takeover.svg";

fn below_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn drawn() -> Picture {
    Player::new().play_file(below_root(STORY)).unwrap().picture
}

#[test]
fn the_picture_that_the_readme_shows_is_up_to_date() {
    let shown = std::fs::read_to_string(below_root(PICTURE)).unwrap();
    assert_eq!(
        words(&svg(&drawn())),
        words(&shown),
        "make it anew: cargo run -- script --diagram {PICTURE} {STORY}, and look at it"
    );
    let readme = std::fs::read_to_string(below_root("README.md")).unwrap();
    assert!(readme.contains(PICTURE) && readme.contains(STORY));
}

/// All texts of a picture except those about time and the disk: the writes that share a commit, and what others do meanwhile, differ in
/// each run.
fn words(svg: &str) -> BTreeSet<&str> {
    let texts =
        svg.split("<text ").skip(1).filter_map(|text| text.split_once('>')?.1.split("</text>").next());
    let is_of_disk = |text: &&str| text.starts_with("write ") || *text == "on disk" || text.ends_with(" s");
    texts.filter(|text| !is_of_disk(text)).collect()
}

/// At least one mark of each kind: gates that open in part, that fall and that stay closed, answers, messages to oneself, signs
/// with and without room, texts that are too long, and letters that are special where they are drawn.
fn every_kind_of_mark() -> Picture {
    let (tasks, registry, disk) = (|| "tasks".to_owned(), || "registry".to_owned(), || "disk".to_owned());
    let message = |[from, to]: [&str; 2], text: &str, about: &str, arrow| Mark::Message {
        from: from.to_owned(),
        to: to.to_owned(),
        text: text.to_owned(),
        about: about.to_owned(),
        arrow,
    };
    let sign = |actor: &str, text: &str, about: &str, sign| Mark::Sign {
        actor: actor.to_owned(),
        text: text.to_owned(),
        about: about.to_owned(),
        sign,
    };
    let active = |plugin: &str, before: Option<&str>, now: Option<&str>| Mark::Active {
        plugin: plugin.to_owned(),
        before: before.map(str::to_owned),
        now: now.map(str::to_owned),
    };
    let long = "word ".repeat(24);
    let marks = vec![
        Mark::Chapter("what is written & what <waits>".to_owned()),
        active("csi-controller/zfs", None, Some("allocation a")),
        Mark::Time(Duration::from_millis(42)),
        message(["allocation a", "registry"], "Register", "csi-node/zfs", Arrow::Said),
        Mark::GateCloses { actor: registry(), write: 1 },
        Mark::GateCloses { actor: tasks(), write: 7 },
        Mark::GateCloses { actor: registry(), write: 2 },
        Mark::GateOpens { actor: registry(), through: 1 },
        message(["registry", "registry"], "looks; at #1", "", Arrow::Said),
        sign("tasks", "crashed: \"a drill\"", "", Sign::Crash),
        Mark::GatesFall { actor: tasks() },
        Mark::GateOpens { actor: registry(), through: 2 },
        Mark::GatesFall { actor: registry() },
        message(["registry", "allocation a"], "you are registered", "csi-node/zfs @2", Arrow::Answered),
        sign("tasks", "lives again", "", Sign::Restart),
        Mark::Pause("30.0 s later".to_owned()),
        Mark::Chapter(long.clone()),
        Mark::Pause(long.clone()),
        sign("registry", "active: none → a", "csi-node/zfs @2", Sign::News),
        active("csi-node/zfs", Some("allocation 0123456789-of-before"), Some("allocation a")),
        Mark::Time(Duration::from_secs(62)),
        sign("tasks", &long, "csi-node/zfs @2", Sign::Trouble),
        sign("process a", "nothing is heard of it any more", "csi-node/zfs @2", Sign::Trouble),
        sign("process a", "ended: how is\tunknown, and so is the reason for it\u{ffff}", "", Sign::Crash),
        Mark::GateOpens { actor: disk(), through: 9 },
        message(["process a", "tasks"], &long, "", Arrow::Said),
        active("csi-node/zfs", Some("allocation a"), None),
        active("csi-controller/zfs", Some("allocation a"), None),
        Mark::GateCloses { actor: tasks(), write: 8 },
        Mark::GateCloses { actor: registry(), write: 3 },
        Mark::GateOpens { actor: tasks(), through: 9 },
    ];
    Picture { title: "every \"kind\" of <mark>".to_owned(), marks }
}

#[test]
fn every_kind_of_mark_is_drawn_as_it_was_looked_at() {
    let picture = every_kind_of_mark();
    let drawings = [("every_kind_of_mark.svg", svg(&picture)), ("every_kind_of_mark.mmd", mermaid(&picture))];
    let differ = drawings.iter().filter(|(name, drawn)| {
        let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(here, drawn).unwrap();
        std::fs::read_to_string(below_root(KEPT).join(name)).ok().as_ref() != Some(drawn)
    });
    let differ: Vec<_> = differ.map(|(name, _)| name).collect();
    let tmp = env!("CARGO_TARGET_TMPDIR");
    assert!(differ.is_empty(), "look at {differ:?} in {tmp}; what is as it should be, put to {KEPT}");
}

#[test]
fn a_picture_of_nothing_is_a_page_and_no_more() {
    let nothing = Picture { title: String::new(), marks: vec![Mark::Chapter("nothing".to_owned())] };
    assert_eq!(mermaid(&nothing), "sequenceDiagram\n");
    assert_eq!(svg(&nothing).matches("<rect").count(), 2, "the page and the chapter");
}

#[test]
fn a_run_in_which_one_thing_follows_from_another_is_drawn_the_same_every_time() {
    let drawn = || Player::new().play_file(below_root(PLAIN)).unwrap().picture;
    let first = svg(&drawn());
    for _ in 0..10 {
        assert_eq!(svg(&drawn()), first);
    }
}

#[test]
fn gates_crashes_restarts_takeovers_and_generations_are_in_the_picture() {
    let picture = drawn();
    let is_there = |is_it: fn(&Mark) -> bool| picture.marks.iter().any(is_it);
    assert!(is_there(|mark| matches!(mark, Mark::GateCloses { actor, .. } if actor == "registry")));
    assert!(is_there(|mark| matches!(mark, Mark::GateOpens { actor, .. } if actor == "registry")));
    assert!(is_there(|mark| matches!(mark, Mark::Sign { sign: Sign::Crash, .. })));
    assert!(is_there(|mark| matches!(mark, Mark::Sign { sign: Sign::Restart, .. })));
    assert!(is_there(
        |mark| matches!(mark, Mark::Sign { text, about, .. } if text.starts_with("active: red → blue") && about.ends_with("@4"))
    ));
}

/// The crashes and the restarts that the picture of these lines shows in one column.
fn lives(column: &str, lines: &str) -> Vec<String> {
    let picture = Player::new().play(&format!("{lines}---\n")).unwrap().picture;
    let signs = picture.marks.iter().filter_map(|mark| match mark {
        Mark::Sign { actor, text, sign: sign @ (Sign::Crash | Sign::Restart), .. } if actor == column => {
            Some(format!("{sign:?}: {text}"))
        }
        _ => None,
    });
    signs.collect()
}

#[test]
fn what_a_script_kills_and_brings_again_lives_in_the_picture() {
    let plugin = "host start\nplugin red\nkill red\npass 1s\nplugin red\nplugin red version=2.0.0\n";
    assert_eq!(lives("process red", plugin), ["Crash: killed", "Restart: listens again"]);
    let driver = "host start\ndriver exec\nadd-driver exec\nkill exec\npass 2m\n";
    assert_eq!(lives("driver exec", driver), ["Crash: killed", "Restart: lives again"]);
    let launches = "host start\ndriver exec failed-launches=1\nadd-driver exec\npass 2m\n";
    let told = lives("driver exec", launches);
    assert_eq!((told.len(), told[1].as_str()), (2, "Restart: lives again"), "{told:?}");
    assert!(told[0].starts_with("Crash: exec is lost, and tried again after a pause: "), "{told:?}");
}

#[test]
fn an_actor_that_its_supervisor_starts_again_lives_in_the_picture() {
    for actor in ["registry", "drivers"] {
        let told = lives(actor, &format!("host start\nend {actor}\npass 5s\nrestart {actor}\npass 5s\n"));
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("Crash: "), "{told:?}");
        assert_eq!(told[1..], ["Restart: started again", "Restart: started again"]);
    }
}

#[test]
fn a_new_run_of_the_host_begins_with_everyone_alive() {
    let lines = "host start\nregister red csi-node/zfs\nend registry\ndisk power-cut\nhost start\nlist\n";
    assert_eq!(lives("disk", lines), ["Crash: power-cut", "Restart: there again"]);
    let mended = lines.replace("host start\nlist", "disk mended\nhost start\nlist");
    assert_eq!(lives("disk", &mended), ["Crash: power-cut", "Restart: mended"]);
    assert_eq!(lives("registry", lines).last().map(String::as_str), Some("Restart: started again"));
}

/// A dozen actors, and more than a hundred messages of different lengths.
fn crowd() -> Picture {
    let name = |number: usize| match number {
        0 => "host".to_owned(),
        1 => "registry".to_owned(),
        number => format!("allocation with-a-long-name-{number}"),
    };
    let mut marks = vec![Mark::Chapter("a crowd".to_owned())];
    for number in 0..120_usize {
        let (from, to) = (name(number % 12), name((number * 5 + 1) % 12));
        let text = "word ".repeat(1 + number % 30);
        let about = if number % 2 == 0 { "csi-node/zfs @4098".to_owned() } else { String::new() };
        marks.push(match number % 6 {
            0 => Mark::Sign { actor: from, text, about, sign: Sign::News },
            1 => Mark::Sign { actor: to, text, about, sign: Sign::Trouble },
            2 => Mark::GateCloses { actor: name(1), write: number as u64 },
            3 => Mark::GateOpens { actor: name(1), through: number as u64 },
            4 => Mark::Message { from, to, text, about, arrow: Arrow::Answered },
            _ => Mark::Message { from, to, text, about, arrow: Arrow::Said },
        });
    }
    marks.push(Mark::Pause("30s later".to_owned()));
    Picture { title: "a crowd".to_owned(), marks }
}

/// The value of an attribute of an element.
fn attribute(element: &str, name: &str) -> f64 {
    let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

/// The box of each text beside the lines, at its maximum width: left, top, right, bottom.
fn texts(svg: &str) -> Vec<[f64; 4]> {
    let elements = svg.split("<text class=\"").skip(1).map(|rest| rest.split("</text>").next().unwrap());
    let texts = elements.filter_map(|element| {
        let (class, rest) = element.split_once('"').unwrap();
        let kinds = ["title", "name", "time", "key", "chaptertext"];
        if class.split(' ').any(|class| kinds.contains(&class)) {
            return None;
        }
        let (attributes, text) = rest.split_once('>').unwrap();
        let text = text.rsplit("</title>").next().unwrap();
        let shown: String = text.split('<').map(|part| part.rsplit('>').next().unwrap()).collect();
        let shown =
            ["&amp;", "&lt;", "&gt;", "&quot;"].iter().fold(shown, |shown, sign| shown.replace(sign, "."));
        let space = if text.contains(" dx=") { 7.0 } else { 0.0 };
        let width = shown.chars().count() as f64 * 6.7 + space;
        let [x, y] = ["x", "y"].map(|name| attribute(attributes, name));
        let left = match class.rsplit(' ').next().unwrap() {
            "middle" => x - width / 2.0,
            "end" => x - width,
            _ => x,
        };
        Some([left, y - 10.0, left + width, y + 3.0])
    });
    texts.collect()
}

/// The lines of the columns: x, the start and the end.
fn lines(svg: &str) -> Vec<[f64; 3]> {
    let lines = ["<line class=\"life\"", "<line class=\"dead\""];
    let lines = lines.iter().flat_map(|line| svg.split(line).skip(1));
    lines.map(|line| ["x1", "y1", "y2"].map(|name| attribute(line, name))).collect()
}

/// Actors with long texts about themselves.
fn narrow() -> Picture {
    let sign = |actor: &str, kind| Mark::Sign {
        actor: actor.to_owned(),
        text: "word ".repeat(17),
        about: "csi-controller/zfs @4098".to_owned(),
        sign: kind,
    };
    let marks = vec![sign("host", Sign::Crash), sign("registry", Sign::News), sign("disk", Sign::Trouble)];
    Picture { title: "narrow".to_owned(), marks }
}

#[test]
fn a_picture_that_is_high_names_its_columns_again_and_at_its_end() {
    let heads = |svg: &str| -> Vec<f64> {
        svg.split("class=\"head\"").skip(1).map(|head| attribute(head, "y")).collect()
    };
    assert_eq!(heads(&svg(&narrow())).len(), narrow().columns().len());
    let high = svg(&crowd());
    let mut tops = heads(&high);
    let count = tops.len();
    tops.dedup();
    assert_eq!(count, tops.len() * crowd().columns().len());
    assert!(tops.len() > 2 && tops.windows(2).all(|two| two[1] - two[0] < 1_400.0), "{tops:?}");
    let below = attribute(&high, "height") - tops[tops.len() - 1];
    assert!((30.0..60.0).contains(&below), "the last heads are {below} above the end");
}

#[test]
fn a_title_is_never_cut_off() {
    let title = "an allocation that gives up is started again and its plugin stays registered ".repeat(2);
    let shortest = 8.0 * title.len() as f64;
    assert!(attribute(&svg(&Picture { title, ..narrow() }), "width") > shortest);
}

#[test]
fn no_text_stands_on_another_or_on_a_line_or_leaves_the_picture() {
    for picture in [crowd(), drawn(), narrow()] {
        let svg = svg(&picture);
        let (width, height) = (attribute(&svg, "width"), attribute(&svg, "height"));
        let (texts, lines) = (texts(&svg), lines(&svg));
        assert!(!texts.is_empty() && lines.len() >= picture.columns().len());
        for (number, one) in texts.iter().enumerate() {
            assert!(one[0] >= 0.0 && one[2] <= width && one[3] <= height, "{one:?} in {width} x {height}");
            for [x, from, to] in &lines {
                let is_beside = *x <= one[0] || one[2] <= *x || *to <= one[1] || one[3] <= *from;
                assert!(is_beside, "{one:?} on the line at {x} from {from} to {to}");
            }
            for other in &texts[number + 1..] {
                let is_apart =
                    one[2] <= other[0] || other[2] <= one[0] || one[3] <= other[1] || other[3] <= one[1];
                assert!(is_apart, "{one:?} and {other:?}");
            }
        }
    }
}

#[test]
fn a_head_with_a_long_name_is_shortened_and_has_the_whole_name_where_the_mouse_rests() {
    let drawn = svg(&crowd());
    let whole = "<title>allocation with-a-long-name-5</title>";
    assert!(drawn.contains(whole) && drawn.contains(">allocation w…ng-name-5</text>"), "{drawn}");
    let told = mermaid(&crowd());
    let number = crowd().columns().iter().position(|name| name.ends_with("-5")).unwrap();
    let whole = format!("%% c{number} is allocation with-a-long-name-5\n");
    assert!(told.contains(&whole) && told.contains(" as allocation w…ng-name-5\n"), "{told}");
}

#[test]
fn the_active_allocation_has_a_bar_on_its_line_from_one_takeover_to_the_next() {
    let drawn = svg(&drawn());
    let bars: Vec<_> = drawn.split("<rect class=\"active\"").skip(1).collect();
    let active = bars.iter().filter(|bar| bar.contains("<title>active: csi-"));
    let places: BTreeSet<String> = active.map(|bar| format!("{:.1}", attribute(bar, "x"))).collect();
    assert!(places.len() >= 2, "two are active in turn: {places:?}");
}

#[test]
fn what_a_plugin_says_does_no_harm_to_the_picture() {
    let text = "</text><script>alert(1)</script> & \"\u{1b}[2J; #".to_owned();
    let about = String::new();
    let mark = Mark::Message { from: "a<b".into(), to: "c".into(), text, about, arrow: Arrow::Said };
    let picture = Picture { title: "<&> \u{1b} \u{200c}\\".to_owned(), marks: vec![mark] };
    let drawn = svg(&picture);
    assert!(!drawn.contains("<script") && !drawn.contains('\u{1b}') && drawn.contains("a&lt;b"));
    let told = mermaid(&picture);
    // The title is a YAML string, in which \u{200c} is not an escape.
    assert!(told.starts_with("---\ntitle: \"<&> \\\\u{1b} \u{200c}\\\\\"\n---\n"), "{told}");
    assert!(!told.contains("<script") && told.contains("#lt;/text#gt;") && told.contains("#59;"), "{told}");
}

#[test]
fn a_picture_in_mermaid_opens_every_gate_that_it_closes() {
    let told = mermaid(&drawn());
    let count = |word: &str| told.lines().filter(|line| line.trim_start().starts_with(word)).count();
    assert!(told.contains("sequenceDiagram\n") && count("participant ") >= 6);
    assert!(count("activate ") >= 3 && count("activate ") == count("deactivate "), "{told}");
}
