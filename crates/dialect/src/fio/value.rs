//! Values in fio's syntax: numbers with units, times, percentages, lists by direction, and arithmetic in parentheses. fathom refuses a
//! value if fio would read only its beginning: `4kx` as 4k.
//!
//! By default `kib`, `mib` and `gib` are powers of ten in fio, and `k`, `m` and `g` are powers of two. `kb_base=1000` exchanges these
//! meanings. [`Units::is_misleading`] detects values with a misleading unit.

/// Deepest nesting of parentheses.
const MAX_DEPTH: u32 = 40;
/// Longest expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 400;

/// The meaning of suffixes such as `k` and `kib`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    /// The value of `kb_base`, which is 1024 by default.
    pub(super) base: u64,
}

/// A number of bytes, or a percentage of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    Bytes(u64),
    Percent(f64),
}

/// The unit of a time that is typed without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefaultUnit {
    Seconds,
    Microseconds,
}

impl Units {
    pub(super) const USUAL: Self = Self { base: 1024 };

    /// Whether a value has a unit such as `mib` that means a power of ten. False with `kb_base=1000`.
    pub(super) fn is_misleading(self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.base == 1024 && ["kib", "mib", "gib", "tib", "pib"].iter().any(|unit| text.contains(unit))
    }

    /// Parses a number of bytes, or a percentage.
    pub(super) fn size(self, text: &str) -> Result<Size, String> {
        let text = text.trim();
        if text.ends_with('%') {
            // Ignore a second percent sign, as fio does: Python's configuration parsers double the sign.
            let share = text.trim_end_matches('%').parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
            return share
                .map(Size::Percent)
                .ok_or_else(|| is_not(text, "a percentage; type a number from 0% to 100%"));
        }
        self.whole(text).map(Size::Bytes)
    }

    /// Parses a number, which may have a suffix as in fio, and rounds it down.
    pub(super) fn whole(self, text: &str) -> Result<u64, String> {
        if text.starts_with('-') {
            return Err(is_not(text, "a number of at least 0; type a number such as 8"));
        }
        let advice = "a number; type one such as 4096, 4k or 1g";
        let number = text.trim();
        let value = evaluate(number, number.starts_with('('), &|suffix| self.factor(suffix))
            .ok_or_else(|| is_not(text, advice))?;
        // A float represents whole numbers exactly up to this limit.
        if (0.0..=9.0e15).contains(&value) { Ok(value.floor() as u64) } else { Err(is_not(text, advice)) }
    }

    fn factor(self, suffix: &str) -> Option<f64> {
        let other = if self.base == 1000 { 1024 } else { 1000 };
        let power = |letter: char| "kmgtp".find(letter).map(|at| at as i32 + 1);
        let mut chars = suffix.chars();
        let Some(first) = chars.next() else { return Some(1.0) };
        match (power(first), chars.as_str()) {
            (None, "") if first == 'b' => Some(1.0),
            (Some(power), "" | "b" | "i") => Some((self.base as f64).powi(power)),
            (Some(power), "ib") => Some(f64::from(other).powi(power)),
            _ => None,
        }
    }
}

/// Computes the value of an arithmetic expression if `is_expression` is set, otherwise of a number with a suffix. `None` for any other
/// text.
fn evaluate(text: &str, is_expression: bool, factor: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let mut expression = Expression { rest: &text, factor };
    let value = if is_expression { expression.sum(0) } else { expression.literal() };
    value.filter(|v| v.is_finite() && expression.rest.trim().is_empty())
}

