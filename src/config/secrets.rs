//! Reads where the secrets of a volume come from. Neither their keys nor misplaced values are shown (C025).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callboard_actors::csi::{Secrets, check_secrets};
use callboard_actors::vocabulary::text::is_harmless;
use toml::de::DeValue;

use super::SecretOrigin;
use super::problem::Faults;
use super::table::Table;

const KEYS: &[&str] = &["file", "env"];
const ADVICE: &str = "give { file = \"/PATH\" } or { env = \"VARIABLE\" }";

pub(super) fn read(volume: &Table<'_>, faults: &mut Faults) -> BTreeMap<String, SecretOrigin> {
    let mut origins = BTreeMap::new();
    let Some((entries, span)) = volume.table("secrets", faults) else { return origins };
    let nothing = |key: &str| (key.to_owned(), String::new());
    for (key, entry) in entries {
        let at = key.span().start;
        if let Err(fault) = check_secrets(&Secrets::new(BTreeMap::from([nothing(key.get_ref())]))) {
            faults.add(at, format!("`secrets`: {fault}"));
            continue;
        }
        let DeValue::Table(origin) = entry.get_ref() else {
            faults.add(at, format!("a secret never stands in the configuration; {ADVICE}"));
            continue;
        };
        let table = Table::open(origin, &entry.span(), "the secret", KEYS, faults);
        if let Some(origin) = origin_of(&table, faults) {
            origins.insert(key.get_ref().to_string(), origin);
        }
    }
    let keys = Secrets::new(origins.keys().map(|key| nothing(key)).collect());
    if let Err(fault) = check_secrets(&keys) {
        faults.add(span.start, format!("`secrets`: {fault}"));
    }
    origins
}

fn origin_of(table: &Table<'_>, faults: &mut Faults) -> Option<SecretOrigin> {
    match (table.text("file", faults), table.text("env", faults)) {
        (Some(file), None) => {
            let is_path = Path::new(&file.value).is_absolute() && file.value.chars().all(is_harmless);
            if !is_path {
                faults.add(file.at, "`file` of a secret is no absolute path; name the file that holds it");
            }
            is_path.then(|| SecretOrigin::File(PathBuf::from(file.value)))
        }
        (None, Some(variable)) => {
            let is_name = !variable.value.is_empty() && !variable.value.contains(['=', '\0']);
            if !is_name {
                let message = "`env` of a secret is no name of a variable; name the variable that holds it";
                faults.add(variable.at, message);
            }
            is_name.then_some(SecretOrigin::Environment(variable.value))
        }
        (Some(_), Some(_)) => {
            faults.add(table.at, format!("a secret has both `file` and `env`; {ADVICE}"));
            None
        }
        (None, None) => {
            if !table.has("file") && !table.has("env") {
                faults.add(table.at, format!("a secret has neither `file` nor `env`; {ADVICE}"));
            }
            None
        }
    }
}
