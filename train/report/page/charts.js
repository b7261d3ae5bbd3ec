// Curves and histograms, as SVG.

const DASHES = ["none", "6 3", "2 3", "8 3 2 3"];
const LETTER = 6.5; // the width of a digit, at most
const CHART = { width: 340, height: 170, left: 46, right: 8, top: 8, bottom: 24 };

/** Ticks at round numbers, about `count` of them between two numbers, at least `least` apart: pairs of number and text. */
function ticks(low, high, count, least = 0) {
  const rough = Math.max((high - low) / count, least) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 5, 10].map((m) => m * power).filter((x) => x >= least);
  const factor = (x) => Math.max(x / rough, rough / x); // how far a step is from what was asked for
  const step = steps.reduce((a, b) => (factor(b) < factor(a) ? b : a));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found.map((x) => [x, axisNumber(x, step)]);
}

/** A number at an axis: 2,000,000 is "2M". It has the digits that tell it from those a `step` away. */
function axisNumber(x, step) {
  const digits = x ? 1 + Math.floor(Math.log10(Math.abs(x))) - Math.floor(Math.log10(step)) : 1;
  const rounded = Number(x.toPrecision(Math.min(Math.max(digits, 3), 15)));
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(rounded) >= size) return `${Number((rounded / size).toPrecision(15))}${unit}`;
  }
  return Math.abs(rounded) < 1e-3 && rounded ? rounded.toExponential() : String(rounded);
}

/** Axes for a range, with ticks of y at least `least` apart; `place(x, y)` is where a point lies. */
function axes(xs, ys, { width = CHART.width, height = CHART.height, least = 0 } = {}) {
  const known = (values) => values.filter((v) => Number.isFinite(v));
  const range = (values) => {
    const found = known(values);
    if (!found.length) return [0, 1];
    const low = found.reduce((a, b) => Math.min(a, b)), high = found.reduce((a, b) => Math.max(a, b));
    if (low === 0 && high === 0) return [0, 1];
    return low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
  };
  const [x0, x1] = range(xs), [y0, y1] = range(ys);
  const { right, top, bottom } = CHART, levels = ticks(y0, y1, 4, least);
  const left = Math.max(CHART.left, 8 + LETTER * Math.max(0, ...levels.map(([, text]) => text.length)));
  const place = (x, y) => [
    left + ((x - x0) / (x1 - x0)) * (width - left - right),
    height - bottom - ((y - y0) / (y1 - y0)) * (height - top - bottom),
  ];
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const [y, text] of levels) {
    const [, v] = place(x0, y);
    svg.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: v, y2: v }));
    svg.append(drawn("text", { x: left - 4, y: v + 4, "text-anchor": "end" }, text));
  }
  for (const [x, text] of ticks(x0, x1, width / 80)) {
    const u = Math.min(place(x, y0)[0], width - 3.5 * text.length); // none is cut off at the right
    svg.append(drawn("text", { x: u, y: height - 8, "text-anchor": "middle" }, text));
  }
  return { svg, place };
}

/** Points of a curve as the path of an SVG; unknown ones interrupt it. */
function path(xs, ys, place) {
  let text = "", open = false;
  xs.forEach((x, i) => {
    const y = ys[i];
    if (y === null || y === undefined || !Number.isFinite(y)) { open = false; return; }
    const [u, v] = place(x, y);
    text += `${open ? "L" : "M"}${u.toFixed(1)} ${v.toFixed(1)}`;
    open = true;
  });
  return text;
}

/** The indices of points that no line of `path` leads to or from. */
function lonePoints(ys) {
  const known = ys.map((y) => Number.isFinite(y));
  return ys.map((_, i) => i).filter((i) => known[i] && !known[i - 1] && !known[i + 1]);
}

/**
 * A panel of curves. Each of `curves` has a colour, x, the members' y, their mean and the margin
 * of its interval (nulls where there is none), and perhaps dots: pairs of x and y.
 */
