// Draws a colony on its ground: a close-up that follows it above, the whole ground below.

const COLONY = { ink: "#14181c", white: "#ffffff", born: "#f08028", star: "#ff60a8", frame: "#233140" };
const WIDE = 600, CLOSE = 400, GAP = 8; // units of the drawing
const grounds = new WeakMap(); // pictures of grounds, by their arrays

/** The ground as a picture with a pixel for each of its cells. */
function groundPicture({ ground, colours }) {
  if (!grounds.has(ground)) {
    const canvas = element("canvas", { width: ground.size, height: ground.count });
    const image = new ImageData(ground.size, ground.count);
    ground.values.forEach((level, i) => { // beyond the ground nothing is drawn
      if (level < colours.count) image.data.set([...colours.row(level), 255], 4 * i);
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
    grounds.set(ground, canvas);
  }
  return grounds.get(ground);
}

/** Where the whole ground is drawn: at most a third of the picture high. */
function mapOf({ width, height }) {
  const scale = Math.min(WIDE / width, 220 / height);
  return { x: 0, y: CLOSE + GAP, scale, width: width * scale, height: height * scale };
}

/** The ground, the goal, and the centre's way so far, in a view: `place` maps px to units. */
function drawGround(pen, frame, place, scale, withWay) {
  const { width, height, goal } = frame.constants, [x, y] = place(0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(groundPicture(frame.constants), x, y, width * scale, height * scale);
  const from = place(...goal.row(0)), to = place(...goal.row(1));
  for (const [colour, thick] of [[COLONY.ink, 3], [COLONY.white, 1.5]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.setLineDash([6, 5]);
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    pen.setLineDash([]);
  }
  if (!withWay) return;
  pen.strokeStyle = COLONY.star;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (let t = 0; t <= frame.moment; t++) {
    const [cx, cy] = frame.row("centre", t);
    if (!Number.isNaN(cx)) pen.lineTo(...place(cx, cy));
  }
  pen.stroke();
}

function drawLinks(pen, frame, place, thick) {
  const x = frame.row("x"), y = frame.row("y"), parent = frame.row("parent");
  for (const [colour, width] of [[COLONY.ink, thick + 1.4], [COLONY.white, thick]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    for (let i = 0; i < frame.at("count"); i++) {
      if (parent[i] < 0) continue;
      pen.moveTo(...place(x[parent[i]], y[parent[i]]));
      pen.lineTo(...place(x[i], y[i]));
    }
    pen.stroke();
  }
}

/** Nodes; with `chances` they are red by their probability of deletion. */
function drawNodes(pen, frame, place, radius, chances) {
  const x = frame.row("x"), y = frame.row("y"), born = frame.row("new"), doomed = frame.row("deleted");
  const chance = chances && frame.has("chance") ? frame.row("chance") : null;
  for (let i = 0; i < frame.at("count"); i++) {
    const [u, v] = place(x[i], y[i]);
    pen.fillStyle = COLONY.ink;
    disc(pen, u, v, radius + 1);
    pen.fillStyle = born[i] ? COLONY.born : COLONY.white;
    if (chance && !Number.isNaN(chance[i])) pen.fillStyle = `rgb(255 ${Math.round(255 * (1 - chance[i]))} ${Math.round(255 * (1 - chance[i]))})`;
    disc(pen, u, v, radius);
    if (!doomed[i]) continue;
    pen.strokeStyle = COLONY.ink;
    pen.lineWidth = radius / 3;
    const arm = radius / 2;
    pen.beginPath();
    pen.moveTo(u - arm, v - arm); pen.lineTo(u + arm, v + arm);
    pen.moveTo(u - arm, v + arm); pen.lineTo(u + arm, v - arm);
    pen.stroke();
  }
}

/** The colour bar of the stiffness, beside the map, where its text may take two lines, or below it. */
function drawScale(pen, { colours, softest, stiffest, logarithmic, unit }, x, y, beside) {
  const wide = 150;
  for (let i = 0; i < colours.count; i++) {
    pen.fillStyle = `rgb(${[...colours.row(i)].join(" ")})`;
    pen.fillRect(x + (wide * i) / colours.count, y, wide / colours.count + 0.5, 12);
  }
  pen.fillStyle = COLONY.white;
  pen.font = "13px system-ui, sans-serif";
  pen.textAlign = "left";
  const range = `stiffness ${short(softest)} to ${short(stiffest)}${unit}`, kind = logarithmic ? ", logarithmic" : "";
  const lines = beside && logarithmic ? [`${range},`, "logarithmic"] : [range + kind];
  lines.forEach((line, i) => pen.fillText(line, x, y + 28 + 17 * i, WIDE - x - 4)); // narrower letters, rather than cut off
}

scenes.durotaxis = {
  overlays: { "links to parents": true, "way of the centre": true, "probability of deletion": false },
  legend: { "probability of deletion": "the redder a node, the more probable; where the policy chooses a share, that the share reaches the node" },
  size: (constants) => {
    const map = mapOf(constants);
    return [WIDE, CLOSE + GAP + map.height + (map.width > 400 ? 44 : 0)];
  },
  caption: (frame) => `${quantity(frame.at("count"), "nodes")}: new in orange, crossed out if the next step deletes them; the dashed line is the goal`,
  draw(pen, frame, { overlays }) {
    const map = mapOf(frame.constants), [, tall] = this.size(frame.constants);
    pen.fillStyle = COLONY.frame;
    pen.fillRect(0, 0, WIDE, tall);
    const inMap = (x, y) => [map.x + x * map.scale, map.y + y * map.scale];
    drawGround(pen, frame, inMap, map.scale, overlays.has("way of the centre"));
    drawNodes(pen, frame, inMap, 2);
    const beside = map.width <= 400;
    drawScale(pen, frame.constants, beside ? map.width + 16 : 8, beside ? map.y + 4 : map.y + map.height + 6, beside);
    this.closeUp(pen, frame, overlays, inMap);
  },
  /** A place in the close-up or in the map, in px. */
  at(frame, x, y) {
    const map = mapOf(frame.constants), { reach } = frame.constants, [cx, cy] = frame.row("centre");
    if (y < CLOSE) return [cx + (x - WIDE / 2) * (reach / CLOSE), cy + (y - CLOSE / 2) * (reach / CLOSE)];
    return x < map.width && y >= map.y ? [(x - map.x) / map.scale, (y - map.y) / map.scale] : null;
  },
  /** The part of the ground around the colony, and a box in the map where it lies. */
  closeUp(pen, frame, overlays, inMap) {
    let [cx, cy] = frame.row("centre");
    for (let t = frame.moment; Number.isNaN(cx) && t > 0; t--) [cx, cy] = frame.row("centre", t - 1);
    const { reach } = frame.constants, scale = CLOSE / reach, half = reach / 2;
    const across = (half * WIDE) / CLOSE;
    const place = (x, y) => [(x - cx + across) * scale, (y - cy + half) * scale];
    const [left, top] = inMap(cx - across, cy - half), [right, bottom] = inMap(cx + across, cy + half);
    pen.strokeStyle = COLONY.white;
    pen.lineWidth = 1;
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, WIDE, CLOSE);
    pen.clip();
    drawGround(pen, frame, place, scale, overlays.has("way of the centre"));
    if (overlays.has("links to parents")) drawLinks(pen, frame, place, 1.5);
    const radius = Math.max(3.5, Math.min(9, 40 / Math.sqrt(frame.at("count") || 1)));
    drawNodes(pen, frame, place, radius, overlays.has("probability of deletion"));
    pen.restore();
    pen.strokeRect(Math.max(0, left), Math.max(CLOSE + GAP, top), Math.min(right, WIDE) - Math.max(0, left), bottom - Math.max(CLOSE + GAP, top));
  },
};
