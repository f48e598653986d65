//! Numbers, sets and types.

use super::*;

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
        // Integers out of range are not silently rounded.
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
fn type_expressions_are_read_and_shown() {
    let composed = ["object({a = string, b = list(any)})", "tuple([string, bool])", "list(map(number))"];
    for text in ["string", "any", "set(bool)"].into_iter().chain(composed) {
        let Spec::Attribute { kind, .. } = schema(&attr("a", text, false)).root().clone() else { panic!() };
        assert_eq!(kind.to_string(), text);
    }
}
