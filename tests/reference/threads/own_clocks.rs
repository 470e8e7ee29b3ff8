//! Locations with clocks of their own: which ones these are, and the trace in which each is a process.

use super::*;

/// The locations whose clocks contradict those of their processes, in order: first those that contradict the main thread, then of the others those that contradict
/// each other.
pub(crate) fn with_own_clocks(hybrid: &Hybrid) -> Vec<(usize, usize)> {
    let time = |(p, l, number): At| hybrid.trace.processes[p].locations[l][number].time;
    let mut pairs = hybrid.pairs.clone();
    for (arrivals, departures) in &hybrid.barriers {
        pairs.extend(arrivals.iter().flat_map(|&from| departures.iter().map(move |&to| (from, to))));
    }
    pairs.retain(|&(from, to)| from.1 != to.1 && time(from) > time(to));
    // Streams first: what they contradict is not their own clock.
    let streams = &hybrid.trace.streams;
    let ends = pairs.iter().flat_map(|&(from, to)| [from, to]).map(|(p, l, _)| (p, l));
    let mut own: BTreeSet<(usize, usize)> = ends.filter(|place| streams.contains_key(place)).collect();
    let apart = own.clone();
    pairs.retain(|(from, to)| [from, to].iter().all(|at| !apart.contains(&(at.0, at.1))));
    for &(from, to) in pairs.iter().filter(|(from, to)| from.1 == 0 || to.1 == 0) {
        own.insert((from.0, from.1.max(to.1)));
    }
    let known = own.clone();
    let shared = |at: At| at.1 > 0 && !known.contains(&(at.0, at.1));
    for &(from, to) in pairs.iter().filter(|&&(from, to)| shared(from) && shared(to)) {
        own.extend([(from.0, from.1), (to.0, to.1)]);
    }
    while let Some((to, from)) = contradiction_through(hybrid, &own) {
        own.extend([to, from].iter().filter(|at| at.1 > 0).map(|at| (at.0, at.1)));
    }
    own.into_iter().collect()
}

/// An event of a location that shares the clock of its process, and one of another such location that is later and yet has to be before it, since what both do with
/// locations in `own` implies it: the earliest such event, and the last one that has to be before it.
fn contradiction_through(hybrid: &Hybrid, own: &BTreeSet<(usize, usize)>) -> Option<(At, At)> {
    let location = |at: At| &hybrid.trace.processes[at.0].locations[at.1];
    let place = |at: At| (location(at)[at.2].time, at.1, at.2);
    let is_own = |at: At| own.contains(&(at.0, at.1));
    let mut after: BTreeMap<At, Vec<At>> = BTreeMap::new();
    hybrid.pairs.iter().for_each(|&(from, to)| after.entry(from).or_default().push(to));
    for (arrivals, departures) in &hybrid.barriers {
        arrivals.iter().for_each(|&from| after.entry(from).or_default().extend(departures));
    }
    let mut found: Vec<(At, At)> = Vec::new();
    for &from in after.keys().filter(|&&from| !is_own(from)) {
        let of = |at: At| after.get(&at).into_iter().flatten().copied();
        let mut seen: BTreeSet<At> = BTreeSet::new();
        let mut open: Vec<At> = of(from).filter(|&at| is_own(at)).collect();
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                let next = Some((at.0, at.1, at.2 + 1)).filter(|next| next.2 < location(*next).len());
                let (through, ends): (Vec<At>, Vec<At>) = of(at).chain(next).partition(|&at| is_own(at));
                open.extend(through);
                found.extend(ends.into_iter().map(|to| (to, from)));
            }
        }
    }
    found.retain(|&(to, from)| (to.1 > 0 || from.1 > 0) && place(from) > place(to));
    // Process by process, as all of it is within one.
    found.into_iter().min_by_key(|&(to, from)| (to.0, place(to), std::cmp::Reverse(place(from))))
}

/// How many times events of one time and process, of those `shared` by its clock, have to come later than their locations say, for the orders of threads.
fn layers(hybrid: &Hybrid, shared: &dyn Fn(At) -> bool) -> BTreeMap<At, u32> {
    let location = |at: At| &hybrid.trace.processes[at.0].locations[at.1];
    let time = |at: At| location(at)[at.2].time;
    let mut pairs = hybrid.pairs.clone();
    for (arrivals, departures) in &hybrid.barriers {
        pairs.extend(arrivals.iter().flat_map(|&from| departures.iter().map(move |&to| (from, to))));
    }
    pairs.retain(|&(from, to)| from.1 != to.1 && time(from) == time(to) && shared(from) && shared(to));
    let mut layers: BTreeMap<At, u32> = BTreeMap::new();
    loop {
        let before = layers.clone();
        for &(from, to) in &pairs {
            let least = layers.get(&from).copied().unwrap_or(0) + u32::from(from.1 > to.1);
            let following = (to.2..location(to).len()).map(|number| (to.0, to.1, number));
            for at in following.take_while(|&at| time(at) == time(to)) {
                let own = layers.entry(at).or_default();
                *own = least.max(*own);
            }
        }
        if layers == before {
            return layers;
        }
    }
}

/// Where the events of each location are in the timelines.
fn events_by_place(trace: &Trace) -> BTreeMap<At, EventRef> {
    let mut index = BTreeMap::new();
    for (process, timeline) in trace.timelines().iter().enumerate() {
        for (place, entry) in timeline.iter().enumerate() {
            index.insert((process, entry.location, entry.number), EventRef { process, index: place });
        }
    }
    index
}

