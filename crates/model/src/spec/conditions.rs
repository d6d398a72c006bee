//! Parsers of rates, pauses, rules and conditions: `limit-iops`, `think`, `steady-state`, `min-rate`,
//! `latency-target`, `precision`, `until`, `fail-if`.
//!
//! A condition of `fail-if` is `[RESULT: ][KIND.]NUMBER<LIMIT`, or `>` in place of `<`. NUMBER is a name such as `p99`.
//! Commas separate conditions.

use crate::job::{Kind, LatencyTarget, MinRate, PerKind, Quantile, Quantity, Steady, Think, ThinkLaw};
use crate::spec::number::{
    MAX_PRECISION_PERCENT, MAX_QUANTILES, MAX_TIME_NS, MIN_TIME_NS, any_of, bandwidth, decimal,
    quoted_excerpt, rate, reject, share, time, time_limit, word,
};
use crate::spec::{JobSpec, Until};
use crate::verdict::{Condition, Limit};

/// The limit of operations or bytes per second in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLimit {
    /// One limit for all directions together.
    All(f64),
    /// A limit for each direction; 0 for no limit.
    Each(PerKind<f64>),
}

impl RateLimit {
    /// Formats the limit as typed, such as `write=200`; `one` formats a single rate.
    pub fn to_flag(&self, one: impl Fn(f64) -> String) -> String {
        match self {
            Self::All(rate) => one(*rate),
            Self::Each(each) => {
                let words: Vec<String> =
                    each.named().map(|(word, rate)| format!("{word}={}", one(rate))).collect();
                words.join(",")
            }
        }
    }

    /// Returns the limit with all rates multiplied by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        match self {
            Self::All(rate) => Self::All(rate * factor),
            Self::Each(PerKind { read, write, trim }) => {
                Self::Each(PerKind { read: read * factor, write: write * factor, trim: trim * factor })
            }
        }
    }

    /// Returns the limits of single directions; `None` for a common limit.
    pub fn each(&self) -> Option<&PerKind<f64>> {
        if let Self::Each(each) = self { Some(each) } else { None }
    }
}

/// Parses a limit of operations per second: `1000`, `write=200`.
///
/// # Errors
/// What is wrong and what to type.
pub fn limit_iops(text: &str) -> Result<RateLimit, String> {
    parse_limits(text, rate, "write=200")
}

/// Parses a limit of bytes per second: `200m`, `read=10m,write=5m`.
///
/// # Errors
/// What is wrong and what to type.
pub fn limit_bandwidth(text: &str) -> Result<RateLimit, String> {
    parse_limits(text, |text| bandwidth(text).map(|bytes| bytes as f64), "write=20m")
}

fn parse_limits(
    text: &str,
    one: impl Fn(&str) -> Result<f64, String>,
    example: &str,
) -> Result<RateLimit, String> {
    if !text.contains('=') {
        return one(text).map(RateLimit::All);
    }
    per_direction(text, one, example).map(RateLimit::Each)
}

/// Parses values of named directions, as in `read=10m,write=5m`. A direction that is not named gets the default of `T`.
///
/// # Errors
/// What is wrong and what to type.
pub(super) fn per_direction<T: Default + PartialEq>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
    example: &str,
) -> Result<PerKind<T>, String> {
    let mut each = PerKind { read: T::default(), write: T::default(), trim: T::default() };
    for piece in text.split(',') {
        let (place, value) = match piece.split_once('=').map(|(word, value)| (word.trim(), value)) {
            Some(("read", value)) => (&mut each.read, value),
            Some(("write", value)) => (&mut each.write, value),
            Some(("trim", value)) => (&mut each.trim, value),
            _ => {
                return Err(reject(piece, &format!("is not a direction with a rate; type {example}")));
            }
        };
        if *place != T::default() {
            return Err(reject(piece, "is given twice; type it once"));
        }
        *place = one(value)?;
    }
    Ok(each)
}

/// Minimum time in ns that each value covers: ten times the shortest interval at which workers report.
const MIN_EVERY_NS: u64 = 100_000_000;
/// Minimum number of values in a window, because a single value is always steady.
const FEWEST_VALUES: u64 = 2;
/// Suffix of a quantity if the limit applies to its slope.
const SLOPE: &str = "_slope";

