//! Tests of the messages about command lines that fathom refuses.

use super::*;

/// Returns the error message of a command line.
fn refused(line: &[&str]) -> String {
    let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    let error = Cli::parse_words(&words.iter().map(Into::into).collect::<Vec<_>>());
    error.map_or_else(|e| e.render().to_string(), |_| panic!("{line:?} is accepted"))
}

#[test]
#[cfg_attr(not(feature = "capture"), ignore = "needs every command")]
fn names_of_other_tools_are_explained_in_every_command() {
    let cli = Cli::command();
    // Commands that imitate a tool parse its command line, where these names are valid.
    let imitates = |name: &&str| dialect::COMMANDS.contains(name);
    let commands = cli.get_subcommands().map(clap::Command::get_name).filter(|name| !imitates(name));
    let commands: Vec<&str> = commands.collect();
    let names = keys::KEYS.iter().flat_map(|key| key.elsewhere.iter().map(move |f| (key, f.typed())));
    for (at, (key, name)) in names.enumerate() {
        // Test each name with `run` and with a quarter of the other commands. Each command thus gets every fourth name of each tool.
        let tested = commands.iter().enumerate().filter(|(i, c)| **c == "run" || (i + at) % 4 == 0);
        for (_, command) in tested {
            // Skip an option whose letter the command has itself, such as `-o`, or a letter of iostat in `watch`.
            let letter = name.strip_prefix('-').and_then(|rest| rest.chars().next());
            let is_ours = cli.find_subcommand(command).is_some_and(|c| {
                c.get_arguments().any(|a| a.get_short().is_some() && a.get_short() == letter)
            });
            if is_ours {
                continue;
            }
            let given = refused(&["fathom", command, &name]);
            let first_line = given.lines().next().unwrap_or_default();
            let (_, tip) = first_line.split_once("': ").unwrap_or_default();
            assert!(tip.contains(&format!("is {}", spelling(key))), "{command} {name}: {given}");
            let (_, instead) = tip.split_once("; type ").unwrap_or_default();
            // If there are two possibilities, the meaning of the first follows as `, which ...`.
            let instead = instead.split(", which ").next().unwrap_or_default();
            let here = format!("fathom {command} {instead}");
            let line = if instead.starts_with("fathom ") { instead } else { &here };
            let words = line.split(' ').map(|word| word.trim_matches('\''));
            let error = Cli::try_parse_from(words).err();
            // The advice names only the option, not a required argument such as the name of a recipe.
            let is_valid = error.is_none_or(|e| e.kind() == ErrorKind::MissingRequiredArgument);
            assert!(!instead.is_empty() && is_valid, "{command} {name}: {line}");
        }
    }
}

#[test]
fn an_interval_of_ioping_is_a_rate() {
    for (interval, flag) in [
        ("1", Some(" --rate 1")),
        ("0.1", Some(" --rate 10")),
        ("250ms", Some(" --rate 4")),
        ("3", Some(" --rate 0.333333")),
        ("0", Some("")),
        ("0.0", Some("")),
        ("9999999", None),
        ("d", None),
    ] {
        assert_eq!(rate_of_interval(interval).as_deref(), flag, "{interval}");
    }
}

#[test]
fn only_a_name_that_is_similar_enough_is_suggested() {
    let similar = |typed: &str| most_similar(["bench", "sweep"].into_iter(), |name| likeness(typed, name));
    assert_eq!([similar("benhc"), similar("swep"), similar("zzz")], [Some("bench"), Some("sweep"), None]);
    assert_eq!(most_similar(iter::empty::<&str>(), |name| likeness("bench", name)), None);
}

