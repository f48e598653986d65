//! Schemas, configurations and what a plugin gets, as tables.
//!
//! The bytes of the first table are those that hcldec of HCL 2 and the encoder of go-cty, as Nomad 1.6 uses them, make of the
//! same schema and the same configuration as JSON; Nomad's `base.MsgPackDecode` read them into Go structs.

use std::collections::HashMap;

use callboard_proto::hclspec as wire;
use proptest::prelude::*;
use wire::spec::Block;

use super::*;

// === Schemas, as plugins build them ===

fn spec(block: Block) -> wire::Spec {
    wire::Spec { block: Some(block) }
}

fn attr(name: &str, kind: &str, required: bool) -> wire::Spec {
    spec(Block::Attr(wire::Attr { name: name.into(), r#type: kind.into(), required }))
}

fn object<const N: usize>(attributes: [(&str, wire::Spec); N]) -> wire::Spec {
    let attributes: HashMap<_, _> = attributes.map(|(key, spec)| (key.to_owned(), spec)).into();
    spec(Block::Object(wire::Object { attributes }))
}

fn literal(value: &str) -> wire::Spec {
    spec(Block::Literal(wire::Literal { value: value.into() }))
}

fn default(primary: wire::Spec, default: wire::Spec) -> wire::Spec {
    let (primary, default) = (Some(Box::new(primary)), Some(Box::new(default)));
    spec(Block::Default(Box::new(wire::Default { primary, default })))
}

fn block(name: &str, required: bool, nested: wire::Spec) -> wire::Spec {
    let nested = Some(Box::new(nested));
    spec(Block::BlockValue(Box::new(wire::Block { name: name.into(), required, nested })))
}

fn block_attrs(name: &str, kind: &str, required: bool) -> wire::Spec {
    spec(Block::BlockAttrs(wire::BlockAttrs { name: name.into(), r#type: kind.into(), required }))
}

fn block_list(name: &str, min_items: u64, max_items: u64, nested: wire::Spec) -> wire::Spec {
    let nested = Some(Box::new(nested));
    spec(Block::BlockList(Box::new(wire::BlockList { name: name.into(), min_items, max_items, nested })))
}

fn block_set(name: &str, nested: wire::Spec) -> wire::Spec {
    let nested = Some(Box::new(nested));
    spec(Block::BlockSet(Box::new(wire::BlockSet { name: name.into(), min_items: 0, max_items: 0, nested })))
}

fn block_map(name: &str, labels: &[&str], nested: wire::Spec) -> wire::Spec {
    let labels = labels.iter().map(|&label| label.to_owned()).collect();
    let nested = Some(Box::new(nested));
    spec(Block::BlockMap(Box::new(wire::BlockMap { name: name.into(), labels, nested })))
}

fn array(values: Vec<wire::Spec>) -> wire::Spec {
    spec(Block::Array(wire::Array { values }))
}

/// A schema much like that of a container driver.
fn docker() -> wire::Spec {
    let gc = object([
        ("image", default(attr("image", "bool", false), literal("true"))),
        ("delay", default(attr("delay", "string", false), literal(r#""3m""#))),
    ]);
    let volume = object([
        ("name", attr("name", "string", true)),
        ("size", attr("size", "number", false)),
        ("options", block_attrs("options", "string", false)),
    ]);
    object([
        ("endpoint", attr("endpoint", "string", false)),
        ("allow", default(attr("allow", "list(string)", false), literal(r#"["chown", "kill"]"#))),
        ("gc", default(block("gc", false, gc), literal("{\n image = true\n delay = \"3m\"\n}"))),
        ("volumes", block_list("volumes", 0, 3, volume)),
        ("auth", block_map("auth", &["server"], object([("user", attr("user", "string", true))]))),
    ])
}

fn one(kind: &str) -> wire::Spec {
    object([("x", attr("x", kind, false))])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn schema(spec: &wire::Spec) -> Schema {
    Schema::from_wire(spec).unwrap()
}

fn from_toml(text: &str) -> Result<Config, ConfigErrors> {
    Config::from_toml(&toml::from_str(text).unwrap())
}

/// What the plugin gets of a configuration in TOML, or every mistake on a line of its own.
fn decoded(spec: &wire::Spec, text: &str) -> String {
    told(from_toml(text).and_then(|config| schema(spec).decode(&config)))
}

fn decoded_hcl(spec: &wire::Spec, text: &str) -> String {
    told(Config::from_hcl(text).and_then(|config| schema(spec).decode(&config)))
}

fn told(decoded: Result<Value, ConfigErrors>) -> String {
    match decoded {
        Ok(value) => hex(&value.to_msgpack()),
        Err(errors) => errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

// === What Go makes of it ===

/// Schema, configuration in TOML, and the bytes that Go makes of both.
fn agreed() -> Vec<(wire::Spec, &'static str, &'static str)> {
    let x = |spec| object([("x", spec)]);
    let full = "
        endpoint = 'unix:///d.sock'
        allow = []
        [gc]
        image = false
        [[volumes]]
        name = 'a'
        size = 3
        [volumes.options]
        ro = true
        n = 1.5
        [[volumes]]
        name = 'b'
        [auth.hub]
        user = 'me'
        [auth.'x y']
        user = 'you'
    ";
    let labels = "[x.one.two]\nc = true\n[x.one.three]\n[x.four.five]\nc = false";
    let long = "x = 'a text that is longer than thirty-one bytes, so that it has a length'";
    let pair = array(vec![attr("a", "number", false), literal("7")]);
    vec![
        (
            docker(),
            "",
            "85a5616c6c6f7792a563686f776ea46b696c6ca46175746880a8656e64706f696e74c0a2676382a564656c6179a2336da5696d616765c3a7766f6c756d657390",
        ),
        (
            docker(),
            full,
            "85a5616c6c6f7790a46175746882a368756281a475736572a26d65a378207981a475736572a3796f75a8656e64706f696e74ae756e69783a2f2f2f642e736f636ba2676382a564656c6179a2336da5696d616765c2a7766f6c756d65739283a46e616d65a161a76f7074696f6e7382a16ea3312e35a2726fa474727565a473697a650383a46e616d65a162a76f7074696f6e73c0a473697a65c0",
        ),
        (one("string"), "x = 5", "81a178a135"),
        (one("string"), "x = -0.25", "81a178a52d302e3235"),
        (one("string"), "x = true", "81a178a474727565"),
        (one("number"), "x = '12'", "81a1780c"),
        (one("number"), "x = '-12.5'", "81a178cbc029000000000000"),
        (one("number"), "x = '1e3'", "81a178cd03e8"),
        (one("number"), "x = '+5'", "81a17805"),
        (one("number"), "x = 2.0", "81a17802"),
        (one("number"), "x = 2.5", "81a178cb4004000000000000"),
        (one("number"), "x = 127", "81a1787f"),
        (one("number"), "x = 128", "81a178cc80"),
        (one("number"), "x = 65536", "81a178ce00010000"),
        (one("number"), "x = 9223372036854775807", "81a178cf7fffffffffffffff"),
        (one("number"), "x = -9223372036854775808", "81a178d38000000000000000"),
        (one("number"), "x = -33", "81a178d0df"),
        (one("bool"), "x = 'true'", "81a178c3"),
        (one("bool"), "x = '0'", "81a178c2"),
        (one("any"), "x = [1, 'a', {b = 2}]", "81a1789301a16181a16202"),
        (one("any"), "", "81a178c0"),
        (one("list(any)"), "x = [1, 'a', true]", "81a17893a131a161a474727565"),
        (one("list(string)"), "x = [1, 'a', true]", "81a17893a131a161a474727565"),
        (one("list(map(string))"), "x = [{a = 1}, {b = 'c'}]", "81a1789281a161a13181a162a163"),
        (one("set(string)"), "x = ['b', 'a', 'b']", "81a17892a161a162"),
        (one("set(number)"), "x = [10, 9, '10']", "81a17892090a"),
        (one("map(number)"), "x = {b = 1, a = '2'}", "81a17882a16102a16201"),
        (one("map(any)"), "x = {b = 1, a = 'z'}", "81a17882a161a17aa162a131"),
        (one("object({a = string, b = list(number)})"), "x = {a = 1, b = []}", "81a17882a161a131a16290"),
        (one("tuple([string, number])"), "x = [1, '2']", "81a17892a13102"),
        (x(block_attrs("", "number", false)), "[x]\na = 1\nb = '2'", "81a17882a16101a16202"),
        (x(block_attrs("", "number", false)), "", "81a178c0"),
        (x(block("", false, pair)), "x.a = 1", "81a178920107"),
        (x(block_list("", 0, 0, attr("a", "number", false))), "x = [{a = 1}, {}]", "81a1789201c0"),
        (
            x(block_set("", attr("a", "string", false))),
            "x = [{a = 'b'}, {a = 'a'}, {a = 'b'}]",
            "81a17892a161a162",
        ),
        (
            x(block_map("", &["a", "b"], attr("c", "bool", false))),
            labels,
            "81a17882a4666f757281a466697665c2a36f6e6582a57468726565c0a374776fc3",
        ),
        (x(block_map("", &["a"], attr("c", "bool", false))), "", "81a17880"),
        (
            x(literal("{a = [1, 2.5, null], \"b c\" = \"d\"}")),
            "",
            "81a17882a1619301cb4004000000000000c0a3622063a164",
        ),
        (
            one("string"),
            long,
            "81a178d9446120746578742074686174206973206c6f6e676572207468616e207468697274792d6f6e652062797465732c20736f2074686174206974206861732061206c656e677468",
        ),
    ]
}

#[test]
fn a_plugin_gets_the_same_bytes_as_from_nomad_d113() {
    for (spec, text, bytes) in agreed() {
        assert_eq!(decoded(&spec, text), bytes, "{text}");
    }
}

#[test]
fn a_fraction_stays_a_number_that_go_can_read_d113() {
    // go-cty makes the string "0.1" of it, which a Go plugin refuses to read into a float64.
    assert_eq!(decoded(&one("number"), "x = 0.1"), "81a178cb3fb999999999999a");
    assert_eq!(decoded(&one("number"), "x = '0.1'"), "81a178cb3fb999999999999a");
}

// === HCL ===

#[test]
fn hcl_and_toml_say_the_same() {
    let hcl = r#"
        # Blocks, labels, comments.
        endpoint = "unix:///d.sock"
        allow    = []
        gc { image = false }
        volumes {
          name = "a"
          size = 3
          options {
            ro = true
            n  = 1.5
          }
        }
        volumes { name = "b" }
        auth "hub" { user = "me" }
        auth "x y" { user = "you" }
    "#;
    let (_, _, bytes) = &agreed()[1];
    assert_eq!(decoded_hcl(&docker(), hcl), *bytes);
    let hcl = r#"
        gc       = { image = false }
        volumes  = [{ name = "a", size = (3), options = { ro = true, n = 1.5 } }, { "name" = "b" }]
        allow    = []
        endpoint = "unix:///d.sock"
        auth     = { hub = { user = "me" }, "x y" = { user = "you" } }
    "#;
    assert_eq!(decoded_hcl(&docker(), hcl), *bytes);
}

#[test]
fn hcl_literals_are_taken_as_they_are() {
    for (hcl, toml) in [
        ("x = -5", "x = -5"),
        ("x = -9223372036854775807", "x = -9223372036854775807"),
        ("x = (2.5)", "x = 2.5"),
        ("x = -2.5", "x = -2.5"),
        ("x = -(2.5)", "x = -2.5"),
        ("x = -(5)", "x = -5"),
        ("x = 1e3", "x = 1000"),
        ("x = null", ""),
        (r#"x = "a$${b}%%{c}\n\u00e9""#, "x = \"a${b}%{c}\\n\u{e9}\""),
        ("x = <<EOT\n  a\n  b\nEOT\n", "x = \"  a\\n  b\\n\""),
        ("x = <<-EOT\n    a\n      b\n  EOT\n", "x = \"a\\n  b\\n\""),
        (r#"x = { a = 1, "b" : 2, (3) = "c" }"#, "x = { a = 1, b = 2, 3 = 'c' }"),
        (r#"x = { true = "a", (false) = "b" }"#, "x = { true = 'a', false = 'b' }"),
        (r#"x = { "a$${b}" = "c" }"#, "x = { 'a${b}' = 'c' }"),
        ("x = { (<<EOT\na\nEOT\n) = 1 }", "x = { \"a\\n\" = 1 }"),
    ] {
        assert_eq!(decoded_hcl(&one("any"), hcl), decoded(&one("any"), toml), "{hcl}");
    }
    // A block where a map or a list of maps is wanted, as Nomad's job files are written.
    let labels = "x {\n a = 1\n}\nx {\n b = 2\n}";
    assert_eq!(decoded_hcl(&one("list(map(string))"), labels), "81a1789281a161a13181a162a132");
    assert_eq!(decoded_hcl(&one("map(string)"), "x {\n a = 1\n}"), "81a17881a161a131");
    let two = object([("x", block_map("", &["a", "b"], attr("c", "bool", false)))]);
    let hcl =
        "x \"one\" \"two\" {\n c = true\n}\nx \"one\" \"three\" {}\nx \"four\" \"five\" {\n c = false\n}";
    let toml = "[x.one.two]\nc = true\n[x.one.three]\n[x.four.five]\nc = false";
    assert_eq!(decoded_hcl(&two, hcl), decoded(&two, toml));
}

#[test]
fn what_is_no_literal_is_refused_with_its_place() {
    for (hcl, place, what) in [
        ("x = var.secret", "x", "a reference"),
        ("x = [1, upper(\"a\")]", "x[1]", "a function call"),
        ("x = \"a ${b} c\"", "x", "a template with values to be put in"),
        ("x = { a = 1 + 2 }", "x.a", "an operator"),
        ("x = !true", "x", "an operator"),
        ("x = true ? 1 : 2", "x", "a conditional"),
        ("x = [for a in [1] : a]", "x", "a for expression"),
        ("x = { (f()) = 1 }", "x", "a key that is to be computed"),
        ("x = { (a) = 1 }", "x", "a key that is to be computed"),
    ] {
        let expected = format!("config.{place}: {what} cannot be used here; write the value itself");
        assert_eq!(decoded_hcl(&one("any"), hcl), expected, "{hcl}");
    }
    assert_eq!(decoded_hcl(&one("any"), "x = a\nz {\n y = b\n}").lines().count(), 2);
    assert_eq!(decoded_hcl(&one("any"), "x = 1\nx {\n}"), "config.x: it is given more than once");
    for hcl in ["x = 18446744073709551615", "x = 99999999999999999999", "x = -9223372036854775809"] {
        assert_eq!(
            Config::from_hcl(hcl).unwrap_err().errors()[0].problem,
            ConfigProblem::NumberOutOfRange,
            "{hcl}"
        );
    }
}

#[test]
fn hcl_that_cannot_be_read_is_refused_without_quoting_it_sec_06() {
    for hcl in ["password = \"canary-9", "password = canary-9 }", "x = [[[", "x = \u{0}", "x = 1\nx = 2"] {
        let told = decoded_hcl(&one("any"), hcl);
        assert!(told.starts_with("config: line ") && !told.contains("canary"), "{told}");
    }
    let deep = [("[", "]"), ("(", ")"), ("{ a = ", "}"), ("!", ""), ("-", ""), ("f(", ")"), ("\"${", "}\"")];
    for (open, close) in deep {
        let text = format!("x = {}1{}", open.repeat(50_000), close.repeat(50_000));
        assert!(Config::from_hcl(&text).is_err(), "{open}");
    }
    let blocks = format!("{}{}", "x {\n".repeat(50_000), "}\n".repeat(50_000));
    assert!(Config::from_hcl(&blocks).is_err());
    let large = format!("x = \"{}\"", "a".repeat(CONFIG_BYTES_MAX));
    assert_eq!(Config::from_hcl(&large).unwrap_err().errors()[0].problem, ConfigProblem::TooLarge);
}

// === Mistakes ===

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
        // As many as there may be.
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
fn a_configuration_is_bounded_in_depth_and_size() {
    let mut table = toml::Table::new();
    for _ in 0..=CONFIG_DEPTH_MAX + 1 {
        table = [("a".to_owned(), toml::Value::Table(table))].into_iter().collect();
    }
    assert_eq!(Config::from_toml(&table).unwrap_err().errors()[0].problem, ConfigProblem::TooDeep);
    let many = toml::Value::Array(vec![toml::Value::Boolean(true); CONFIG_VALUES_MAX]);
    let table = [("a".to_owned(), many)].into_iter().collect();
    assert_eq!(Config::from_toml(&table).unwrap_err().errors()[0].problem, ConfigProblem::TooLarge);
}

/// What a configuration of this depth is: tables within tables.
fn nested_tables(count: usize) -> toml::Table {
    (0..count).fold(toml::Table::new(), |inner, _| {
        [("a".to_owned(), toml::Value::Table(inner))].into_iter().collect()
    })
}

fn fits(config: Result<Config, ConfigErrors>) -> Result<(), ConfigProblem> {
    config.map(drop).map_err(|errors| errors.errors()[0].problem.clone())
}

#[test]
fn a_configuration_may_be_just_so_deep_however_it_is_written() {
    let deep = CONFIG_DEPTH_MAX;
    let lists = |count: usize| format!("a = {}{}", "[".repeat(count), "]".repeat(count));
    let objects = |count: usize| format!("a = {}1{}", "{ a = ".repeat(count), " }".repeat(count));
    let blocks = |count: usize| format!("{}a = 1\n{}", "a {\n".repeat(count), "}\n".repeat(count));
    let labels = |count: usize| format!("a{} {{}}", " \"l\"".repeat(count));
    let from_toml = |text: String| fits(Config::from_toml(&text.parse().unwrap()));
    let from_hcl = |text: String| fits(Config::from_hcl(&text));
    // The innermost list has nothing in it that would be deeper.
    assert_eq!(from_toml(lists(deep + 1)), Ok(()));
    assert_eq!(from_toml(lists(deep + 2)), Err(ConfigProblem::TooDeep));
    assert_eq!(fits(Config::from_toml(&nested_tables(deep + 1))), Ok(()));
    assert_eq!(fits(Config::from_toml(&nested_tables(deep + 2))), Err(ConfigProblem::TooDeep));
    assert_eq!(from_hcl(lists(deep + 1)), Ok(()));
    assert!(from_hcl(lists(deep + 2)).is_err());
    assert_eq!(from_hcl(objects(deep)), Ok(()));
    assert!(from_hcl(objects(deep + 1)).is_err());
    assert_eq!(from_hcl(blocks(deep)), Ok(()));
    assert!(from_hcl(blocks(deep + 1)).is_err());
    assert_eq!(from_hcl(labels(deep)), Ok(()));
    assert!(from_hcl(labels(deep + 1)).is_err());
    let within = |count: usize| format!("a{} {{ b = 1 }}", " \"l\"".repeat(count));
    assert_eq!(from_hcl(within(deep - 1)), Ok(()));
    assert!(from_hcl(within(deep)).is_err());
    // Labels and what lies within their block are one depth.
    let labelled = |value: &str| format!("a{} {{ b = {value} }}", " \"l\"".repeat(deep - 3));
    for (just, deeper) in [("[[[]]]", "[[[[]]]]"), ("{ a = { a = 1 } }", "{ a = { a = { a = 1 } } }")] {
        assert_eq!(from_hcl(labelled(just)), Ok(()));
        assert_eq!(from_hcl(labelled(deeper)), Err(ConfigProblem::TooDeep));
    }
}

#[test]
fn a_configuration_may_be_just_so_large() {
    let truths = |count| toml::Value::Array(vec![toml::Value::Boolean(true); count]);
    let from_toml = |value| fits(Config::from_toml(&[("a".to_owned(), value)].into_iter().collect()));
    assert_eq!(from_toml(truths(CONFIG_VALUES_MAX - 1)), Ok(()));
    assert_eq!(from_toml(truths(CONFIG_VALUES_MAX)), Err(ConfigProblem::TooLarge));
    let text = |bytes| toml::Value::String("x".repeat(bytes));
    assert_eq!(from_toml(text(CONFIG_BYTES_MAX - 1)), Ok(()));
    assert_eq!(from_toml(text(CONFIG_BYTES_MAX)), Err(ConfigProblem::TooLarge));
    let hcl = |bytes: usize| fits(Config::from_hcl(&format!("a = 1{}", "\n".repeat(bytes - 5))));
    assert_eq!(hcl(CONFIG_BYTES_MAX), Ok(()));
    assert_eq!(hcl(CONFIG_BYTES_MAX + 1), Err(ConfigProblem::TooLarge));
    assert_eq!(hcl(CONFIG_BYTES_MAX + 2), Err(ConfigProblem::TooLarge));
    // What is too large is told once, and nothing after it.
    let twice = format!("a = \"{0}\"\nb = \"{0}\"", "x".repeat(CONFIG_BYTES_MAX / 2));
    assert_eq!(Config::from_hcl(&twice).unwrap_err().errors().len(), 1);
}

#[test]
fn a_schema_may_be_just_so_deep_and_large() {
    let told = |spec: &wire::Spec| Schema::from_wire(spec).map(drop).map_err(|error| error.problem);
    let objects = |count| (0..count).fold(literal("1"), |inner, _| object([("a", inner)]));
    assert_eq!(told(&objects(SCHEMA_DEPTH_MAX)), Ok(()));
    let arrays = |count| (0..count).fold(literal("1"), |inner, _| array(vec![inner]));
    assert_eq!(told(&arrays(SCHEMA_DEPTH_MAX)), Ok(()));
    assert_eq!(told(&arrays(SCHEMA_DEPTH_MAX + 1)), Err(SchemaProblem::TooDeep));
    let blocks = |count| (0..count).fold(literal("1"), |inner, _| block("a", false, inner));
    assert_eq!(told(&blocks(SCHEMA_DEPTH_MAX)), Ok(()));
    assert_eq!(told(&blocks(SCHEMA_DEPTH_MAX + 1)), Err(SchemaProblem::TooDeep));
    let defaults = |count| (0..count).fold(literal("1"), |inner, _| default(inner, literal("1")));
    assert_eq!(told(&defaults(SCHEMA_DEPTH_MAX)), Ok(()));
    assert_eq!(told(&defaults(SCHEMA_DEPTH_MAX + 1)), Err(SchemaProblem::TooDeep));
    let fallbacks = |count| (0..count).fold(literal("1"), |inner, _| default(literal("1"), inner));
    assert_eq!(told(&fallbacks(SCHEMA_DEPTH_MAX + 1)), Err(SchemaProblem::TooDeep));
    assert_eq!(told(&array(vec![literal("1"); SCHEMA_NODES_MAX - 1])), Ok(()));
    let labelled = |count| block_map("a", &vec!["l"; count], object([]));
    assert_eq!(told(&labelled(SCHEMA_DEPTH_MAX)), Ok(()));
    assert_eq!(told(&labelled(SCHEMA_DEPTH_MAX + 1)), Err(SchemaProblem::TooDeep));
    assert_eq!(told(&block_list("a", 2, 2, object([]))), Ok(()));
    let text = |bytes: usize| literal(&format!("\"{}\"", "x".repeat(bytes - 2)));
    assert_eq!(told(&text(CONFIG_BYTES_MAX)), Ok(()));
    assert!(told(&text(CONFIG_BYTES_MAX + 1)).is_err() && told(&text(CONFIG_BYTES_MAX + 2)).is_err());
    let kind = |bytes: usize| attr("a", &format!("string{}", " ".repeat(bytes - 6)), false);
    assert_eq!(told(&kind(CONFIG_BYTES_MAX)), Ok(()));
    assert!(told(&kind(CONFIG_BYTES_MAX + 1)).is_err() && told(&kind(CONFIG_BYTES_MAX + 2)).is_err());
    for (open, close) in [("list(", ")"), ("tuple([", "])"), ("object({a = ", "})")] {
        let nested = |count| attr("a", &format!("{}any{}", open.repeat(count), close.repeat(count)), false);
        assert_eq!(told(&nested(16)), Ok(()), "{open}");
        assert!(told(&nested(17)).is_err(), "{open}");
    }
}

#[test]
fn numbers_are_whole_where_they_can_be() {
    let whole = |number| Some(Number::Integer(number));
    let rows = [
        ("7", whole(7)),
        ("+7", whole(7)),
        ("-7", whole(-7)),
        ("1.0", whole(1)),
        ("1e2", whole(100)),
        ("1E2", whole(100)),
        (".5", Some(Number::Float(0.5))),
        ("-0.5", Some(Number::Float(-0.5))),
        ("1e30", Some(Number::Float(1e30))),
        // Digits alone that do not fit are not rounded in silence.
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("1e400", None),
        ("", None),
        ("e5", None),
        ("inf", None),
        ("-inf", None),
        ("0x10", None),
        ("7 ", None),
        ("--1", None),
        ("1_000", None),
    ];
    for (text, number) in rows {
        assert_eq!(Number::from_text(text), number, "{text}");
    }
    let end = 9_223_372_036_854_775_808.0;
    assert_eq!(Number::from_float(end), Some(Number::Float(end)));
    assert_eq!(Number::from_float(-end), whole(i64::MIN));
    assert_eq!(Number::from_float(-2.0 * end), Some(Number::Float(-2.0 * end)));
    assert_eq!(Number::from_float(f64::NAN).or(Number::from_float(f64::NEG_INFINITY)), None);
}

#[test]
fn a_set_is_in_the_order_of_its_values_with_nothing_last() {
    let numbers = [2.0, 1.5, -1.0, 1.5, 2.5, 0.0, 2.0, 1.0]
        .map(|number| Value::Number(Number::from_float(number).unwrap()));
    let mut values = vec![Value::Null];
    values.extend(numbers);
    values.insert(4, Value::Null);
    let shown = |values: Vec<Value>| format!("{values:?}").replace("Number(", "").replace("))", ")");
    let order = "[Integer(-1), Integer(0), Integer(1), Float(1.5), Integer(2), Float(2.5), Null]";
    assert_eq!(shown(convert::as_set(values)), order);
    let bools = [true, false, true].map(Value::Bool).to_vec();
    assert_eq!(convert::as_set(bools), [false, true].map(Value::Bool));
    let texts = ["b", "a", "b"].map(|text| Value::String(text.to_owned())).to_vec();
    assert_eq!(convert::as_set(texts), ["a", "b"].map(|text| Value::String(text.to_owned())));
    let nothing_and_lists = [Value::Null, Value::List(vec![]), Value::Null].to_vec();
    assert_eq!(convert::as_set(nothing_and_lists), [Value::List(vec![]), Value::Null]);
    let lists = |numbers: &[i64]| -> Vec<Value> {
        numbers.iter().map(|number| Value::List(vec![Value::Number(Number::Integer(*number))])).collect()
    };
    assert_eq!(convert::as_set(lists(&[3, 1, 3, 2, 1])), lists(&[3, 1, 2]));
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

// === Malformed schemas ===

#[test]
fn a_malformed_schema_is_refused_with_the_place() {
    let empty = || wire::Spec { block: None };
    let mut hollow = wire::Block { name: "a".into(), required: false, nested: None };
    hollow.required = true;
    let hollow = spec(Block::BlockValue(Box::new(hollow)));
    let half = wire::Default { primary: Some(Box::new(literal("1"))), default: None };
    let half = spec(Block::Default(Box::new(half)));
    let call = "literal: a function call cannot be used here; write the value itself";
    let unnamed = default(attr("", "bool", false), literal("1"));
    let ambiguous = object([("a", attr("n", "any", false)), ("b", block_attrs("n", "any", false))]);
    let block_default = default(attr("a", "any", false), block("b", false, object([])));
    for (spec, path, problem) in [
        (empty(), "schema", SchemaProblem::Empty),
        (object([("a", object([("b", empty())]))]), "schema.a.b", SchemaProblem::Empty),
        (object([("b", hollow)]), "schema.b", SchemaProblem::NothingNested("block")),
        (object([("b", half)]), "schema.b", SchemaProblem::NothingNested("default")),
        (attr("", "string", false), "schema", SchemaProblem::Unnamed("attr")),
        (object([("a", unnamed)]), "schema.a.primary", SchemaProblem::Unnamed("attr")),
        (
            array(vec![literal("1"), block_attrs("", "string", false)]),
            "schema[1]",
            SchemaProblem::Unnamed("block_attrs"),
        ),
        (literal("upper(\"a\")"), "schema", SchemaProblem::BadLiteral(call.into())),
        (block_map("x", &[], object([])), "schema", SchemaProblem::NoLabels),
        (block_map("x", &["a"], attr("b", "list(any)", false)), "schema", SchemaProblem::AnyInMap),
        (block_default, "schema", SchemaProblem::BlockAsDefault),
        (block_list("x", 3, 2, object([])), "schema", SchemaProblem::ImpossibleItems { least: 3, most: 2 }),
        (ambiguous, "schema", SchemaProblem::Ambiguous("n".into())),
    ] {
        assert_eq!(Schema::from_wire(&spec), Err(MalformedSchema { path: path.into(), problem }));
    }
    for text in
        ["", "text", "list(string", "list(string, bool)", "tuple(string)", "map()", "object([string])"]
    {
        let told = Schema::from_wire(&block("x", false, attr("a", text, false))).unwrap_err();
        assert_eq!((&*told.path, told.problem), ("schema.x", SchemaProblem::UnknownType(text.into())));
    }
    assert!(Schema::from_wire(&literal("")).is_err());
}

#[test]
fn a_schema_is_bounded_in_depth_and_size() {
    let mut deep = literal("1");
    for _ in 0..=SCHEMA_DEPTH_MAX {
        deep = object([("a", deep)]);
    }
    assert_eq!(Schema::from_wire(&deep).unwrap_err().problem, SchemaProblem::TooDeep);
    let wide = array(vec![literal("1"); SCHEMA_NODES_MAX]);
    assert_eq!(Schema::from_wire(&wide).unwrap_err().problem, SchemaProblem::TooLarge);
    let nested = format!("{}string{}", "list(".repeat(30), ")".repeat(30));
    assert!(Schema::from_wire(&attr("a", &nested, false)).is_err());
}

#[test]
fn type_expressions_are_read_and_shown() {
    let composed = ["object({a = string, b = list(any)})", "tuple([string, bool])", "list(map(number))"];
    for text in ["string", "any", "set(bool)"].into_iter().chain(composed) {
        let Spec::Attribute { kind, .. } = schema(&attr("a", text, false)).root().clone() else { panic!() };
        assert_eq!(kind.to_string(), text);
    }
}

// === Whatever comes ===

fn any_kind() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("string"), Just("number"), Just("bool"), Just("any"), Just("nonsense")];
    leaf.prop_map(str::to_owned).prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|kind| format!("list({kind})")),
            inner.clone().prop_map(|kind| format!("set({kind})")),
            inner.clone().prop_map(|kind| format!("map({kind})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("object({{a = {a}, b = {b}}})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("tuple([{a}, {b}])")),
        ]
    })
}

fn any_spec() -> impl Strategy<Value = wire::Spec> {
    let name = || prop_oneof![8 => Just("a"), 8 => Just("b"), 8 => Just("c"), 1 => Just("")];
    let literals = prop_oneof![Just("1"), Just("[]"), Just("{a = null}"), Just("\"t\""), Just("f()")];
    let leaf = prop_oneof![
        8 => (name(), any_kind(), any::<bool>()).prop_map(|(name, kind, needed)| attr(name, &kind, needed)),
        4 => (name(), any_kind(), any::<bool>()).prop_map(|(name, kind, needed)| block_attrs(name, &kind, needed)),
        4 => literals.prop_map(literal),
        1 => Just(wire::Spec { block: None }),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        let limits = (0..3_u64, 0..3_u64);
        prop_oneof![
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| object([
                ("a", a),
                ("b", b),
                ("d", c)
            ])),
            prop::collection::vec(inner.clone(), 0..3).prop_map(array),
            (name(), any::<bool>(), inner.clone())
                .prop_map(|(name, needed, nested)| block(name, needed, nested)),
            (name(), limits, inner.clone())
                .prop_map(|(name, (least, most), nested)| block_list(name, least, most, nested)),
            (name(), inner.clone()).prop_map(|(name, nested)| block_set(name, nested)),
            (name(), 0..3_usize, inner.clone()).prop_map(|(name, labels, nested)| block_map(
                name,
                &["one", "two"][..labels],
                nested
            )),
            (inner.clone(), inner).prop_map(|(primary, fallback)| default(primary, fallback)),
        ]
    })
}

fn any_toml() -> impl Strategy<Value = toml::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(toml::Value::Boolean),
        any::<i64>().prop_map(toml::Value::Integer),
        any::<f64>().prop_map(toml::Value::Float),
        "(true|0|1e[0-9]{1,3}|-?[0-9.]{0,22}|\\PC{0,8})".prop_map(toml::Value::String),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(toml::Value::Array),
            prop::collection::vec(("[a-d]|\\PC{0,3}", inner), 0..4)
                .prop_map(|entries| toml::Value::Table(entries.into_iter().collect())),
        ]
    })
}

fn any_table() -> impl Strategy<Value = toml::Table> {
    prop::collection::vec(("[a-d]", any_toml()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_schema_and_no_configuration_makes_it_panic(spec in any_spec(), table in any_table()) {
        let config = Config::from_toml(&table);
        if let (Ok(schema), Ok(config)) = (Schema::from_wire(&spec), config) {
            match schema.decode(&config) {
                Ok(value) => prop_assert!(!value.to_msgpack().is_empty()),
                Err(errors) => prop_assert!(!errors.errors().is_empty() && !errors.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn no_text_makes_the_reader_of_hcl_panic(
        text in "([a-z]+ ?(= ?|\\{|\"[a-z]\" \\{)?|[\\[\\](){}\",\n!?:<-]|[0-9.e]{1,5}|\\$\\{|<<E\n|\\PC){0,40}"
    ) {
        let _ = Config::from_hcl(&text);
        let _ = Schema::from_wire(&literal(&text));
        let _ = Schema::from_wire(&attr("a", &text, false));
    }

    #[test]
    fn a_set_holds_each_value_once_and_in_order(values in prop::collection::vec(any_toml(), 0..6)) {
        let table = [("x".to_owned(), toml::Value::Array(values))].into_iter().collect();
        let set = Config::from_toml(&table).and_then(|config| schema(&one("set(string)")).decode(&config));
        if let Ok(Value::Map(entries)) = set {
            let Some(Value::List(values)) = entries.get("x") else { panic!("a set is a list: {entries:?}") };
            let is_rising = |pair: &[Value]| matches!(pair, [Value::String(a), Value::String(b)] if a < b);
            prop_assert!(values.windows(2).all(is_rising));
        }
    }
}