function chart(title, curves, options = {}) {
  const bounds = (c, sign) => c.mean.map((y, i) => (c.margin[i] === null ? null : y + sign * c.margin[i]));
  const ys = curves.flatMap((c) => [...c.members.flat(), ...bounds(c, 1), ...bounds(c, -1), ...(c.dots ?? []).map((d) => d[1])]);
  const xs = curves.flatMap((c) => [...c.x, ...(c.dots ?? []).map((d) => d[0])]);
  const figure = element("figure", { class: "chart", style: "margin:0" }, element("h3", {}, title));
  if (!ys.some((y) => Number.isFinite(y))) {
    figure.append(element("p", { class: "note" }, "no number yet")); // axes would have an invented range
    return figure;
  }
  const { svg, place } = axes(xs, ys.filter((y) => y !== null), options);
  svg.setAttribute("aria-label", `${title}, a chart`);
  const points = (c, ys, r) => svg.append(...lonePoints(ys).map((i) => {
    const [cx, cy] = place(c.x[i], ys[i]);
    return drawn("circle", { class: "lone", cx, cy, r, fill: c.colour });
  }));
  for (const c of curves) {
    const low = bounds(c, -1), high = bounds(c, 1), known = c.x.map((_, i) => i).filter((i) => low[i] !== null);
    if (known.length > 1) {
      const ring = [...known.map((i) => place(c.x[i], high[i])), ...known.reverse().map((i) => place(c.x[i], low[i]))];
      svg.append(drawn("path", { class: "band", fill: c.colour, d: `M${ring.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L")}Z` }));
    }
    if (c.members.length > 1) {
      for (const y of c.members) {
        svg.append(drawn("path", { class: "one", stroke: c.colour, d: path(c.x, y, place) }));
        points(c, y, 1.2);
      }
    }
    svg.append(drawn("path", { class: "mean", stroke: c.colour, "stroke-dasharray": DASHES[(c.dash ?? 0) % DASHES.length], d: path(c.x, c.mean, place) }));
    points(c, c.mean, 2);
    for (const [x, y] of c.dots ?? []) {
      const [cx, cy] = place(x, y);
      svg.append(drawn("circle", { class: "game", cx, cy, r: 3, fill: c.colour, stroke: "var(--paper)" }));
    }
  }
  figure.append(svg, keyOf(curves));
  return figure;
}

/** What the curves of a chart are, where there are several and they have names. */
function keyOf(curves) {
  const named = curves.filter((c) => c.label);
  if (named.length < 2) return "";
  return element("p", { class: "key" }, ...named.map((c) => {
    const line = drawn("svg", { viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": true });
    line.append(drawn("path", { class: "mean", stroke: c.colour, "stroke-width": 2, "stroke-dasharray": DASHES[(c.dash ?? 0) % DASHES.length], d: "M0 4H22" }));
    return element("span", {}, line, ` ${c.label}`);
  }));
}

/** Shares that add up to one over x: each of `parts` has a label, a colour and y. */
function stack(title, x, parts, options = {}) {
  const { svg, place } = axes([0, ...x], [0, 1], options);
  svg.setAttribute("aria-label", `${title}, shares over time`);
  let below = x.map(() => 0);
  for (const { label, colour, y } of parts) {
    const above = below.map((low, i) => Math.min(1, low + y[i]));
    // a share is that of all steps since the point before
    const edge = (ys) => ys.flatMap((v, i) => [place(i ? x[i - 1] : 0, v), place(x[i], v)]);
    const ring = [...edge(above), ...edge(below).reverse()];
    const d = `M${ring.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L")}Z`;
    svg.append(drawn("path", { fill: colour, d }, drawn("title", {}, label)));
    below = above;
  }
  return element("figure", { class: "chart", style: "margin:0" }, element("h3", {}, title), svg, keyOf(parts));
}

/** Bars of a histogram, the mean marked. */
function histogram(title, { edges, counts, mean, games, unknown }) {
  const { svg, place } = axes([edges[0], edges.at(-1)], [0, ...counts], { least: 1 });
  svg.setAttribute("aria-label", `${title}, a histogram of ${quantity(games, "games")}`);
  counts.forEach((count, i) => {
    const [x0, y0] = place(edges[i], 0), [x1, y1] = place(edges[i + 1], count);
    const bar = { class: "bar", x: x0 + 0.5, y: y1, width: Math.max(1, x1 - x0 - 1), height: y0 - y1 };
    svg.append(drawn("rect", bar, drawn("title", {}, `${short(edges[i])} to ${short(edges[i + 1])}: ${count}`)));
  });
  const [x, top] = place(mean, Math.max(...counts)), [, bottom] = place(mean, 0);
  svg.append(drawn("line", { class: "mark", x1: x, x2: x, y1: top, y2: bottom }));
  return element("figure", { class: "chart", style: "margin:0" }, element("h3", {}, `${title}, mean ${short(mean)}`), svg,
    unknown ? element("p", { class: "note" }, `without ${quantity(unknown, "games")} in which it is not finite`) : "");
}
