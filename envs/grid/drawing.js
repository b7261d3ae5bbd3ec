// Draws mazes: constants are those of envs/grid/frames.py, a cell is one unit.

const MAZE = { wall: "#233140", free: "#f1ede3", goal: "#d4301f", agent: "#1d4fb5", door: "#a86b00", portal: "#2f7d6c" };
const MOVES = [[0, -1], [1, 0], [0, 1], [-1, 0]]; // up, right, down, left, as (x, y)

/** Runs `draw` with the origin at (x, y) and `scale` units for a cell. */
function placed(pen, x, y, scale, draw) {
  pen.save();
  pen.translate(x, y);
  pen.scale(scale, scale);
  draw();
  pen.restore();
}

/** All cells; the free ones in `shade(state)`, a colour, or plainly. */
function drawMaze(pen, { rows, cols, cells }, shade) {
  pen.fillStyle = MAZE.wall;
  pen.fillRect(0, 0, cols, rows);
  for (let state = 0; state < cells.count; state++) {
    const [row, col] = cells.row(state);
    pen.fillStyle = shade ? shade(state) : MAZE.free;
    pen.fillRect(col, row, 1.02, 1.02);
  }
}

/** A colour for a number from -1 (blue) over 0 (white) to 1 (red), from the palette of the films. */
function diverging({ palette }, x) {
  const place = ((Math.max(-1, Math.min(1, x)) + 1) / 2) * (palette.count - 1);
  const low = Math.floor(place), high = Math.min(low + 1, palette.count - 1), share = place - low;
  const a = palette.row(low), b = palette.row(high);
  return `rgb(${[0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * share)).join(" ")})`;
}

/** An arrow from a cell towards a direction. */
function drawArrow(pen, [row, col], direction, colour) {
  const [dx, dy] = MOVES[direction], x = col + 0.5, y = row + 0.5;
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(x + 0.36 * dx, y + 0.36 * dy);
  pen.lineTo(x - 0.2 * dx - 0.24 * dy, y - 0.2 * dy + 0.24 * dx);
  pen.lineTo(x - 0.2 * dx + 0.24 * dy, y - 0.2 * dy - 0.24 * dx);
  pen.closePath();
  pen.fill();
}

/** Doors and portals as arrows: rows of cell (row, column) and direction. */
function drawPassages(pen, { doors, portals }) {
  for (const [row, col, direction] of doors) drawArrow(pen, [row, col], direction, MAZE.door);
  for (const [row, col, direction] of portals) drawArrow(pen, [row, col], direction, MAZE.portal);
}