/// Parses the steadiness rule of a stream: `NAME:LIMIT:WINDOW[:AFTER[:EVERY]]`.
///
/// # Errors
/// What is wrong and what to type.
pub fn steady(text: &str) -> Result<Steady, String> {
    let pieces: Vec<&str> = text.trim().split(':').collect();
    let (name, limit, window, after, every) = match *pieces.as_slice() {
        [name, limit, window] => (name, limit, window, "0", "1s"),
        [name, limit, window, after] => (name, limit, window, after, "1s"),
        [name, limit, window, after, every] => (name, limit, window, after, every),
        _ => {
            return Err(reject(text, "is not a steady-state rule; type one such as iops:10%:60s"));
        }
    };
    let (quantity, slope) = parse_quantity(name)?;
    let (limit, percent) = threshold(limit, quantity)?;
    let every_ns = time(every, MIN_EVERY_NS, MAX_TIME_NS / FEWEST_VALUES)?;
    let window_ns = time(window, FEWEST_VALUES * every_ns, MAX_TIME_NS)?;
    let after_ns = time(after, 0, MAX_TIME_NS)?;
    Ok(Steady { quantity, slope, limit, percent, window_ns, after_ns, every_ns })
}

/// Parses the quantity, and whether the limit applies to its slope.
///
/// # Errors
/// What is wrong and what to type.
pub fn parse_quantity(name: &str) -> Result<(Quantity, bool), String> {
    let (word, slope) = name.strip_suffix(SLOPE).map_or((name, false), |word| (word, true));
    let quantity = Quantity::WORDS.iter().find(|(known, _)| *known == word).map(|(_, quantity)| *quantity);
    let quantity = quantity.ok_or_else(|| {
        let known: Vec<&str> = Quantity::WORDS.iter().map(|(word, _)| *word).collect();
        format!(
            "{} is not a quantity that becomes steady; type {}, or one of them with {SLOPE}",
            quoted_excerpt(name),
            any_of(&known)
        )
    })?;
    Ok((quantity, slope))
}

/// Parses a limit, and whether it is in percent.
fn threshold(text: &str, quantity: Quantity) -> Result<(f64, bool), String> {
    let (limit, percent) = match (text.strip_suffix('%'), quantity) {
        (Some(share), _) => (decimal(share), true),
        (None, Quantity::Iops) => (rate(text).ok(), false),
        (None, Quantity::Bandwidth) => (bandwidth(text).ok().map(|bytes| bytes as f64), false),
        (None, Quantity::Latency) => (time_limit(text).ok().map(|ns| ns as f64), false),
    };
    let limit = limit.filter(|limit| *limit > 0.0);
    let example = match quantity {
        Quantity::Iops => "10% or 500",
        Quantity::Bandwidth => "10% or 20m",
        Quantity::Latency => "10% or 50us",
    };
    Ok((limit.ok_or_else(|| reject(text, &format!("is not a limit above 0; type {example}")))?, percent))
}

/// Parses the minimum rate of each direction: `iops:1000`, `bw:read=10m,write=5m:5s`.
///
/// # Errors
/// What is wrong and what to type.
pub fn min_rate(text: &str) -> Result<MinRate, String> {
    let wrong = || reject(text, "is not a minimum rate; type one such as iops:1000, bw:10m or bw:10m:5s");
    let (name, rest) = text.trim().split_once(':').ok_or_else(wrong)?;
    let quantity = match name {
        "iops" => Quantity::Iops,
        "bw" => Quantity::Bandwidth,
        _ => return Err(wrong()),
    };
    let (least, every) = rest.split_once(':').unwrap_or((rest, "1s"));
    let one = |text: &str| match quantity {
        Quantity::Bandwidth => bandwidth(text),
        _ => rate(text).map(|rate| rate.ceil() as u64),
    };
    let each = if least.contains(['=', ',']) {
        per_direction(least, one, "read=10m,write=5m")?
    } else {
        PerKind::all(one(least)?)
    };
    Ok(MinRate { quantity, least: each, every_ns: time(every, MIN_TIME_NS, MAX_TIME_NS)? })
}

/// Parses a latency target: `TIME:SHARE:WINDOW`, with the suffix `:run` to vary the depth for the whole run.
///
/// # Errors
/// What is wrong and what to type.
pub fn latency_target(text: &str) -> Result<LatencyTarget, String> {
    let rule = text.trim();
    let (rule, searches_whole_run) =
        rule.strip_suffix(LatencyTarget::WHOLE_RUN_SUFFIX).map_or((rule, false), |rule| (rule, true));
    let [ns, percent, window] = *rule.split(':').collect::<Vec<_>>() else {
        return Err(reject(text, "is not a latency target; type one such as 500us:99.9%:5s"));
    };
    let (ns, percent) = (time_limit(ns)?, share(percent)?);
    if percent <= 0.0 {
        return Err(reject(text, "is always met; type a share above 0, such as 99.9%"));
    }
    Ok(LatencyTarget { ns, percent, window_ns: time(window, MIN_TIME_NS, MAX_TIME_NS)?, searches_whole_run })
}

