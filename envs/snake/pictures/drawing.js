// Draws boards and snakes as envs/snake/pictures/frames.py describes them; a cell is one unit.

const SNAKE = {
  head: "#12357f", tail: "#7cc9c0", dead: "#6a6a6a", apple: "#d4301f", leaf: "#3f8f3c",
  stone: "#5c6570", edge: "#8d97a3", light: "#f1ede3", dark: "#e8e3d6", never: -(2 ** 31), radius: 0.37,
};

/** The colour between two, `share` of the way. */
function mixed(a, b, share) {
  const part = (c, i) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgb(${[0, 1, 2].map((i) => Math.round(part(a, i) + (part(b, i) - part(a, i)) * share)).join(" ")})`;
}

/** An empty board. */
function drawBoard(pen, rows, cols) {
  for (let cell = 0; cell < rows * cols; cell++) {
    const row = Math.floor(cell / cols), col = cell % cols;
    pen.fillStyle = (row + col) % 2 ? SNAKE.dark : SNAKE.light;
    pen.fillRect(col, row, 1.01, 1.01);
  }
}

/** Cells of a snake from its tail to its head, by the moments at which the head came there. */
function bodyOf(entered) {
  const cells = [...entered.keys()].filter((cell) => entered[cell] !== SNAKE.never);
  return cells.sort((a, b) => entered[a] - entered[b]);
}

function drawSnake(pen, cells, heading, cols, [headColour, tailColour], alive) {
  const x = (cell) => (cell % cols) + 0.5, y = (cell) => Math.floor(cell / cols) + 0.5;
  const share = (i) => i / Math.max(cells.length - 1, 1);
  const width = (i) => 2 * SNAKE.radius * Math.min(1, 0.45 + 0.22 * i); // thin at the tail
  for (let i = 0; i < cells.length; i++) { // below the parts between them, for round corners
    pen.fillStyle = mixed(tailColour, headColour, share(i));
    disc(pen, x(cells[i]), y(cells[i]), width(i) / 2);
  }
  for (let i = 1; i < cells.length; i++) {
    const from = cells[i - 1], to = cells[i];
    const shade = pen.createLinearGradient(x(from), y(from), x(to), y(to));
    shade.addColorStop(0, mixed(tailColour, headColour, share(i - 1)));
    shade.addColorStop(1, mixed(tailColour, headColour, share(i)));
    pen.fillStyle = shade;
    const [dx, dy] = [(x(to) - x(from)) / 2, (y(to) - y(from)) / 2]; // across is (-dy, dx)
    pen.beginPath();
    for (const [cell, side, w] of [[from, 1, width(i - 1)], [to, 1, width(i)], [to, -1, width(i)], [from, -1, width(i - 1)]]) {
      pen.lineTo(x(cell) - side * w * dy, y(cell) + side * w * dx);
    }
    pen.fill();
  }
  const head = cells.at(-1), [dx, dy] = [[0, -1], [1, 0], [0, 1], [-1, 0]][heading];
  pen.fillStyle = headColour;
  disc(pen, x(head), y(head), 0.44);
  for (const side of [-1, 1]) {
    const ex = x(head) + 0.14 * dx - 0.2 * side * dy, ey = y(head) + 0.14 * dy + 0.2 * side * dx;
    pen.fillStyle = "#ffffff";
    disc(pen, ex, ey, 0.13);
    pen.fillStyle = alive ? "#101820" : "#d4301f";
    disc(pen, ex + 0.04 * dx, ey + 0.04 * dy, alive ? 0.07 : 0.11);
  }
}

function drawApple(pen, cell, cols) {
  if (cell < 0) return;
  const x = (cell % cols) + 0.5, y = Math.floor(cell / cols) + 0.5;
  pen.fillStyle = SNAKE.apple;
  disc(pen, x, y + 0.04, 0.32);
  pen.fillStyle = SNAKE.leaf;
  pen.beginPath();
  pen.ellipse(x + 0.12, y - 0.32, 0.14, 0.07, -0.5, 0, 2 * Math.PI);
  pen.fill();
}

/** Stones on the cells whose entry is not 0. */
function drawObstacles(pen, obstacles, cols) {
  obstacles.forEach((there, cell) => {
    if (!there) return;
    const x = cell % cols, y = Math.floor(cell / cols);
    for (const [colour, corner, side] of [[SNAKE.edge, 0.03, 0.94], [SNAKE.stone, 0.1, 0.87]]) {
      pen.fillStyle = colour;
      pen.beginPath();
      pen.roundRect(x + corner, y + corner, side, side, 0.14);
      pen.fill();
    }
  });
}

/** The way that the head takes until it eats, or the episode ends. */
function drawWay(pen, frame, head, cols) {
  const food = (t) => String(frame.has("foods") ? frame.row("foods", t) : frame.at("food", t));
  pen.strokeStyle = "#101820";
  pen.lineWidth = 0.08;
  pen.setLineDash([0.15, 0.15]);
  pen.beginPath();
  for (let t = frame.moment; t <= frame.last; t++) {
    const cell = frame.at(head, t);
    if (cell < 0) break;
    const x = (cell % cols) + 0.5, y = Math.floor(cell / cols) + 0.5;
    t === frame.moment ? pen.moveTo(x, y) : pen.lineTo(x, y);
    if (food(t) !== food(frame.moment)) break;
  }
  pen.stroke();
  pen.setLineDash([]);
}