/// Returns the command lines that a message suggests, without those that have a placeholder such as `N`. An option alone continues the
/// typed command.
fn suggested_lines<'m>(message: &'m str, typed: &[&str]) -> impl Iterator<Item = String> + 'm {
    let command = typed.get(1).copied().unwrap_or_default().to_owned();
    let typed: Vec<String> = typed.iter().map(|word| (*word).to_owned()).collect();
    let (_, advice) = message.split_once("type ").unwrap_or_default();
    let pieces = [", or ", ", then ", ", which ", ", as in ", "; ", ": ", " for ", " to measure "]
        .iter()
        .fold(vec![advice], |pieces, end| pieces.into_iter().flat_map(|piece| piece.split(end)).collect());
    let is_placeholder = move |word: &str| {
        let name = word.chars().all(|c| c.is_ascii_uppercase()) && !typed.iter().any(|typed| typed == word);
        name || word.contains(['<', '['])
    };
    pieces.into_iter().filter_map(move |piece| {
        let line = match piece {
            _ if piece.split(' ').any(&is_placeholder) => return None,
            _ if piece.starts_with("fathom ") => piece.to_owned(),
            _ if piece.starts_with('-') && !command.starts_with('-') => format!("fathom {command} {piece}"),
            _ => return None,
        };
        Some(line)
    })
}

