//! Property tests: arbitrary input never panics.

use proptest::prelude::*;

use super::*;

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

fn any_spec() -> impl Strategy<Value = SentSpec> {
    let name = || prop_oneof![8 => Just("a"), 8 => Just("b"), 8 => Just("c"), 1 => Just("")];
    let literals = prop_oneof![Just("1"), Just("[]"), Just("{a = null}"), Just("\"t\""), Just("f()")];
    let leaf = prop_oneof![
        8 => (name(), any_kind(), any::<bool>()).prop_map(|(name, kind, needed)| attr(name, &kind, needed)),
        4 => (name(), any_kind(), any::<bool>()).prop_map(|(name, kind, needed)| block_attrs(name, &kind, needed)),
        4 => literals.prop_map(literal),
        1 => Just(SentSpec::Empty),
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
        if let (Ok(schema), Ok(config)) = (Schema::from_sent(&spec), config) {
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
        let _ = Schema::from_sent(&literal(&text));
        let _ = Schema::from_sent(&attr("a", &text, false));
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
