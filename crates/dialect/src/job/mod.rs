//! Our own job file: TOML whose keys are the flags of `fathom run` without their dashes.
//!
//! For: `phase` tables, `stream` tables in them, `line` and `turn` tables in those; a key at the top or in a phase is said for all that
//! is inside, and one inside takes its place. Not for: what a key means, which is in [`model::spec::keys`].
//!
//! A level that is not written out is there once: a file without `phase` is one phase, a phase without `stream` is one
//! stream. That is why the simplest job has no table at all.

mod level;
mod reader;
mod timeline;
mod value;

use crate::language::{Language, MAX_FILE_BYTES, Tool};
use crate::trouble::{Mark, Trouble};
use model::spec::{JobSpec, Problem};
use toml::de::DeTable;

pub(crate) const LANGUAGE: Language =
    Language { tool: Tool::Fathom, extension: "toml", parse: |name, text, also| parse(name, text, also) };

/// Key of the phases.
pub const PHASE: &str = "phase";
/// Key of the streams.
pub const STREAM: &str = "stream";
/// Key of a phase: when it begins, from the beginning of the job.
pub const AT: &str = "at";

/// Reads a job file; `name` is what messages call it. What it gives contradicts itself nowhere, and `also` has nothing against
/// it: what is known outside this crate, such as which engines there are.
///
/// # Errors
/// Everything that is wrong with it, each with line, column and what to type instead.
pub fn parse(name: &str, text: &str, also: impl Fn(&JobSpec) -> Vec<Problem>) -> Result<JobSpec, Trouble> {
    if text.len() > MAX_FILE_BYTES {
        // Only its beginning is shown: no terminal wants a megabyte.
        let start: String = text.lines().next().unwrap_or_default().chars().take(80).collect();
        let message = format!("the file has {} bytes; a job file has {MAX_FILE_BYTES} at most", text.len());
        return Err(Trouble::new(name, &start, vec![Mark::new(0..start.len(), message)]));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(Trouble::new(name, text, errors.iter().map(|e| syntax(e, text)).collect()));
    }
    self::reader::read_tables(table.get_ref(), text, also).map_err(|marks| Trouble::new(name, text, marks))
}

/// What the TOML parser found, with what to type where that is known.
fn syntax(error: &toml::de::Error, text: &str) -> Mark {
    let span = error.span().unwrap_or(0..text.len().min(1));
    let what = error.message().replace('\n', ", ");
    let advice = if what.contains("must be quoted") {
        "type it in quotes, such as \"4k\""
    } else if what.contains("duplicate key") {
        "type it once"
    } else if what.contains("visible characters") {
        "type printable characters only"
    } else if what.contains("unclosed") {
        "close it"
    } else {
        "type KEY = VALUE, text in quotes"
    };
    Mark::new(span, format!("{}; {advice}", what.replace("; ", ", ")))
}

/// Nothing that is known outside.
#[cfg(test)]
fn nothing(_: &JobSpec) -> Vec<Problem> {
    Vec::new()
}

#[cfg(test)]
fn read(text: &str) -> JobSpec {
    parse("job.toml", text, nothing).unwrap_or_else(|e| panic!("{e}"))
}

/// Asserts that a text is refused at a line and column with all these words.
#[cfg(test)]
#[track_caller]
fn refused(text: &str, place: &str, words: &[&str]) {
    let parsed = parse("job.toml", text, nothing);
    let trouble = parsed.map_or_else(|e| e.to_string(), |job| panic!("{text:?} is {job:?}"));
    assert!(trouble.contains(&format!("--> job.toml:{place}\n")), "not at {place}:\n{trouble}");
    for word in words {
        assert!(trouble.contains(word), "no {word:?} in:\n{trouble}");
    }
}

#[test]
fn three_lines_are_a_job() {
    let job = read("rw = \"randrw\"\nmix = 70\nbs = \"8k\"\n");
    assert_eq!((job.phases.len(), job.phases[0].streams.len()), (1, 1));
    let stream = &job.phases[0].streams[0];
    assert_eq!(stream.mix, Some(model::job::Mix::of_percents(70, 0)));
    assert_eq!(stream.bs.as_ref().map(|b| b.write.least()), Some(8192));
}