/// Parses a time. Returns ns.
pub(super) fn time(text: &str, default_unit: DefaultUnit) -> Result<u64, String> {
    let advice = match default_unit {
        DefaultUnit::Seconds => "a time; type seconds, or a number with d, h, m, s, ms or us",
        DefaultUnit::Microseconds => "a time; type microseconds, or a number with d, h, m, s, ms or us",
    };
    let factor = |suffix: &str| match (suffix, default_unit) {
        ("us" | "usec", _) | ("", DefaultUnit::Microseconds) => Some(1e3),
        ("ms" | "msec", _) => Some(1e6),
        ("s" | "sec", _) | ("", DefaultUnit::Seconds) => Some(1e9),
        ("m", _) => Some(60e9),
        ("h", _) => Some(3600e9),
        ("d", _) => Some(86_400e9),
        _ => None,
    };
    // fio reads numbers in parentheses as microseconds, even for options in seconds.
    let number = (!text.trim().starts_with('(')).then(|| evaluate(text.trim(), false, &factor)).flatten();
    let value = number.ok_or_else(|| is_not(text, advice))?;
    if (0.0..=9.0e18).contains(&value) { Ok(value as u64) } else { Err(is_not(text, advice)) }
}

/// Computes an expression without units. fio runs `bc` for it if the value has a keyword such as
/// `$ncpus`. Returns a whole number as text; `None` if the text is not an expression.
pub(super) fn calculate(text: &str) -> Option<String> {
    let no_unit = |suffix: &str| suffix.is_empty().then_some(1.0);
    let value = evaluate(text, true, &no_unit)?;
    // `bc` calculates with whole numbers.
    Some(format!("{:.0}", value.trunc()))
}

/// An expression that is parsed from its beginning.
struct Expression<'e> {
    rest: &'e str,
    factor: &'e dyn Fn(&str) -> Option<f64>,
}

impl Expression<'_> {
    fn take(&mut self, any: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let found = self.rest.chars().next().filter(|c| any.contains(c))?;
        self.rest = &self.rest[found.len_utf8()..];
        Some(found)
    }

    fn sum(&mut self, depth: u32) -> Option<f64> {
        let mut value = self.product(depth)?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.product(depth)?;
            value = if sign == '+' { value + next } else { value - next };
        }
        Some(value)
    }

    fn product(&mut self, depth: u32) -> Option<f64> {
        let mut value = self.power(depth)?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.power(depth)?;
            value = match sign {
                '*' => value * next,
                '/' => value / next,
                _ => value % next,
            };
        }
        Some(value)
    }

    fn power(&mut self, depth: u32) -> Option<f64> {
        let value = self.term(depth)?;
        if self.take(&['^']).is_some() {
            // Powers are right-associative.
            return Some(value.powf(if depth < MAX_DEPTH { self.power(depth + 1)? } else { return None }));
        }
        Some(value)
    }

    fn term(&mut self, depth: u32) -> Option<f64> {
        if depth >= MAX_DEPTH {
            return None;
        }
        if self.take(&['-']).is_some() {
            return self.term(depth + 1).map(|v| -v);
        }
        if self.take(&['(']).is_none() {
            return self.literal();
        }
        let value = self.sum(depth + 1)?;
        self.take(&[')'])?;
        Some(value)
    }

    /// Reads a number and its unit at the beginning of the rest; `None` if there is no number, or the unit is unknown.
    fn literal(&mut self) -> Option<f64> {
        self.rest = self.rest.trim_start();
        let is_hex = self.rest.starts_with("0x");
        let is_digit = |c: char| if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() || c == '.' };
        let from = if is_hex { 2 } else { 0 };
        let end = self.rest[from..].find(|c| !is_digit(c)).map_or(self.rest.len(), |at| at + from);
        let (digits, rest) = self.rest.split_at(end);
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (suffix, rest) = rest.split_at(end);
        let value = if is_hex {
            u64::from_str_radix(digits.get(2..)?, 16).ok()? as f64
        } else {
            digits.parse::<f64>().ok()?
        };
        self.rest = rest;
        Some(value * (self.factor)(suffix)?)
    }
}

