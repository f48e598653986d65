//! Parses HCL's native syntax; accepts only literals.

use std::collections::BTreeMap;

use hcl::expr::{Expression, ObjectKey, Operation, TemplateExpr, UnaryOperator};
use hcl::structure::Structure;
use hcl::template::{Element, Template};

use super::error::{ConfigErrors, ConfigProblem};
use super::kind::Type;
use super::path::Path;
use super::source::{CONFIG_BYTES_MAX, Raw, Reading};
use super::value::{Number, Value};

const TYPE_DEPTH_MAX: usize = 16;
const MESSAGE_CHARACTERS_MAX: usize = 200;

pub(super) fn parse_body(text: &str) -> Result<hcl::Body, ConfigProblem> {
    hcl::parse(text).map_err(|error| unreadable(&error))
}

/// Parses the literal of a schema. An empty text is refused.
pub(super) fn parse_literal(text: &str) -> Result<Value, String> {
    if text.len() > CONFIG_BYTES_MAX {
        return Err(ConfigProblem::TooLarge.to_string());
    }
    let expression: Expression = text.trim().parse().map_err(|error| unreadable(&error).to_string())?;
    let mut reading = Reading::default();
    let raw = reading.hcl_value(&expression, &Path::root("literal"), 0);
    reading.errors.unless_any(raw).map(|raw| raw.plain()).map_err(|errors: ConfigErrors| errors.to_string())
}

pub(super) fn parse_type(text: &str) -> Option<Type> {
    if text.len() > CONFIG_BYTES_MAX {
        return None;
    }
    type_of(&text.trim().parse().ok()?, 0)
}

fn type_of(expression: &Expression, depth: usize) -> Option<Type> {
    if depth > TYPE_DEPTH_MAX {
        return None;
    }
    let expression = unwrapped(expression);
    if let Expression::Variable(name) = expression {
        return match name.as_str() {
            "string" => Some(Type::String),
            "number" => Some(Type::Number),
            "bool" => Some(Type::Bool),
            "any" => Some(Type::Any),
            _ => None,
        };
    }
    let Expression::FuncCall(call) = expression else { return None };
    let ([argument], false, false) = (&call.args[..], call.expand_final, call.name.is_namespaced()) else {
        return None;
    };
    let element = || type_of(argument, depth + 1).map(Box::new);
    match (call.name.name.as_str(), unwrapped(argument)) {
        ("list", _) => element().map(Type::List),
        ("set", _) => element().map(Type::Set),
        ("map", _) => element().map(Type::Map),
        ("tuple", Expression::Array(types)) => {
            types.iter().map(|kind| type_of(kind, depth + 1)).collect::<Option<_>>().map(Type::Tuple)
        }
        ("object", Expression::Object(types)) => {
            let types = types.iter().map(|(key, kind)| Some((plain_key(key)?, type_of(kind, depth + 1)?)));
            types.collect::<Option<_>>().map(Type::Object)
        }
        _ => None,
    }
}

fn unwrapped(mut expression: &Expression) -> &Expression {
    while let Expression::Parenthesis(inner) = expression {
        expression = inner;
    }
    expression
}

fn plain_key(key: &ObjectKey) -> Option<String> {
    match key {
        ObjectKey::Identifier(name) => Some(name.to_string()),
        ObjectKey::Expression(expression) => match unwrapped(expression) {
            Expression::String(text) => Some(text.clone()),
            Expression::Number(number) => Some(number.to_string()),
            Expression::Bool(bool) => Some(bool.to_string()),
            Expression::TemplateExpr(template) => template_text(template),
            _ => None,
        },
        _ => None,
    }
}

fn template_text(template: &TemplateExpr) -> Option<String> {
    let template = Template::from_expr(template).ok()?;
    let pieces = template.elements().iter().map(|element| match element {
        Element::Literal(text) => Some(text.as_str()),
        Element::Interpolation(_) | Element::Directive(_) => None,
    });
    pieces.collect()
}

impl Reading {
    /// Reads a body: attributes as values, blocks under their name, labels as keys of nested tables.
    pub(super) fn hcl_body(
        &mut self,
        body: &hcl::Body,
        path: &Path<'_>,
        depth: usize,
    ) -> BTreeMap<String, Raw> {
        let mut entries: BTreeMap<String, Raw> = BTreeMap::new();
        for structure in body.iter() {
            let name = match structure {
                Structure::Attribute(attribute) => attribute.key(),
                Structure::Block(block) => block.identifier(),
            };
            let path = path.key(name);
            if !self.admit(name.len(), depth, &path) {
                continue;
            }
            let raw = match structure {
                Structure::Attribute(attribute) => self.hcl_value(attribute.expr(), &path, depth),
                Structure::Block(block) => self.hcl_block(block, &path, depth),
            };
            match (entries.get_mut(name), raw) {
                (None, raw) => {
                    entries.insert(name.to_owned(), raw);
                }
                (Some(Raw::Blocks(blocks)), Raw::Blocks(more)) => blocks.extend(more),
                (Some(_), _) => self.errors.add(path, ConfigProblem::Duplicate),
            }
        }
        entries
    }

