#!/usr/bin/env python3
"""Turns a JSON report of fathom into metrics for the textfile collector of node_exporter.

Usage: report_to_prometheus.py REPORT.json FILE.prom

Numbers of results that fathom invalidated are left out, unless the finding was accepted. The file is replaced as a whole.
"""

import datetime
import json
import os
import sys

WORDS = ("VALID", "SUSPECT", "INVALID", "PASS", "FAIL", "INCONCLUSIVE")


def escape(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def metrics(report):
    """Yields name, labels and value of each metric."""
    answer = (report.get("answer") or {}).get("word") or report["verdict"]
    for word in sorted({*WORDS, answer}):
        yield "fathom_answer", {"word": word}, int(word == answer)
    started = datetime.datetime.fromisoformat(report["started"])
    yield "fathom_started_timestamp_seconds", {}, started.timestamp()
    for result in report["results"]:
        name = {"result": result["name"]}
        yield "fathom_result_valid", name, int(result["verdict"] == "VALID")
        if result["void"]:
            continue
        for direction in ("read", "write", "trim"):
            found = result[direction]
            if not found:
                continue
            labels = {**name, "direction": direction}
            yield "fathom_operations_per_second", labels, found["iops"]
            yield "fathom_bytes_per_second", labels, found["mb_per_s"] * 1e6
            for percentile, nanoseconds in found["latency_ns"]["percentiles"].items():
                # Absent: too few samples.
                if nanoseconds is not None:
                    quantile = {**labels, "quantile": f"{float(percentile) / 100:g}"}
                    yield "fathom_latency_seconds", quantile, nanoseconds / 1e9


def main():
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        report = json.load(file)
    # The format wants all metrics of a name together.
    families = {}
    for name, labels, value in metrics(report):
        shown = ",".join(f'{key}="{escape(text)}"' for key, text in labels.items())
        braces = "{" + shown + "}" if shown else ""
        families.setdefault(name, []).append(f"{name}{braces} {value!r}\n")
    temporary = target + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        for name, lines in families.items():
            file.write(f"# TYPE {name} gauge\n" + "".join(lines))
    os.replace(temporary, target)


main()
