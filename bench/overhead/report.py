"""The result as Markdown: the machine, the tables, and in plain words what was reached and what was not."""

from . import statistics
from .measure import BYSTANDER, MEMORY, by_block

# (what, the figure's key, at most)
TARGETS = [
    ("`find` over 30,000 files, warm, everything recorded: ratio", "find", 1.12),
    ("`rm -rf` of 100,000 files on tmpfs: ratio", "rm-tmpfs", 1.08),
    ("a call of the one-byte `dd`: times the cost of two empty programs", "per-call", 1.7),
    ("ping-pong through pipes, 100,000 rounds on one CPU: ratio", "ping-pong", 1.6),
    ("8 threads that yield: ratio", "yields", 1.6),
    ("a call of a process that is not traced: added ns", "bystander", 150),
    ("`true`, from the tracer's start to its end: ms", "start", 120),
    ("resident memory and BPF maps while `sleep` is traced: MB", "memory", 40),
]


class Figures:
    """Every figure is a median over blocks and its 95% interval."""

    def __init__(self, result):
        self.result = result
        self.seed = result["seed"]

    def _of(self, values):
        values = list(values)
        return (statistics.median(values), *statistics.interval(values, self.seed)) if values else None

    def seconds(self, row):
        return self._of(ns / 1e9 for ns in by_block(self.result["runs"], row, "none").values())

    def milliseconds(self, row, column):
        return self._of(ns / 1e6 for ns in by_block(self.result["runs"], row, column).values())

    def ratio(self, row, column):
        base, other = (by_block(self.result["runs"], row, name) for name in ("none", column))
        return self._of(other[block] / base[block] for block in base if block in other)

    def added_per_call(self, row, column):
        base, other = (by_block(self.result["runs"], row.name, name) for name in ("none", column))
        return self._of((other[block] - base[block]) / row.calls for block in base if block in other)

    def times_empty(self, row, column):
        base, floor, other = (by_block(self.result["runs"], row.name, name) for name in ("none", "empty", column))
        blocks = [block for block in base if block in floor and block in other]
        # A block so disturbed that empty programs made calls cheaper has no such ratio; it counts as the worst.
        return self._of(
            (other[b] - base[b]) / (floor[b] - base[b]) if floor[b] > base[b] else float("inf") for b in blocks)

    def bystander(self, column):
        return self._of(entry["ns_per_call"] for entry in self.result["bystanders"] if entry["column"] == column)

    def bystander_added(self, column):
        by_column = {}
        for entry in self.result["bystanders"]:
            by_column.setdefault(entry["column"], {})[entry["block"]] = entry["ns_per_call"]
        base, other = by_column.get("none", {}), by_column.get(column, {})
        return self._of(other[block] - base[block] for block in base if block in other)

    def megabytes(self, column, *kinds):
        entries = [entry for entry in self.result["memory"] if entry["column"] == column]
        return self._of(sum(entry[kind] for kind in kinds) / 1e6 for entry in entries)

    def reads(self, row, column):
        pairs = [r["reads_seen_of"] for r in self.result["runs"]
                 if (r["row"], r["column"]) == (row, column) and "reads_seen_of" in r]
        return (sum(seen for seen, _ in pairs), sum(made for _, made in pairs)) if pairs else None


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(figure, unit="", format_=number):
    if figure is None:
        return "–"
    middle, low, high = figure
    return f"{format_(middle)}{unit} [{format_(low)}, {format_(high)}]"


def whole_number(value):
    return f"{value:,.0f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def markdown(result, rows, columns):
    figures = Figures(result)
    others = [column for column in columns if column.name != "none"]
    dd = next((row for row in rows if row.calls), None)
    whole = [row for row in rows if row.is_whole]
    rows = [row for row in rows if not row.is_whole]
    lines = [f"# What tracing costs, {result['machine']['date']}", ""]
    lines += _machine(result)
    lines += ["", "## The command's wall time, as a ratio to no tracing", ""]
    head = ["", *(row.title for row in rows)]
    body = [["no tracing, s", *(cell(figures.seconds(row.name)) for row in rows)]]
    body += [[column.title, *(cell(figures.ratio(row.name, column.name)) + _mark(row, column) for row in rows)]
             for column in others]
    lines += table(head, body)
    lines += ["", *_scaled(rows, others)]
    if dd:
        lines += ["", "## The cost of one call", ""]
        head = ["", "added ns per call of `dd`", "times two empty programs", "read(2) lost"]
        body = [[c.title + _mark(dd, c), cell(figures.added_per_call(dd, c.name), format_=whole_number),
                 "1" if c.name == "empty" else "–" if c.name == "again" else cell(figures.times_empty(dd, c.name)),
                 _seen(figures.reads(dd.name, c.name))] for c in others]
        lines += table(head, body)
    for row in whole:
        lines += ["", "## The tracer's own start and end", ""]
        body = [[c.title, cell(figures.milliseconds(row.name, c.name), format_=whole_number)] for c in columns]
        lines += table(["", f"{row.title}, ms"], body)
    lines += ["", "## What a process pays that is not traced", "",
              "A loop of getppid, pinned to a CPU, while `sleep` is traced. strace stops only what it traces: nothing.", ""]
    body = [[c.title, cell(figures.bystander(c.name), format_=whole_number),
             "–" if c.name == "none" else cell(figures.bystander_added(c.name), format_=whole_number)]
            for c in columns if c.name in BYSTANDER]
    lines += table(["while `sleep` is traced by", "ns per call", "added"], body)
    kinds = [["resident_bytes"], ["map_bytes"], ["resident_bytes", "map_bytes"]]
    body = [[c.title, *(cell(figures.megabytes(c.name, *kind)) for kind in kinds)] for c in columns if c.name in MEMORY]
    if body:
        lines += ["", "## Memory while `sleep` is traced", ""]
        lines += table(["MB", "most resident", "BPF maps", "both"], body)
    lines += ["", "## Reached and not reached", "", *_targets(figures, dd), ""]
    return "\n".join(lines)


