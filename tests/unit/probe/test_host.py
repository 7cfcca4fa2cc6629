"""Cores and memory that containers leave, in trees as kernels write them."""

import os
from pathlib import Path

import pytest

from trainwright.probe import cgroup, host
from trainwright.probe.host import NumaNode
from trainwright.probe.reading import Missing

MIB = 1 << 20
V2 = "31 23 0:28 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_version_2_in_a_container_that_sees_itself_as_the_root(tmp_path: Path) -> None:
    tree(tmp_path, {
        "proc/self/mountinfo": V2.format(root="/"),
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/memory.max": f"{512 * MIB}\n",
    })  # fmt: skip
    assert cgroup.read(tmp_path) == cgroup.Limits(1.5, 512 * MIB)


def test_a_group_is_held_to_what_the_groups_above_it_are(tmp_path: Path) -> None:
    # A systemd service with 4 cores, in a slice that has 2 and less memory.
    tree(tmp_path, {
        "proc/self/mountinfo": V2.format(root="/"),
        "proc/self/cgroup": "0::/train.slice/run.service\n",
        "sys/fs/cgroup/train.slice/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/train.slice/memory.max": f"{1024 * MIB}\n",
        "sys/fs/cgroup/train.slice/run.service/cpu.max": "400000 100000\n",
        "sys/fs/cgroup/train.slice/run.service/memory.max": f"{2048 * MIB}\n",
    })  # fmt: skip
    assert cgroup.read(tmp_path) == cgroup.Limits(2.0, 1024 * MIB)


def test_version_1_of_docker_where_the_mount_is_the_containers_own_group(tmp_path: Path) -> None:
    own = "/docker/4f1c"
    tree(tmp_path, {
        "proc/self/mountinfo": V1.format(root=own),
        "proc/self/cgroup": f"9:memory:{own}\n4:cpu,cpuacct:{own}\n0::/system.slice\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4096 * MIB}\n",
    })  # fmt: skip
    assert cgroup.read(tmp_path) == cgroup.Limits(2.5, 4096 * MIB)


def test_no_limit_in_either_version(tmp_path: Path) -> None:
    tree(tmp_path, {
        "proc/self/mountinfo": V2.format(root="/") + V1.format(root="/"),
        "proc/self/cgroup": "9:memory:/\n4:cpu,cpuacct:/\n0::/user.slice\n",
        "sys/fs/cgroup/user.slice/cpu.max": "max 100000\n",
        "sys/fs/cgroup/user.slice/memory.max": "max\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    })  # fmt: skip
    assert cgroup.read(tmp_path) == cgroup.Limits()


@pytest.mark.parametrize("rubbish", ["", "\0\0", "one two\n", "100000 0\n", "-5 -5\n"])
def test_files_that_hold_something_else_are_no_limit(tmp_path: Path, rubbish: str) -> None:
    tree(tmp_path, {
        "proc/self/mountinfo": "nonsense\n" + V2.format(root="/"),
        "proc/self/cgroup": "nonsense\n0::/../..\n",
        "sys/fs/cgroup/cpu.max": rubbish,
        "sys/fs/cgroup/memory.max": rubbish,
    })  # fmt: skip
    assert cgroup.read(tmp_path) == cgroup.Limits()


def test_a_quota_and_a_limit_are_what_a_program_may_use(tmp_path: Path) -> None:
    tree(tmp_path, {
        "proc/self/mountinfo": V2.format(root="/"),
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/memory.max": f"{512 * MIB}\n",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD Ryzen 9 7950X 16-Core Processor\n",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "5881000\n",
        "sys/devices/system/node/node0/cpulist": "0-7,16-23\n",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       32768 kB\n",
        "sys/devices/system/node/node1/cpulist": "8-15,24-31\n",
        "proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n",
    })  # fmt: skip
    found = host.read(tmp_path)
    assert (found.cores, found.quota_cores) == (1, 0.5)
    assert (found.memory_bytes, found.limit_bytes) == (512 * MIB, 512 * MIB)
    assert found.cpu == "AMD Ryzen 9 7950X 16-Core Processor"
    assert found.most_mhz == 5881
    assert isinstance(found.numa, tuple)
    assert found.numa[0] == NumaNode(0, 16, 32 * MIB)
    assert isinstance(found.numa[1].memory_bytes, Missing)
    assert found.around == "wsl"
    assert isinstance(found.shared_memory, Missing)


def test_the_number_of_cores_is_that_of_the_affinity(tmp_path: Path) -> None:
    found = host.read(tmp_path)
    if hasattr(os, "sched_getaffinity"):
        assert found.cores == len(os.sched_getaffinity(0))
    assert found.quota_cores is None


@pytest.mark.parametrize(
    ("marks", "around"),
    [
        ({".dockerenv": ""}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"var/run/secrets/kubernetes.io/serviceaccount/token": ""}, "kubernetes"),
        ({"proc/self/cgroup": "1:name=systemd:/lxc/web\n"}, "lxc"),
        ({"run/systemd/container": "systemd-nspawn\n"}, "container"),
        ({"proc/self/cgroup": "0::/user.slice\n"}, None),
    ],
)
def test_what_a_system_runs_inside_of_shows(
    tmp_path: Path, marks: dict[str, str], around: str | None
) -> None:
    assert host.read(tree(tmp_path, marks)).around == around
