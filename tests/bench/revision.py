# SPDX-License-Identifier: GPL-2.0-only
"""Another revision of this project, built in a temporary worktree."""
import pathlib
import shutil
import signal
import subprocess
import tempfile

import figures


class Unusable(Exception):
    """The revision does not exist here, or cannot be built."""


class Absent(Unusable):
    """This clone has no history that could contain the revision."""


def call(what, *command):
    """Raises Unusable, with the end of what it printed."""
    done = subprocess.run(command, cwd=figures.SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise Unusable(f"{what}:\n" + "\n".join(done.stdout.splitlines()[-15:]))
    return done.stdout


class Revision:
    """A context manager: builds `targets` of revision `rev`, configured with the arguments `configure` of cmake. Its
    build folder is self.path; it is removed at the end."""

    def __init__(self, rev, targets, configure):
        self.rev, self._targets, self._configure, self.folder, self.path = rev, targets, configure, None, None

    def __enter__(self):
        if not shutil.which("git") or not (figures.SOURCE / ".git").exists():
            raise Absent(f"no revision {self.rev}: this is no clone of the project")
        try:
            shallow = call("git cannot read this clone", "git", "rev-parse", "--is-shallow-repository")
        except Unusable as e:
            raise Absent(f"no revision {self.rev}: {e}") from None
        if shallow.strip() == "true":
            raise Absent(f"no revision {self.rev}: this clone is shallow")
        commit = call(f"no revision {self.rev}", "git", "rev-parse", "--verify", "--quiet",
                      f"{self.rev}^{{commit}}").strip()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-revision."))
        try:
            self._build(commit)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _build(self, commit):
        tree = self.folder / "tree"
        call(f"{self.rev} cannot be checked out", "git", "worktree", "add", "--detach", str(tree), commit)
        print(f"building {self.rev} ({commit[:12]})", flush=True)
        call(f"{self.rev} cannot be configured", "cmake", "-S", str(tree), "-B", str(tree / "build"), *self._configure)
        call(f"{self.rev} cannot be built", "cmake", "--build", str(tree / "build"), "--target", *self._targets)
        self.path = tree / "build"

    def __exit__(self, *_):
        # The removal is quick, and happens whole.
        handlers = {number: signal.signal(number, signal.SIG_IGN)
                    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        figures.end_children()  # compilers of a build that was interrupted
        subprocess.run(["git", "worktree", "remove", "--force", self.folder / "tree"], cwd=figures.SOURCE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run(["git", "worktree", "prune"], cwd=figures.SOURCE)
        for number, handler in handlers.items():
            signal.signal(number, handler)