#[test]
fn what_is_said_outside_holds_inside_unless_said_again() {
    let job = read(
        r#"
        name = "two by two"
        runs = 3
        seed = 0x10
        depth = 8
        time = "2s"
        cpus = [0, "2-3"]
        [[phase]]
        bs = "4k"
        [[phase.stream]]
        name = "reader"
        target = "a"
        [[phase.stream]]
        rw = "write"
        depth = 2
        [[phase]]
        time = 1.5
        warmup = "100ms"
        rw = "randrw"
        "#,
    );
    assert_eq!((job.name.as_deref(), job.runs, job.seed), (Some("two by two"), Some(3), Some(16)));
    let depths: Vec<_> = job.phases.iter().flat_map(|p| &p.streams).map(|s| s.depth).collect();
    assert_eq!(depths, [Some(8), Some(2), Some(8)]);
    assert_eq!(job.phases[0].streams[0].name.as_deref(), Some("reader"));
    assert_eq!(job.phases[0].streams[1].target, Vec::<String>::new());
    assert_eq!(job.phases[0].streams[1].place.cpus, vec![0, 2, 3]);
    let times: Vec<_> = job.phases.iter().map(|p| (p.time, p.warmup)).collect();
    assert_eq!(times, [(Some(2_000_000_000), None), (Some(1_500_000_000), Some(100_000_000))]);
}

#[test]
fn turns_have_keys_and_a_length_of_their_own() {
    use model::job::Every;
    use model::spec::Rw;
    let job = read(
        r#"
        depth = 64
        [[turn]]
        ops = 61.5
        rw = "write"
        bs = "16k"
        size = "4m"
        think = "lognormal:300us/1ms"
        fdatasync = 1
        drain = true
        [[turn]]
        ops = 480
        rw = "randwrite"
        offset = "4m"
        burst = 480
        think = "2ms"
        "#,
    );
    let stream = &job.phases[0].streams[0];
    let turns: Vec<_> =
        stream.turns.iter().map(|t| (t.operations.map(Every::format_count), t.what.rw)).collect();
    assert_eq!(turns, [(Some("61.5".into()), Some(Rw::Write)), (Some("480".into()), Some(Rw::Randwrite))]);
    assert_eq!((stream.depth, stream.rw, stream.turns[1].what.depth), (Some(64), None, None));
}

#[test]
fn lines_are_tables_or_one_word() {
    let words = read("line = [\"share=60,bs=4k\", \"share=40,bs=8k,mix=0\"]");
    let inline = read("line = [{ share = 60, bs = \"4k\" }, { share = 40, bs = \"8k\", mix = 0 }]");
    let tables = read("[[line]]\nshare = 60\nbs = \"4k\"\n[[line]]\nshare = 40\nbs = \"8k\"\nmix = 0\n");
    assert_eq!((&words, &tables), (&inline, &inline));
    assert_eq!(words.phases[0].streams[0].lines.len(), 2);
}

#[test]
fn what_reads_back_says_nothing_else_of_itself() {
    let head = "bs = \"8k\"\n[[phase]]\nrw = \"write\"\nverify = \"stamps\"\n[[phase]]\ntime = 1\n";
    let job =
        read(&format!("{head}[[phase.stream]]\nname = \"back\"\nread-back = 1\nop-log-interval = \"1s\"\n"));
    assert_eq!(job.phases[1].streams[0].read_back, Some(1), "what is said of all is no slip");
    for key in ["depth = 4", "rw = \"read\"", "target = \"x\"", "line = [\"share=100,bs=4k\"]"] {
        let text = format!("{head}[[phase.stream]]\n{key}\nread-back = 1\n");
        refused(&text, "8:1", &["changes nothing of a stream with `read-back`", "leave it out"]);
    }
    refused(&format!("{head}read-back = 1\n[[phase.stream]]\ndepth = 4\n"), "9:1", &["`depth`"]);
    refused(&format!("{head}depth = 4\nread-back = 1\n"), "7:1", &["`depth`"]);
}

