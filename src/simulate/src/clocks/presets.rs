//! Clock specifications that have a name.

/// A named clock specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preset {
    /// What the user writes.
    pub name: &'static str,
    /// What it stands for.
    pub text: &'static str,
    /// What it models.
    pub about: &'static str,
}

/// All presets, in the order in which help lists them.
///
/// The `decentralised` presets follow the experiments on decentralised synchronisation by Umansky and Leontev, with 3 and
/// with 12 nodes: every node has a generator whose steps of a nominal length W are off by a Gaussian error, at most twice its
/// deviation, and no node is a reference. Of 3 nodes it is node 1 that fails, of 12 nodes 1, 2, 3 and 10. Steps of 0.5 ms, 1 ms, 100 ms and
/// 700 ms occur there; the presets have 1 ms, others are `generator=STEP/DEVIATION`. How large the deviations are, when nodes fail and
/// how, are assumptions of this program, typical of quartz oscillators.
pub(crate) const PRESETS: &[Preset] = &[
    Preset { name: "perfect", text: "", about: "no error" },
    Preset { name: "offset", text: "offset=5ms", about: "constant offsets" },
    Preset { name: "drift", text: "drift=20ppm", about: "constant drifts" },
    Preset {
        name: "linear",
        text: "offset=5ms,drift=20ppm",
        about: "offset and drift, which linear interpolation \
        removes",
    },
    Preset { name: "sine", text: "linear,sine=20us/0.5s", about: "periodic temperature" },
    Preset { name: "walk", text: "linear,walk=5ppm", about: "random walk of the frequency (Allan-type)" },
    Preset { name: "ntp", text: "offset=1ms,drift=1ppm,ntp=50us/20%", about: "clock slewed by an NTP daemon" },
    Preset { name: "jump", text: "linear,jump=500us", about: "a single step, forward or backward" },
    Preset { name: "stuck", text: "linear,stuck=200us", about: "standstill, then catching up" },
    Preset { name: "coarse", text: "linear;all:resolution=1us", about: "a resolution of a microsecond" },
    Preset {
        name: "mixed",
        text: "linear,sine=10us/0.7s,walk=2ppm,noise=1ppm/1ms,ntp=20us/30%",
        about: "all effects of a working clock combined",
    },
    Preset {
        name: "decentralised3",
        text: "all:offset=1ms,all:drift=10ppm,all:generator=1ms/1ns",
        about: "3 nodes, generators with Gaussian steps, no reference",
    },
    Preset {
        name: "decentralised3-failing",
        text: "decentralised3;1:drift=4000ppm@30%",
        about: "3 nodes of which node 1 fails: its generator runs away",
    },
    Preset {
        name: "decentralised12",
        text: "all:offset=1ms,all:drift=10ppm,all:generator=1ms/1ns",
        about: "12 nodes, generators with Gaussian steps, no reference",
    },
    Preset {
        name: "decentralised12-failing",
        text: "decentralised12;1:jump=1ms@30%;2:drift=4000ppm@40%;3:drift=4000ppm@50%;10:stuck=1ms@70%",
        about: "12 nodes of which 1, 2, 3 and 10 fail: a step, two runaway generators, a standstill",
    },
];
