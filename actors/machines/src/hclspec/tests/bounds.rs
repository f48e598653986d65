//! The depth and size limits of configurations and schemas.

use super::*;

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
    // The innermost list is empty, so it adds no depth.
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
    // Labels and the content of their block are one depth each.
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
    // An excess is reported once, and nothing after it.
    let twice = format!("a = \"{0}\"\nb = \"{0}\"", "x".repeat(CONFIG_BYTES_MAX / 2));
    assert_eq!(Config::from_hcl(&twice).unwrap_err().errors().len(), 1);
}

#[test]
fn a_schema_may_be_just_so_deep_and_large() {
    let told = |spec: &SentSpec| Schema::from_sent(spec).map(drop).map_err(|error| error.problem);
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
fn a_schema_is_bounded_in_depth_and_size() {
    let mut deep = literal("1");
    for _ in 0..=SCHEMA_DEPTH_MAX {
        deep = object([("a", deep)]);
    }
    assert_eq!(Schema::from_sent(&deep).unwrap_err().problem, SchemaProblem::TooDeep);
    let wide = array(vec![literal("1"); SCHEMA_NODES_MAX]);
    assert_eq!(Schema::from_sent(&wide).unwrap_err().problem, SchemaProblem::TooLarge);
    let nested = format!("{}string{}", "list(".repeat(30), ")".repeat(30));
    assert!(Schema::from_sent(&attr("a", &nested, false)).is_err());
}