/// `matching` of a program whose clocks are wrong, with the collective operations in their true order: that of `truth`, the same program with correct clocks.
pub(crate) fn in_true_order(hybrid: &Hybrid, truth: (&Trace, &Matching), mut matching: Matching) -> Matching {
    let index = events_by_place(&hybrid.trace);
    let timelines = truth.0.timelines();
    let here = |event: EventRef| {
        let entry = timelines[event.process][event.index];
        index[&(event.process, entry.location, entry.number)]
    };
    let collective = |dependency: &Dependency| dependency.kind == Kind::AllToAll;
    matching.dependencies.retain(|dependency| !collective(dependency));
    matching.dependencies.extend(
        truth.1.dependencies.iter().filter(|dependency| collective(dependency)).map(|d| Dependency {
            send: here(d.send),
            receive: here(d.receive),
            ..*d
        }),
    );
    matching.dependencies.sort_unstable();
    matching.calls = truth.1.calls.iter().map(|&call| here(call)).collect();
    (matching.groups, matching.tells) = (truth.1.groups.clone(), truth.1.tells.clone());
    matching
}

/// The trace in which each location of `own` is a process by itself, and the orders of threads between them; `matching` is that of the trace itself.
pub(crate) fn divided(hybrid: &Hybrid, own: &[(usize, usize)], matching: &Matching) -> (Trace, Matching) {
    let old = &hybrid.trace;
    let mut trace = old.clone();
    // Where each location has gone.
    let mut places: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for (p, process) in old.processes.iter().enumerate() {
        let stay: Vec<usize> = (0..process.locations.len()).filter(|&l| !own.contains(&(p, l))).collect();
        trace.processes[p].locations = stay.iter().map(|&l| process.locations[l].clone()).collect();
        places.extend(stay.into_iter().enumerate().map(|(place, l)| ((p, l), (p, place))));
    }
    for &(p, l) in own {
        places.insert((p, l), (trace.processes.len(), 0));
        trace
            .processes
            .push(Process { node: old.processes[p].node, locations: vec![old.processes[p].locations[l].clone()] });
    }
    for (at, layer) in layers(hybrid, &|(p, l, _)| places[&(p, l)].0 == p) {
        let (process, location) = places[&(at.0, at.1)];
        trace.layers.insert((process, location, at.2), layer);
    }
    let index = events_by_place(&trace);
    let of = |(p, l, number): At| {
        let (process, location) = places[&(p, l)];
        index[&(process, location, number)]
    };
    let timelines = old.timelines();
    let moved = |event: EventRef| {
        let entry = timelines[event.process][event.index];
        of((event.process, entry.location, entry.number))
    };
    let both = |&(send, receive): &(EventRef, EventRef)| (moved(send), moved(receive));
    let mut found = Matching {
        messages: matching.messages.iter().map(both).collect(),
        dependencies: matching
            .dependencies
            .iter()
            .map(|d| Dependency { send: moved(d.send), receive: moved(d.receive), ..*d })
            .collect(),
        ..Matching::default()
    };
    // What was within a process may now be between timelines.
    for &(send, receive) in matching.messages.iter().filter(|(send, receive)| send.process == receive.process) {
        let (send, receive) = (moved(send), moved(receive));
        if send.process != receive.process {
            found.dependencies.push(Dependency { kind: Kind::PointToPoint, send, receive, latency: 0 });
        }
    }
    // Members of communicators count as their process, and as the timeline that has made the call.
    found.calls = matching.calls.iter().map(|&call| moved(call)).collect();
    let both = matching.calls.iter().map(|&call| (call.process, moved(call).process)).filter(|(p, own)| p != own);
    let both: BTreeSet<(usize, usize)> = both.collect();
    found.groups = matching.groups.clone();
    found.groups.extend(both.iter().map(|&(p, own)| vec![p, own]));
    found.tells = matching.tells.clone();
    found.tells.extend(both.iter().flat_map(|&(p, own)| [(p, own), (own, p)]));
    let mut orders: BTreeSet<(EventRef, EventRef)> = BTreeSet::new();
    // What the first of several in one timeline waits for, all wait for; and who waits for the last of several, waits for all.
    let mut first: BTreeMap<(EventRef, usize), EventRef> = BTreeMap::new();
    for (from, to) in hybrid.pairs.iter().map(|&(from, to)| (of(from), of(to))) {
        first.entry((from, to.process)).and_modify(|known| *known = to.min(*known)).or_insert(to);
    }
    let mut last: BTreeMap<(usize, EventRef), EventRef> = BTreeMap::new();
    for ((from, _), to) in first {
        last.entry((from.process, to)).and_modify(|known| *known = from.max(*known)).or_insert(from);
    }
    orders.extend(last.into_iter().map(|((_, to), from)| (from, to)));
    for (arrivals, departures) in &hybrid.barriers {
        // Of each timeline the last arrival and the first departure.
        let (mut last, mut first): (BTreeMap<usize, EventRef>, BTreeMap<usize, EventRef>) = Default::default();
        for at in arrivals.iter().map(|&at| of(at)) {
            last.entry(at.process).and_modify(|known| *known = at.max(*known)).or_insert(at);
        }
        for at in departures.iter().map(|&at| of(at)) {
            first.entry(at.process).and_modify(|known| *known = at.min(*known)).or_insert(at);
        }
        orders.extend(last.values().flat_map(|&from| first.values().map(move |&to| (from, to))));
    }
    orders.retain(|(from, to)| from.process != to.process);
    for &(send, receive) in &orders {
        found.dependencies.push(Dependency { kind: Kind::Group, send, receive, latency: 0 });
    }
    found.orders = orders.into_iter().collect();
    (trace, found)
}
