# SPDX-License-Identifier: GPL-2.0-only
"""The work on recordings that is measured: which command reads which generated recording. bench_offline and
compare share it."""
import pathlib
import subprocess
import typing

import figures

RATE = 100000  # events per second of the KVM and guest recording


class Work(typing.NamedTuple):
    name: str
    scene: str
    arguments: tuple  # IN is the recording, OUT a file to write
    goal: str  # in million events per CPU second
    memory: str = "-"  # goal of its peak memory, in MiB


WORKS = (
    Work("report, scheduler events", "scheduler", ("report", "IN"), ">= 14"),
    Work("report, KVM and guest events", "busy", ("report", "IN"), ">= 10", "<= 24"),
    Work("page (report --format html)", "busy", ("report", "IN", "--format", "html", "-o", "OUT"), ">= 5"),
    Work("flame graph", "busy", ("flame", "IN", "-o", "OUT.folded"), ">= 6"),
    Work("export to Perfetto", "busy", ("export", "IN", "--to", "perfetto", "-o", "OUT"), ">= 6"),
    Work("report chains", "busy", ("report", "IN", "chains"), ">= 7"),
    Work("export to CSV", "busy", ("export", "IN", "--to", "csv", "-o", "OUT"), ">= 3"),
    Work("pairs across the boundary", "busy",
         ("report", "IN", "pairs", "-e", "host:kvm:kvm_msi_set_irq", "-e", "guest:irq:irq_handler_entry",
          "--key", "vcpu"), ">= 8"),
    Work("pairs on one side, by thread", "busy",
         ("report", "IN", "pairs", "-e", "host:kvm:kvm_exit", "-e", "host:kvm:kvm_entry", "--key", "tid"), ">= 12"),
    Work("pairs with --detail", "busy",
         ("report", "IN", "pairs", "-e", "host:kvm:kvm_exit", "-e", "host:kvm:kvm_entry", "--key", "vcpu",
          "--detail=-1ms,+1ms,samevcpu"), ">= 6", "<= 64"),
    Work("events as text", "busy", ("report", "IN", "events", "-e", "host:*:*,guest:*:*", "--top", "0"), ">= 1"),
)


def record(build, folder, scene, events):
    """Writes the recording of a scene. Returns its path and its number of events."""
    path = pathlib.Path(folder) / f"{scene}.vcs"
    tools = pathlib.Path(build) / "tests/bench"
    command = ([tools / "bench_report_scene", path, str(events)] if scene == "scheduler" else
               [tools / "bench_page_scene", path, str(events / RATE), str(RATE)])
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return path, int(said.split()[0])


def measure(build, work, recording, folder, **options):
    """One run: see figures.run_child()."""
    words = {"IN": str(recording), "OUT": f"{folder}/out", "OUT.folded": f"{folder}/out.folded"}
    return figures.run_child([figures.program(build, "host-collector/vcpuscope"),
                              *(words.get(word, word) for word in work.arguments)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
