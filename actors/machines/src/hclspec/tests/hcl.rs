//! HCL syntax: the same results as TOML, where both can express it.

use super::*;

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
    // A block in place of a map or a list of maps, as in Nomad's job files.
    let labels = "x {\n a = 1\n}\nx {\n b = 2\n}";
    assert_eq!(decoded_hcl(&one("list(map(string))"), labels), "81a1789281a161a13181a162a132");
    assert_eq!(decoded_hcl(&one("map(string)"), "x {\n a = 1\n}"), "81a17881a161a131");
    let one_block = decoded_hcl(&one("list(map(string))"), "x {\n a = 1\n}");
    for written in ["x = {a = 1}", "x = [{a = 1}]", "[x]\na = 1", "[[x]]\na = 1"] {
        assert_eq!(decoded(&one("list(map(string))"), written), one_block, "{written}");
    }
    assert_eq!(decoded_hcl(&one("list(map(string))"), "x = { a = 1 }"), one_block);
    assert_eq!(decoded(&one("set(object({a = number}))"), "x = {a = 1}"), "81a1789181a16101");
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