#[test]
#[cfg_attr(not(feature = "capture"), ignore = "needs every command")]
fn tips_name_flag_value_and_command() {
    let mut wrong = Vec::new();
    for (line, tip) in [
        ("--bench", "type fathom bench"),
        ("--list --format csv", "type fathom list --format csv"),
        ("--list --all", "list is a command; type fathom list --help"),
        ("run --bench x", "type fathom bench x"),
        ("version", "type fathom --version"),
        ("benhc", "type fathom bench"),
        ("Cargo.toml", "type fathom bench Cargo.toml"),
        ("Cargo.toml --quick", "type fathom bench Cargo.toml --quick"),
        ("etcd DIR", "type fathom recipe etcd DIR"),
        ("swap", "type fathom recipe swap"),
        ("postgres-wal /srv --runs 3", "type fathom recipe postgres-wal /srv --runs 3"),
        ("benhc x --quick", "type fathom bench x --quick"),
        ("run --depth 3 --bench x", "bench is a command; type fathom bench --help"),
        (
            "run --rw randwrite --compare ext4 xfs",
            "type fathom bench --compare ext4 xfs, or to compare this workload: fathom run --rw randwrite ext4, then fathom run --rw \
             randwrite xfs --against last",
        ),
        (
            "recipe sqlite --compare ext4 xfs",
            "type fathom bench --compare ext4 xfs, or to compare this workload: fathom recipe sqlite ext4, then fathom recipe sqlite xfs, \
             then fathom compare last~1 last",
        ),
        ("limit --compare a", "type fathom bench --compare a TARGET"),
        ("show --compare a b", "type fathom compare a b"),
        ("run job.toml --baseline old", "here it is --against; type --against old"),
        (
            "run job.toml --baseline baseline.json",
            "and baseline.json is a report; type --against last, or measure first, then fathom compare baseline.json last",
        ),
        (
            "recipe etcd --baseline x",
            "here it is --against; fathom recipe does not take it; type it with fathom bench",
        ),
        (
            "bench --write /dev/vda",
            "fathom overwrites only a file or device that --destroy names; type --destroy /dev/vda",
        ),
        ("run --overwrite", "type --destroy NAME"),
        ("compare A B --threshold 10%", "here it is --fail-if-slower; type --fail-if-slower 10%"),
        ("compare A B --fail-if p99>5ms", "here it is --fail-if-slower; type --fail-if-slower 10%"),
        ("compare A B --tolerance 3", "here it is --margin; type --margin 3"),
        ("bench --tolerance 5%", "fathom bench does not take it; type it with fathom sweep"),
        ("devices --output x", "fathom devices does not take it; type it with fathom bench, fathom run"),
        ("list --output x", "fathom list does not take it; type it with fathom bench, fathom run"),
        ("doctor --version", "unknown option '--version': type fathom --version"),
        ("bench --JSON", "type --format json"),
        ("run --json x", "type --format json"),
        ("list --csv", "type --format csv"),
        ("limit a b", "'b' is one argument too many: type fathom limit"),
        ("run --time -3s x", "--time must not be negative; type --time 3s"),
        ("run --depth -5 x", "--depth must not be negative; type --depth 5"),
        ("run --time -3parsecs x", "type fathom run --help for the options of this command"),
        ("list --iodepth=deep", "fio's --iodepth is --depth; type --depth N"),
        ("bench --duration soon", "here it is --time; type --time DURATION"),
        ("run --qd 16", "here it is --depth; type --depth 16"),
        ("run --threads=4", "here it is --workers; type --workers 4"),
        ("run --duration 10", "here it is --time; type --time 10s"),
        ("run --dept 3", "type --depth"),
        ("recipe postgres", "type postgres-wal or postgres-pages"),
        ("recipe postgresql", "type postgres-wal or postgres-pages"),
        ("recipe MySQL", "type mysql"),
        ("recipe sqllite", "type sqlite"),
        ("bench --profile cmd", "type cdm"),
        ("run --depth 1-8", "fathom run measures one value; type fathom sweep --depth 1..8"),
        ("limit --workers 1,2,4", "fathom limit measures one value; type fathom sweep --workers 1,2,4"),
        (
            "api --rw read,write",
            "fathom api measures one value; type fathom api --rw read, then repeat it with write; without --rw it measures several patterns",
        ),
        ("api --depth 1,2,4", "type fathom api --depth 1, then repeat it with 2, 4"),
        (
            "layers --rw randread,randwrite",
            "type fathom layers --rw randread, then repeat it with randwrite; without",
        ),
        ("api --depth 1..8", "fathom api measures one value; type fathom sweep --depth 1..8"),
        ("sweep --depth 1-8", "'1-8' is not a value of --depth <COUNTS>: type --depth 1..8"),
        ("sweep --bs 4k-64k", "type --bs 4k..64k"),
        ("run --mix 70:30", "'70:30' is not a value of --mix <READ%>: type --mix 70"),
        ("bench --fail-if p99>=10ms", "type --fail-if 'p99>10ms'"),
        ("run --size 1,5g", "type --size 1.5g"),
        ("run --time 60sec", "type --time 60s"),
        ("bench --compare a", "--compare needs two values: type fathom bench --compare a TARGET"),
        ("bench a --compare b", "type fathom bench --compare a b"),
        ("time --compare true", "--compare needs two values: type fathom time --compare true COMMAND"),
        ("bench --quick=1", "--quick takes no value: type --quick"),
        ("bench --runs 3 --runs 4", "--runs <N> is typed twice: type it once"),
        ("run --p99 1ms", "fathom run does not take it; type it with fathom limit"),
        ("bench --preset iops", "fathom bench does not take it; type it with fathom sweep"),
        ("capture", "type fathom capture --output <FILE>"),
        (
            "capture /dev/vda",
            "fathom capture needs --output <FILE>: type fathom capture /dev/vda -o vda.capture",
        ),
        (
            "--json",
            "unknown option '--json': type --format json after a command, as in fathom bench --format json",
        ),
        ("--verbose", "type it after a command, as in fathom "),
        ("run --thread", "unknown option '--thread': leave fio's --thread out: workers are threads"),
        ("run --group_reporting", "only `fathom fio` has fio's --group_reporting (reports clones"),
        ("run --time_based", "only `fathom fio` has fio's --time_based (ends only by runtime"),
        ("run --invalidate=1", "further pass) is --cold, --evict-each-pass here"),
        ("run --opendir=/tmp", "fio's --opendir: fathom does not pick files from a directory"),
        ("run --output-format=json", "here it is --format; type --format json"),
        ("run --output-format=normal", "here it is --format; type --format json"),
        ("bench -t /dev/vda", "for hdparm's -t type fathom time -- hdparm -t /dev/vda"),
        ("run -c 10 d", "for ioping's -c type fathom run --rw randread --depth 1 --rate 10"),
        ("run -i 1 d", "for ioping's -i type fathom run --rw randread --depth 1 --rate 1"),
        ("bench -i 0.1 d", "for ioping's -i type fathom run --rw randread --depth 1 --rate 10"),
        ("run -i 250ms d", "for ioping's -i type fathom run --rw randread --depth 1 --rate 4"),
        ("run -i 3 d", "for ioping's -i type fathom run --rw randread --depth 1 --rate 0.333333"),
        ("run -i 0 d", "for ioping's -i type fathom run --rw randread --depth 1"),
        ("run -R d", "for ioping's -R type fathom run --rw randread --depth 1 --time 3s"),
        ("run -s 4k d", "ioping's -s is --bs; type --bs 4k"),
        ("limit -S 64m d", "ioping's -S is --size; type --size 64m"),
        ("recipe etcd -w 10", "ioping's -w is --time; type --time 10s"),
        ("run -D d", "ioping's -D is --cache; type --cache direct"),
        ("run -W d", "ioping's -W is --rw; type --rw randwrite"),
        ("run -Y d", "ioping's -Y is --cache; type --cache sync"),
        ("bench -s 4k d", "ioping's -s is --bs, which fathom bench does not take; type fathom run --bs 4k"),
        ("run -D500 d", "only `fathom diskspd` has DISKSPD's -D500 (IOPS of each thread on each target"),
        ("run -nope d", "unknown option '-n': type fathom run --help for the options of this command"),
        ("run -w30 d", "DISKSPD's -w is --mix; type --mix 70"),
        ("run -n d", "only `fathom diskspd` has DISKSPD's -n (threads may run on any CPU); leave it out"),
        ("bench -L d", "only `fathom diskspd` has DISKSPD's -L (latencies in the output; fathom always"),
        ("sweep -Rxml", "only `fathom diskspd` has DISKSPD's -Rxml (format of the results"),
        ("limit -x d", "DISKSPD's -x: Linux has no completion routines; remove the option"),
        ("run -Nv d", "DISKSPD's -Nv (`msync(MS_SYNC)` after each write to a mapping) is --fsync here"),
        ("bench -q d", "unknown option '-q': type --quiet"),
        ("sweep --silent", "unknown option '--silent': type --quiet"),
        ("run --progress=plain d", "unknown option '--progress': type --no-live"),
        ("limit --no-progress d", "unknown option '--no-progress': type --quiet"),
        ("run -v d", "unknown option '-v': type --verbose"),
        ("list -q", "here it is --quiet; fathom list does not take it; type it with fathom bench"),
        ("run --dry-run d", "unknown option '--dry-run': type --explain"),
        ("layers --dry-run d", "unknown option '--dry-run': type --explain"),
        ("show --dry-run last", "unknown option '--dry-run': type fathom show --help for the options"),
        ("list --dry-run", "unknown option '--dry-run': type fathom list --help for the options"),
        ("delete --dry-run x", "unknown option '--dry-run': type fathom delete --help for the options"),
        ("run -y d", "leave it out: fathom asks no questions, and overwrites only a file or device that"),
        ("limit -y d", "; ioping's -y (data sync) is `fathom run --cache dsync`, and -D -y is `fathom run"),
        ("bench --yes d", "unknown option '--yes': leave it out: fathom asks no questions"),
        ("run --color=never d", "leave it out: only a terminal gets colours; the environment variable"),
        ("limit --no-color d", "unknown option '--no-color': leave it out: only a terminal gets colours"),
        ("run --file-total-size=4G d", "here it is --size; type --size 4G"),
        ("run --file-block-size=16384 d", "here it is --bs; type --bs 16384"),
        ("run --num-threads=8 d", "here it is --workers; type --workers 8"),
        ("watch vol --time 3s", "type fathom watch vol 1 3"),
        ("watch -o load.prom vol --runtime=10", "type fathom watch vol 1 10"),
        ("watch -n 1 .", "INTERVAL has no flag; type fathom watch . 1"),
        ("watch -n1", "INTERVAL has no flag; type fathom watch 1"),
        ("watch -n0.5 m", "INTERVAL has no flag; type fathom watch m 0.5"),
        ("watch -1", "INTERVAL has no flag; type fathom watch 1"),
        ("watch -x1 5 m", "INTERVAL has no flag; type fathom watch -x m 1 5"),
        ("watch -d1", "INTERVAL has no flag; type fathom watch -d 1"),
        ("watch -d1 -n3", "INTERVAL has no flag; type fathom watch -d 1 3"),
        ("watch -d 2 -n 3", "INTERVAL has no flag; type fathom watch -d 2 3"),
        ("watch -xtn500ms", "INTERVAL has no flag; type fathom watch -xt 500ms"),
        ("watch --interval 2 .", "INTERVAL has no flag; type fathom watch . 2"),
        ("watch --interval=2 --count 5 vda vdb", "type fathom watch vda vdb 2 5"),
        ("watch --count 3 m", "COUNT has no flag; type fathom watch m 1 3"),
        ("watch m 2 --count 3", "COUNT has no flag; type fathom watch m 2 3"),
        ("watch --once .", "COUNT has no flag; type fathom watch . 1 1"),
        ("run --until-steady", "here it is --until; type --until steady"),
        ("run --steady d", "here it is --until; type --until steady"),
        ("list --steady", "unknown option '--steady': type fathom list --help for the options"),
        ("steady d", "type fathom run --until steady d"),
        ("mix.fio", "type fathom fio mix.fio for fio's output, or fathom run mix.fio for fathom's report"),
        ("mix.fio --runs 3", "type fathom run mix.fio --runs 3"),
        ("mix.fio --output-format=json", "type fathom fio mix.fio --output-format=json"),
        ("examples/jobs/oltp.toml --runs 3", "type fathom run examples/jobs/oltp.toml --runs 3"),
        ("r.json", "type fathom show r.json"),
        ("crates/report/tests/golden/valid.json", "type fathom show crates/report/tests/golden/valid.json"),
        ("20261121-161226-1.fathom", "type fathom show 20261121-161226-1.fathom"),
        ("report r.json", "type fathom show r.json"),
        ("open last", "type fathom show last"),
        ("view", "type fathom show last"),
        ("docter d", "type fathom doctor d"),
        ("comapre a b", "type fathom compare a b"),
        ("detect last", "unknown command 'detect': type fathom --help"),
        ("delet x", "type fathom delete x"),
        ("expalin A01", "type fathom explain A01"),
        ("Wathc", "type fathom watch"),
        ("qqqq", "unknown command 'qqqq': type fathom --help"),
        ("info", "type fathom devices for the disks, or fathom show last for the last report"),
        (
            "--name=x --rw=randread --bs=4k --filename=F",
            "these are fio's options; type fathom fio --name=x --rw=randread --bs=4k --filename=F",
        ),
        (
            "run --name=t --filename=f --rw=randrw --bs=8k",
            "type fathom fio --name=t --filename=f --rw=randrw --bs=8k",
        ),
        ("--ioengine=libaio --name x --output-format=json", "type fathom fio --ioengine=libaio --name x"),
        ("--name=x --depth 3", "unknown option '--name': the flag is --name"),
        ("top", "unknown command 'top': type fathom watch"),
        ("plot last", "type fathom show last -o page.html"),
        ("slow vol", "type fathom doctor vol"),
        (
            "bench --compare me,mx",
            "--compare takes its values without commas: type fathom bench --compare me mx",
        ),
        ("run --iodepth 32", "fio's --iodepth is --depth; type --depth 32"),
        ("run -iodepth=32", "fio's --iodepth is --depth; type --depth 32"),
        ("run x --runtime=60 --iodepth=3", "fio's --runtime is --time; type --time 60s"),
        ("run --iodepth", "fio's --iodepth is --depth; type --depth N"),
        ("run --ioengine=rados", "fio's --ioengine is --engine; type --engine NAME[:OPTIONS]"),
        ("bench --filename=/dev/sdb", "fio's --filename is TARGET; type fathom bench /dev/sdb"),
        ("run --filename x", "fio's --filename is TARGET; type fathom run x"),
        ("run --filename=a:b", "fio's --filename is TARGET; type fathom run a b"),
        ("run -b4K -o32", "DISKSPD's -b is --bs; type --bs 4K"),
        (
            "layers --direct=1",
            "is --cache, which fathom layers does not take; type fathom run --cache direct",
        ),
        (
            "sweep --bssplit=4k/60:8k/40",
            "which fathom sweep does not take in this form; type fathom run --bs 4k/60:8k/40",
        ),
        ("--numjobs=4", "fio's --numjobs is --workers; type fathom run --workers 4"),
        ("run -bs=8k", "the flag is --bs; type --bs 8k"),
        ("run --limit_iops=8k", "the flag is --limit-iops; type --limit-iops 8k"),
        ("run --target x", "a target has no flag; type fathom run x"),
        ("limit --precision 5%", "fathom limit does not take --precision; type fathom run --precision 5%"),
        (
            "limit --precision",
            "fathom limit does not take --precision; it is a flag of fathom bench, fathom run",
        ),
        ("bench --bs 4k d", "fathom bench does not take --bs; type fathom run --bs 4k"),
        ("bench --threads 4", "which the tests of fathom bench define; type fathom run --workers 4"),
        ("bench --numjobs=4", "which the tests of fathom bench define; type fathom run --workers 4"),
        ("bench --profile ior-easy --numjobs=4", "fio's --numjobs is --workers; type --workers 4"),
        ("bench --iodepth_batch 8", "type fathom run --batch 8"),
        ("sweep --loops 3", "type --exhaustive --runs 3"),
        ("sweep --exhaustive --loops 3", "type --runs 3"),
        ("bench --duration 10", "type --quick, which takes 10 s for each target, or --time 10s"),
        ("bench -d60", "DISKSPD's -d is --time; type --quick, which"),
        ("bench --runs 3 --runtime=10", "fio's --runtime is --time; type --time 10s"),
        ("sweep --duration 60", "type --budget 60s, which is the time of all runs together, or --time 60s"),
        ("watch --duration 10", "type fathom watch 1 10"),
        ("recipe etcd --duration 10", "here it is --time; type --time 10s"),
        ("capture vda --duration 10", "here it is --time; type --time 10s"),
        ("watch --intervall 1", "unknown option '--intervall': INTERVAL has no flag; type fathom watch 1"),
        ("watch --count=5", "COUNT has no flag; type fathom watch 1 5"),
        ("show --session last", "SESSION has no flag; type fathom show last"),
        ("fit --capture a.capture", "CAPTURE has no flag; type fathom fit a.capture"),
        ("bench --zzz", "unknown option '--zzz': type fathom bench --help for the options of this command"),
        ("--zzz", "unknown option '--zzz': type fathom --help for all commands"),
        ("list --norandommap", "fio's --norandommap is --random, which fathom list does not take"),
    ] {
        let words: Vec<&str> = std::iter::once("fathom").chain(line.split(' ')).collect();
        let given = refused(&words);
        let first = given.lines().next().unwrap_or_default();
        assert!(first.contains(tip), "{line}: {given}");
        suggested_lines(first, &words).for_each(|line| {
            let error = Cli::try_parse_from(line.split(' ').map(|word| word.trim_matches('\''))).err();
            // `type --depth` only names the flag.
            let is_name = line.split(' ').count() == 3;
            let refused = error.filter(|e| match e.kind() {
                ErrorKind::InvalidValue => !is_name,
                ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    false
                }
                _ => true,
            });
            wrong.extend(refused.map(|_| format!("{first}: fathom refuses {line}")));
        });
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // No command leaves an unknown option to clap.
    for command in Cli::command().get_subcommands().map(clap::Command::get_name) {
        if !["fio", "diskspd", "iometer"].contains(&command) {
            let given = refused(&["fathom", command, "--intervall", "1"]);
            assert!(given.starts_with("error: unknown option '--intervall': "), "{command}: {given}");
        }
    }
    assert!(!refused(&["fathom", "run", "--dept", "3"]).contains("fio"));
    assert!(!refused(&["fathom", "limit", "a", "time"]).contains("type --time"));
    let pasted = |line: &str| find_long_dash(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
    for (line, end) in [
        ("fathom run –rw read –bs 4k", "; type fathom run --rw read --bs 4k"),
        ("fathom bench —-quick a –o x.md", "; type fathom bench --quick a -o x.md"),
        ("fathom iops –b 4k d", "; type fathom iops -b 4k d"),
        ("fathom time –v -- cat –x", "; unknown option '-v': type --verbose"),
        ("fathom run −d60", "; unknown option '-d': DISKSPD's -d is --time; type --time 60s"),
    ] {
        let advice = pasted(line).unwrap_or_default();
        assert!(advice.ends_with(end), "{line}: {advice}");
    }
    assert_eq!(pasted("fathom time -- cat –x"), None);
    assert_eq!(pasted("fathom fio –rw=read"), None);
    let given = explain_diskspd_option("-o32").unwrap_or_default();
    assert_eq!(given, "DISKSPD's -o is --depth; type --depth 32");
    assert_eq!(explain_diskspd_option("-oreport"), None);
}
