// Draws Snake: the frames are those of envs/snake/frames.py, a cell is one unit.

const SNAKE = {
  head: "#12357f", tail: "#7cc9c0", dead: "#6a6a6a", apple: "#d4301f", leaf: "#3f8f3c",
  light: "#f1ede3", dark: "#e8e3d6", never: -(2 ** 31), radius: 0.37,
  reach: ["#e69f00", "#56b4e9", "#cc79a7"], // forward, left, right
  everyWay: "#3f9b57",
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
  pen.lineCap = pen.lineJoin = "round";
  for (let i = 0; i < cells.length; i++) {
    const from = cells[Math.max(i - 1, 0)], share = i / Math.max(cells.length - 1, 1);
    const before = Math.max(i - 1, 0) / Math.max(cells.length - 1, 1);
    const shade = pen.createLinearGradient(x(from), y(from), x(cells[i]), y(cells[i]));
    shade.addColorStop(0, mixed(tailColour, headColour, before));
    shade.addColorStop(1, mixed(tailColour, headColour, share));
    pen.strokeStyle = i ? shade : tailColour;
    pen.lineWidth = 2 * SNAKE.radius * Math.min(1, 0.45 + 0.22 * i);
    pen.beginPath();
    pen.moveTo(x(from), y(from));
    pen.lineTo(x(cells[i]), y(cells[i]));
    pen.stroke();
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

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
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

/** Cells that a flood fill reaches from forward, left, right of the head; stripes for some only. */
function drawReach(pen, reach, cols) {
  const open = reach.reduce((a, b) => a | b, 0);
  pen.globalAlpha = 0.45;
  reach.forEach((bits, cell) => {
    if (bits === open && bits) {
      pen.fillStyle = SNAKE.everyWay;
      pen.fillRect(cell % cols, Math.floor(cell / cols), 1, 1);
      return;
    }
    for (let k = 0; k < 3; k++) {
      if (!(bits & (1 << k))) continue;
      pen.fillStyle = SNAKE.reach[k];
      pen.fillRect((cell % cols) + k / 3, Math.floor(cell / cols), 1 / 3, 1);
    }
  });
  pen.globalAlpha = 1;
}

/** Where the head may go next: a cross where that kills, else a ring. */
function drawDanger(pen, ahead, danger, cols) {
  pen.lineWidth = 0.09;
  ahead.forEach((cell, k) => {
    if (cell < 0) return;
    const x = (cell % cols) + 0.5, y = Math.floor(cell / cols) + 0.5, r = 0.22;
    pen.strokeStyle = danger[k] ? "#b00020" : "#007a3d";
    pen.beginPath();
    if (danger[k]) { pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r); pen.moveTo(x - r, y + r); pen.lineTo(x + r, y - r); }
    else pen.arc(x, y, r, 0, 2 * Math.PI);
    pen.stroke();
  });
}

/** The way that the head takes until it eats, or the episode ends. */
function drawWay(pen, frame, head, cols) {
  const food = frame.at("food");
  pen.strokeStyle = "#101820";
  pen.lineWidth = 0.08;
  pen.setLineDash([0.15, 0.15]);
  pen.beginPath();
  for (let t = frame.moment; t <= frame.last; t++) {
    const cell = frame.at(head, t), x = (cell % cols) + 0.5, y = Math.floor(cell / cols) + 0.5;
    t === frame.moment ? pen.moveTo(x, y) : pen.lineTo(x, y);
    if (frame.at("food", t) !== food) break;
  }
  pen.stroke();
  pen.setLineDash([]);
}

scenes.snake = {
  overlays: { "flood fill": false, dangers: false, "way to the next food": false },
  legend: {
    "flood fill": "reached by every open way in green, by some only in orange (forward), blue (left), pink (right)",
    dangers: "a cross where the next move kills, a ring where it does not",
  },
  size: ({ rows, cols }) => [cols, rows],
  draw(pen, frame, { overlays }) {
    const { rows, cols } = frame.constants;
    drawBoard(pen, rows, cols);
    if (overlays.has("flood fill")) drawReach(pen, frame.row("reach"), cols);
    drawApple(pen, frame.at("food"), cols);
    const crashed = frame.moment > 0 && frame.at("head") === frame.at("head", frame.moment - 1);
    const colours = crashed ? [SNAKE.dead, "#bdbdbd"] : [SNAKE.head, SNAKE.tail];
    drawSnake(pen, bodyOf(frame.row("entered")), frame.at("heading"), cols, colours, !crashed);
    if (overlays.has("dangers")) drawDanger(pen, frame.row("ahead"), frame.row("danger"), cols);
    if (overlays.has("way to the next food")) drawWay(pen, frame, "head", cols);
  },
};
