// Draws an experiment: the true field with the state on the left, the learned one on the right.

const FIELD = { side: 290, gap: 20, top: 22, across: 13, steps: 16, tail: 120, state: "#d55e00" };

/** A field on a grid as a function of (x, y), by bilinear interpolation; `at(i)` is component i. */
function fieldOf(at, points, box) {
  return (x, y) => {
    const place = (v) => Math.max(0, Math.min(points - 1.001, ((v + box) / (2 * box)) * (points - 1)));
    const i = Math.floor(place(x)), j = Math.floor(place(y)), s = place(x) - i, t = place(y) - j;
    const corner = (a, b, k) => at(2 * ((i + a) * points + j + b) + k);
    const mixed = (k) => (1 - s) * ((1 - t) * corner(0, 0, k) + t * corner(0, 1, k)) + s * ((1 - t) * corner(1, 0, k) + t * corner(1, 1, k));
    return [mixed(0), mixed(1)];
  };
}

/** Streamlines from a regular grid of starts, with steps that grow with the root of the speed. */
function streamlines(field, box, pace) {
  const lines = [], gap = (2 * box) / FIELD.across;
  for (let i = 0; i < FIELD.across; i++) for (let j = 0; j < FIELD.across; j++) {
    let x = -box + (i + 0.5) * gap, y = -box + (j + 0.5) * gap;
    const line = [[x, y]];
    for (let k = 0; k < FIELD.steps; k++) {
      const [u, v] = field(x, y), step = pace / Math.sqrt(Math.hypot(u, v) + 1e-9);
      x += step * u;
      y += step * v;
      line.push([x, y]);
    }
    lines.push(line);
  }
  return lines;
}

const flows = new WeakMap(); // streamlines by their array, and by the snapshot in it

function flowOf(rows, snapshot, { points, box }, pace) {
  if (!flows.has(rows)) flows.set(rows, new Map());
  const known = flows.get(rows);
  if (!known.has(snapshot)) {
    const begin = snapshot * 2 * points * points;
    known.set(snapshot, streamlines(fieldOf((i) => rows.values[begin + i], points, box), box, pace));
  }
  return known.get(snapshot);
}

/** Lines that get thicker along their direction; a bright part moves along each as time passes. */
function drawFlow(pen, lines, place, moment) {
  pen.strokeStyle = colour("--accent");
  pen.lineCap = "round";
  lines.forEach((line, n) => {
    const bright = (moment * 0.5 + n * 5) % (FIELD.steps + 6);
    for (let k = 1; k < line.length; k++) {
      pen.globalAlpha = Math.abs(k - bright) < 3 ? 0.95 : 0.3;
      pen.lineWidth = 0.4 + (1.4 * k) / line.length;
      pen.beginPath();
      pen.moveTo(...place(...line[k - 1]));
      pen.lineTo(...place(...line[k]));
      pen.stroke();
    }
  });
  pen.globalAlpha = 1;
}

/** Where the state has been lately, and is. */
function drawTrail(pen, frame, name, place, tint) {
  pen.strokeStyle = pen.fillStyle = tint;
  pen.lineWidth = 1.6;
  const { box } = frame.constants;
  for (let t = Math.max(1, frame.moment - FIELD.tail); t <= frame.moment; t++) {
    const before = frame.row(name, t - 1), now = frame.row(name, t);
    if (Math.hypot(now[0] - before[0], now[1] - before[1]) > box) continue; // an angle went round
    pen.globalAlpha = 1 - (frame.moment - t) / FIELD.tail;
    pen.beginPath();
    pen.moveTo(...place(...before));
    pen.lineTo(...place(...now));
    pen.stroke();
  }
  pen.globalAlpha = 1;
  disc(pen, ...place(...frame.row(name)), 4.5);
}

