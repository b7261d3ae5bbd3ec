// Draws left and right eigenvectors of a directed walk beside the true ones, with envs/grid/drawing.js.

const ACROSS = 3, MARGIN = 0.06; // pairs in a row; space around a map, of its width
const WORDS = 16; // units of height for the text above a pair
const WIDE = 600; // units of the width

/** Where pair k is drawn: its corner, and the units of a cell. */
function tilePlace({ cols, rows }, k) {
  const half = WIDE / ACROSS / 2, scale = (half * (1 - 2 * MARGIN)) / cols;
  const tall = WORDS + rows * scale + 8;
  return { x: (k % ACROSS) * 2 * half + MARGIN * half, y: Math.floor(k / ACROSS) * tall, scale, half, tall };
}

/** A complex number of size 1 or less, in words. */
function complex([real, imag]) {
  const turning = Math.abs(imag) < 1e-9 ? "" : `${imag < 0 ? "−" : "+"}${Math.abs(imag).toFixed(3)}i`;
  return real.toFixed(3) + turning;
}

scenes.directed = {
  overlays: { left: false, imaginary: false, magnitude: false },
  legend: { left: "left eigenvectors in place of right ones", imaginary: "their imaginary parts", magnitude: "their magnitudes" },
  size: (constants) => [WIDE, Math.ceil(constants.values.length / ACROSS) * tilePlace(constants, 0).tall],
  caption: (frame) => `after ${quantity(frame.at("steps"), "gradient steps")}; left half learned, right half true; blue is negative, red positive`,
  draw(pen, frame, { overlays }) {
    const side = overlays.has("left") ? "left" : "right", constants = frame.constants;
    const { cells, values } = constants, truth = constants[`true_${side}`], count = values.length;
    const learned = frame.row(side), cosines = frame.row(`cosines_${side}`);
    const part = (real, imag) => (overlays.has("magnitude") ? Math.hypot(real, imag) : overlays.has("imaginary") ? imag : real);
    values.forEach((value, k) => {
      const { x, y, scale, half } = tilePlace(constants, k), real = truth.row(k), imag = truth.row(count + k);
      const exact = (s) => part(real[s], imag[s]);
      const found = (s) => part(learned[k * cells.count + s], learned[(count + k) * cells.count + s]);
      let top = 1e-6;
      for (let s = 0; s < cells.count; s++) top = Math.max(top, Math.hypot(real[s], imag[s]));
      pen.fillStyle = colour("--ink");
      pen.font = "12px system-ui, sans-serif";
      pen.textAlign = "left";
      pen.fillText(`${k + 1}: μ ${complex(value)}, |cos| ${cosines[k].toFixed(2)}`, x, y + 12);
      const map = (left, of) => placed(pen, left, y + WORDS, scale, () => {
        drawMaze(pen, constants, (s) => diverging(constants, of(s) / top));
        drawPassages(pen, constants);
      });
      map(x, found);
      map(x + half, exact);
    });
  },
};
