//! Starts an instance, and ends it when its connection ends: an instance has one connection.

use super::messages::{ConnectionEnded, InstanceReport};
use super::state::{Instance, InstanceConfig, InstanceTimer, Link, Phase};
use crate::kernel::StepContext;
use crate::vocabulary::{Fitness, Health, Moment};

/// The report before the first check is over: that of the former instance, if there was one.
pub(super) fn first_report(config: &InstanceConfig, moment: Moment) -> InstanceReport {
    let report = InstanceReport {
        plugin: config.plugin.clone(),
        allocation: config.allocation.clone(),
        socket: config.socket.clone(),
        generation: config.generation,
        health: Health::Starting,
        since: moment.now,
        fitness: Fitness::Unproven,
        fingerprint: None,
        remarks: Vec::new(),
    };
    match &config.former {
        Some(former) => report.after(former),
        None => report,
    }
}

impl InstanceReport {
    /// The first report of an instance whose predecessor served the same registration: a failure stays known until the first check is over.
    #[must_use]
    pub fn after(self, former: &Self) -> Self {
        let (health, since) = match &former.health {
            Health::Unhealthy { .. } => (former.health.clone(), former.since),
            Health::Starting | Health::Healthy | Health::Gone => (self.health, self.since),
        };
        let Self { fitness, fingerprint, remarks, .. } = former.clone();
        Self { health, since, fitness, fingerprint, remarks, ..self }
    }

    /// Whether it differs at most in its fitness, which only the registry uses and which is not published to subscribers (SCL-05).
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let Self { plugin, allocation, socket, generation, health, since, fitness: _, fingerprint, remarks } =
            self;
        (plugin, allocation, socket, generation, health, since)
            == (
                &other.plugin,
                &other.allocation,
                &other.socket,
                &other.generation,
                &other.health,
                &other.since,
            )
            && (fingerprint, remarks) == (&other.fingerprint, &other.remarks)
    }

    /// Whether it has knowledge of a former instance.
    pub(crate) fn is_continued(&self) -> bool {
        self.fitness != Fitness::Unproven || self.fingerprint.is_some()
    }
}

impl Instance {
    pub(super) fn connection_ended(&mut self, ended: &ConnectionEnded, cx: &mut StepContext<Self>) {
        match (&self.phase, &self.link) {
            (Phase::Asked(_) | Phase::Resting, Link::Up { connection, .. })
                if *connection == ended.connection =>
            {
                let socket = &self.config.socket;
                let Some(cut_off) = &ended.cut_off else {
                    let reason = format!("the connection to {socket} has ended");
                    return self.connection_lost(reason, cx);
                };
                self.cut_off(format!("the connection to {socket} was cut off: {cut_off}"), cx);
            }
            // A former connection, or the end is known.
            (
                Phase::Asked(_) | Phase::Resting | Phase::Retiring | Phase::Gone,
                Link::Up { .. } | Link::Down,
            ) => {}
        }
    }

    /// Ends an instance that was cut off. Unlike a plugin that died, it is at fault: work is routed to another one if there is one.
    pub(super) fn cut_off(&mut self, reason: String, cx: &mut StepContext<Self>) {
        self.report.fitness = Fitness::Unfit { reason: reason.as_str().into() };
        self.set_health(cx.moment(), Health::Unhealthy { reason: reason.clone() });
        self.connection_lost(reason, cx);
    }

    /// Ends, since another connection is another generation: its supervisor starts the next instance at once. Until that instance has
    /// checked the plugin, the plugin is not dispensed. That check also decides whether work is still routed to it.
    pub(super) fn connection_lost(&mut self, reason: String, cx: &mut StepContext<Self>) {
        self.link = Link::Down;
        if !self.was_healthy {
            self.report.fitness = Fitness::Unfit { reason: reason.as_str().into() };
        }
        let health = match &self.report.health {
            Health::Healthy => Health::Starting,
            Health::Starting | Health::Unhealthy { .. } | Health::Gone => Health::Unhealthy { reason },
        };
        self.set_health(cx.moment(), health);
        self.phase = Phase::Gone;
        cx.cancel_timer(InstanceTimer::Look);
        self.tell(cx);
        cx.stop();
    }
}
