#!/usr/bin/env python3
"""Draws the fraction of the roof over B, a line for each rule and row maker.

    bench/plot.py bench/results/NAME.json [picture, by default NAME.svg beside it]

The roof is a copy of the rows, or for gather, which hardly writes, a read of them, in the same run.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot

V, TYPE = "V:151936", "float"
RULES = ["top_k:50", "top_k:1000", "top_p:0.95", "gather:50"]  # a colour each
STYLES = ["-", "--", ":"]  # of the row makers


def lines(results):
    """{(rule, maker): [(B, fraction of the roof)]} of the library's own cases."""
    found = {}
    for case in results["benchmarks"]:
        who, rule, kind, length, batch, maker = (case["name"].split("/") + [""] * 6)[:6]
        if who == "cutoff" and rule in RULES and (kind, length) == (TYPE, V) and "error_message" not in case:
            fraction = case.get("of_copy", case.get("of_read"))
            found.setdefault((rule, maker), []).append((int(batch[2:]), fraction))
    return {name: sorted(points) for name, points in found.items()}


def main(source, picture=None):
    results = json.loads(pathlib.Path(source).read_text())
    drawn = {name: points for name, points in lines(results).items() if len(points) > 2}
    if not drawn:
        sys.exit(f"{source}: no case of {TYPE}, {V} over more than two B")
    figure, axes = plot.subplots(figsize=(9, 5), layout="constrained")
    makers = sorted({maker for _, maker in drawn})
    for (rule, maker), points in sorted(drawn.items()):
        axes.plot(*zip(*points), marker="o", markersize=3, color=f"C{RULES.index(rule)}",
                  linestyle=STYLES[makers.index(maker) % len(STYLES)], label=f"{rule}, {maker}")
    context = results["context"]
    axes.set(ylim=(0, 1), xlabel="rows (B)", ylabel="fraction of the roof",
             title=f"{context['device']}, CUDA {context['toolkit']}: {TYPE}, {V}")
    axes.set_xscale("log", base=2)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(picture or pathlib.Path(source).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
