# Turns a JSON report of fathom into the latencies that github-action-benchmark plots with `tool: customSmallerIsBetter`:
#   jq -f smaller_is_better.jq storage.json > latencies.json
# Names are the result, the direction and the percentile: "mixed read p99". A percentile that too few operations support is left out, and
# so is a result that a finding invalidates.
def named($name; $direction): $name | if endswith(" \($direction)") then . else "\(.) \($direction)" end;
[.results[] | select(.void | not)
  | .name as $name | .verdict as $verdict
  | to_entries[] | select(.key | IN("read", "write", "trim", "sync")) | select(.value != null)
  | named($name; .key) as $what
  | .value.latency_ns.percentiles | to_entries | sort_by(.key | tonumber)[] | select(.value != null)
  | {name: "\($what) p\(.key)", unit: "us", value: (.value / 1000), extra: $verdict}
]
