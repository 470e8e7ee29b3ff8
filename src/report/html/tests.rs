//! The page: what must be in it, and what must not.

use crate::report::{Report, analysis_sample, html, sample};

#[test]
fn what_a_trace_says_is_never_markup() {
    let hostile = "<script>alert('\"&1\")</script>";
    let mut report = sample::corrected();
    let details = report.details.as_mut().expect("details");
    report.trace.path = hostile.into();
    report.trace.name = hostile.into();
    report.trace.creator = hostile.into();
    report.program.command_line.push(hostile.into());
    report.program.mpi_library = hostile.into();
    report.warnings[0].text = hostile.into();
    report.output = Some(hostile.into());
    report.matching.collectives[0].operation = hostile.into();
    report.phases[0].name = hostile.into();
    if let Some(clocks) = &mut report.clocks {
        clocks.reason = hostile.into();
    }
    for node in &mut details.clock_error.nodes {
        node.name = hostile.into();
    }
    for case in &mut details.worst {
        case.operation = hostile.into();
        case.from.region = Some(hostile.into());
        case.to.region = Some(hostile.into());
        for bar in case.pictures.iter_mut().flat_map(|picture| &mut picture.lanes).flat_map(|lane| &mut lane.bars) {
            bar.region = hostile.into();
        }
    }
    for stage in &mut details.stages {
        stage.operations[0].operation = hostile.into();
    }
    let mut analysis = analysis_sample::analysis();
    for path in analysis.waits.by_call_path.iter_mut().map(|entry| &mut entry.call_path) {
        path.fill(hostile.into());
    }
    for path in [Some(&mut analysis.critical_path.before), analysis.critical_path.after.as_mut()].into_iter().flatten()
    {
        path.by_call_path.iter_mut().for_each(|entry| entry.call_path.fill(hostile.into()));
        path.by_region.iter_mut().for_each(|entry| entry.region = hostile.into());
    }
    report.analysis = Some(analysis);
    let page = html(&report).expect("a page");
    assert!(!page.contains("<script>alert"));
    // In the data of the script it is a string.
    assert!(page.contains("\\u003cscript>alert('\\\"&1\\\")\\u003c/script>"));
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("&lt;script&gt;alert(&#39;&quot;&amp;1&quot;)&lt;/script&gt;"));
}

#[test]
fn control_characters_do_not_get_through() {
    assert_eq!(super::element::escape("a\u{0}b\u{1b}[31m\tc\u{202e}"), "a\u{fffd}b\u{fffd}[31m\tc\u{fffd}");
}

#[test]
fn a_matrix_that_claims_to_be_huge_has_few_labels() {
    let mut corrected = sample::corrected();
    corrected.details.as_mut().expect("details").pairs.size = u64::MAX;
    let mut analysed = analysed();
    analysed.analysis.as_mut().expect("an analysis").traffic.size = u64::MAX;
    for report in [corrected, analysed] {
        assert!(html(&report).expect("a page").len() < 1_000_000);
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    for report in [sample::corrected(), sample::checked(), analysed()] {
        let page = html(&report).expect("a page");
        // The name of the SVG namespace is no address that is loaded.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for address in ["http:", "https:", "//cdn", "@import", "url(h", " src="] {
            assert!(!page.contains(address), "{address}");
        }
    }
}

/// What `analyze` makes.
fn analysed() -> Report {
    Report { analysis: Some(analysis_sample::analysis()), details: None, ..sample::corrected() }
}

#[test]
fn an_analysis_has_chapters_of_its_own() {
    let page = html(&analysed()).expect("a page");
    for id in ["waits", "execution", "path", "traffic"] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("Late Sender") && page.contains("analysed</span>"));
    // Without a correction there is one stage.
    let mut recorded = analysed();
    let analysis = recorded.analysis.as_mut().expect("an analysis");
    (analysis.execution.after, analysis.critical_path.after) = (None, None);
    analysis.waits.total.after_seconds = None;
    let page = html(&recorded).expect("a page");
    assert!(!page.contains("<th scope=\"col\">artefact</th>"));
}

#[test]
fn an_analysis_of_nothing_is_a_page() {
    let mut report = analysed();
    report.analysis = Some(crate::report::Analysis::default());
    let page = html(&report).expect("a page");
    assert!(page.contains("No process waited.") && !page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn a_report_without_details_is_a_page_without_pictures() {
    let mut report = sample::corrected();
    report.details = None;
    let page = html(&report).expect("a page");
    assert!(page.contains("Forward passes") && !page.contains("id=\"clock-plot\"") && !page.contains("id=\"worst\""));
}

#[test]
fn tables_have_captions_and_pictures_have_words() {
    let page = html(&Report { details: sample::corrected().details, ..analysed() }).expect("a page");
    assert_eq!(page.matches("<table>").count(), page.matches("<caption>").count());
    assert!(page.matches("<table>").count() >= 8);
    let pictures = page.matches("<svg class=").count();
    assert!(pictures >= 5, "{pictures}");
    assert_eq!(page.matches("role=\"img\" aria-label=\"").count(), pictures);
    for (open, close) in
        [("<section", "</section>"), ("<figure", "</figure>"), ("<details", "</details>"), ("<tr>", "</tr>")]
    {
        assert_eq!(page.matches(open).count(), page.matches(close).count(), "{open}");
    }
}

#[test]
fn the_part_of_the_clock_error_that_is_not_zero_is_shown() {
    let mut report = sample::corrected();
    let shown = "id=\"part-presync\" checked";
    assert!(!html(&report).expect("a page").contains(shown));
    for node in &mut report.details.as_mut().expect("details").clock_error.nodes {
        for ticks in node.forward_ticks.iter_mut().chain(&mut node.backward_ticks).flatten() {
            *ticks = 0;
        }
    }
    assert!(html(&report).expect("a page").contains(shown));
}

/// A page says what its words mean, and nothing about what was not done.
#[test]
fn pages_explain_themselves() {
    let mut report = sample::corrected();
    let page = html(&report).expect("a page");
    for text in [
        "<title>lulesh: corrected</title>",
        "clc-replay report · lulesh",
        "<em>Pre-synchronisation</em> converts",
        "The forward replay repeated the operations one by one, on one analysis rank per process.",
        "the receive is 4.50 µs before the send",
        "<p class=\"relation\">send and receive have the same time</p>",
        "Clocks were estimated from messages in 512 windows of 250 ms.",
        "Shown are the 2 clocks that were corrected most; 2 are not shown.",
        "1 of 4</caption>",
    ] {
        assert!(page.contains(text), "{text}");
    }
    report.parameters.latency.same_node_seconds = 0.0;
    let hint = "send and receive have the same time, since no minimum latency is given (--latency)";
    assert!(html(&report).expect("a page").contains(hint));
    report.details.as_mut().expect("details").worst[0].operation = "barrier".into();
    report.clocks.as_mut().expect("clocks").pairs.clear();
    let page = html(&report).expect("a page");
    assert!(page.contains("the end is 4.50 µs before the begin") && !page.contains("the receive is 4.50"));
    assert!(page.contains("No clocks were estimated from messages.") && !page.contains("Clocks were estimated"));
    report.trace.path = ".".into();
    assert!(html(&report).expect("a page").contains("<title>traces: corrected</title>"));
}
