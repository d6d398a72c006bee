"""Reads outputs in the formats of fio as seven other programs read them, with the same fields and regular expressions.

Usage: fio_readers.py JSON TEXT TERSE
"""
import json
import re
import sys

WHOLE = ("io_bytes", "io_kbytes", "bw_bytes", "bw", "runtime", "total_ios", "short_ios", "drop_ios",
         "bw_min", "bw_max", "bw_samples", "iops_min", "iops_max", "iops_samples")
FLOATS = ("iops", "bw_agg", "bw_mean", "bw_dev", "iops_mean", "iops_stddev")


def fio_plot(data):
    """fio-plot recognizes a file of fio by two of four keys, and labels a plot with four options, which are strings."""
    keys = {"fio version", "global options", "client_stats", "jobs"} & set(data)
    assert len(keys) >= 2, keys
    job = data["jobs"][0]
    options = dict(data.get("global options", {}), **job["job options"])
    int(options["iodepth"]), int(options["numjobs"])
    assert options["rw"] == "randrw" and options["bs"] == "4k", options
    for direction in ("read", "write"):
        of = job[direction]
        float(of["iops"]), float(of["bw"]), float(of["iops_stddev"])
        float(of["lat_ns"]["mean"]), float(of["lat_ns"]["stddev"])
    assert {"latency_ns", "latency_us", "latency_ms", "usr_cpu", "sys_cpu"} <= set(job)


def typed(data):
    """Programs in typed languages: numbers that fio writes as integers have no decimal point, all others have one."""
    assert isinstance(data["timestamp"], int) and isinstance(data["timestamp_ms"], int)
    for job in data["jobs"]:
        for key in ("groupid", "error", "eta", "elapsed", "job_runtime", "ctx", "majf", "minf", "latency_depth"):
            assert isinstance(job[key], int), key
        assert all(isinstance(value, str) for value in job["job options"].values())
        for direction in ("read", "write", "trim"):
            assert all(isinstance(job[direction][key], int) for key in WHOLE), direction
            assert all(isinstance(job[direction][key], float) for key in FLOATS), direction
        assert isinstance(job["usr_cpu"], float)
    for disk in data["disk_util"]:
        assert isinstance(disk["name"], str) and isinstance(disk["util"], float)
        assert isinstance(disk["read_ios"], int) and isinstance(disk["in_queue"], int)


def perfkit(data):
    """PerfKit Benchmarker reads bandwidth, latency and all percentiles of each direction with operations."""
    for job in data["jobs"]:
        for direction in ("read", "write", "trim"):
            of = job[direction]
            if of["io_bytes"]:
                [of[key] for key in ("bw", "bw_min", "bw_max", "bw_dev", "bw_agg", "bw_mean", "iops")]
                for latency in ("slat_ns", "clat_ns", "lat_ns"):
                    [of[latency][key] for key in ("min", "max", "mean", "stddev")]
                ranks = {float(rank): ns for rank, ns in of["clat_ns"]["percentile"].items()}
                assert [ranks[rank] for rank in sorted(ranks)] == sorted(ranks.values())
                of["clat_ns"]["percentile"]["99.000000"], of["clat_ns"]["percentile"]["99.990000"]


def phoronix(text):
    """Phoronix Test Suite reads the bandwidth in the last summary line of a direction, and the IOPS of the job."""
    last = re.findall(r"   READ: bw=([0-9.]+)([KMG]?i?B)/s \(([0-9.]+)([kMG]?B)/s\),", text)[-1]
    assert float(last[0]) > 0 and float(last[2]) > 0
    assert re.findall(r"IOPS=([0-9.]+[kM]?),", text)


def lisa(text):
    """LISA reads the IOPS of each direction and the mean of its latency."""
    found = re.findall(r"(read|write): IOPS=([0-9.]+k?M?), .*?lat \((\w+)\):.*?avg=\s*([0-9.]+),", text, re.DOTALL)
    assert {direction for direction, *_ in found} == {"read", "write"}, found
    assert all(float(mean) > 0 for *_, mean in found)


def percentile_table(text):
    """Readers of the percentile table: each percentile is followed by a number in brackets."""
    table = dict(re.findall(r"([0-9.]+)th=\[\s*([0-9]+)\]", text))
    assert {"1.00", "50.00", "99.00", "99.99"} <= set(table), table


def yabs(terse):
    """YABS reads the rates by their positions in a terse line of version 3."""
    fields = terse.strip().split(";")
    assert fields[0] == "3" and fields[1].startswith("fio-"), fields[:3]
    read_bw, read_iops, write_bw, write_iops = (int(fields[at]) for at in (6, 7, 47, 48))
    # The job has 70 % reads and 30 % writes in blocks of 4 KiB.
    assert abs(read_bw / (4 * read_iops) - 1) < 0.1 and abs(write_bw / (4 * write_iops) - 1) < 0.1
    assert read_iops > write_iops > 0


def main():
    data, text, terse = (open(path).read() for path in sys.argv[1:4])
    data = json.loads(data)
    for reader, what in ((fio_plot, data), (typed, data), (perfkit, data), (phoronix, text), (lisa, text),
                         (percentile_table, text), (yabs, terse)):
        reader(what)
    print("all read")


main()
