//! Schemas, configurations and their encoded results, as tables.
//!
//! The bytes of the first table are the bytes that hcldec of HCL 2 and the encoder of go-cty, as Nomad 1.6 uses them, produce
//! for the same schema and the same configuration as JSON; Nomad's `base.MsgPackDecode` decoded them into Go structs.

use super::*;

mod bounds;
mod hcl;
mod malformed;
mod mistakes;
mod values;
mod whatever;

// === Schemas, as plugins build them ===

fn attr(name: &str, kind: &str, is_required: bool) -> SentSpec {
    SentSpec::Attribute { name: name.into(), kind: kind.into(), is_required }
}

fn object<const N: usize>(attributes: [(&str, SentSpec); N]) -> SentSpec {
    SentSpec::Object(attributes.map(|(key, spec)| (key.to_owned(), spec)).into())
}

fn literal(value: &str) -> SentSpec {
    SentSpec::Literal(value.into())
}

fn default(primary: SentSpec, fallback: SentSpec) -> SentSpec {
    SentSpec::Default { primary: Some(Box::new(primary)), fallback: Some(Box::new(fallback)) }
}

fn block(name: &str, is_required: bool, nested: SentSpec) -> SentSpec {
    SentSpec::Block { name: name.into(), is_required, nested: Some(Box::new(nested)) }
}

fn block_attrs(name: &str, kind: &str, is_required: bool) -> SentSpec {
    SentSpec::BlockAttributes { name: name.into(), kind: kind.into(), is_required }
}

fn block_list(name: &str, least: u64, most: u64, nested: SentSpec) -> SentSpec {
    SentSpec::BlockList { name: name.into(), least, most, nested: Some(Box::new(nested)) }
}

fn block_set(name: &str, nested: SentSpec) -> SentSpec {
    SentSpec::BlockSet { name: name.into(), least: 0, most: 0, nested: Some(Box::new(nested)) }
}

fn block_map(name: &str, labels: &[&str], nested: SentSpec) -> SentSpec {
    let labels = labels.iter().map(|&label| label.to_owned()).collect();
    SentSpec::BlockMap { name: name.into(), labels, nested: Some(Box::new(nested)) }
}

fn array(values: Vec<SentSpec>) -> SentSpec {
    SentSpec::Array(values)
}

/// A schema similar to that of a container driver.
fn docker() -> SentSpec {
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

fn one(kind: &str) -> SentSpec {
    object([("x", attr("x", kind, false))])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn schema(spec: &SentSpec) -> Schema {
    Schema::from_sent(spec).unwrap()
}

fn from_toml(text: &str) -> Result<Config, ConfigErrors> {
    Config::from_toml(&toml::from_str(text).unwrap())
}

/// The result for a configuration in TOML, or one mistake per line.
fn decoded(spec: &SentSpec, text: &str) -> String {
    told(from_toml(text).and_then(|config| schema(spec).decode(&config)))
}

fn decoded_hcl(spec: &SentSpec, text: &str) -> String {
    told(Config::from_hcl(text).and_then(|config| schema(spec).decode(&config)))
}

fn told(decoded: Result<Value, ConfigErrors>) -> String {
    match decoded {
        Ok(value) => hex(&value.to_msgpack()),
        Err(errors) => errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

// === Results of Go ===

/// Schema, configuration in TOML, and the bytes that Go produces for both.
fn agreed() -> Vec<(SentSpec, &'static str, &'static str)> {
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
    // go-cty produces the string "0.1", which a Go plugin refuses to decode into a float64.
    assert_eq!(decoded(&one("number"), "x = 0.1"), "81a178cb3fb999999999999a");
    assert_eq!(decoded(&one("number"), "x = '0.1'"), "81a178cb3fb999999999999a");
}
