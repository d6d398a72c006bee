# Turns a JSON report of fathom into Bencher Metric Format, for `bencher run --adapter json --file`:
#   jq -f bencher.jq storage.json > bencher.json
# A benchmark is named by the result and the direction: "mixed read". Measures: throughput (operations/s), bytes-per-second, and the
# latencies latency-p50 ... latency-p99-9 (ns). A result that a finding invalidates is left out.
def named($name; $direction): $name | if endswith(" \($direction)") then . else "\(.) \($direction)" end;
[.results[] | select(.void | not)
  | .name as $name
  | to_entries[] | select(.key | IN("read", "write", "trim", "sync")) | select(.value != null)
  | .value as $v
  | {
      key: named($name; .key),
      value: (
        {throughput: ({value: $v.iops}
          + (if $v.iops_interval then {lower_value: $v.iops_interval[0], upper_value: $v.iops_interval[1]} else {} end))}
        + (if $v.mb_per_s > 0 then
            {"bytes-per-second": ({value: ($v.mb_per_s * 1e6)}
              + (if $v.mb_per_s_interval then {lower_value: ($v.mb_per_s_interval[0] * 1e6), upper_value: ($v.mb_per_s_interval[1] * 1e6)} else {} end))}
          else {} end)
        + ($v.latency_ns.percentiles | with_entries(select(.value != null) | {key: "latency-p\(.key | gsub("\\."; "-"))", value: {value: .value}}))
      )
    }] | from_entries