/// Checks that a number is a percentage from 0 to 100.
pub(super) fn percent(number: u64) -> Result<u8, String> {
    let fits = u8::try_from(number).ok().filter(|percent| *percent <= 100);
    fits.ok_or_else(|| "the value is not a percentage; type 0 to 100".to_owned())
}

/// Parses a switch. A switch without a value is on; any whole number but 0 is on too, as in fio.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        number => number.parse::<i32>().map(|n| n != 0).map_err(|_| is_not(text, "a switch; type 1 or 0")),
    }
}

/// Splits values for reads, writes and trims. A single value is for all directions, the second of two for writes and trims. An empty
/// value keeps the default.
pub(super) fn triplet(text: &str) -> Result<[Option<&str>; 3], String> {
    separated(text, ',')
}

/// Splits numbers for reads, writes and trims. As in fio, `:` or `-` separates them too if there is no comma: `4k-64k` is 4k for reads, and
/// 64k for writes and trims.
pub(super) fn number_triplet(text: &str) -> Result<[Option<&str>; 3], String> {
    let is_separator = |separator: &char| text.contains(*separator) && !text.starts_with(['-', '(']);
    separated(text, [',', ':', '-'].into_iter().find(is_separator).unwrap_or(','))
}

fn separated(text: &str, separator: char) -> Result<[Option<&str>; 3], String> {
    let parts: Vec<&str> = text.split(separator).map(str::trim).collect();
    let get = |at: usize| parts.get(at).copied().filter(|part| !part.is_empty());
    match parts.len() {
        1 => Ok([get(0), get(0), get(0)]),
        2 => Ok([get(0), get(1), get(1)]),
        3 => Ok([get(0), get(1), get(2)]),
        _ => Err(is_not(text, "a list of up to three values; type READ,WRITE,TRIM")),
    }
}

/// Maximum number of ranks of `percentile_list`.
const MAX_RANKS: usize = 20;

/// Parses ranks of percentiles. Returns them in ascending order, and the largest number of decimals
/// of a typed rank. As in fio, a rank of 0 ends the list.
pub(super) fn percentiles(text: &str) -> Result<(Vec<f64>, usize), String> {
    let mut ranks = Vec::new();
    let mut decimals = 0;
    for word in text.split(':').map(str::trim) {
        let rank = word.parse::<f64>().ok().filter(|rank| (0.0..=100.0).contains(rank));
        ranks.push(
            rank.ok_or_else(|| is_not(word, "a percentile; type numbers from 0 to 100 such as 50:99:99.9"))?,
        );
        let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len());
        decimals = decimals.max(digits);
    }
    if ranks.len() > MAX_RANKS {
        return Err(format!("there are more than {MAX_RANKS} percentiles; type fewer"));
    }
    let mut ranks: Vec<f64> = ranks.into_iter().take_while(|rank| *rank > 0.0).collect();
    ranks.sort_by(f64::total_cmp);
    Ok((ranks, decimals))
}

