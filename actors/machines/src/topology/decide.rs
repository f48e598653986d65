//! Derives the topology from the findings.

use std::collections::{BTreeMap, BTreeSet};

use super::cpu_list::CpuList;
use super::findings::{CpuFinding, Findings};
use super::value::{Core, CoreGrade, MHZ_MAX, Topology, TopologyParts};

/// The assumed speed of a core if it is unknown, in MHz (TH011).
pub const GUESS_MHZ: u64 = 1_000;

impl Findings {
    /// Whether any of them names a CPU.
    #[must_use]
    pub fn names_processors(&self) -> bool {
        let online = self.online.as_ref().is_some_and(|online| !online.is_empty());
        online || !self.cpus.is_empty() || !self.cpuinfo.is_empty()
    }

    /// The CPUs: as listed, else those with a directory, else of `/proc/cpuinfo`, else of our affinity, else one.
    fn processors(&self) -> CpuList {
        let online = self.online.clone();
        let listed = [
            online.unwrap_or_default(),
            self.cpus.keys().copied().collect(),
            self.cpuinfo.keys().copied().collect(),
            self.allowed.clone().unwrap_or_default(),
        ];
        listed.into_iter().find(|list| !list.is_empty()).unwrap_or_else(|| [0].into_iter().collect())
    }
}

/// The topology of the machine with these findings. It exists for any findings.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "it never panics")]
pub fn decide(findings: &Findings) -> Topology {
    let processors = findings.processors();
    let nodes = nodes(findings);
    let sockets = sockets(findings, &processors);
    let speeds = Speeds::of(findings);
    let allowed = allowed(findings, &processors);
    let grades = Grades::of(findings, &processors);
    let core = |number: u32| {
        let id = u16::try_from(number).ok()?;
        let (base_mhz, max_mhz, guess_mhz) = speeds.of_core(findings.cpus.get(&number), number);
        Some(Core {
            id,
            node: node_of(findings, &nodes, number),
            socket: sockets.get(&number).copied().unwrap_or(0),
            grade: grades.of_core(number),
            is_disabled: allowed.as_ref().is_some_and(|allowed| !allowed.contains(number)),
            base_mhz,
            max_mhz,
            guess_mhz,
        })
    };
    let distances = distances(findings, &nodes);
    let cores = processors.iter().filter_map(core).collect();
    let parts = TopologyParts { nodes, distances, cores, total_mhz: 0, withheld_mhz: 0 };
    Topology::try_from(parts).expect("it is made so that it is well formed")
}

/// The memory nodes whose ids fit 8 bits (T010), ascending; 0 if there is none.
fn nodes(findings: &Findings) -> Vec<u8> {
    let online = findings.nodes_online.clone().unwrap_or_default();
    let listed = if online.is_empty() { findings.nodes.keys().copied().collect() } else { online };
    let nodes: Vec<u8> = listed.iter().filter_map(|id| u8::try_from(id).ok()).collect();
    if nodes.is_empty() { vec![0] } else { nodes }
}

/// The distances between these nodes, if each node has a distance to each of them, otherwise empty (T011). The kernel lists them
/// for online nodes, in their order, regardless of gaps in their numbers (T019).
fn distances(findings: &Findings, nodes: &[u8]) -> Vec<u8> {
    let row = |node: &u8| {
        let row = findings.nodes.get(&u32::from(*node))?.distances.as_ref()?;
        let row: Vec<u8> = row.iter().map(|distance| u8::try_from(*distance).ok()).collect::<Option<_>>()?;
        (row.len() == nodes.len()).then_some(row)
    };
    let rows: Option<Vec<Vec<u8>>> = nodes.iter().map(row).collect();
    rows.map(|rows| rows.concat()).unwrap_or_default()
}

/// The node whose list contains this core (T012), else the first one.
fn node_of(findings: &Findings, nodes: &[u8], core: u32) -> u8 {
    let has = |node: &&u8| {
        let cpus = findings.nodes.get(&u32::from(**node)).and_then(|node| node.cpus.as_ref());
        cpus.is_some_and(|cpus| cpus.contains(core))
    };
    nodes.iter().find(has).or(nodes.first()).copied().unwrap_or(0)
}

