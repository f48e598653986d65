//! Checks that texts for operators name no rules: a rule id means nothing to a reader without the table of rules.

use std::fs;

use super::{SOURCES, below_root, complain, is_test_file, root, rust_files};

/// The folders whose texts may name rules: their subject is which rules an orchestrator breaks.
const ABOUT_RULES: [&str; 2] = ["src/examiner", "actors/machines/src/examiner"];

/// The string literals of a source text, also of its comments, as they are written, each with the line where it begins.
fn string_literals(code: &str) -> Vec<(usize, &str)> {
    let mut literals = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let hashes = rest.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
        let raw = hashes.filter(|hashes| rest[1 + hashes..].starts_with('"') && !ends_in_name(&code[..at]));
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw {
            let text = &rest[hashes + 2..];
            let end = text.find(&format!("\"{}", "#".repeat(hashes))).unwrap_or(text.len());
            literals.push((line, &text[..end]));
            (2 * hashes + end + 3).min(rest.len())
        } else if first == '"' {
            let end = quoted_length(&rest[1..]);
            literals.push((line, &rest[1..=end]));
            (end + 2).min(rest.len())
        } else if first == '\'' {
            character_length(rest)
        } else {
            let skipped = first.len_utf8();
            skipped + rest[skipped..].find(['"', '\'', '/', 'r']).unwrap_or(rest.len() - skipped)
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    literals
}

fn ends_in_name(code: &str) -> bool {
    code.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

/// The length of the text before the next quotation mark that is not escaped.
fn quoted_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// The length of a character literal, or of the apostrophe of a lifetime.
fn character_length(code: &str) -> usize {
    let mut letters = code.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some((at, letter))) => {
            let from = at + letter.len_utf8();
            code[from..].find('\'').map_or(1, |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Whether a word is the id of a rule: `C052`, `V7`, `D103`, `TH091`, `PRC-03`.
fn is_rule_id(word: &str) -> bool {
    let letters = word.len() - word.trim_start_matches(|letter: char| letter.is_ascii_uppercase()).len();
    let number = &word[letters..];
    let digits = number.strip_prefix('-').filter(|_| letters == 3).unwrap_or(number);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let is_plain = matches!(letters, 1 | 2) && digits.len() <= 3;
    is_number && (is_plain || letters == 3 && number.starts_with('-') && digits.len() == 2)
}

/// Whether a text for people names a rule, by its id or by a field of this name. An id that stands alone is data: it says in code
/// which rule is broken.
fn names_a_rule(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_'));
    let is_field = ["rule {", "rules {", "rule}"].iter().any(|field| text.contains(field));
    !is_rule_id(text) && (is_field || words.map(|word| word.trim_matches('-')).any(is_rule_id))
}

/// The doc comments of a source text that `clap` shows as help: those of types, fields and variants, each with its line.
fn help_texts(code: &str) -> Vec<(usize, &str)> {
    let is_clap = |line: &str| {
        let derived = ["Parser", "Args", "Subcommand", "ValueEnum"];
        line.starts_with("#[derive(")
            && line.split(['(', ',', ')']).any(|name| derived.contains(&name.trim()))
    };
    if !code.lines().any(is_clap) {
        return Vec::new();
    }
    let (mut shown, mut pending) = (Vec::new(), Vec::new());
    for (line, text) in code.lines().map(str::trim).enumerate() {
        if let Some(text) = text.strip_prefix("///") {
            pending.push((line + 1, text));
        } else if !text.starts_with("#[") {
            let kind = text.split_whitespace().find(|word| !word.starts_with("pub"));
            if kind.is_some_and(|kind| {
                !["const", "static", "fn", "async", "type", "trait", "mod"].contains(&kind)
            }) {
                shown.append(&mut pending);
            }
            pending.clear();
        }
    }
    shown
}

#[test]
fn texts_for_operators_do_without_rule_ids() {
    let mut complaints = Vec::new();
    for file in SOURCES.iter().flat_map(|below| rust_files(&root().join(below))) {
        let path = below_root(&file);
        if is_test_file(&file) || ABOUT_RULES.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let texts = string_literals(code).into_iter().chain(help_texts(code));
        let found = texts.filter(|(_, text)| names_a_rule(text));
        complaints.extend(found.map(|(line, text)| {
            format!("{path}:{line}: \"{text}\" names a rule; say what is wrong and what to do, and cite the rule in a comment")
        }));
    }
    complain(&complaints);
}

#[test]
fn the_search_for_rule_ids_finds_them_in_texts_alone() {
    let code = r##"
        // "A comment" about (C052), and it isn't a text.
        fn cited<'a>(quote: char) -> &'a str { if quote == '"' || quote == '\'' { "C052" } else { "plain \" text" } }
        const URL: &str = "unix://a"; const ODD: &str = "is UTF-8 and has SHA-256";
        const BROKEN: &str = "give one of them \
            (C058)";
        const RAW: &str = r#"the "id" (V7)"#;
        write!(f, "{} (rule {})", self.field, self.rule);
        write!(f, "see PRC-03: {number}");
    "##;
    let found = string_literals(code).into_iter().filter(|(_, text)| names_a_rule(text));
    assert_eq!(found.map(|(line, _)| line).collect::<Vec<_>>(), [5, 7, 8, 9]);
    let literals: Vec<_> = string_literals(code).into_iter().map(|(_, text)| text).collect();
    assert_eq!(literals[..3], ["C052", "plain \\\" text", "unix://a"]);

    let arguments = "#[derive(Debug, Args)]\nstruct A {\n    /// Ends it (V8).\n    #[arg(long)]\n    end: bool,\n}\n\
                     /// As in T171.\nconst B: u8 = 1;";
    let found = help_texts(arguments).into_iter().filter(|(_, text)| names_a_rule(text));
    assert_eq!(found.collect::<Vec<_>>(), [(3, " Ends it (V8).")]);
}
