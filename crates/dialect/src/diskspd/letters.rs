//! Options of one letter with several meanings: how caches are used, data that are written, orders, and values of their own.
//!
//! For: what stands behind their letters, and what contradicts what was said before. Not for: which letter it is ([`super::command`]).

use super::value::{distribution, number, shown, size};
use model::diskspd::{Cache, Flush, Target, Throughput, TimeSpan};

/// What `-S` and `-h` said so far: each property once.
#[derive(Default)]
pub(super) struct Caching {
    pub(super) cache: Option<Cache>,
    pub(super) write_through: bool,
    pub(super) mapped: bool,
}

impl Caching {
    pub(super) fn say(&mut self, letter: char) -> Result<(), String> {
        let cached = self.cache.is_some();
        let twice = match letter {
            'b' | 'r' => cached,
            'h' => cached || self.write_through || self.mapped,
            'm' => self.mapped || self.cache == Some(Cache::Off),
            'u' => cached || self.mapped,
            'w' => self.write_through,
            _ => return Err(format!("{letter} is no way to cache; type letters of b, h, m, u and w")),
        };
        if twice {
            return Err(format!(
                "{letter} conflicts with what was said of caches before it; type one of them"
            ));
        }
        match letter {
            'b' => self.cache = Some(Cache::Cached),
            'r' => self.cache = Some(Cache::Remote),
            'u' => self.cache = Some(Cache::Off),
            'm' => self.mapped = true,
            'w' => self.write_through = true,
            _ => (self.cache, self.write_through) = (Some(Cache::Off), true),
        }
        Ok(())
    }

    /// `-S` without a letter is `-Su`.
    pub(super) fn bare(&mut self, value: &str) -> Result<(), String> {
        if value.is_empty() { self.say('u') } else { Ok(()) }
    }
}

pub(super) fn alone(value: &str) -> Result<(), String> {
    if value.is_empty() { Ok(()) } else { Err(format!("it has no value; leave {} out", shown(value))) }
}

pub(super) fn at_least_one(bytes: u64) -> Result<u64, String> {
    if bytes > 0 { Ok(bytes) } else { Err("it is 0; type a size from 1 on".into()) }
}

pub(super) fn percent(value: &str, least: u32) -> Result<u32, String> {
    let percent = number(value, least).ok().filter(|p| *p <= 100);
    percent.ok_or_else(|| format!("{} is no percentage; type one from {least} to 100", shown(value)))
}

pub(super) fn throughput(value: &str) -> Result<Throughput, String> {
    match value.strip_suffix('i') {
        Some(iops) => number(iops, 1).map(Throughput::Iops),
        None => number(value, 1).map(Throughput::BytesPerMs),
    }
}

pub(super) fn flush(value: &str) -> Result<Flush, String> {
    match value {
        "v" | "V" => Ok(Flush::View),
        "n" | "N" => Ok(Flush::NonVolatile),
        "i" | "I" => Ok(Flush::NonVolatileNoDrain),
        _ => Err(format!("{} is no way to flush; type -Nv", shown(value))),
    }
}

/// `-Z`: zeros, random data, or a buffer.
pub(super) fn data(value: &str, span: &mut TimeSpan, target: &mut Target) -> Result<(), String> {
    match value {
        "" => target.zeros = true,
        "r" => span.random_writes = true,
        _ => {
            let (bytes, file) = value.split_once(',').map_or((value, None), |(b, f)| (b, Some(f)));
            target.buffer = at_least_one(size(bytes, target.block)?)?;
            target.buffer_file = file.filter(|f| !f.is_empty()).map(str::to_owned);
        }
    }
    Ok(())
}

/// `-r`, `-rs` and `-rd`.
pub(super) fn order_random(value: &str, target: &mut Target) -> Result<(), String> {
    if let Some(parts) = value.strip_prefix('d') {
        target.distribution = Some(distribution(parts, target.block)?);
        return Ok(());
    }
    if let Some(share) = value.strip_prefix('s') {
        let share = percent(share, 1)?;
        if target.random_percent == 0 && target.alignment.is_some() {
            return Err(
                "-s is there already; use -r to specify IO alignment beside -rs, and leave -s out".into()
            );
        }
        if !matches!(target.random_percent, 0 | 100) {
            return Err("mixed random/sequential IO is specified multiple times; type -rs once".into());
        }
        target.random_percent = share;
        return Ok(());
    }
    let align =
        if value.is_empty() { target.block.into() } else { at_least_one(size(value, target.block)?)? };
    match (target.random_percent, target.alignment) {
        (0, Some(_)) => Err("sequential IO (-s) conflicts with random IO (-r, -rs); type one of them".into()),
        (_, Some(_)) => Err("random IO is specified multiple times; type -r once".into()),
        (random, None) => {
            target.random_percent = if random == 0 { 100 } else { random };
            target.alignment = Some(align);
            Ok(())
        }
    }
}

/// `-s` and `-si`.
pub(super) fn order_sequential(value: &str, target: &mut Target) -> Result<(), String> {
    let (interlocked, stride) = value.strip_prefix('i').map_or((false, value), |stride| (true, stride));
    if target.random_percent > 0 {
        return Err("sequential IO (-s) conflicts with random IO (-r, -rs); leave it out, or use -r to specify IO alignment".into());
    }
    if target.alignment.is_some() {
        return Err("sequential IO is specified multiple times; type -s once".into());
    }
    target.interlocked |= interlocked;
    target.alignment =
        Some(if stride.is_empty() { target.block.into() } else { size(stride, target.block)? });
    Ok(())
}
