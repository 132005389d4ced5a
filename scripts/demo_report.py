"""What the demo prints after its run, from the recording as JSON alone: what the finding predicted for the first place, and
what the second place, which is the cure, really took. Exits with 1 where the finding is not in the first place only.
"""

import json
import statistics
import sys

FINDING = "dtype-missing"


def seconds(ns):
    if ns < 1e6:
        return f"{ns / 1e3:.0f} µs"
    return f"{ns / 1e9:.3f} s" if ns >= 1e8 else f"{ns / 1e6:.1f} ms"


def untraced(recording, place, cache):
    runs = recording["runs"]
    return [r["wall_ns"] for r in runs if (r["place"], r["cache"], r["traced"]) == (place, cache, False)]


def calls(trace, name):
    return next((row["calls"] for row in trace["syscalls"] if row["name"] == name), 0)


def compare(recording):
    traces = {(t["place"], t["cache"]): t for t in recording["traces"]}
    wrong = [f for f in recording["findings"] if f["id"] == FINDING and f["place"] != 0]
    found = {recording["traces"][f["trace"]]["cache"]: f for f in recording["findings"] if f["id"] == FINDING}
    print(f"  {'':6}{'without types':>15}   {'with types, predicted':>34}   {'measured':>10}")
    for cache in ("cold", "warm"):
        slow, fast = (statistics.median(untraced(recording, place, cache)) for place in (0, 1))
        predicted = found[cache]["predicted"] if cache in found else None
        text = "no finding"
        if predicted:
            low, high = seconds(predicted["low_ns"]), seconds(predicted["high_ns"])
            text = f"{seconds(predicted['wall_ns'])} [{low}, {high}]"
        print(f"  {cache:6}{seconds(slow):>15}   {text:>34}   {seconds(fast):>10}")
    print("  (medians of seven untraced runs, the two places taking turns)")
    for cache in ("cold", "warm"):
        with_and_without = [calls(traces[place, cache], "newfstatat") for place in (0, 1)]
        named = found[cache]["avoidable_calls"] if cache in found else 0
        really = with_and_without[0] - with_and_without[1]
        print(f"  newfstatat, {cache}: {with_and_without[0]:,} without types, {with_and_without[1]:,} with;"
              f" {named:,} named as avoidable, {really:,} really were")
    if wrong or len(found) != 2:
        sys.exit(f"demo: {FINDING} must be found in the first place, cold and warm, and nowhere else")


if __name__ == "__main__":
    compare(json.load(sys.stdin))