/** What the input adds to the velocity, as an arrow from the state; the longest has a quarter of the panel's side. */
function drawInput(pen, frame, place) {
  const push = frame.row("push"), [x, y] = place(...frame.row("z"));
  const scale = FIELD.side / 4 / (frame.constants.strongest || 1), dx = scale * push[0], dy = -scale * push[1];
  const length = Math.hypot(dx, dy);
  if (length < 2) return;
  pen.strokeStyle = pen.fillStyle = colour("--ink");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + dx, y + dy);
  pen.stroke();
  const [ax, ay] = [dx / length, dy / length];
  pen.beginPath();
  pen.moveTo(x + dx + 6 * ax, y + dy + 6 * ay);
  pen.lineTo(x + dx - 5 * ay, y + dy + 5 * ax);
  pen.lineTo(x + dx + 5 * ay, y + dy - 5 * ax);
  pen.fill();
}

/** How uncertain the learned field is, from none (clear) to the largest at first. */
function drawDeviation(pen, frame, corner) {
  const { deviation, points, most_uncertain } = frame.constants;
  const values = frame.has("deviation") ? frame.row("deviation") : deviation.row(frame.at("look"));
  const top = most_uncertain ?? deviation.row(0).reduce((a, b) => Math.max(a, b), 1e-9), cell = FIELD.side / points;
  pen.fillStyle = "#e69f00";
  for (let i = 0; i < points; i++) for (let j = 0; j < points; j++) {
    pen.globalAlpha = Math.min(0.75, 0.75 * (values[i * points + j] / top));
    pen.fillRect(corner + i * cell, FIELD.top + FIELD.side - (j + 1) * cell, cell + 0.3, cell + 0.3);
  }
  pen.globalAlpha = 1;
}

/** A panel: what is drawn there is cut off at its edges. */
function panel(pen, corner, title, { box }, draw) {
  pen.fillStyle = colour("--ink");
  pen.font = "13px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.fillText(title, corner, 14);
  pen.save();
  pen.beginPath();
  pen.rect(corner, FIELD.top, FIELD.side, FIELD.side);
  pen.clip();
  pen.fillStyle = colour("--panel");
  pen.fillRect(corner, FIELD.top, FIELD.side, FIELD.side);
  const scale = FIELD.side / (2 * box);
  draw((x, y) => [corner + (x + box) * scale, FIELD.top + (box - y) * scale]);
  pen.restore();
}

scenes.vector_field = {
  overlays: { streamlines: true, "state and belief": true, input: true, uncertainty: true },
  legend: { uncertainty: "the stronger the orange, the larger the standard deviation of the learned field", input: "an arrow at the state" },
  /** A place in either panel, in latent units. */
  at(frame, x, y) {
    const { box } = frame.constants, right = FIELD.side + FIELD.gap, left = x >= right ? right : 0;
    if (x - left > FIELD.side || y < FIELD.top) return null;
    return [((x - left) / FIELD.side) * 2 * box - box, box - ((y - FIELD.top) / FIELD.side) * 2 * box];
  },
  size: () => [2 * FIELD.side + FIELD.gap, FIELD.top + FIELD.side],
  draw(pen, frame, { overlays }) {
    const { true: exact, learned, box, points } = frame.constants;
    const speeds = [...Array(exact.count).keys()].reduce((sum, i) => sum + Math.hypot(...exact.row(i)), 0) / exact.count;
    const pace = ((1.7 * 2 * box) / FIELD.across / FIELD.steps) / Math.sqrt(speeds || 1);
    panel(pen, 0, "true", frame.constants, (place) => {
      if (overlays.has("streamlines")) drawFlow(pen, flowOf(exact, 0, { points, box }, pace), place, frame.moment);
      if (overlays.has("state and belief")) drawTrail(pen, frame, "z", place, FIELD.state);
      if (overlays.has("input")) drawInput(pen, frame, place);
    });
    const right = FIELD.side + FIELD.gap;
    panel(pen, right, "learned", frame.constants, (place) => {
      if (overlays.has("uncertainty")) drawDeviation(pen, frame, right);
      const flow = () => frame.has("velocity")
        ? streamlines(fieldOf((i) => frame.row("velocity")[i], points, box), box, pace)
        : flowOf(learned, frame.at("look"), { points, box }, pace);
      if (overlays.has("streamlines")) drawFlow(pen, flow(), place, frame.moment);
      if (overlays.has("state and belief") && frame.has("belief")) drawTrail(pen, frame, "belief", place, colour("--run-3"));
    });
  },
};
