# SPDX-License-Identifier: GPL-2.0-only
"""Creates cgroups of a host Place (scene.py) that contain one vCPU thread, to freeze it or to give it a
quota.
"""
import os

V2 = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
V1_CPU = "/sys/fs/cgroup/cpu"
SHARES_MAX = 262144


class VcpuCgroups:
    """`frozen` has cgroup.freeze; `quota` has cpu.max, or cpu.cfs_quota_us where v1 owns the CPU
    controller. A host without cgroups mounted gets v2. A context manager: leaves nothing behind."""

    def __init__(self, host, pid, tid):
        self._host, self._pid, self._tid = host, pid, tid
        name = f"vcpuscope-test.{os.getpid()}"
        mounted = host.run(f"for d in {' '.join(V2)}; do [ ! -e $d/cgroup.procs ] || [ ! -e $d/cgroup.controllers ] "
                           "|| echo $d; done").split()
        if not mounted:
            host.run(f"mount -t cgroup2 none {V2[0]}")
        self._root = (mounted or V2)[0]
        self._group = f"{self._root}/{name}"
        self.frozen = f"{self._group}/vcpu"
        self._v1 = None
        self.quota = self.frozen
        if "cpu" not in host.run(f"cat {self._root}/cgroup.controllers").split():
            self.quota = self._v1 = f"{V1_CPU}/{name}"

    def __enter__(self):
        run = self._host.run
        run(f"mkdir {self._group} && echo {self._pid} >{self._group}/cgroup.procs && mkdir {self.frozen} && "
            f"echo threaded >{self.frozen}/cgroup.type && echo {self._tid} >{self.frozen}/cgroup.threads")
        if self._v1:
            # A cgroup's share of a busy machine is not that of the bed's nice value.
            run(f"mkdir {self._v1} && echo {SHARES_MAX} >{self._v1}/cpu.shares && echo {self._tid} >{self._v1}/tasks")
        else:
            run(f"echo +cpu >{self._root}/cgroup.subtree_control && echo +cpu >{self._group}/cgroup.subtree_control")
        return self

    def __exit__(self, *unused):
        """A cgroup with members cannot be removed: they go back to the root, if they still live."""
        self._host.run(f"{{ echo 0 >{self.frozen}/cgroup.freeze; echo {self._pid} >{self._root}/cgroup.procs; "
                       + (f"echo {self._tid} >{V1_CPU}/tasks; rmdir {self._v1}; " if self._v1 else "")
                       + f"rmdir {self.frozen} {self._group}; }} 2>/dev/null || [ ! -e {self._group} ]")