/// Converts a CPU mask to the numbers of its CPUs, separated by commas.
pub(super) fn mask(text: &str) -> Result<String, String> {
    let bits = Units::USUAL.whole(text)?;
    let numbers: Vec<String> =
        (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
    if numbers.is_empty() {
        Err(is_not(text, "a mask of CPUs; type one such as 0x3"))
    } else {
        Ok(numbers.join(","))
    }
}

fn is_not(text: &str, what: &str) -> String {
    let short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    format!("'{short}' is not {what}")
}

#[test]
fn switches_and_negative_numbers_are_those_of_fio() {
    for (text, on) in [("", true), ("1", true), ("10", true), ("-1", true), ("0", false), (" 00 ", false)] {
        assert_eq!(switch(text), Ok(on), "{text}");
    }
    assert_eq!(switch("yes"), Err("'yes' is not a switch; type 1 or 0".into()));
    assert_eq!(
        Units::USUAL.whole("-8"),
        Err("'-8' is not a number of at least 0; type a number such as 8".into())
    );
}

#[test]
fn sizes_are_those_of_fio() {
    let parse = |text: &str| Units::USUAL.size(text);
    for (text, bytes) in [
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("1mi", 1 << 20),
        ("1mib", 1_000_000),
        ("0x10k", 16 << 10),
        ("512b", 512),
        ("1.5g", 3 << 29),
        ("(4*1024)", 4096),
        ("(1g + 1m) ", (1 << 30) + (1 << 20)),
        ("(2^10*(3-1))", 2048),
    ] {
        assert_eq!(parse(text), Ok(Size::Bytes(bytes)), "{text}");
    }
    assert_eq!((parse("20%"), parse("100%%")), (Ok(Size::Percent(20.0)), Ok(Size::Percent(100.0))));
    let si = Units { base: 1000 };
    assert_eq!((si.size("1m"), si.size("1mib")), (Ok(Size::Bytes(1_000_000)), Ok(Size::Bytes(1 << 20))));
    assert!(
        Units::USUAL.is_misleading("1MiB") && !si.is_misleading("1MiB") && !Units::USUAL.is_misleading("1mi")
    );
    for bad in
        ["", "4kx", "1e3", "4*1024", "k", "-1", "(1", "1)", "-1%", "101%", "(1/0)", "0x", "9999999999999p"]
    {
        assert!(parse(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert!(parse(&"(".repeat(300)).is_err() && parse(&format!("({})", "-".repeat(300))).is_err());
}

#[test]
fn a_time_without_unit_is_in_the_unit_of_its_option() {
    let parse = |text: &str| time(text, DefaultUnit::Seconds);
    assert_eq!(
        (parse("60"), parse("500ms"), parse("1m")),
        (Ok(60_000_000_000), Ok(500_000_000), Ok(60_000_000_000))
    );
    assert_eq!((parse("2h"), parse("10us")), (Ok(7_200_000_000_000), Ok(10_000)));
    assert_eq!(time("100", DefaultUnit::Microseconds), Ok(100_000));
    assert!(parse("1min").is_err() && parse("").is_err() && parse("(2*30)").is_err());
}

#[test]
fn keywords_are_calculated_with_whole_numbers() {
    assert_eq!(calculate("2*4").as_deref(), Some("8"));
    assert_eq!(calculate("10*10/3").as_deref(), Some("33"));
    assert_eq!(calculate("2*x"), None);
}

#[test]
fn directions_are_separated_by_commas() {
    assert_eq!(triplet("4k"), Ok([Some("4k"); 3]));
    assert_eq!(triplet("4k,8k"), Ok([Some("4k"), Some("8k"), Some("8k")]));
    assert_eq!(triplet(",8k,"), Ok([None, Some("8k"), None]));
    assert!(triplet("1,2,3,4").is_err());
    assert_eq!(number_triplet("4k-8k"), triplet("4k,8k,8k"));
    assert_eq!(number_triplet("1:2:3"), triplet("1,2,3"));
    assert_eq!((number_triplet("-1"), number_triplet("(4-1)k")), (triplet("-1"), triplet("(4-1)k")));
    assert_eq!(mask("0x5").as_deref(), Ok("0,2"));
    assert!(mask("0").is_err());
}

#[test]
fn percentiles_are_sorted_and_keep_their_decimals() {
    assert_eq!(percentiles("99.9:50:97"), Ok((vec![50.0, 97.0, 99.9], 1)));
    assert_eq!(percentiles("50:99.999:100"), Ok((vec![50.0, 99.999, 100.0], 3)));
    assert_eq!(percentiles("50:0:99"), Ok((vec![50.0], 0)));
    for bad in ["", "50:", "101", "-1", "x", "nan"] {
        assert!(percentiles(bad).is_err_and(|why| why.contains("; type")), "{bad}");
    }
    assert!(percentiles(&["1"; 21].join(":")).is_err_and(|why| why.contains("more than 20")));
}
