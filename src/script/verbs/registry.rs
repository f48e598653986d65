//! The messages to the registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::registry::{
    Deregister, Describe, DescribePlugins, LeaveCause, List, Register, RegistrationOf, Registry,
    WaitForPlugin,
};
use callboard_actors::shell::Message;
use callboard_actors::vocabulary::{MalformedPolicy, SocketPath};

use super::{Entry, Mistake, Stage, Words};
use crate::timeline::answers;

pub(super) const VERBS: &[Entry] = &[
    (
        "register ALLOCATION PLUGIN... [provider=TEXT] [version=TEXT] [socket=PATH] [policy=POLICY] [option.NAME=TEXT]...",
        register,
    ),
    (
        "update ALLOCATION [provider=TEXT] [version=TEXT] [socket=PATH] [policy=POLICY] [option.NAME=TEXT]...",
        update,
    ),
    ("deregister ALLOCATION [PLUGIN]...", deregister),
    ("list", list),
    ("describe PLUGIN", describe),
    ("describe-all", describe_all),
    ("registration ALLOCATION PLUGIN", registration_of),
    ("wait PLUGIN within=DURATION", wait),
];

fn register(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let plugins = words.plugins()?;
    let socket = stage.socket_of(&allocation);
    let socket = socket.to_str().map(SocketPath::new).transpose();
    let socket = socket.map_err(|error| Mistake::new(error.to_string()))?;
    let Some(socket) = socket else {
        return Err(Mistake::new("the script's directory has no readable name"));
    };
    let message = Register {
        policy: None,
        plugins,
        allocation,
        socket,
        provider: None,
        version: None,
        options: Arc::default(),
    };
    say_register(stage, words, message)
}

fn update(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let Some(message) = stage.registered.get(&allocation).cloned() else {
        return Err(Mistake::new(format!(
            "{allocation} was not registered by this script; `register` it before"
        )));
    };
    say_register(stage, words, message)
}

/// Sets the properties of a registration: unchanged, except what the line sets.
fn say_register(stage: &mut Stage, words: &mut Words<'_>, mut message: Register) -> Result<(), Mistake> {
    if let Some(socket) = words.key("socket") {
        message.socket = SocketPath::new(socket).map_err(|error| Mistake::new(error.to_string()))?;
    }
    if let Some(policy) = words.key("policy") {
        let policy = policy.parse().map_err(|error: MalformedPolicy| Mistake::new(error.to_string()))?;
        message.policy = Some(policy);
    }
    message.provider = words.key("provider").map(Arc::from).or(message.provider);
    message.version = words.key("version").map(Arc::from).or(message.version);
    let mut options = BTreeMap::clone(&message.options);
    let said = words.keys_below("option.").into_iter();
    options.extend(said.map(|(name, value)| (name.to_owned(), value.to_owned())));
    message.options = Arc::new(options);
    stage.registered.insert(message.allocation.clone(), message.clone());
    ask(stage, message, |answer| answers::registered(&answer))
}

fn deregister(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let mut plugins = words.plugins()?;
    if plugins.is_empty() {
        let said = stage.registered.get(&allocation);
        plugins = said.map(|said| said.plugins.clone()).ok_or_else(|| {
            Mistake::new(format!("{allocation} was not registered by this script; name the plugins"))
        })?;
    }
    let message = Deregister { plugins, allocation, cause: LeaveCause::Stopped };
    ask(stage, message, |answer| answers::deregistered(&answer))
}

fn list(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    ask(stage, List, |entries| answers::listed(&entries))
}

fn describe(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    ask(stage, Describe { plugin: words.plugin()? }, |found| answers::described(&found))
}

fn describe_all(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    ask(stage, DescribePlugins, |all| answers::all_described(&all))
}

fn registration_of(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (allocation, plugin) = (words.allocation()?, words.plugin()?);
    ask(stage, RegistrationOf { plugin, allocation }, |entry| answers::registration_of(entry.as_ref()))
}

fn wait(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let plugin = words.plugin()?;
    let within = words.duration("within")?.ok_or_else(|| Mistake::new("within=DURATION is missing"))?;
    ask(stage, WaitForPlugin { plugin, within }, |answer| answers::waited(&answer))
}

fn ask<Q: Message<Registry>>(
    stage: &mut Stage,
    question: Q,
    tell: impl FnOnce(Q::Reply) -> String + 'static,
) -> Result<(), Mistake> {
    let registry = stage.host()?.registry().clone();
    stage.ask("registry", registry.ask(question), tell);
    Ok(())
}
