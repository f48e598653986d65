//! Message scripts of the catalog: the pure machine under virtual time.
//!
//! Each command sets the content of the directory or the answer of a plugin; below it come the effects in order.

use std::path::PathBuf;
use std::sync::Arc;

use goldenscript::ArgumentConsumer;

use super::messages::*;
use super::options::*;
use super::refusal::*;
use super::state::*;
use crate::hclspec::SentSpec;
use crate::kernel::{CallLost, Effect};
use crate::process::{Executable, ExecutableError, LaunchError, ProcessName};
use crate::stage::{Fault, Player, Stage, number, play_all, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_catalog_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/catalog/scripts"), 17, || Player::new(begin, say));
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Catalog>, Fault> {
    Ok(Stage::begin(Arc::new(read_options(args)?), tell))
}

fn say(stage: &mut Stage<Catalog>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "swept" => give(stage, |call| *call == CatalogCall::Sweep, Ok(CatalogOutcome::Swept))?,
        "files" => {
            let entries = std::iter::from_fn(|| args.next_pos().map(read_entry)).collect();
            give(stage, is_read, Ok(CatalogOutcome::Directory(Ok(entries))))?;
        }
        "unreadable" => {
            let (directory, message) = (PathBuf::from("/plugins"), "Permission denied".to_owned());
            let error = DirectoryError::System { directory, message };
            give(stage, is_read, Ok(CatalogOutcome::Directory(Err(error))))?;
        }
        "crowded" => {
            let error = DirectoryError::TooMany { directory: PathBuf::from("/plugins"), most: 512 };
            give(stage, is_read, Ok(CatalogOutcome::Directory(Err(error))))?;
        }
        "unheard" => {
            let limit = CatalogLimits::default().directory_deadline;
            give(stage, is_read, Err(CallLost::DeadlineExceeded(limit)))?;
        }
        "tells" => {
            let file = word(args, "file")?;
            let told = read_told(args)?;
            give(stage, is_probe(&file), Ok(CatalogOutcome::Probed(Ok(Box::new(told)))))?;
        }
        "fails" => {
            let file = word(args, "file")?;
            let outcome = read_failure(&file, &word(args, "failure")?)?;
            give(stage, is_probe(&file), outcome)?;
        }
        // The outcome of a stale call.
        "late" => {
            let file = word(args, "file")?;
            let (key, call) = stage.take_call(is_probe(&file))?;
            stage.crash();
            if args.take_key("while") == Some("reading") {
                give(stage, |call| *call == CatalogCall::Sweep, Ok(CatalogOutcome::Swept))?;
            }
            stage.forget_told();
            stage.give((key, call), Err(CallLost::Crashed("late".to_owned())));
        }
        "scan" => stage.ask(CatalogAsk::ScanPlugins(ScanPlugins)),
        "list" => stage.ask(CatalogAsk::ListPlugins(ListPlugins)),
        "resolve" => {
            let plugin = read_plugin(&word(args, "plugin")?)?;
            stage.ask(CatalogAsk::ResolvePlugin(ResolvePlugin { plugin }));
        }
        "file" => {
            let anew = args.take_key("anew").is_some();
            let file = word(args, "file")?;
            let plugin = read_plugin(&word(args, "plugin")?)?;
            stage.ask(CatalogAsk::ResolveFile(ResolveFile { plugin, file, anew }));
        }
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

fn give(
    stage: &mut Stage<Catalog>,
    is_it: impl Fn(&CatalogCall) -> bool,
    outcome: Result<CatalogOutcome, CallLost>,
) -> Result<(), Fault> {
    let call = stage.take_call(is_it)?;
    stage.give(call, outcome);
    Ok(())
}

fn is_read(call: &CatalogCall) -> bool {
    matches!(call, CatalogCall::ReadDirectory { .. })
}

fn is_probe(file: &str) -> impl Fn(&CatalogCall) -> bool {
    let file = PathBuf::from(file);
    move |call| matches!(call, CatalogCall::Probe(order) if order.spec.executable.path == file)
}

// === Parsing ===

/// Names, separated by commas; `*` for all.
fn names(text: Option<&str>) -> impl Iterator<Item = String> {
    text.unwrap_or_default().split(',').filter(|name| !name.is_empty()).map(str::to_owned)
}

fn read_options(args: &mut ArgumentConsumer<'_>) -> Result<CatalogOptions, Fault> {
    let mut options = CatalogOptions::new();
    options.directory = (args.take_key("directory") != Some("none")).then(|| PathBuf::from("/plugins"));
    options.allowed = match args.take_key("allow") {
        Some("*") => Allowed::Everything,
        names_ => Allowed::Only(names(names_).collect()),
    };
    options.blocked = names(args.take_key("block")).collect();
    options.entries = names(args.take_key("configure")).map(|name| (name, PluginEntry::new())).collect();
    for (key, source) in [("hcl", ConfigSource::Hcl as fn(String) -> ConfigSource), ("toml", toml_source)] {
        if let Some(text) = args.take_key(key) {
            let (name, text) = text.split_once(": ").ok_or("a configuration begins with a name")?;
            let entry = options.entries.entry(name.to_owned()).or_default();
            entry.config = Some(source(text.to_owned()));
        }
    }
    if let Some(text) = args.take_key("entry") {
        // All fields of an entry.
        let entry = options.entries.entry(text.to_owned()).or_default();
        entry.arguments = vec!["-v".to_owned()];
        entry.environment.insert("TOKEN".to_owned(), "canary-9".to_owned());
        entry.sha256 = Some([7; 32]);
        entry.lifetime = crate::process::Lifetime::Bound;
        entry.start_timeout = Some(std::time::Duration::from_secs(3));
        entry.stop_grace = Some(std::time::Duration::from_secs(1));
    }
    if let Some(text) = args.take_key("internal") {
        let (name, version) = text.split_once('@').ok_or("an internal plugin has a version")?;
        options.internal.push(InternalPlugin {
            plugin: read_plugin(name)?,
            version: version.to_owned(),
            api_versions: vec!["0.1".to_owned()],
            executable: Executable::at("/usr/bin/host"),
            arguments: vec!["plugin".to_owned()],
            schema: None,
        });
    }
    if let Some(most) = args.take_key("at-once") {
        options.limits.probes_at_once = most.parse()?;
    }
    options.limits.waiting_max = 4;
    Ok(options)
}

fn toml_source(text: String) -> ConfigSource {
    ConfigSource::Toml(toml::from_str(&text).unwrap())
}

fn read_plugin(text: &str) -> Result<PluginKey, Fault> {
    let (kind, name) = text.split_once('/').unwrap_or(("driver", text));
    Ok(PluginKey::new(kind.parse()?, PluginName::new(name)?))
}

/// `name` for a program, `name!` for a file without execute permission, `name@` for a symlink, `name/` for a directory.
fn read_entry(text: &str) -> DirectoryEntry {
    let marks = [("!", EntryKind::Inert), ("@", EntryKind::Link), ("/", EntryKind::Other)];
    let marked = marks.iter().find_map(|(mark, kind)| text.strip_suffix(mark).map(|name| (*kind, name)));
    let (kind, name) = marked.unwrap_or((EntryKind::Program, text));
    DirectoryEntry { name: name.to_owned(), kind }
}

fn read_told(args: &mut ArgumentConsumer<'_>) -> Result<Told, Fault> {
    let text = word(args, "plugin")?;
    let (name, version) = text.split_once('@').unwrap_or((&text, "1.0.0"));
    let api_versions = names(args.take_key("api").or(Some("v0.1.0"))).collect();
    let attribute = args.take_key("schema").map(|text| {
        let (name, kind) = text.split_once(':').unwrap_or((text, "string"));
        let attr = SentSpec::Attribute { name: name.into(), kind: kind.into(), is_required: true };
        SentSpec::Object([(name.to_owned(), attr)].into())
    });
    Ok(Told { plugin: read_plugin(name)?, version: version.to_owned(), api_versions, schema: attribute })
}

fn read_failure(file: &str, how: &str) -> Result<Result<CatalogOutcome, CallLost>, Fault> {
    let refused = |refusal| Ok(Ok(CatalogOutcome::Probed(Err(refusal))));
    match how {
        "launch" => {
            let path = PathBuf::from("/plugins").join(file);
            let source = ExecutableError::NotExecutable { path, mode: 0o644 };
            refused(Refusal::Launch(LaunchError::Executable { name: ProcessName::new(file)?, source }))
        }
        "silent" => refused(Refusal::Silent {
            message: "PluginInfo: no answer within 10s".to_owned(),
            ending: Some("signal 11 (SIGSEGV) after 0.2s".to_owned()),
            is_transient: true,
        }),
        "time-out" => Ok(Err(CallLost::DeadlineExceeded(std::time::Duration::from_secs(107)))),
        "panic" => Ok(Err(CallLost::Crashed("boom".to_owned()))),
        unknown => Err(format!("no such failure: {unknown}").into()),
    }
}

// === Printing ===

fn tell(effect: &Effect<Catalog>, _: Timestamp) -> String {
    match effect {
        Effect::Call { call: CatalogCall::Sweep, .. } => "call: end all temporary instances".to_owned(),
        Effect::Call { call: CatalogCall::ReadDirectory { directory, .. }, .. } => {
            format!("call: read {}", directory.display())
        }
        Effect::Call { call: CatalogCall::Probe(order), deadline, .. } => {
            let ProbeOrder { name, spec, .. } = &**order;
            format!("call: probe {name}, {}, within {deadline:?}", tell_spec(spec))
        }
        Effect::Reply(id, CatalogAnswer::ScanPlugins(Ok(listing))) => {
            format!("scanned {}: {}", number(*id), tell_listing(listing))
        }
        Effect::Reply(id, CatalogAnswer::ScanPlugins(Err(error))) => {
            format!("scanned {}: no: {error}", number(*id))
        }
        Effect::Reply(id, CatalogAnswer::ListPlugins(listing)) => {
            format!("listed {}: {}", number(*id), tell_listing(listing))
        }
        Effect::Reply(id, CatalogAnswer::ResolvePlugin(Ok(found))) => {
            format!("resolved {}: {}, {}", number(*id), tell_found(found), tell_spec(&found.process))
        }
        Effect::Reply(id, CatalogAnswer::ResolvePlugin(Err(error))) => {
            let again = if error.is_transient() { " (try again)" } else { "" };
            format!("resolved {}: no: {error}{again}", number(*id))
        }
        Effect::Reply(id, CatalogAnswer::ResolveFile(Ok(found))) => {
            format!("file {}: {}, {}", number(*id), tell_found(found), tell_spec(&found.process))
        }
        Effect::Reply(id, CatalogAnswer::ResolveFile(Err(error))) => {
            let again = if error.is_transient() { " (try again)" } else { "" };
            format!("file {}: no: {error}{again}", number(*id))
        }
        Effect::Publish(news) => format!("news: {}", tell_news(news)),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::StartTimer(never, _) | Effect::CancelTimer(never) | Effect::Persist(_, never) => {
            match *never {}
        }
    }
}

fn tell_spec(spec: &crate::process::ProcessSpec) -> String {
    let mut told = format!("{} {}", spec.lifetime.as_str(), spec.executable.place().display());
    for argument in &spec.arguments {
        told.push_str(&format!(" {argument}"));
    }
    for key in spec.environment.keys() {
        told.push_str(&format!(", with {key}"));
    }
    if spec.executable.sha256.is_some() {
        told.push_str(", pinned");
    }
    told
}

fn tell_found(found: &ResolvedPlugin) -> String {
    let KnownPlugin { plugin, version, source, .. } = &found.info;
    let config = hex(&found.config);
    format!("{plugin} {version} ({source}), interface {}, config {config:?}", found.api_version)
}

fn tell_news(news: &CatalogNews) -> String {
    match news {
        CatalogNews::Found(found) => format!("found {}", tell_found(found)),
        CatalogNews::Changed(found) => format!("changed {}", tell_found(found)),
        CatalogNews::Lost { plugin, reason: None } => format!("lost {plugin}"),
        CatalogNews::Lost { plugin, reason: Some(reason) } => format!("lost {plugin}: {reason}"),
        CatalogNews::Refused(refused) => format!("refused {}", tell_refused(refused)),
        CatalogNews::Scanned { found, shadowed, refused, blocked } => {
            format!("scanned: {found} found, {shadowed} shadowed, {refused} refused, {blocked} blocked")
        }
    }
}

fn tell_refused(refused: &RefusedPlugin) -> String {
    let plugin = refused.plugin.as_ref().map_or_else(String::new, |plugin| format!(", {plugin}"));
    format!("({}{plugin}): {}", refused.source, refused.reason)
}

fn tell_listing(listing: &Listing) -> String {
    let mut told = String::from(if listing.is_scanning { "scanning" } else { "at rest" });
    if let Some(error) = &listing.directory_error {
        told.push_str(&format!("\n  error {error}"));
    }
    for found in listing.found.values() {
        told.push_str(&format!("\n  found {}", tell_found(found)));
    }
    for ShadowedPlugin { info, by_version, by } in &listing.shadowed {
        let KnownPlugin { plugin, version, source, .. } = info;
        told.push_str(&format!("\n  shadowed {plugin} {version} ({source}) by {by_version} ({by})"));
    }
    for refused in &listing.refused {
        told.push_str(&format!("\n  refused {}", tell_refused(refused)));
    }
    for BlockedPlugin { source, plugin, by } in &listing.blocked {
        let plugin = plugin.as_ref().map_or_else(String::new, |plugin| format!(", {plugin}"));
        told.push_str(&format!("\n  blocked ({source}{plugin}): {}", by.as_str()));
    }
    told
}
