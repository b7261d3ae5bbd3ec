// Draws Snake with envs/snake/drawing.js.

const REACH = ["#e69f00", "#56b4e9", "#cc79a7"]; // forward, left, right
const EVERY_WAY = "#3f9b57";

/** Cells that a flood fill reaches from forward, left, right of the head; stripes for some only. */
function drawReach(pen, reach, cols) {
  const open = reach.reduce((a, b) => a | b, 0);
  pen.globalAlpha = 0.45;
  reach.forEach((bits, cell) => {
    if (bits === open && bits) {
      pen.fillStyle = EVERY_WAY;
      pen.fillRect(cell % cols, Math.floor(cell / cols), 1, 1);
      return;
    }
    for (let k = 0; k < 3; k++) {
      if (!(bits & (1 << k))) continue;
      pen.fillStyle = REACH[k];
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
    if (frame.has("obstacles")) drawObstacles(pen, frame.row("obstacles"), cols);
    for (const food of frame.has("foods") ? frame.row("foods") : [frame.at("food")]) drawApple(pen, food, cols);
    const crashed = frame.moment > 0 && frame.at("head") === frame.at("head", frame.moment - 1);
    const colours = crashed ? [SNAKE.dead, "#bdbdbd"] : [SNAKE.head, SNAKE.tail];
    drawSnake(pen, bodyOf(frame.row("entered")), frame.at("heading"), cols, colours, !crashed);
    if (overlays.has("dangers")) drawDanger(pen, frame.row("ahead"), frame.row("danger"), cols);
    if (overlays.has("way to the next food")) drawWay(pen, frame, "head", cols);
  },
};
