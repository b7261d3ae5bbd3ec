// Draws learned eigenvectors of a maze beside the true ones, with envs/grid/drawing.js.

const PAIRS = 3, EDGE = 0.06; // pairs in a row; space around a map, of its width
const TEXT = 16; // units of height for the text above a pair
const FULL = 600; // units of the width

/** Where pair k is drawn: its corner, and the units of a cell. */
function pairPlace({ cols, rows }, k) {
  const wide = FULL / PAIRS / 2, scale = (wide * (1 - 2 * EDGE)) / cols;
  const tall = TEXT + rows * scale + 8;
  return { x: (k % PAIRS) * 2 * wide + EDGE * wide, y: Math.floor(k / PAIRS) * tall, scale, wide, tall };
}

scenes.allo = {
  overlays: { difference: false },
  legend: { difference: "learned less true, in place of the learned one" },
  size: (constants) => [FULL, Math.ceil(constants.values.length / PAIRS) * pairPlace(constants, 0).tall],
  caption: (frame) => `after ${quantity(frame.at("steps"), "gradient steps")}; left learned, right true; blue is negative, red positive`,
  draw(pen, frame, { overlays }) {
    const { cells, values, true: truth } = frame.constants, learned = frame.row("learned"), cosines = frame.row("cosines");
    values.forEach((value, k) => {
      const { x, y, scale, wide } = pairPlace(frame.constants, k);
      const of = (state) => learned[k * cells.count + state], exact = truth.row(k);
      const top = exact.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-6);
      pen.fillStyle = colour("--ink");
      pen.font = "12px system-ui, sans-serif";
      pen.textAlign = "left";
      pen.fillText(`${k + 1}: λ ${short(Math.abs(value) < 1e-9 ? 0 : value)}, |cos| ${cosines[k].toFixed(2)}`, x, y + 12);
      const shown = overlays.has("difference") ? (state) => of(state) - exact[state] : of;
      placed(pen, x, y + TEXT, scale, () => drawMaze(pen, frame.constants, (s) => diverging(frame.constants, shown(s) / top)));
      placed(pen, x + wide, y + TEXT, scale, () => drawMaze(pen, frame.constants, (s) => diverging(frame.constants, exact[s] / top)));
    });
  },
};
