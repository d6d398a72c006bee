//! Tests of DISKSPD's XML profiles: time spans, templates, and the places of errors.

use super::{environment, parse_line, refusal_text};
use crate::diskspd::{CommandLine, LANGUAGE, job};
use crate::trouble::Trouble;
use model::job::{Order, Sharing, Start};
use model::spec::JobSpec;
use model::spec::conditions::RateLimit;

/// Two time spans, a template, and each kind of setting once.
const XML: &str = r#"<Profile>
  <Progress>0</Progress><ResultFormat>xml</ResultFormat><Verbose>false</Verbose>
  <PrecreateFiles>UseMaxSize</PrecreateFiles>
  <TimeSpans>
    <TimeSpan>
      <MeasureLatency>true</MeasureLatency><CalculateIopsStdDev>true</CalculateIopsStdDev>
      <Duration>2</Duration><Warmup>0</Warmup><Cooldown>1</Cooldown><RandSeed>7</RandSeed>
      <Affinity><AffinityGroupAssignment Group="0" Processor="1"/></Affinity>
      <Targets>
        <Target>
          <Path>*1</Path><BlockSize>4096</BlockSize><Random>4096</Random><RandomRatio>60</RandomRatio>
          <DisableAllCache>true</DisableAllCache><WriteRatio>30</WriteRatio><RequestCount>8</RequestCount>
          <Throughput unit="IOPS">500</Throughput><ThreadsPerFile>2</ThreadsPerFile><FileSize>1048576</FileSize>
        </Target>
        <Target>
          <Path>b</Path><Random>65536</Random>
          <Distribution><Percent><Range IO="90">10</Range></Percent></Distribution>
          <WriteBufferContent><Pattern>random</Pattern><RandomDataSource><SizeInBytes>1048576</SizeInBytes></RandomDataSource></WriteBufferContent>
        </Target>
      </Targets>
    </TimeSpan>
    <TimeSpan>
      <Duration>3</Duration><Warmup>0</Warmup><RandSeed>7</RandSeed>
      <Targets><Target><Path>*2</Path><StrideSize>131072</StrideSize><InterlockedSequential>true</InterlockedSequential><ThreadsPerFile>2</ThreadsPerFile></Target></Targets>
    </TimeSpan>
  </TimeSpans>
</Profile>"#;

fn with_xml(text: &str, words: &str) -> Result<JobSpec, Trouble> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let line = CommandLine::parse(&words, &environment(&|_| Ok(text.into())))?;
    Ok(job(&line, &[], &|_| Vec::new())?.unwrap_or_default())
}

/// A profile of three pool threads and the files `a`, `b` and `c`, each file with its own further settings.
fn pool(settings: [&str; 3]) -> String {
    let target =
        |(path, more)| format!("<Target><Path>{path}</Path><RequestCount>1</RequestCount>{more}</Target>");
    let targets: String = ["a", "b", "c"].into_iter().zip(settings).map(target).collect();
    format!(
        "<Profile><TimeSpans><TimeSpan><Duration>1</Duration><ThreadCount>3</ThreadCount><RequestCount>6</RequestCount><Targets>{targets}</Targets></TimeSpan></TimeSpans></Profile>"
    )
}

/// The `ThreadTargets` of a target: threads, each with the weight of the target.
fn threads(all: &[(u32, u32)]) -> String {
    let one = |(thread, weight): &(u32, u32)| {
        format!("<ThreadTarget><Thread>{thread}</Thread><Weight>{weight}</Weight></ThreadTarget>")
    };
    format!("<ThreadTargets>{}</ThreadTargets>", all.iter().map(one).collect::<String>())
}

#[test]
fn a_profile_has_several_time_spans_and_templates() {
    let all = with_xml(XML, "-Xp.xml -d4 -z9 one two").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((all.phases.len(), all.seed), (2, Some(9)), "the command line overrides the profile");
    let times: Vec<_> = all.phases.iter().map(|p| (p.time, p.cooldown)).collect();
    assert_eq!(times, [(Some(4_000_000_000), Some(1_000_000_000)), (Some(4_000_000_000), Some(0))]);
    let paths =
        |phase: usize| all.phases[phase].streams.iter().flat_map(|s| &s.target).cloned().collect::<Vec<_>>();
    assert_eq!((paths(0), paths(1)), (vec!["one".to_owned(), "b".into()], vec!["two".into()]));
    let first = &all.phases[0].streams[0];
    assert_eq!(
        (first.random.clone(), first.limit_iops),
        (Some(Order::Mixed(60.0)), Some(RateLimit::All(1000.0)))
    );
    assert_eq!((first.resolved.place.cpus.clone(), first.resolved.workers), (vec![1], 2));
    assert_eq!(all.phases[1].streams[0].steps.start, Start::Interlocked);
}