    fn hcl_block(&mut self, block: &hcl::Block, path: &Path<'_>, depth: usize) -> Raw {
        let labels = block.labels();
        if !self.admit(0, depth + labels.len(), path) {
            return Raw::Null;
        }
        let inner = Raw::Map(self.hcl_body(block.body(), path, depth + labels.len() + 1));
        let labelled = labels.iter().rev().fold(inner, |inner, label| {
            self.admit(label.as_str().len(), depth, path);
            Raw::Map([(label.as_str().to_owned(), inner)].into())
        });
        Raw::Blocks(vec![labelled])
    }

    pub(super) fn hcl_value(&mut self, expression: &Expression, path: &Path<'_>, depth: usize) -> Raw {
        let what = match expression {
            Expression::Null => return Raw::Null,
            Expression::Bool(bool) => return Raw::Bool(*bool),
            Expression::Number(number) => return self.hcl_number(number, false, path),
            Expression::String(text) => return self.text(text.clone(), path, depth),
            Expression::Array(values) => return self.hcl_list(values, path, depth + 1),
            Expression::Object(entries) => return self.hcl_object(entries, path, depth + 1),
            Expression::Parenthesis(inner) => return self.hcl_value(inner, path, depth),
            Expression::TemplateExpr(template) => match template_text(template) {
                Some(text) => return self.text(text, path, depth),
                None => "a template with values to be put in",
            },
            Expression::Operation(operation) => match negated(operation) {
                Some(number) => return self.hcl_number(number, true, path),
                None => "an operator",
            },
            Expression::Variable(_) | Expression::Traversal(_) => "a reference",
            Expression::FuncCall(_) => "a function call",
            Expression::Conditional(_) => "a conditional",
            Expression::ForExpr(_) => "a for expression",
            _ => "this expression",
        };
        self.errors.add(path, ConfigProblem::NotLiteral(what));
        Raw::Null
    }

    fn hcl_list(&mut self, values: &[Expression], path: &Path<'_>, depth: usize) -> Raw {
        let mut list = Vec::with_capacity(values.len());
        for (place, value) in values.iter().enumerate() {
            let path = path.place(place);
            if self.admit(0, depth, &path) {
                list.push(self.hcl_value(value, &path, depth));
            }
        }
        Raw::List(list)
    }

    fn hcl_object(
        &mut self,
        entries: &hcl::expr::Object<ObjectKey, Expression>,
        path: &Path<'_>,
        depth: usize,
    ) -> Raw {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            let Some(key) = plain_key(key) else {
                self.errors.add(path, ConfigProblem::NotLiteral("a key that is to be computed"));
                continue;
            };
            let path = path.key(&key);
            if self.admit(key.len(), depth, &path) {
                let value = self.hcl_value(value, &path, depth);
                if map.insert(key.clone(), value).is_some() {
                    self.errors.add(path, ConfigProblem::Duplicate);
                }
            }
        }
        Raw::Map(map)
    }

    /// A number. An integer out of range is refused, since it may have been rounded.
    fn hcl_number(&mut self, number: &hcl::Number, is_negated: bool, path: &Path<'_>) -> Raw {
        if let Some(integer) =
            number.as_i64().and_then(|n| if is_negated { n.checked_neg() } else { Some(n) })
        {
            return Raw::Number(Number::Integer(integer));
        }
        match number.as_f64().filter(|float| float.fract() != 0.0) {
            Some(float) => self.float(if is_negated { -float } else { float }, path),
            None => {
                self.errors.add(path, ConfigProblem::NumberOutOfRange);
                Raw::Null
            }
        }
    }
}

fn negated(operation: &Operation) -> Option<&hcl::Number> {
    let Operation::Unary(unary) = operation else { return None };
    match (unary.operator, unwrapped(&unary.expr)) {
        (UnaryOperator::Neg, Expression::Number(number)) => Some(number),
        _ => None,
    }
}

/// The message of a parser, without the line that it quotes: that may contain a secret (SEC-06).
fn unreadable(error: &hcl::Error) -> ConfigProblem {
    let cut = |message: &str| message.chars().take(MESSAGE_CHARACTERS_MAX).collect();
    match error {
        hcl::Error::Parse(error) => ConfigProblem::Unreadable {
            line: error.location().line(),
            column: error.location().column(),
            message: cut(error.message()),
        },
        _ => ConfigProblem::Unreadable { line: 1, column: 1, message: "this is no HCL".to_owned() },
    }
}
