//! Mistakes in a configuration, and their messages.

use super::*;

#[test]
fn every_mistake_is_told_at_once_with_its_path() {
    let text = "
        endpoint = [1]
        alow = []
        [gc]
        image = 'perhaps'
        [[volumes]]
        size = 'large'
        [[volumes]]
        name = 'b'
        options = {a = [1]}
        [[volumes]]
        name = {}
        siez = 2
        [[volumes]]
        name = 'd'
        [auth.hub]
        [auth.'x y']
        user = 'me'
        other = 1
    ";
    assert_eq!(
        decoded(&docker(), text),
        "\
config.alow: the plugin knows no such key; did you mean \"allow\"?
config.auth.hub.user: a string is required here and missing
config.auth[\"x y\"].other: the plugin knows no such key; it knows user
config.endpoint: expected string, found a list of 1
config.gc.image: expected bool, found a string that is neither \"true\" nor \"false\"
config.volumes: expected at most 3 blocks, found 4
config.volumes[0].name: a string is required here and missing
config.volumes[0].size: expected number, found a string that spells no number in 64 bits
config.volumes[1].options.a: expected string, found a list of 1
config.volumes[2].siez: the plugin knows no such key; did you mean \"size\"?
config.volumes[2].name: expected string, found a table"
    );
}

#[test]
fn each_type_says_what_was_found_and_what_was_expected() {
    for (kind, text, expected) in [
        ("number", "x = true", "config.x: expected number, found the bool true"),
        ("bool", "x = 1", "config.x: expected bool, found the number 1"),
        ("string", "x = {}", "config.x: expected string, found a table"),
        ("list(string)", "x = 'a'", "config.x: expected list(string), found a string"),
        ("list(string)", "x = {a = 1}", "config.x: expected list(string), found a table"),
        ("map(string)", "x = ['a']", "config.x: expected map(string), found a list of 1"),
        ("list(number)", "x = [1, {}, 2]", "config.x[1]: expected number, found a table"),
        (
            "list(any)",
            "x = [1, true]",
            "config.x: expected values of one type, found the number 1 beside the bool true",
        ),
        (
            "list(any)",
            "x = ['a', []]",
            "config.x: expected values of one type, found a string beside a list of 0",
        ),
        (
            "tuple([string, number])",
            "x = ['a']",
            "config.x: expected tuple([string, number]), that is a list of 2, found a list of 1",
        ),
        ("object({a = string})", "x = {}", "config.x.a: a string is required here and missing"),
        (
            "object({name = string, size = number})",
            "x = {name = 'a', size = 1, sice = 2}",
            "config.x.sice: the plugin knows no such key; did you mean \"size\"?",
        ),
    ] {
        assert_eq!(decoded(&one(kind), text), expected, "{text}");
    }
    for text in [" 5", "0x10", "1_0", "nan", "inf", "infinity", "1e", "e5", "--1", "99999999999999999999"] {
        assert_eq!(
            decoded(&one("number"), &format!("x = '{text}'")),
            "config.x: expected number, found a string that spells no number in 64 bits",
            "{text}"
        );
    }
    for text in ["TRUE", "yes", "2"] {
        assert_eq!(
            decoded(&one("bool"), &format!("x = '{text}'")),
            "config.x: expected bool, found a string that is neither \"true\" nor \"false\""
        );
    }
    assert_eq!(from_toml("x = nan").unwrap_err().errors()[0].problem, ConfigProblem::NumberOutOfRange);
}

#[test]
fn each_kind_of_block_says_what_was_found_and_what_was_expected() {
    let nothing = || object([]);
    let either = || default(attr("x", "string", false), attr("y", "string", true));
    for (spec, text, expected) in [
        (nothing(), "x = 1", "config.x: the plugin knows no such key; nothing may be given here"),
        (attr("x", "string", true), "", "config.x: a string is required here and missing"),
        (either(), "x = 'a'", "config.y: a string is required here and missing"),
        (block_list("x", 2, 0, nothing()), "x = [{}]", "config.x: expected at least 2 blocks, found 1"),
        (
            block_list("x", 0, 0, nothing()),
            "x = [1]",
            "config.x[0]: expected a block or a table, found the number 1",
        ),
        (
            block_list("x", 0, 0, nothing()),
            "x = 'a'",
            "config.x: expected a block or a table, found a string",
        ),
        (block("x", true, nothing()), "", "config.x: a block is required here and missing"),
        (block("x", false, nothing()), "x = [{}, {}]", "config.x: it is given more than once"),
        (block_attrs("x", "string", true), "", "config.x: a block is required here and missing"),
        (
            block_attrs("x", "number", true),
            "x = {a = true}",
            "config.x.a: expected number, found the bool true",
        ),
        (
            block_map("x", &["key"], nothing()),
            "x = 1",
            "config.x: expected a block with the label \"key\", found the number 1",
        ),
        (
            block_map("x", &["key"], nothing()),
            "x = {}",
            "config.x: expected a block with the label \"key\", found a table",
        ),
        (block_map("x", &["key"], nothing()), "x = {a = [{}, {}]}", "config.x.a: it is given more than once"),
        // Exactly the limit.
        (block_list("x", 2, 2, nothing()), "x = [{}, {}]", "928080"),
    ] {
        assert_eq!(decoded(&spec, text), expected, "{text}");
    }
}

#[test]
fn mistakes_are_counted_when_they_are_too_many_to_tell() {
    let text: String = (0..80).map(|n| format!("key{n} = 1\n")).collect();
    let errors = schema(&docker()).decode(&from_toml(&text).unwrap()).unwrap_err();
    assert_eq!((errors.errors().len(), errors.untold()), (ERRORS_MAX, 80 - ERRORS_MAX));
    assert!(errors.to_string().ends_with("; and 30 more"), "{errors}");
}

#[test]
fn no_mistake_quotes_a_text_sec_06() {
    for kind in ["number", "bool", "list(string)", "map(any)", "list(any)", "object({a = string})"] {
        for text in ["x = 'canary-9'", "x = ['canary-9', []]", "x = {b = 'canary-9', c = []}"] {
            let told = decoded(&one(kind), text);
            assert!(!told.contains("canary"), "{kind}, {text}: {told}");
        }
    }
}

#[test]
fn a_misspelt_name_is_recognised_and_another_one_is_not() {
    let known = ["command", "args", "image", "volumes"];
    let rows = [
        ("comand", Some("command")),
        ("commandd", Some("command")),
        ("kommand", Some("command")),
        ("mman", None),
        ("arg", Some("args")),
        ("a", None),
        ("imagines", Some("image")),
        ("imagination", None),
        ("volume", Some("volumes")),
        ("", None),
    ];
    for (name, closest) in rows {
        assert_eq!(error::closest(name, known.into_iter()).as_deref(), closest, "{name}");
    }
}

#[test]
fn what_was_written_is_described_without_being_quoted_sec_06() {
    let of = |hcl: &str| Config::from_hcl(hcl).unwrap().body["a"].described();
    assert_eq!(of("a {}"), "a block");
    assert_eq!(of("a {}\na {}"), "2 blocks");
    assert_eq!(of("a = []"), "a list of 0");
    assert_eq!(of("a = {}"), "a table");
    assert_eq!(of("a = \"\""), "an empty string");
    assert_eq!(of("a = \"x\""), "a string");
    assert_eq!(of("a = -1"), "the number -1");
    assert_eq!(of("a = null"), "null");
    assert_eq!(of("a = true"), "the bool true");
    assert!(!Config::from_hcl("a = b").unwrap_err().is_transient());
}
