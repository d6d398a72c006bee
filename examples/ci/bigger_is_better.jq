# Turns a JSON report of fathom into the rates that github-action-benchmark plots with `tool: customBiggerIsBetter`:
#   jq -f bigger_is_better.jq storage.json > rates.json
# Names are the result, the direction and the unit: "mixed read IOPS". A result that a finding invalidates is left out.
def named($name; $direction): $name | if endswith(" \($direction)") then . else "\(.) \($direction)" end;
[.results[] | select(.void | not)
  | .name as $name | .verdict as $verdict
  | to_entries[] | select(.key | IN("read", "write", "trim", "sync")) | select(.value != null)
  | named($name; .key) as $what | .value
  | (
      {name: "\($what) IOPS", unit: "IOPS", value: .iops, ends: .iops_interval},
      (select(.mb_per_s > 0) | {name: "\($what) MB/s", unit: "MB/s", value: .mb_per_s, ends: .mb_per_s_interval})
    )
  | {name, unit, value}
    + (if .ends then {range: "± \((.ends[1] - .ends[0]) / 2)"} else {} end)
    + {extra: $verdict}
]
