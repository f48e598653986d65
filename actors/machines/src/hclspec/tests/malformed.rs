//! Malformed schemas.

use super::*;

#[test]
fn a_malformed_schema_is_refused_with_the_place() {
    let hollow = SentSpec::Block { name: "a".into(), is_required: true, nested: None };
    let half = SentSpec::Default { primary: Some(Box::new(literal("1"))), fallback: None };
    let call = "literal: a function call cannot be used here; write the value itself";
    let unnamed = default(attr("", "bool", false), literal("1"));
    let ambiguous = object([("a", attr("n", "any", false)), ("b", block_attrs("n", "any", false))]);
    let block_default = default(attr("a", "any", false), block("b", false, object([])));
    for (spec, path, problem) in [
        (SentSpec::Empty, "schema", SchemaProblem::Empty),
        (object([("a", object([("b", SentSpec::Empty)]))]), "schema.a.b", SchemaProblem::Empty),
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
        assert_eq!(Schema::from_sent(&spec), Err(MalformedSchema { path: path.into(), problem }));
    }
    for text in
        ["", "text", "list(string", "list(string, bool)", "tuple(string)", "map()", "object([string])"]
    {
        let told = Schema::from_sent(&block("x", false, attr("a", text, false))).unwrap_err();
        assert_eq!((&*told.path, told.problem), ("schema.x", SchemaProblem::UnknownType(text.into())));
    }
    assert!(Schema::from_sent(&literal("")).is_err());
}
