//! Builds, from the configuration of a task, the specification for the allocations and the launch order for its process.

use std::collections::BTreeMap;

use crate::allocations::{AllocationSpec, TaskContext};
use crate::vocabulary::TaskName;

use super::calls::LaunchOrder;
use super::config::AllocationConfig;
use super::state::{AgentOptions, Task};

/// The variable with the listen address of a plugin (C171).
const ENDPOINT: &str = "CSI_ENDPOINT";

impl Task {
    /// Its specification for the allocations.
    pub(super) fn spec(&self) -> AllocationSpec {
        let AllocationConfig {
            name, plugin, role, environment, health_timeout, restart_when, failover, ..
        } = &self.config;
        let task = TaskName::new("plugin").expect("a word is a name");
        AllocationSpec {
            health_timeout: *health_timeout,
            restart_when: *restart_when,
            environment: environment.clone(),
            policy: failover.clone(),
            ..AllocationSpec::new(name.clone(), task, plugin.clone(), *role)
        }
    }

    /// The order to start its process. The process finds its volumes by these variables.
    pub(super) fn order(
        &self,
        options: &AgentOptions,
        context: &TaskContext,
        volumes: &BTreeMap<String, String>,
    ) -> LaunchOrder {
        let environment: BTreeMap<String, String> =
            [&options.environment, &context.environment, volumes, &self.config.environment]
                .into_iter()
                .flat_map(|layer| layer.iter().map(|(name, value)| (name.clone(), value.clone())))
                .collect();
        let endpoint = environment.get(ENDPOINT).map_or("", String::as_str);
        let variables: BTreeMap<&str, &str> = volumes
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_str()))
            .chain([(ENDPOINT, endpoint)])
            .collect();
        LaunchOrder {
            allocation: self.config.name.clone(),
            attempt: self.memory.attempt,
            program: self.config.program.clone(),
            arguments: self.config.arguments.iter().map(|argument| filled(argument, &variables)).collect(),
            environment,
            survives: self.config.survives,
            stop_grace: self.config.stop_grace,
        }
    }
}

/// Replaces each `${VARIABLE}` of these in an argument. Replaced text is not searched again, and other variables stay.
fn filled(argument: &str, variables: &BTreeMap<&str, &str>) -> String {
    let (mut filled, mut rest) = (String::new(), argument);
    while let Some((before, opened)) = rest.split_once("${") {
        filled.push_str(before);
        let closed = opened.split_once('}');
        let known = closed.and_then(|(name, after)| Some((variables.get(name)?, after)));
        let (text, after) = known.map_or(("${", opened), |(value, after)| (*value, after));
        filled.push_str(text);
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_variables_are_replaced_and_what_is_put_in_is_not_searched_again() {
        let variables = BTreeMap::from([("A", "/a/${B}"), ("B", "b")]);
        let cases = [
            ("--path=${A}", "--path=/a/${B}"),
            ("${A}:${B}", "/a/${B}:b"),
            ("${C} $B {B} ${", "${C} $B {B} ${"),
            ("${C${B}", "${Cb"),
        ];
        for (argument, expected) in cases {
            assert_eq!(filled(argument, &variables), expected);
        }
    }
}