#[test]
fn phases_may_say_when_they_begin() {
    let job = read(
        "rw = \"read\"\n[[phase]]\n[[phase]]\nat = \"10s\"\ncooldown = 2\n[[phase]]\nat = 30\ntime = \"5s\"\n",
    );
    let times: Vec<_> = job.phases.iter().map(|p| (p.warmup, p.time)).collect();
    let second = 1_000_000_000;
    assert_eq!(
        times,
        [(Some(0), Some(10 * second)), (Some(0), Some(18 * second)), (Some(0), Some(5 * second))]
    );
    let head = "rw = \"read\"\n[[phase]]\ntime = \"10s\"\n[[phase]]\n";
    refused(&format!("{head}at = \"9s\"\n"), "5:6", &["overlap", "10s", "the phase before"]);
    refused(&format!("{head}at = \"11s\"\n"), "5:6", &["nothing would run", "at = \"10s\""]);
    refused(&format!("{head}at = \"10s\"\n[[phase]]\nat = \"10s\"\n"), "7:6", &["overlap", "later time"]);
    refused("rw = \"read\"\n[[phase]]\nat = 1\n", "3:6", &["first phase", "at = 0"]);
    refused("rw = \"read\"\n[[phase]]\n[[phase]]\n[[phase]]\nat = 1\n", "5:6", &["`time` or `at`"]);
}

#[test]
fn every_mistake_has_its_place_and_its_cure() {
    let rw = "rw = \"randread\"\n";
    for (text, place, words) in [
        ("", "1:1", ["defines no workload", "rw = \"randread\""].as_slice()),
        ("# only a comment\n", "1:1", &["defines no workload"]),
        ("seed = 1\n", "1:1", &["no stream is defined"]),
        ("[[phase]]\n", "1:1", &["no stream is defined"]),
        ("phase = []\n", "1:9", &["no phase"]),
        ("phase = 3\n", "1:9", &["[[phase]]", "a number"]),
        ("stream = [1]\n", "1:11", &["[[stream]]"]),
        ("[[phase]]\nphase = 1\n", "2:1", &["inside another"]),
        ("bs = 4k\n", "1:6", &["quotes"]),
        ("bs = \"4q\"\n", "1:6", &["'4q'", "such as 4k"]),
        ("depth = 20000\n", "1:9", &["too large", "1 to 16384"]),
        ("depth = 99999999999999999999999999\n", "1:9", &["too large"]),
        ("depth = 0xfffffffffffffffffffff\n", "1:9", &["not a whole number"]),
        ("depth = [1]\n", "1:9", &["a list", "quotes"]),
        ("depth = true\n", "1:9", &["true or false"]),
        ("dept = 3\n", "1:1", &["`dept`", "type depth"]),
        ("limit_iops = 3\n", "1:1", &["type limit-iops"]),
        ("iodepth = 32\n", "1:1", &["`iodepth`", "type depth = 32"]),
        ("runtime = 60\n", "1:1", &["type time = \"60s\""]),
        ("direct = false\n", "1:1", &["type cache = \"buffered\""]),
        ("zero_buffers = 1\n", "1:1", &["type zeros = true"]),
        ("filename = \"/dev/a:b\"\n", "1:1", &["type target = [\"/dev/a\", \"b\"]"]),
        ("ioengine = \"rados\"\n", "1:1", &["type engine"]),
        ("[[phase]]\nloops = 3\n", "2:1", &["no key `loops`"]),
        ("xyzzy = 3\n", "1:1", &["the keys here are rw, mix"]),
        ("depth = 3\ndepth = 4\n", "2:1", &["duplicate", "type it once"]),
        ("backwards = 1\n", "1:13", &["backwards = true"]),
        ("time = 1979-05-27\n", "1:8", &["a date"]),
        ("bs = \"4k:60,64k:30\"\n", "1:6", &["sum to 90"]),
        ("target = []\n", "1:10", &["empty"]),
        ("target = [\"a\", 1979-05-27]\n", "1:16", &["a date"]),
        ("line = [{ bs = \"4k\", depht = 3 }]\n", "1:22", &["a line has no `depht`"]),
        ("line = [{ share = 100 }]\n", "1:9", &["type bs"]),
        ("line = [{ share = 60, bs = \"4k\" }]\n", "1:8", &["sum to 60"]),
        ("rw = \"read\"\nmix = 70\n", "2:7", &["`rw = \"randrw\"`", "and this"]),
        ("rw = \"re\u{0}ad\"\n", "1:9", &["type printable characters"]),
        ("[[phase]]\nruns = 3\n", "2:1", &["whole job", "top of the file"]),
        ("[[phase]]\n[[phase.stream]]\ntime = 3\n", "3:1", &["said of a phase"]),
        ("at = 3\n", "1:1", &["below [[phase]]"]),
        ("[[turn]]\nrw = \"read\"\n[[turn]]\nops = 8\n", "1:1", &["length", "type `ops`"]),
        ("[[turn]]\nops = 0.5\n[[turn]]\nops = 8\n", "2:7", &["less than one"]),
        ("[[turn]]\nops = 8\ndepth = 3\n", "3:1", &["of a whole stream"]),
        ("[[turn]]\nops = 8\ntime = 3\n", "3:1", &["of a phase"]),
        ("[[turn]]\nops = 8\nrandm = 3\n", "3:1", &["type random"]),
        ("[[turn]]\nops = 8\n[[turn.turn]]\nops = 8\n", "3:8", &["inside another"]),
        ("[[turn]]\nops = 8\nfsync = 1\n[[turn]]\nops = 8\n", "3:9", &["writes nothing"]),
        ("[[turn]]\nops = 8\n", "1:1", &["there once"]),
        ("bs = \"4k\"\n[[turn]]\nops = 8\n[[turn]]\nops = 9\n", "1:6", &["say it in the turns"]),
    ] {
        refused(text, place, words);
    }
    refused(&format!("{rw}a = {}\n", "[".repeat(10_000)), "2:85", &[]);
    let many = format!("{rw}{}", "[[phase]]\n".repeat(1001));
    refused(&many, "1002:1", &["1000 at most"]);
    let large = format!("#{}", "x".repeat(MAX_FILE_BYTES));
    refused(&large, "1:1", &["1048577 bytes", "1048576 at most"]);
}

