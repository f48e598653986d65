//! The tree of everything that runs: each actor is asked, and one that does not answer is shown as such.

use std::time::Duration;

use callboard_actors::shell::{Address, AskError, Machine, Message};
use callboard_actors::supervisor::TreeNode;
use tokio::time::timeout;

use super::server::Sources;
use crate::agent::{ListTasks, TaskReport};
use crate::host::Host;
use crate::tasks;

/// How long an actor of this program may take to describe itself, as those of the host.
pub(super) const DESCRIBE_DEADLINE: Duration = Duration::from_secs(1);
/// How long the host may take, which asks its own actors.
const HOST_DEADLINE: Duration = Duration::from_secs(4);

/// All actors of the program, with what they do as far as they say so.
pub(super) async fn tree(sources: &Sources) -> TreeNode {
    let Sources { host, agent, tasks, .. } = sources;
    let (actors, agent, tasks) = tokio::join!(
        host_node(host),
        own_node(agent, ListTasks, workload_node),
        own_node(tasks, tasks::ListTasks, task_node)
    );
    TreeNode {
        name: "callboard".to_owned(),
        kind: "program".to_owned(),
        // It does what its host does.
        state: actors.state.clone(),
        restarts: 0,
        crashes: None,
        mailbox_depth: None,
        message: format!("pid {}", std::process::id()),
        children: vec![actors, agent, tasks],
    }
}

async fn host_node(host: &Host) -> TreeNode {
    match answered(HOST_DEADLINE, host.tree()).await {
        Ok(tree) => tree,
        Err((state, message)) => node_of(host.supervisor(), state, message),
    }
}

/// An actor of this program's own, beside those of the host, and what it has below it.
async fn own_node<M: Machine, Q: Message<M, Reply = Vec<T>>, T>(
    actor: &Address<M>,
    question: Q,
    below: impl Fn(T) -> TreeNode,
) -> TreeNode {
    match answered(DESCRIBE_DEADLINE, actor.ask(question)).await {
        Ok(reports) => {
            let children = reports.into_iter().map(below).collect();
            TreeNode { children, ..node_of(actor, "running", String::new()) }
        }
        Err((state, message)) => node_of(actor, state, message),
    }
}

/// An answer, or the state of the actor that gave none, and why.
pub(super) async fn answered<T>(
    within: Duration,
    answer: impl Future<Output = Result<T, AskError>>,
) -> Result<T, (&'static str, String)> {
    match timeout(within, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error @ AskError::NotRunning { .. })) => Err(("not running", error.to_string())),
        Ok(Err(error @ (AskError::Busy { .. } | AskError::Crashed { .. } | AskError::NotDurable { .. }))) => {
            Err(("not answering", error.to_string()))
        }
        Err(_elapsed) => Err(("not answering", format!("no answer within {within:?}"))),
    }
}

fn node_of<M: Machine>(actor: &Address<M>, state: &str, message: String) -> TreeNode {
    let vitals = actor.vitals();
    TreeNode {
        name: actor.name().to_owned(),
        kind: M::KIND.to_owned(),
        state: state.to_owned(),
        restarts: vitals.rebuilds,
        crashes: Some(vitals.crashes),
        mailbox_depth: Some(vitals.mailbox_depth),
        message,
        children: Vec::new(),
    }
}

fn workload_node(task: TaskReport) -> TreeNode {
    TreeNode {
        name: task.allocation.to_string(),
        kind: "task".to_owned(),
        state: task.phase.to_string(),
        restarts: task.restarts,
        crashes: None,
        mailbox_depth: None,
        message: task.last_event,
        children: vec![],
    }
}

fn task_node(task: tasks::TaskReport) -> TreeNode {
    TreeNode {
        name: task.name.to_string(),
        kind: "task".to_owned(),
        state: task.phase.to_string(),
        restarts: task.restarts,
        crashes: None,
        mailbox_depth: None,
        message: format!("driver {}, {}", task.driver, task.note),
        children: vec![],
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::conversation;
    use callboard_actors::shell::{
        Effects, Input, NoEffectHandler, NoStore, Running, Settings, StopMode, start,
    };
    use callboard_actors::vocabulary::Moment;

    use super::*;

    /// Asks for what is below an actor.
    #[derive(Debug)]
    struct List;

    conversation! {
        enum ClerkAsk -> ClerkAnswer for Clerk {
            List => Vec<&'static str>,
        }
    }

    /// Answers, or keeps to itself.
    #[derive(Debug)]
    struct Clerk {
        answers: bool,
    }

    impl Machine for Clerk {
        const KIND: &'static str = "clerk";
        type Config = bool;
        type Image = ();
        type Ask = ClerkAsk;
        type Answer = ClerkAnswer;
        type Call = callboard_actors::shell::Never;
        type Outcome = callboard_actors::shell::Never;
        type Timer = callboard_actors::shell::Never;
        type Change = callboard_actors::shell::Never;
        type News = callboard_actors::shell::Never;
        type View = ();

        fn restore(answers: &bool, (): (), _: Moment) -> Self {
            Self { answers: *answers }
        }

        fn step(&mut self, _: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
            match input {
                Input::Asked { id, ask: ClerkAsk::List(List), .. } if self.answers => {
                    effects.reply(*id, ClerkAnswer::List(vec!["leaf"]));
                }
                Input::StopRequested(_) => effects.stop(),
                Input::Asked { .. } | Input::Resumed | Input::Returned { .. } | Input::Elapsed(_) => {}
            }
        }

        fn view(&self) {}
    }

    fn leaf(name: &str) -> TreeNode {
        let address = Address::<Clerk>::vacant(name, 1);
        node_of(&address, "there", String::new())
    }

    fn engage(address: &Address<Clerk>, answers: bool) -> Running {
        start(address, answers, NoEffectHandler, NoStore, Settings::default())
    }

    #[test]
    fn what_an_actor_does_is_asked_of_it_and_not_assumed() {
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .expect("a runtime")
        };
        actix_rt::System::with_tokio_rt(runtime).block_on(async {
            let clerk = Address::<Clerk>::vacant("clerk", 1);
            let before = own_node(&clerk, List, leaf).await;
            assert_eq!((before.state.as_str(), before.kind.as_str()), ("not running", "clerk"));

            let running = engage(&clerk, true);
            let node = own_node(&clerk, List, leaf).await;
            assert_eq!((node.state.as_str(), node.message.as_str()), ("running", ""));
            assert_eq!(node.children, [leaf("leaf")]);
            running.request_stop(StopMode::Stop);
            running.ended().await;
            assert_eq!(own_node(&clerk, List, leaf).await.state, "not running");

            let _running = engage(&clerk, false);
            let node = own_node(&clerk, List, leaf).await;
            assert_eq!(
                (node.state.as_str(), node.message.as_str()),
                ("not answering", "no answer within 1s")
            );
            assert_eq!(node.children, []);
        });
    }
}