const EXPONENTIAL: &str = "exponential";
const LOGNORMAL: &str = "lognormal";
const QUANTILES: &str = "quantiles";

/// Parses a pause or its distribution.
///
/// # Errors
/// What is wrong and what to type.
pub fn think(text: &str) -> Result<Think, String> {
    let Some((law, value)) = text.trim().split_once(':') else {
        return time(text, 1, MAX_TIME_NS).map(Think::fixed);
    };
    match law {
        EXPONENTIAL => Ok(Think { mean_ns: time(value, 1, MAX_TIME_NS)?, law: ThinkLaw::Exponential }),
        LOGNORMAL => lognormal(value),
        QUANTILES => quantiles(value),
        _ => Err(reject(
            text,
            "is not a valid value; type a duration such as 100us, exponential:100us, lognormal:38us/161us or quantiles:0/2us,50/38us,100/9ms",
        )),
    }
}

fn lognormal(text: &str) -> Result<Think, String> {
    let Some((median, mean)) = text.split_once('/') else {
        return Err(reject(text, "has only one time; type median and mean, such as lognormal:38us/161us"));
    };
    let (median_ns, mean_ns) = (time(median, 1, MAX_TIME_NS)?, time(mean, 1, MAX_TIME_NS)?);
    if median_ns >= mean_ns {
        return Err(reject(
            text,
            "has a mean that is not above its median; type a larger mean, such as lognormal:38us/161us",
        ));
    }
    Ok(Think { mean_ns, law: ThinkLaw::Lognormal { median_ns } })
}

fn quantiles(text: &str) -> Result<Think, String> {
    let mut all: Vec<Quantile> = Vec::new();
    for piece in text.split(',') {
        let Some((percent, ns)) = piece.split_once('/') else {
            return Err(reject(piece, "is not a quantile; type percent and duration, such as 50/38us"));
        };
        let one = Quantile { percent: share(percent)?, ns: time(ns, 0, MAX_TIME_NS)? };
        if all.last().is_some_and(|last| last.percent >= one.percent || last.ns > one.ns) {
            return Err(reject(
                piece,
                "follows a larger share or duration; type shares and durations that rise, such as 0/2us,50/38us,100/9ms",
            ));
        }
        all.push(one);
        if all.len() > MAX_QUANTILES {
            return Err(format!("there are too many quantiles; type {MAX_QUANTILES} at most"));
        }
    }
    let reaches =
        |at: Option<&Quantile>, percent: f64| at.is_some_and(|q| (q.percent - percent).abs() < 1e-9);
    if all.len() < 2 || !reaches(all.first(), 0.0) || !reaches(all.last(), 100.0) {
        return Err(reject(
            text,
            "lacks the shortest or the longest pause; type quantiles from 0 to 100, such as 0/2us,50/38us,100/9ms",
        ));
    }
    let think = Think::quantiles(all);
    if think.mean_ns == 0 {
        return Err(reject(text, "is always 0; type longer durations"));
    }
    Ok(think)
}

