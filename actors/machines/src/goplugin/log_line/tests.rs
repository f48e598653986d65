//! One row for each fact of a plugin's log lines.

use proptest::prelude::*;
use serde_json::json;

use super::super::lines::PIECE_BYTES_MAX;
use super::*;

fn lines(bytes: &[u8]) -> Vec<PluginLine> {
    let mut reader = LineReader::new();
    let mut lines = reader.push(bytes);
    lines.extend(reader.finish());
    lines
}

/// Parses one line and returns level, message and format.
fn line(text: &str) -> (LineLevel, String, Origin) {
    let lines = lines(text.as_bytes());
    let [line] = lines.as_slice() else { panic!("one line: {lines:?}") };
    (line.level, line.message.clone(), line.origin)
}

fn plain(text: &str) -> (LineLevel, String, Origin) {
    (LineLevel::Debug, text.to_owned(), Origin::Plain)
}

#[test]
fn a_line_over_64_kib_comes_in_pieces_each_as_it_is_at_debug_d70_log_02() {
    let long =
        format!("{{\"@level\":\"error\",\"@message\":\"{}\"}}\n[INFO] next\n", "x".repeat(PIECE_BYTES_MAX));
    let lines = lines(long.as_bytes());
    let told: Vec<_> = lines.iter().map(|line| (line.level, line.part, line.origin)).collect();
    assert_eq!(
        told,
        [
            (LineLevel::Debug, Part::First, Origin::Plain),
            (LineLevel::Debug, Part::Last, Origin::Plain),
            (LineLevel::Info, Part::Whole, Origin::Tagged),
        ]
    );
    assert_eq!(lines[0].message.len(), PIECE_BYTES_MAX);
}

/// The buffer is less than a piece, and its length is known, so a file reader can keep its position (D71: the copy is the
/// file itself).
#[test]
fn what_is_held_of_an_unended_line_is_told_d71_log_02() {
    let mut reader = LineReader::new();
    assert_eq!(reader.push(b"[INFO] one\n[WARN] tw").len(), 1);
    assert_eq!(reader.held_bytes(), 9);
    assert_eq!(reader.push(b"o\n")[0].message, "two");
    assert_eq!((reader.held_bytes(), reader.finish()), (0, None));
}

