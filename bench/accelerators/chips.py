"""Accelerators that programs are compiled for without one: what the compiler is told of each.

The numbers of GPUs are those that the driver reports of such a card; of TPUs the compiler knows the
chips by name.
"""

import os
from typing import Any, NamedTuple

TOPOLOGIES = {1: "1x1x1", 8: "1x1x8"}  # of GPUs: slices x hosts x devices


class Link(NamedTuple):
    """How devices exchange numbers."""

    latency: float  # seconds of the smallest sum over all devices
    bandwidth: float  # bytes a second that a device sends


# Bandwidths are the vendors' figures, of a TPU that of two of its four ports, as a ring has them;
# latencies are assumed.
NVLINK_4, NVLINK_3, PCIE = Link(1.2e-5, 4.5e11), Link(1.5e-5, 3e11), Link(3e-5, 1e10)
NETWORK = Link(4e-5, 5e10)  # a port of 400 Gb/s for each card
SLOW_NETWORK = Link(6e-5, 1.25e10)  # of 100 Gb/s


class Gpu(NamedTuple):
    """A graphics card, in the units of XLA's `DeviceDescription`."""

    title: str
    cores: int  # streaming multiprocessors
    lanes: int  # 32-bit floating-point units of a core
    threads: int  # of a core
    clock: float  # GHz
    memory: int  # bytes
    bandwidth: float  # bytes a second
    cache: int  # bytes of level 2
    shared: int  # bytes of shared memory of a core
    shared_of_block: int  # bytes that a block may ask for
    capability: tuple[int, int]
    links: dict[int, Link]  # by the number of cards: 8 in a host, more by the network

    @property
    def target(self) -> str:
        """The text of a `GpuTargetConfigProto`."""
        major, minor = self.capability
        return f"""gpu_device_info {{
          threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
          shared_memory_per_core: {self.shared} threads_per_core_limit: {self.threads}
          core_count: {self.cores} fpus_per_core: {self.lanes}
          block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
          memory_bandwidth: {self.bandwidth:.0f} l2_cache_size: {self.cache}
          clock_rate_ghz: {self.clock} device_memory_size: {self.memory}
          shared_memory_per_block_optin: {self.shared_of_block}
          cuda_compute_capability {{ major: {major} minor: {minor} }}
          registers_per_core_limit: 65536 registers_per_block_limit: 65536
        }}
        platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
        device_description_str: "{self.title}" """


class Tpu(NamedTuple):
    """A TPU, as libtpu names it."""

    title: str
    memory: int  # bytes
    bandwidth: float  # bytes a second
    topologies: dict[int, str]  # by the number of chips
    links: dict[int, Link]  # by the number of chips


CHIPS: dict[str, Gpu | Tpu] = {
    "h100": Gpu(
        "NVIDIA H100 80GB HBM3",
        cores=132,
        lanes=128,
        threads=2048,
        clock=1.98,
        memory=84_942_979_072,
        bandwidth=3.35232e12,
        cache=52_428_800,
        shared=233_472,
        shared_of_block=232_448,
        capability=(9, 0),
        links={8: NVLINK_4, 64: NETWORK},
    ),
    "a100": Gpu(
        "NVIDIA A100-SXM4-40GB",
        cores=108,
        lanes=64,
        threads=2048,
        clock=1.41,
        memory=42_297_786_368,
        bandwidth=1.555e12,
        cache=41_943_040,
        shared=167_936,
        shared_of_block=166_912,
        capability=(8, 0),
        links={8: NVLINK_3, 64: NETWORK},
    ),
    "t4": Gpu(
        "Tesla T4",
        cores=40,
        lanes=64,
        threads=1024,
        clock=1.59,
        memory=15_828_320_256,
        bandwidth=3.20064e11,
        cache=4_194_304,
        shared=65_536,
        shared_of_block=65_536,
        capability=(7, 5),
        links={8: PCIE, 64: SLOW_NETWORK},
    ),
    "v5e": Tpu(
        "TPU v5e",
        17_179_869_184,
        8.19e11,
        {1: "v5e:2x2", 8: "v5e:2x4"},
        {8: Link(6e-6, 1e11), 64: Link(1.6e-5, 1e11)},
    ),
    "v6e": Tpu(
        "TPU v6e",
        34_359_738_368,
        1.64e12,
        {1: "v6e:2x2", 8: "v6e:2x4"},
        {8: Link(6e-6, 2.24e11), 64: Link(1.6e-5, 2.24e11)},
    ),
}


def absent_devices(chip: str, count: int) -> list[Any]:
    """`count` devices of a kind that this machine does not have, to compile for.

    JAX needs the plugin of the platform, of its own version; no driver.
    """
    from jax.experimental import topologies

    target = CHIPS[chip]
    if isinstance(target, Gpu):
        topology = topologies.get_topology_desc(
            platform="cuda",
            topology_name="",
            topology=TOPOLOGIES[count],
            target_config=target.target,
        )
    else:
        os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # or libtpu asks the network what machine this is
        topology = topologies.get_topology_desc(
            platform="tpu", topology_name=target.topologies[count]
        )
    return list(topology.devices[:count])