impl Think {
    /// Formats the value in the form that [`think`] parses.
    pub fn to_flag(&self) -> String {
        let ns = |ns: u64| format!("{ns}ns");
        match &self.law {
            ThinkLaw::Fixed => ns(self.mean_ns),
            ThinkLaw::Exponential => format!("{EXPONENTIAL}:{}", ns(self.mean_ns)),
            ThinkLaw::Lognormal { median_ns } => {
                format!("{LOGNORMAL}:{}/{}", ns(*median_ns), ns(self.mean_ns))
            }
            ThinkLaw::Quantiles(all) => {
                let one = |q: &Quantile| format!("{}/{}", q.percent, ns(q.ns));
                format!("{QUANTILES}:{}", all.iter().map(one).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Parses the half width of a confidence interval in percent, and returns it as a share.
///
/// # Errors
/// What is wrong and what to type.
pub fn precision(text: &str) -> Result<f64, String> {
    let percent = share(text).ok().filter(|p| *p > 0.0 && *p <= MAX_PRECISION_PERCENT);
    percent.map(|p| p / 100.0).ok_or_else(|| {
        reject(text, &format!("is not a precision; type the half width of the interval in percent, above 0 and up to {MAX_PRECISION_PERCENT}, such as 2.5%"))
    })
}

/// Parses the rule that ends measuring a job.
///
/// # Errors
/// Another word was typed. The message lists the valid ones.
pub fn until(text: &str) -> Result<Until, String> {
    word(text, &[("steady", Until::Steady)])
}

/// Percentiles that a condition may limit. Every report has them.
const PERCENTILES: [&str; 6] = ["50", "90", "95", "99", "99.9", "99.99"];
const CONDITION_FORM: &str = "type one such as p99>10ms, sync.p99>10ms, iops<20000 or mb/s<90";

/// Parses conditions separated by commas.
///
/// # Errors
/// What is wrong and what to type.
pub fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    let mut all = Vec::new();
    let mut name = String::new();
    for part in text.split(',') {
        // The name of a result may contain commas.
        name += part;
        if part.contains(['<', '>']) {
            all.push(parse_condition(&std::mem::take(&mut name))?);
        } else {
            name.push(',');
        }
    }
    if name.is_empty() {
        return Ok(all);
    }
    let number = name.trim_end_matches(',').trim().to_ascii_lowercase();
    let names_number =
        ["iops", "mb/s", "time"].contains(&number.as_str()) || parse_latency_limit(&number, "1ms").is_some();
    Err(if names_number {
        // A shell takes `>10ms` without quotes as the name of a file for the output.
        reject(
            &number,
            &format!("has no limit; type the condition in quotes, such as {}", quoted_example(&number)),
        )
    } else {
        reject(text, &format!("is not a condition; {CONDITION_FORM}"))
    })
}

/// Returns a condition on a number, in quotes for a shell.
fn quoted_example(number: &str) -> String {
    match number {
        "iops" => "'iops<20000'".into(),
        "mb/s" => "'mb/s<90'".into(),
        "time" => "'time>2s'".into(),
        percentile => format!("'{percentile}>10ms'"),
    }
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    let none = || reject(text, &format!("is not a condition; {CONDITION_FORM}"));
    let at = text.rfind(['<', '>']).ok_or_else(none)?;
    let (left, above, right) = (&text[..at], text[at..].starts_with('>'), &text[at + 1..]);
    let (result, number) = match left.rsplit_once(':') {
        Some((name, number)) => (Some(name.trim().to_owned()), number.trim()),
        None => (None, left.trim()),
    };
    if result.as_ref().is_some_and(String::is_empty) {
        return Err(none());
    }
    let number = number.to_ascii_lowercase();
    let limit = match number.as_str() {
        "iops" => Limit::Iops { at_least: rate(right)? },
        "mb/s" => Limit::MbPerS { at_least: parse_mb_per_s(right)? },
        "time" => Limit::Time { at_most_ns: time_limit(right)? },
        _ => parse_latency_limit(&number, right).ok_or_else(none)??,
    };
    let (wrong, why) = match limit {
        Limit::Latency { .. } => (!above, "a latency fails above its limit; type > in place of <"),
        Limit::Time { .. } => (!above, "a time fails above its limit; type > in place of <"),
        Limit::Iops { .. } | Limit::MbPerS { .. } => {
            (above, "a rate fails below its limit; type < in place of >")
        }
    };
    if wrong { Err(format!("{}: {why}", quoted_excerpt(text))) } else { Ok(Condition { result, limit }) }
}

/// Parses the limit of a percentile; `None` if `number` is not a percentile.
fn parse_latency_limit(number: &str, limit: &str) -> Option<Result<Limit, String>> {
    let (kind, rank) = match number.split_once('.') {
        Some((word, rank)) if rank.starts_with('p') => {
            (Some(Kind::ALL.into_iter().find(|kind| kind.word() == word)?), rank)
        }
        _ => (None, number),
    };
    let rank = rank.strip_prefix('p')?;
    let percentile = PERCENTILES.into_iter().find(|known| *known == rank)?.to_owned();
    Some(time_limit(limit).map(|at_most_ns| Limit::Latency { kind, percentile, at_most_ns }))
}

/// Parses a rate in 10^6 bytes per second, above 0.
fn parse_mb_per_s(text: &str) -> Result<f64, String> {
    decimal(text).filter(|n| *n > 0.0).ok_or_else(|| {
        reject(text, "is not a rate in MB/s; type millions of bytes per second above 0, such as mb/s<90")
    })
}

impl JobSpec {
    /// Whether a condition limits a percentile.
    pub fn gates_a_percentile(&self) -> bool {
        self.fail_if.iter().flatten().any(|c| c.limit.is_on_percentile())
    }
}

#[test]
fn a_number_without_a_limit_needs_quotes() {
    for (typed, example) in [("p99", "'p99>10ms'"), ("sync.p99", "'sync.p99>10ms'"), ("IOPS", "'iops<20000'")]
    {
        assert!(conditions(typed).is_err_and(|why| why.contains("has no limit") && why.ends_with(example)));
    }
    assert!(conditions("p98").is_err_and(|why| why.contains("is not a condition")));
}

#[test]
fn rate_limits_are_parsed_from_their_formatted_form() {
    let iops = |text: &str| limit_iops(text).map(|limit| limit.to_flag(|rate| rate.to_string()));
    for (text, formatted) in
        [("1k", "1000"), ("write=200", "write=200"), ("trim=0.5, read=1k", "read=1000,trim=0.5")]
    {
        assert_eq!(iops(text).as_deref(), Ok(formatted));
    }
    assert_eq!(limit_bandwidth("200m/s"), Ok(RateLimit::All(209_715_200.0)));
    let each = PerKind { read: 0.0, write: 1_048_576.0, trim: 0.0 };
    assert_eq!(limit_bandwidth("write=1m"), Ok(RateLimit::Each(each)));
    assert_eq!(RateLimit::Each(each).times(2.0).each().map(|each| each.write), Some(2_097_152.0));
    for (wrong, says) in [
        ("0", "above 0"),
        ("write=0", "above 0"),
        ("up=1", "write=200"),
        ("100,write=1", "write=200"),
        ("write=1,write=2", "twice"),
        ("write=", "not a rate"),
    ] {
        assert!(limit_iops(wrong).is_err_and(|why| why.contains(says)), "{wrong}: {:?}", limit_iops(wrong));
    }
}

#[test]
fn rules_are_parsed_from_their_formatted_form() {
    for text in [
        "iops:10%:60s",
        "iops_slope:0.5%:60s:30s",
        "bw:20971520:2s",
        "lat:50000ns:10s",
        "lat_slope:1%:3600s",
        "iops:10%:60s:0s:5s",
    ] {
        assert_eq!(steady(text).map(|s| s.to_flag()).as_deref(), Ok(text));
    }
    assert_eq!(steady("bw:20m:2s").map(|s| s.limit), Ok(20_971_520.0));
    for (wrong, says) in [
        ("iops", "iops:10%:60s"),
        ("p99:10%:60s", "iops, bw or lat"),
        ("iops:0%:60s", "10% or 500"),
        ("iops:x:60s", "10% or 500"),
        ("lat:10us:1s", "duration"),
        ("lat:10:60s", "10% or 50us"),
        ("iops:10%:60s:x", "duration"),
        ("iops:10%:60s:1s:1s:1s", "iops:10%:60s"),
        ("iops:10%:60s:1s:40s", "too short"),
        ("iops:10%:60s:1s:1ms", "duration"),
    ] {
        assert!(steady(wrong).is_err_and(|why| why.contains(says)), "{wrong}: {:?}", steady(wrong));
    }
    for (text, formatted) in [
        ("iops:1k", "iops:1000:1s"),
        ("bw:1m:5s", "bw:1048576:5s"),
        ("bw:read=1m,write=512k:0.5s", "bw:read=1048576,write=524288:0.5s"),
    ] {
        let read = min_rate(text).map(|m| m.to_flag());
        assert_eq!(
            (read.as_deref(), min_rate(formatted).map(|m| m.to_flag()).as_deref()),
            (Ok(formatted), Ok(formatted))
        );
    }
    for text in ["500us:99.9%:5s", "0.5us:100%:0.25s:run"] {
        assert_eq!(latency_target(text).map(|t| t.to_flag()).as_deref(), Ok(text));
    }
    for wrong in ["500us", "500us:0%:5s", "x:99%:5s", "500:99%:5s", "1ms:101%:5s", "1ms:99%:0s"] {
        assert!(latency_target(wrong).is_err_and(|why| why.contains("type ")), "{wrong}");
    }
    for wrong in ["1000", "lat:1ms", "iops:0", "iops:1,2", "bw:up=1m", "bw:1m:0s"] {
        assert!(min_rate(wrong).is_err_and(|why| why.contains("type ")), "{wrong}");
    }
}

#[test]
fn pauses_are_parsed_from_their_formatted_form() {
    let us = |us: u64| us * 1000;
    assert_eq!(think("100us"), Ok(Think::fixed(us(100))));
    assert_eq!(
        think("lognormal:38us/161us"),
        Ok(Think { mean_ns: us(161), law: ThinkLaw::Lognormal { median_ns: us(38) } })
    );
    // A quarter of 10 us, a quarter of 30 us, half of 120 us.
    assert_eq!(think("quantiles:0/0,25/20us,50/40us,100/200us").map(|t| t.mean_ns), Ok(us(70)));
    for text in
        ["100us", "exponential:2ms", "lognormal:38us/161us", "quantiles:0/2us,50/38us,99.5/1ms,100/9ms"]
    {
        let parsed = think(text);
        assert_eq!(parsed.clone().map(|t| t.to_flag()).and_then(|t| think(&t)), parsed, "{text}");
    }
    for (bad, word) in [
        ("", "duration"),
        ("0", "too short"),
        ("gamma:1ms", "exponential:100us"),
        ("exponential:0", "too short"),
        ("lognormal:38us", "median and mean"),
        ("lognormal:2us/1us", "not above"),
        ("quantiles:50/1us", "shortest or the longest"),
        ("quantiles:0/5us,100/1us", "follows a larger"),
        ("quantiles:0/5us,0/6us,100/7us", "follows a larger"),
        ("quantiles:0/0,100/0", "always 0"),
        ("quantiles:0,100", "not a quantile"),
    ] {
        let message = think(bad).map_or_else(|e| e, |t| format!("{t:?}"));
        assert!(message.contains(word) && message.contains("; type"), "{bad}: {message}");
    }
}

#[test]
fn a_precision_must_be_positive() {
    assert_eq!((precision("2.5%"), precision("1")), (Ok(0.025), Ok(0.01)));
    for bad in ["0", "0%", "51", "-1", "x", "", "nan", "2.5%%"] {
        assert!(precision(bad).is_err_and(|e| e.contains("; type") && e.contains("2.5%")), "{bad}");
    }
    assert_eq!(until("steady"), Ok(Until::Steady));
    assert!(until("bored").is_err_and(|e| e.contains("; type steady")));
}

#[test]
fn conditions_are_formatted_as_typed() {
    for typed in ["sync.p99>10ms", "a, b: p99.9>1500us", "iops<20000", "mb/s<90.5", "read.p50>1s", "time>2s"]
    {
        let parsed = conditions(typed).unwrap_or_default();
        assert_eq!(parsed.iter().map(Condition::to_flag).collect::<Vec<_>>(), [typed]);
    }
}

#[test]
fn result_names_may_contain_commas_and_colons() {
    let parsed = conditions("4K random read, depth 32: p99>1ms,a: b: iops<5k").unwrap_or_default();
    let names: Vec<Option<&str>> = parsed.iter().map(|c| c.result.as_deref()).collect();
    assert_eq!(names, [Some("4K random read, depth 32"), Some("a: b")]);
    assert_eq!(parsed[1].limit, Limit::Iops { at_least: 5000.0 });
}

#[test]
fn invalid_conditions_are_rejected_with_a_suggestion() {
    for bad in [
        "",
        "p99",
        "p99>",
        "p98>1ms",
        "p99<1ms",
        "iops>5",
        "iops<0",
        "iops<",
        "mb/s<-1",
        "mb/s<x",
        ": p99>1ms",
        "flush.p99>1ms",
        "p99>1ms,",
        "p99>1ms,x",
        ",",
        ">",
        "<5",
        "sync.>1ms",
        "mean>1ms",
        "p99>0",
        "p99>10",
        "sync.p99>1.5",
        "time>2",
    ] {
        assert!(conditions(bad).is_err_and(|e| e.contains("; type")), "{bad}: {:?}", conditions(bad));
    }
}

#[test]
fn percentile_conditions_need_eight_runs() {
    let fail_if = || conditions("p99>1ms").ok();
    let few = JobSpec { fail_if: fail_if(), runs: Some(7), ..JobSpec::default() };
    assert!(few.check_gated().is_some_and(|p| p.in_flags().contains("--runs 8")));
    assert_eq!(JobSpec { runs: Some(8), ..few.clone() }.check_gated(), None);
    let rate = conditions("iops<5").ok();
    assert_eq!(JobSpec { fail_if: rate, ..few }.check_gated(), None);
    let steady = JobSpec { fail_if: fail_if(), until: Some(Until::Steady), ..JobSpec::default() };
    assert!(steady.check_gated().is_some());
}
