#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the pictures of README.md from tests/data/quickstart.vcs: docs/pictures/report.png, a part of the
HTML report, with its words in report.txt; and wall.svg, a flame graph.

usage: make_pictures.py [--check]     --check: only compare the stored words and graph with new ones

The test e2e_browser checks them. If it fails after a change, run this program and commit the result.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import browser as devtools  # noqa: E402

TOP = HERE.parents[2]
PICTURES = TOP / "docs/pictures"
WIDTH = 1100
# The second stall, from its line to its timeline.
ARTICLE = "document.querySelector('#incident-1')"
WORDS = f"""(() => {{ const a = {ARTICLE};
	return [a.querySelector('summary'), a.querySelector('.because'), a.querySelector('.columns'),
		...a.querySelectorAll('.timeline-picture text')].map(e => e.textContent).join('\\n') + '\\n'; }})()"""


def made(program, page, folder):
    """{name: bytes} of everything but the picture of the page, which is in `page` now."""
    recording = TOP / "tests/data/quickstart.vcs"
    # Nothing of this machine.
    env = {"PATH": "/usr/bin:/bin", "TZ": "UTC", "LC_ALL": "C"}
    for name, command in (("report.html", ("report", recording, "--format", "html")),
                          ("wall.svg", ("flame", recording, "--title", "Where the guest's time went"))):
        subprocess.run([str(program), *map(str, command), "-o", str(folder / name)], env=env, check=True,
                       stderr=subprocess.DEVNULL)
    page.call("Emulation.setTimezoneOverride", timezoneId="UTC")
    page.size(WIDTH, 1000)
    page.open(folder / "report.html")
    words = page.run(WORDS).encode()
    page.call("Emulation.setTimezoneOverride", timezoneId="")
    return {"report.txt": words, "wall.svg": (folder / "wall.svg").read_bytes()}


def differing(program, page):
    """The names of the pictures that are not those of today."""
    with tempfile.TemporaryDirectory() as folder:
        now = made(program, page, pathlib.Path(folder))
    kept = {name: (PICTURES / name).read_bytes() if (PICTURES / name).exists() else b"" for name in now}
    return [name for name, content in now.items() if kept[name] != content]


def picture_write(page):
    box = page.run(f"""(() => {{ const a = {ARTICLE}, b = a.getBoundingClientRect();
        const end = a.querySelector('.timeline .legend').getBoundingClientRect().bottom;
        return [b.x, b.y + scrollY, b.width, end - b.y + 8]; }})()""")
    clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
    data = page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
    (PICTURES / "report.png").write_bytes(devtools.base64.b64decode(data))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    build = pathlib.Path(os.environ.get("VCPUSCOPE_BUILD", TOP / "build"))
    program = build.resolve() / "host-collector/vcpuscope"
    with devtools.Browser() as page:
        if check:
            wrong = differing(program, page)
            print(f"not those of today: {', '.join(wrong)}" if wrong else "all are those of today")
            return 1 if wrong else 0
        PICTURES.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in made(program, page, pathlib.Path(folder)).items():
                (PICTURES / name).write_bytes(content)
            picture_write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