#[test]
fn hclogs_json_gives_message_level_time_and_every_other_key_as_a_field_d72() {
    let text = r#"{"@level":"info","@message":"started","@module":"exec.driver","@timestamp":"2026-11-21T12:00:00.000001+01:00","pid":7,"tags":["a"],"user":"x"}"#;
    let found = lines(text.as_bytes()).remove(0);
    let fields = [
        ("timestamp", json!("2026-11-21T12:00:00.000001+01:00")),
        ("@module", json!("exec.driver")),
        ("pid", json!(7)),
        ("tags", json!(["a"])),
        ("user", json!("x")),
    ];
    assert_eq!(
        (found.level, found.message.as_str(), found.origin),
        (LineLevel::Info, "started", Origin::Json)
    );
    assert_eq!(found.fields, fields.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(line(r#"{"@level":"warn"}"#), (LineLevel::Warn, String::new(), Origin::Json));
}

#[test]
fn levels_are_read_in_any_case_and_with_spaces_and_others_make_the_whole_line_debug_d73() {
    for (text, level) in [
        ("trace", LineLevel::Trace),
        ("DEBUG", LineLevel::Debug),
        (" Info ", LineLevel::Info),
        ("warn", LineLevel::Warn),
        ("\\tERROR", LineLevel::Error),
    ] {
        let json = format!(r#"{{"@level":"{text}","@message":"m"}}"#);
        assert_eq!(line(&json), (level, "m".to_owned(), Origin::Json), "{json}");
    }
    for json in
        [r#"{"@level":"off","@message":"m"}"#, r#"{"@level":"loud","@message":"m"}"#, r#"{"@message":"m"}"#]
    {
        assert_eq!(line(json), plain(json));
    }
}

#[test]
fn a_line_that_is_no_json_is_told_by_its_tag_or_is_debug_d74() {
    for (text, level) in [
        ("[TRACE] m", LineLevel::Trace),
        ("[DEBUG] m", LineLevel::Debug),
        ("[INFO]  m", LineLevel::Info),
        ("[WARN] m", LineLevel::Warn),
        ("[ERROR] m", LineLevel::Error),
    ] {
        assert_eq!(line(text), (level, "m".to_owned(), Origin::Tagged), "{text}");
        let name = text.trim_start_matches('[').split(']').next().unwrap();
        assert_eq!(level.to_string(), name.to_lowercase());
    }
    for text in
        ["m", "[info] m", " [INFO] m", "{not json", "[1,2]", "\"text\"", "{\"@level\":\"info\"} trailing"]
    {
        assert_eq!(line(text), plain(text));
    }
}

#[test]
fn a_time_is_one_only_as_hclog_writes_it_to_the_last_sign_d72() {
    let at = |time: &str| format!(r#"{{"@level":"info","@message":"m","@timestamp":"{time}"}}"#);
    for time in ["2026-11-21T12:00:00.0Z", "2026-11-21T12:00:00.000001-01:00", "2026-11-21T12:00:00.5+07:30"]
    {
        assert_eq!(line(&at(time)), (LineLevel::Info, "m".to_owned(), Origin::Json), "{time}");
    }
    for time in [
        "yesterday",
        "2026-11-21T12:00:00Z",
        "2026-11-21T12:00:00.Z",
        "2026-11-21T12:00:00.0",
        "2026-11-21T12:00:00.0z",
        "2026-11-21T12:00:00.0+01",
        "2026-11-21T12:00:00.0+01:0",
        "2026-11-21T12:00:00.0+01:00:00",
        "2026-11-21T12:00:00.0+0100x",
        "2026-11-21T12:00:00.0*01:00",
        "2026-11-21 12:00:00.0Z",
        "26-11-2021T12:00:00.0Z",
    ] {
        let json = at(time);
        assert_eq!(line(&json), plain(&json), "{time}");
    }
}

#[test]
fn only_one_that_said_so_has_panicked_d74() {
    let mut reader = LineReader::new();
    reader.push(b"what a panic: no\n[ERROR] panic: tagged\n");
    assert!(!reader.has_panicked());
    reader.push(b"panic: no room\n");
    assert!(reader.has_panicked());
}

#[test]
fn from_a_panic_on_every_untagged_line_is_an_error_d74() {
    for first in ["panic: no room", "fatal error: all goroutines are asleep"] {
        let text = format!(
            "fine\n{first}\n\ngoroutine 1 [running]:\n\tmain.go:7\n[INFO] tagged\n{{\"@level\":\"warn\"}}\nend"
        );
        let mut reader = LineReader::new();
        let mut lines = reader.push(text.as_bytes());
        lines.extend(reader.finish());
        let told: Vec<_> = lines.iter().map(|line| (line.level, line.message.as_str())).collect();
        assert_eq!(
            told,
            [
                (LineLevel::Debug, "fine"),
                (LineLevel::Error, first),
                (LineLevel::Error, "goroutine 1 [running]:"),
                (LineLevel::Error, "\tmain.go:7"),
                (LineLevel::Info, "tagged"),
                (LineLevel::Warn, ""),
                (LineLevel::Error, "end"),
            ]
        );
        assert!(reader.has_panicked());
    }
}

/// The host chooses the name of the logger; the plugin's own name is kept as a field (D75).
#[test]
fn the_plugins_own_logger_is_a_field_beside_the_name_that_the_host_gives_it_d75() {
    let found = lines(br#"{"@level":"info","@message":"m","@module":"a.b"}"#).remove(0);
    assert_eq!(found.fields, [("@module".to_owned(), json!("a.b"))]);
}

#[test]
fn markers_of_odd_types_bring_down_no_reader_d76() {
    for json in [
        r#"{"@level":"info","@message":7}"#,
        r#"{"@level":"info","@message":null}"#,
        r#"{"@level":3,"@message":"m"}"#,
        r#"{"@level":["info"],"@message":"m"}"#,
        r#"{"@level":"info","@message":"m","@timestamp":1700000000}"#,
        r#"{"@level":"info","@message":{"a":"b"}}"#,
    ] {
        assert_eq!(line(json), plain(json));
    }
    let deep = format!("{{\"@level\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(line(&deep), plain(&deep));
}

/// Both routes of a plugin's output are parsed alike: later output is text in any format (D77, D30).
#[test]
fn a_line_without_any_mark_is_read_on_either_route_d30_d77() {
    assert_eq!(line("printed by a library"), plain("printed by a library"));
}

#[test]
fn a_line_cannot_forge_another_and_has_bounded_fields_log_02() {
    let (_, message, _) = line(r#"{"@level":"info","@message":"a\nERROR forged\u001b[2J"}"#);
    assert_eq!(message, "a\\nERROR forged\\u{1b}[2J");
    let many: Vec<String> = (0..100).map(|n| format!("\"f{n:03}\":{n}")).collect();
    let found = lines(format!("{{\"@level\":\"info\",{}}}", many.join(",")).as_bytes()).remove(0);
    assert_eq!((found.fields.len(), found.fields_left_out), (FIELDS_MAX, 100 - FIELDS_MAX));
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_empty_lines_left_out_d76() {
    assert_eq!(line("a\u{fffd}b"), plain("a\u{fffd}b"));
    let lines = lines(b"\xff\xfe\n\n \n\r\nx");
    assert_eq!(lines.len(), 2);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic_or_grow_d76(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..30)) {
        let mut reader = LineReader::new();
        let mut given: usize = 0;
        for chunk in &chunks {
            for line in reader.push(chunk) {
                given += line.message.len();
            }
        }
        given += reader.finish().map_or(0, |line| line.message.len());
        prop_assert!(given <= 10 * chunks.iter().map(Vec::len).sum::<usize>());
    }

    #[test]
    fn no_json_makes_the_reader_panic_d76(
        level in "(\"[a-z ]{0,6}\"|7|null|\\[\\]|\"info\")",
        message in "(\"[ -~&&[^\"\\\\]]{0,20}\"|7|\\{\\}|true)",
        time in "(\"[0-9T:.Z+-]{0,30}\"|\"2026-11-21T12:00:00\\.0Z\"|1)",
    ) {
        let text = format!("{{\"@level\":{level},\"@message\":{message},\"@timestamp\":{time},\"x\":{message}}}");
        let found = lines(text.as_bytes());
        prop_assert_eq!(found.len(), 1);
        if found[0].origin == Origin::Plain {
            prop_assert_eq!(&found[0].message, &text);
        }
    }
}