#[test]
fn all_mistakes_are_told_at_once_each_once() {
    let text = "fsync = 1\ndepth = 0\nbs = \"x\"\n";
    let trouble = parse("job.toml", text, nothing).map_or_else(|e| e.to_string(), |_| String::new());
    assert_eq!(trouble.matches("--> job.toml").count(), 2, "{trouble}");
    let text = format!("fsync = 1\n[[phase]]\n{}", "[[phase.stream]]\nrw = \"read\"\n".repeat(50));
    let trouble = parse("job.toml", &text, nothing).map_or_else(|e| e.to_string(), |_| String::new());
    assert!(trouble.contains("for this stream") && !trouble.contains(" more in "), "{trouble}");
}

#[test]
fn a_terminal_gets_colours_and_no_orders() {
    let trouble = parse("a\u{1b}b.toml", "bs = \"\u{7f}\u{202e}\"\nrw = \"\\u001b[2J\"\n", nothing);
    let trouble = trouble.map_or_else(|e| e, |job| panic!("{job:?}"));
    assert!(trouble.coloured().contains("\u{1b}[1m"));
    let plain = trouble.to_string();
    assert!(!plain.contains(['\u{1b}', '\u{202e}', '\u{7f}']), "{plain:?}");
}

#[test]
fn what_is_known_outside_is_pointed_at_too() {
    let no_engine = |job: &JobSpec| {
        let asked = |s: &model::spec::StreamSpec| s.engine.is_some();
        let found = job.phases.iter().position(|p| p.streams.iter().any(asked));
        let problem =
            |phase| Problem { keys: vec!["engine"], phase, stream: 0, message: "{engine x}: no".into() };
        found.map(problem).into_iter().collect()
    };
    let text = "rw = \"read\"\n[[phase]]\ntime = \"1s\"\n[[phase]]\nengine = \"x\"\n";
    let trouble = parse("job.toml", text, no_engine).map_or_else(|e| e.to_string(), |_| String::new());
    assert!(trouble.contains("--> job.toml:5:10\n") && trouble.contains("`engine = \"x\"`"), "{trouble}");
}

#[test]
fn every_name_of_fio_is_told_and_what_is_told_is_read() {
    use model::spec::foreign::Tool;
    for key in model::spec::keys::KEYS {
        for foreign in key.elsewhere.iter().filter(|f| f.tool == Tool::Fio) {
            let text = format!("{} = \"{}\"\n", foreign.name, foreign.example);
            let trouble =
                parse("job.toml", &text, nothing).map_or_else(|e| e.to_string(), |job| panic!("{job:?}"));
            let (_, told) = trouble.split_once("^ type ").unwrap_or_else(|| panic!("{text}: {trouble}"));
            let told = told.lines().next().unwrap_or_default();
            assert!(told.starts_with(&format!("{} = ", key.name)), "{text}: {told}");
            let again = parse("job.toml", &format!("{told}\n"), nothing);
            // Alone it may contradict what is taken where nothing is said, but it is understood.
            let unread = again
                .err()
                .map(|e| e.to_string())
                .filter(|e| e.contains("no key") || e.contains("is not known"));
            assert_eq!(unread, None, "{told}");
        }
    }
}
