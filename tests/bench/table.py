# SPDX-License-Identifier: GPL-2.0-only
"""The table of tests/bench/run: what one run measured, and the Markdown of one or two runs."""
import os

BEGIN, END = "<!-- table of tests/bench/run -->", "<!-- end of the table -->"


def number(value):
    """Three digits that count, without an exponent."""
    if value and abs(value) < 1:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def measured(figure):
    spread = ""
    if (figure.low, figure.high) != (figure.value, figure.value):
        spread = f" ({number(figure.low)} to {number(figure.high)})"
    return f"{number(figure.value)}{spread} {figure.unit}"


def goal(figure):
    if figure.goal == "-":
        return ""
    sign, limit = figure.goal.split()
    return f"{'at most' if sign == '<=' else 'at least'} {number(float(limit))}"


def text(figure):
    """One line for people who watch a run."""
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met()]
    words = [f"  {figure.name}: {measured(figure)}", goal(figure), verdict]
    return "  ".join(word for word in words if word) + (f"\n    {figure.peer}" if figure.peer != "-" else "")


class Rows:
    """Of one run: the figures by name, and the benches that measured nothing."""

    def __init__(self):
        self.figures, self.absent, self.failed = {}, {}, False

    def add(self, title, figures, why):
        for figure in figures:
            if figure.name in self.figures:
                raise ValueError(f"two figures are called {figure.name!r}")
            self.figures[figure.name] = figure
        if why:
            self.absent[title] = why
            self.failed |= why.startswith("failed")

    def status(self):
        """Exit status of a run: 0, 1 or 77."""
        if self.failed or any(figure.met() is False for figure in self.figures.values()):
            return 1
        return 77 if self.absent else 0


def result(found):
    verdicts = [figure.met() for figure in found if figure]
    if None in verdicts or not verdicts:
        return ""
    if len(set(verdicts)) > 1:
        return "**met in one run, missed in the other**"
    return "met" if verdicts[0] else "**missed**"


def escaped(words):
    return words.replace("|", "\\|").replace("<", "&lt;")


def markdown(runs, about):
    """The table of these runs."""
    columns = ["measured"] if len(runs) == 1 else ["first run", "second run"]
    head = ["work", *columns, "goal", "beside it in the same run", "result"]
    rows = []
    names = list(dict.fromkeys(name for run in runs for name in run.figures))
    for name in names:
        found = [run.figures.get(name) for run in runs]
        some = next(figure for figure in found if figure)
        peers = list(dict.fromkeys(figure.peer for figure in found if figure and figure.peer != "-"))
        rows.append([name, *(measured(figure) if figure else "not measured" for figure in found), goal(some),
                     "; then: ".join(peers), result(found)])
    for title in dict.fromkeys(title for run in runs for title in run.absent):
        why = [run.absent.get(title, "measured") for run in runs]
        rows.append([title, *why, "", "", "not measured"])
    lines = ["| " + " | ".join(map(escaped, row)) + " |" for row in [head, *rows]]
    lines.insert(1, "|---|" + "---|" * (len(head) - 1))
    note = "The value is the median of the rounds; the quartiles are in parentheses."
    return f"{about} {note}\n\n" + "\n".join(lines) + "\n"


def write(path, content):
    """Replaces what is between the marks of the file, or the whole file if it has none. All or nothing."""
    try:
        old = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        old = ""
    if BEGIN in old and END in old:
        content = f"{old.partition(BEGIN)[0]}{BEGIN}\n\n{content}\n{END}{old.partition(END)[2]}"
    new = path.with_name(path.name + ".new")
    new.write_text(content, encoding="utf-8")
    os.replace(new, path)