def _mark(row, column):
    return " \\*" if row.calls and column.slowness > 1 else ""


def _scaled(rows, columns):
    slow = [column for column in columns if column.slowness > 1]
    if not slow or not any(row.calls for row in rows):
        return []
    row = next(row for row in rows if row.calls)
    names = ", ".join(f"{column.title}: {row.blocks // column.slowness:,}" for column in slow)
    return ["Medians over the blocks, with 95% bootstrap intervals. \"no tracing, again\" is compared with \"no",
            "tracing\" like any other column: it shows how far a ratio here is from 1 by chance.", "",
            f"\\* Not run in full: `dd` copied fewer bytes ({names}), and its time was scaled by calls:",
            "time without calls + (time with fewer calls − time without calls) × calls / fewer calls."]


def _seen(reads):
    if reads is None:
        return "does not count"
    seen, made = reads  # the program's loader makes a few more, so more than all may be seen
    return f"{100 * max(0, made - seen) / made:.2f}%"


def _machine(result):
    machine = result["machine"]
    load = "{:.2f} before, {:.2f} after".format(machine["load_before"][0], machine["load_after"][0])
    kind = "virtual machine" if machine["virtual_machine"] else "not a virtual machine"
    tools = "; ".join(machine["tools"].values())
    return [f"- Kernel {machine['kernel']}; {machine['cpu']}, {machine['cpus']} CPUs, {kind};"
            f" {machine['memory_bytes'] / 2**30:.1f} GiB of memory",
            f"- Load over one minute: {load} (the benchmark itself makes about 1)",
            f"- {tools}",
            f"- Revision {result['revision']}; {result['blocks']} blocks, seed {result['seed']},"
            f" {result['seconds']} s; raw runs in the .json beside this file",
            *_few(result["blocks"]),
            *_foreign(result["foreign_tracers"]),
            "- How it is measured, and what may bias it: bench/README.md"]


def _few(blocks):
    return ["- **Too few blocks** for intervals that mean 95%: 6 are the least"] if blocks < 6 else []


def _foreign(names):
    if not names:
        return []
    return [f"- **Not to be trusted**: others traced system calls meanwhile ({', '.join(names)}), so that no run here was"
            " without tracing"]


def _targets(figures, dd):
    found = {"find": figures.ratio("find", "inodyne"), "rm-tmpfs": figures.ratio("rm-tmpfs", "inodyne"),
             "per-call": figures.times_empty(dd, "inodyne") if dd else None,
             "ping-pong": figures.ratio("ping-pong", "inodyne"), "yields": figures.ratio("yields", "inodyne"),
             "bystander": figures.bystander_added("inodyne"), "start": figures.milliseconds("start", "inodyne"),
             "memory": figures.megabytes("inodyne", "resident_bytes", "map_bytes")}
    lines = []
    for what, key, most in TARGETS:
        if found[key] is None:
            continue
        verdict = "reached" if found[key][0] <= most else "**not reached**"
        if verdict == "reached" and found[key][2] > most:
            verdict = "reached, but the interval goes beyond it"
        lines.append(f"- {what}: at most {most} wanted, {cell(found[key])} found: {verdict}.")
    floor = figures.bystander_added("empty")
    if floor:
        lines.append(f"- For comparison, two empty programs cost such a process {cell(floor, format_=whole_number)} ns a call.")
    clock = figures.ratio("find", "clock")
    if clock:
        lines.append(f"- The floor of everything that times calls: two programs that only read the clock slow `find` by"
                     f" {cell(clock)}.")
    if clock and dd:
        lines.append(f"- Their call of `dd` costs {cell(figures.added_per_call(dd, 'clock'), format_=whole_number)} ns,"
                     f" {cell(figures.times_empty(dd, 'clock'))} times two empty programs.")
    again = figures.ratio("find", "again")
    if again:
        lines.append(f"- Chance alone moves the ratio of `find` to {cell(again)} (no tracing against no tracing).")
    return lines