/// The sockets of cores, as the kernel numbers them; if a number does not fit 8 bits, by their order.
fn sockets(findings: &Findings, processors: &CpuList) -> BTreeMap<u32, u8> {
    let package = |core: u32| Some((core, findings.cpus.get(&core)?.package?));
    let packages: BTreeMap<u32, u32> = processors.iter().filter_map(package).collect();
    let distinct: BTreeSet<u32> = packages.values().copied().collect();
    let fit = distinct.iter().all(|package| u8::try_from(*package).is_ok());
    let socket = |package: u32| {
        let order = distinct.iter().position(|other| *other == package).unwrap_or(0);
        let number = if fit { package } else { u32::try_from(order).unwrap_or(0) };
        u8::try_from(number).unwrap_or(u8::MAX)
    };
    packages.iter().map(|(core, package)| (*core, socket(*package))).collect()
}

/// The CPUs that we may use; `None` if unknown, or if none would be left (TH012).
fn allowed(findings: &Findings, processors: &CpuList) -> Option<CpuList> {
    let allowed = findings.allowed.as_ref()?;
    let usable: CpuList = processors.iter().filter(|cpu| allowed.contains(*cpu)).collect();
    (!usable.is_empty()).then_some(usable)
}

enum Grades<'f> {
    Told(&'f CpuList),
    /// Cores without a sibling thread, on a machine where others have one (T013). If no core has one, all are alike, and
    /// none is an efficiency core.
    BySiblings(CpuList),
}

impl<'f> Grades<'f> {
    fn of(findings: &'f Findings, processors: &CpuList) -> Self {
        if let Some(sparing) = &findings.sparing {
            return Self::Told(sparing);
        }
        let has_sibling = |core: &u32| {
            let siblings = findings.cpus.get(core).and_then(|cpu| cpu.siblings.as_ref());
            siblings.is_some_and(|siblings| siblings.len() > 1)
        };
        let alone: CpuList = processors.iter().filter(|core| !has_sibling(core)).collect();
        Self::BySiblings(if alone.len() == processors.len() { CpuList::default() } else { alone })
    }

    fn of_core(&self, core: u32) -> CoreGrade {
        let sparing = match self {
            Self::Told(sparing) => sparing,
            Self::BySiblings(sparing) => sparing,
        };
        if sparing.contains(core) { CoreGrade::Efficiency } else { CoreGrade::Performance }
    }
}

struct Speeds<'f> {
    cpuinfo: &'f BTreeMap<u32, Option<u64>>,
    /// The lowest speed in `/proc/cpuinfo`, for cores that it does not list.
    lowest: Option<u64>,
}

impl<'f> Speeds<'f> {
    fn of(findings: &'f Findings) -> Self {
        let cpuinfo = &findings.cpuinfo;
        let lowest = cpuinfo.values().flatten().copied().filter(|mhz| is_speed(*mhz)).min();
        Self { cpuinfo, lowest }
    }

    /// Base, maximal and assumed speed of a core, in MHz; one of them is above 0 (TH011).
    fn of_core(&self, cpu: Option<&CpuFinding>, number: u32) -> (u64, u64, u64) {
        let speed = |mhz: Option<u64>| mhz.filter(|mhz| is_speed(*mhz));
        let nominal = cpu.and_then(|cpu| speed(cpu.nominal_mhz));
        let base = cpu.and_then(|cpu| speed(cpu.base_khz.map(|khz| khz / 1_000)));
        let max = cpu.and_then(|cpu| speed(cpu.max_khz.map(|khz| khz / 1_000)));
        let base = if cpu.is_some_and(|cpu| cpu.is_acpi) { nominal.or(base) } else { base.or(nominal) };
        let told = || speed(self.cpuinfo.get(&number).copied().flatten()).or(self.lowest);
        match (base, max) {
            (None, None) => match told() {
                Some(mhz) => (mhz, 0, 0),
                None => (0, 0, GUESS_MHZ),
            },
            (base, max) => (base.unwrap_or(0), max.unwrap_or(0), 0),
        }
    }
}

const fn is_speed(mhz: u64) -> bool {
    mhz > 0 && mhz <= MHZ_MAX
}
