//! What XML profiles of DISKSPD become.
//!
//! For: several time spans, templates, and what is wrong at its place. Not for: command lines ([`super`]).

use super::{here, said, told};
use crate::diskspd::{LANGUAGE, Said, job};
use crate::trouble::Trouble;
use model::job::{Order, Start};
use model::spec::JobSpec;
use model::spec::rate_limit::RateLimit;

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

fn with_xml(text: &str, line: &str) -> Result<JobSpec, Trouble> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    job(&Said::of(&words, &here(&|_| Ok(text.into())))?, &[], &|_| Vec::new())
}

#[test]
fn a_profile_has_several_time_spans_and_templates() {
    let all = with_xml(XML, "-Xp.xml -d4 -z9 one two").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((all.phases.len(), all.seed), (2, Some(9)), "the seed of the command line goes before");
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
    assert_eq!((first.place.cpus.clone(), first.workers), (vec![1], Some(2)));
    assert_eq!(all.phases[1].streams[0].start, Some(Start::Interlocked));
}

#[test]
fn what_is_wrong_with_a_profile_is_shown_at_its_place() {
    for (from, to, words) in [
        ("<Duration>2<", "<Duration>two<", &["p.xml:7:7", "whole one"] as &[&str]),
        ("<MeasureLatency>true", "<MeasureLatency>maybe", &["p.xml:", "true or false"]),
        ("<Cooldown>1</Cooldown>", "<Cold>1</Cold>", &["there is no such element: Cold"]),
        ("<RandomRatio>60", "<RandomRatio>160", &["0 to 100"]),
        ("unit=\"IOPS\"", "unit=\"MBPS\"", &["BPMS or IOPS"]),
        ("</TimeSpans>", "", &["this is no XML"]),
        ("<Profile>", "<!DOCTYPE x [<!ENTITY a \"b\">]><Profile>", &["this is no XML"]),
        ("<Verbose>false</Verbose>", "<ETW><Process>true</Process></ETW>", &["fathom capture"]),
        ("<Range IO=\"90\">10<", "<Range IO=\"90\">110<", &["up to 100"]),
        ("<Path>b<", "<Path>*0<", &["write *1"]),
    ] {
        let text = XML.replacen(from, to, 1);
        assert_ne!(text, XML, "{from}");
        let why = told(with_xml(&text, "-Xp.xml one two"));
        assert!(words.iter().all(|w| why.contains(w)), "{to}: {why}");
    }
    let why = told(with_xml(XML, "-Xp.xml one"));
    assert!(why.contains("template target '*2' was not substituted"), "{why}");
    for line in ["-Xp.xml -t4 one two", "-Xp.xml -Xq.xml one two", "-t4 -Xp.xml one two"] {
        assert!(with_xml(XML, line).is_err(), "{line}");
    }
    assert!(said("-Xp.xml a").is_err_and(|e| e.to_string().contains("there is no p.xml")));
}

#[test]
fn results_of_before_can_be_measured_again() {
    let results =
        format!("<Results><System/>{}<TimeSpan/></Results>", XML.replace("*1", "a").replace("*2", "c"));
    let all = (LANGUAGE.parse)("r.xml", &results, &|_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.phases.len(), 2);
    assert!((LANGUAGE.parse)("r.xml", "<Results/>", &|_| Vec::new()).is_err());
}