#[test]
fn errors_of_a_profile_have_their_place() {
    for (from, to, words) in [
        ("<Duration>2<", "<Duration>two<", &["p.xml:7:7", "a whole number"] as &[&str]),
        ("<MeasureLatency>true", "<MeasureLatency>maybe", &["p.xml:", "true or false"]),
        ("<Cooldown>1</Cooldown>", "<Cold>1</Cold>", &["no element Cold"]),
        ("<Path>b<", "<ThreadTargets><Thread/></ThreadTargets><Path>b<", &["no element Thread"]),
        ("<RandomRatio>60", "<RandomRatio>160", &["1 to 100"]),
        ("unit=\"IOPS\"", "unit=\"MBPS\"", &["BPMS or IOPS"]),
        ("</TimeSpans>", "", &["this is not XML"]),
        ("<Profile>", "<!DOCTYPE x [<!ENTITY a \"b\">]><Profile>", &["this is not XML"]),
        ("<Verbose>false</Verbose>", "<ETW><Process>true</Process></ETW>", &["fathom capture"]),
        ("<Range IO=\"90\">10<", "<Range IO=\"90\">110<", &["up to 100"]),
        ("<Path>b<", "<Path>*0<", &["write *1"]),
    ] {
        let text = XML.replacen(from, to, 1);
        assert_ne!(text, XML, "{from}");
        let why = refusal_text(with_xml(&text, "-Xp.xml one two"));
        assert!(words.iter().all(|w| why.contains(w)), "{to}: {why}");
    }
    let why = refusal_text(with_xml(XML, "-Xp.xml one"));
    assert!(why.contains("template target '*2' was not substituted"), "{why}");
    for line in ["-Xp.xml -t4 one two", "-Xp.xml -Xq.xml one two", "-t4 -Xp.xml one two"] {
        assert!(with_xml(XML, line).is_err(), "{line}");
    }
    assert!(parse_line("-Xp.xml a").is_err_and(|e| e.to_string().contains("there is no p.xml")));
}

#[test]
fn earlier_results_can_be_measured_again() {
    let results =
        format!("<Results><System/>{}<TimeSpan/></Results>", XML.replace("*1", "a").replace("*2", "c"));
    let all = (LANGUAGE.parse)("r.xml", &results, &|_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.phases.len(), 2);
    assert!((LANGUAGE.parse)("r.xml", "<Results/>", &|_| Vec::new()).is_err());
}

#[test]
fn threads_have_their_own_targets_and_weights() {
    let random = "<Random>4096</Random>";
    let text = pool([
        &format!("{random}<Weight>3</Weight>"),
        &format!("{random}{}", threads(&[(0, 0), (2, 0)])),
        &format!("{random}{}", threads(&[(1, 7)])),
    ]);
    let words: Vec<String> = ["-Xp.xml"].map(str::to_owned).to_vec();
    let line =
        CommandLine::parse(&words, &environment(&|_| Ok(text.clone()))).unwrap_or_else(|e| panic!("{e}"));
    let all = job(&line, &[4, 5, 6], &|_| Vec::new()).unwrap_or_else(|e| panic!("{e}")).unwrap_or_default();
    let summary = |stream: &model::spec::StreamSpec| {
        (
            stream.target.join(" "),
            stream.resolved.workers,
            stream.depth,
            stream.resolved.sharing.clone(),
            stream.resolved.place.cpus.clone(),
        )
    };
    let streams: Vec<_> = all.phases[0].streams.iter().map(summary).collect();
    let weighted = |weights: &[u32]| Sharing::Weighted(weights.to_vec());
    assert_eq!(streams[0], ("a b".into(), 2, Some(6), weighted(&[3, 1]), vec![4, 6]));
    assert_eq!(streams[1], ("a c".into(), 1, Some(6), weighted(&[3, 7]), vec![5, 6, 4]));
    assert_eq!(streams.len(), 2);
}

#[test]
fn unsupported_settings_of_pool_threads_are_refused() {
    let own = |thread: u32| threads(&[(thread, 1)]);
    let shared = "<InterlockedSequential>true</InterlockedSequential>";
    let sizes = "<BlockSize>4096</BlockSize>";
    for (settings, word) in [
        (["", sizes, ""], "differ only in path and weight"),
        ([&own(0) as &str, &own(0), &own(1)], "thread 2 has no target"),
        (["", "", &threads(&[(9, 1)])], "illegal thread"),
        (
            [
                &format!("{shared}{}", threads(&[(0, 1), (2, 1)])) as &str,
                &format!("{shared}{}", own(0)),
                &format!("{shared}{}", own(1)),
            ],
            "-si",
        ),
        (["<Weight>0</Weight>", "", ""], "non-zero target Weight"),
    ] {
        let why = refusal_text(with_xml(&pool(settings), "-Xp.xml"));
        assert!(why.contains(word), "{word}: {why}");
    }
    // Threads without common targets may differ in everything.
    let apart = pool([&format!("{sizes}{}", own(0)), &own(1), &own(2)]);
    let all = with_xml(&apart, "-Xp.xml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.phases[0].streams.len(), 3);
    // Without RequestCount, every thread has every target, so all targets need the same settings.
    let each = pool(["", sizes, ""]).replace("<RequestCount>6</RequestCount>", "");
    assert!(refusal_text(with_xml(&each, "-Xp.xml")).contains("ThreadsPerFile"));
}
