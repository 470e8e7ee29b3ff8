"use strict";
// Draws the clocks' curves and answers the pointer over the matrices. Text goes in by textContent only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const svgName = "http://www.w3.org/2000/svg";
  const element = (name, attributes, text) => {
    const made = document.createElementNS(svgName, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const duration = (seconds) => {
    if (seconds === 0) return "0";
    const size = Math.abs(seconds);
    for (const [unit, name] of [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"]]) {
      if (size < 999.5 * unit || unit === 1) return Number((seconds / unit).toPrecision(3)) + " " + name;
    }
  };
  const ticks = (from, to, count) => {
    const rough = (to - from) / count;
    if (!(rough > 0)) return [from];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999);
    const marks = [];
    for (let at = Math.ceil(from / step - 1e-9); at * step <= to + step * 1e-9; at++) marks.push(at * step);
    return marks;
  };

  // Matrices: what is under the pointer.
  const pairs = data.pairs, readout = document.getElementById("pair-readout");
  if (pairs && readout) {
    const stages = ["raw", "presynchronised", "corrected"];
    const entry = new Map(pairs.senders.map((sender, index) => [sender * pairs.size + pairs.receivers[index], index]));
    for (const svg of document.querySelectorAll("svg.matrix")) {
      const field = svg.querySelector(".field"), stage = stages.indexOf(svg.dataset.stage);
      svg.addEventListener("pointermove", (event) => {
        const box = field.getBoundingClientRect();
        const column = Math.floor((event.clientX - box.left) / box.width * pairs.size);
        const row = Math.floor((event.clientY - box.top) / box.height * pairs.size);
        const index = entry.get(row * pairs.size + column);
        if (column < 0 || column >= pairs.size || index === undefined) return void (readout.textContent = "");
        const numbers = pairs.stages[stage];
        readout.textContent = `${pairs.unit} ${row} to ${pairs.unit} ${column}: ${numbers.violated[index]} of ` +
          `${pairs.messages[index]} messages too early` +
          (numbers.violated[index] ? `, by ${duration(numbers.largest_ticks[index] / data.resolution)} at most` : "");
      });
    }
  }

  // Clocks.
  const error = data.clock_error, plot = document.getElementById("clock-plot");
  if (!error || !plot) return;
  const said = document.getElementById("clock-readout");
  const input = (id) => document.getElementById(id);
  const width = 900, height = 330, left = 74, right = 884, top = 14, bottom = 282;
  const length = error.windows * error.window_seconds;
  let view = [0, length], curves = [], drag = null;
  // Told apart by eyes of all kinds; more curves than this look alike and are found by their name.
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#7a6fd0"];
  const named = error.nodes.length <= colours.length;

  const compute = () => {
    const largest = document.querySelector("input[name=statistic][value=largest]")?.checked;
    const parts = [];
    if (input("part-presync").checked) parts.push("presync_ticks");
    if (input("part-forward")?.checked) parts.push(largest ? "forward_largest_ticks" : "forward_ticks");
    if (input("part-backward")?.checked) parts.push(largest ? "backward_largest_ticks" : "backward_ticks");
    const relative = input("without-offset").checked;
    curves = error.nodes.map((node, number) => {
      const points = [];
      // Taken off before the sum: a constant offset can be too long for a number of JavaScript.
      const base = relative && parts.includes("presync_ticks") ? node.presync_ticks.find((value) => value !== null) ?? 0 : 0;
      for (let at = 0; at < error.windows; at++) {
        if (node.presync_ticks[at] === null) continue;
        let sum = -base;
        for (const part of parts) sum += node[part][at] ?? 0;
        points.push([(at + 0.5) * error.window_seconds, sum === 0 ? 0 : -sum / data.resolution]);
      }
      return { number, name: input("node").options[number + 1].text, points };
    });
  };

  const within = (points) => {
    // The points in view, and one more on either side.
    const first = points.findIndex(([at]) => at >= view[0]);
    if (first < 0) return points.slice(-1);
    let last = first;
    while (last < points.length && points[last][0] <= view[1]) last++;
    return points.slice(Math.max(0, first - 1), last + 1);
  };

  const draw = () => {
    const only = input("node").value === "" ? -1 : Number(input("node").value);
    let low = 0, high = 0;
    for (const curve of curves) {
      if (only >= 0 && curve.number !== only) continue;
      for (const [at, value] of within(curve.points)) {
        if (at < view[0] - error.window_seconds || at > view[1] + error.window_seconds) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    const flat = low === high;
    if (flat) { low = -1e-6; high = 1e-6; }
    const margin = (high - low) * 0.05;
    low -= margin; high += margin;
    const x = (at) => left + (at - view[0]) / (view[1] - view[0]) * (right - left);
    const y = (value) => bottom - (value - low) / (high - low) * (bottom - top);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "plot", style: "min-width:600px",
      "aria-label": flat ? "All curves are zero." :
        `Clock error of ${curves.length} clocks from ${view[0].toPrecision(4)} to ${view[1].toPrecision(4)} seconds: ` +
        `between ${duration(low + margin)} and ${duration(high - margin)}.` });
    const clip = element("clipPath", { id: "frame" });
    clip.append(element("rect", { x: left, y: top - 4, width: right - left, height: bottom - top + 8 }));
    svg.append(clip);
    for (const mark of ticks(low, high, 5)) {
      svg.append(element("line", { class: mark === 0 ? "base" : "grid", x1: left, x2: right, y1: y(mark), y2: y(mark) }));
      svg.append(element("text", { class: "label", x: left - 6, y: y(mark) + 4, "text-anchor": "end" }, duration(mark)));
    }
    for (const mark of ticks(view[0], view[1], 8)) {
      svg.append(element("line", { class: "base", x1: x(mark), x2: x(mark), y1: bottom, y2: bottom + 4 }));
      svg.append(element("text", { class: "label", x: x(mark), y: bottom + 18, "text-anchor": "middle" }, Number(mark.toPrecision(9))));
    }
    svg.append(element("text", { class: "axis", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, "time since the first event [s]"));
    const group = element("g", { "clip-path": "url(#frame)" });
    for (const curve of curves) {
      const points = within(curve.points);
      if (!points.length) continue;
      const chosen = only < 0 || only === curve.number;
      const colour = named ? colours[curve.number] : only === curve.number ? colours[0] : "var(--raw)";
      const d = points.map(([at, value], index) => (index ? "L" : "M") + x(at).toFixed(1) + " " + y(value).toFixed(1)).join("");
      const path = element("path", { class: chosen ? "curve" : "curve faint", style: `stroke:${colour}`, d });
      path.append(element("title", {}, curve.name));
      group.append(path);
    }
    svg.append(group);
    const selection = element("rect", { class: "selection", y: top, height: bottom - top, x: 0, width: 0 });
    const cursor = element("line", { class: "cursor", y1: top, y2: bottom, x1: -9, x2: -9 });
    svg.append(selection, cursor);
    const wrap = document.createElement("div");
    wrap.className = "scroll";
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", "Diagram of the clock error");
    wrap.append(svg);
    const focused = plot.contains(document.activeElement);
    if (named) {
      const legend = document.createElement("ul");
      legend.className = "legend";
      for (const curve of curves) {
        const item = document.createElement("li"), key = document.createElement("span");
        key.className = "key";
        key.style.background = colours[curve.number];
        item.append(key, curve.name);
        legend.append(item);
      }
      plot.replaceChildren(legend, wrap);
    } else {
      plot.replaceChildren(wrap);
    }
    // What had the focus is gone; keys go on working.
    if (focused) plot.focus();

    const time = (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width * width - left) / (right - left);
      return view[0] + Math.min(1, Math.max(0, at)) * (view[1] - view[0]);
    };
    svg.addEventListener("pointerdown", (event) => {
      drag = time(event);
      // Fails for a pointer that is gone already; then the drag ends at the edge of the diagram.
      try { svg.setPointerCapture(event.pointerId); } catch { /* as said */ }
    });
    svg.addEventListener("pointermove", (event) => {
      const at = time(event);
      cursor.setAttribute("x1", x(at)); cursor.setAttribute("x2", x(at));
      if (drag !== null) {
        selection.setAttribute("x", Math.min(x(drag), x(at)));
        selection.setAttribute("width", Math.abs(x(drag) - x(at)));
      }
      tell(at, only);
    });
    svg.addEventListener("pointerup", (event) => {
      const from = drag, to = time(event);
      drag = null;
      if (from !== null && Math.abs(x(from) - x(to)) > 6) show(Math.min(from, to), Math.max(from, to));
      else selection.setAttribute("width", 0);
    });
    svg.addEventListener("dblclick", () => show(0, length));
  };

  const tell = (at, only) => {
    const values = curves.filter((curve) => (only < 0 || curve.number === only) && curve.points.length).map((curve) => {
      const nearest = curve.points.reduce((best, point) => Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best);
      return [curve.name, nearest[1]];
    });
    values.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const list = values.slice(0, 4).map(([name, value]) => `${name} ${duration(value)}`).join(" · ");
    said.textContent = `${at.toFixed(6)} s: ${list}${values.length > 4 ? " · …" : ""}`;
  };

  const show = (from, to) => {
    // No closer than a few windows: there is nothing between them.
    const span = Math.min(length, Math.max(to - from, Math.min(length, 4 * error.window_seconds)));
    const begin = Math.min(Math.max(0, (from + to - span) / 2), length - span);
    view = [begin, begin + span];
    draw();
    said.textContent = `${view[0].toFixed(6)} s to ${view[1].toFixed(6)} s`;
  };
  const zoom = (factor) => {
    const middle = (view[0] + view[1]) / 2, half = (view[1] - view[0]) / 2 * factor;
    show(middle - half, middle + half);
  };
  const move = (share) => {
    const by = (view[1] - view[0]) * share;
    show(view[0] + by, view[1] + by);
  };
  const actions = {
    "zoom-in": () => zoom(0.5), "zoom-out": () => zoom(2), "zoom-left": () => move(-0.25), "zoom-right": () => move(0.25),
    "zoom-all": () => show(0, length),
  };
  for (const id in actions) input(id).addEventListener("click", actions[id]);
  const keys = { "+": "zoom-in", "=": "zoom-in", "-": "zoom-out", ArrowLeft: "zoom-left", ArrowRight: "zoom-right", 0: "zoom-all" };
  plot.addEventListener("keydown", (event) => {
    const action = actions[keys[event.key]];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  const change = () => { compute(); draw(); };
  for (const control of document.querySelectorAll(".controls input, .controls select")) control.addEventListener("change", change);
  change();
})();
