// Draws two snakes with envs/snake/drawing.js: the trained one, or the first of a duel, in blue.

const PLAYERS = {
  own: { colours: ["#12357f", "#7cc9c0"], land: "#56b4e9" },
  other: { colours: ["#7a1532", "#f0b08a"], land: "#f0a0a8" },
  third: { colours: ["#7d5200", "#f4dd92"] },
  fourth: { colours: ["#4b1d6b", "#dcc0ee"] },
};

/** A snake as it is, or in grey as it was before the move that killed it. */
function drawPlayer(pen, frame, name, cols) {
  const lives = (moment) => frame.at(`${name}_head`, moment) >= 0;
  const now = frame.moment, alive = lives(now);
  if (!alive && !(now > 0 && lives(now - 1))) return;
  const shown = alive ? now : now - 1;
  const cells = bodyOf(frame.row(`${name}_entered`, shown));
  const colours = alive ? PLAYERS[name].colours : [SNAKE.dead, "#bdbdbd"];
  drawSnake(pen, cells, frame.at(`${name}_heading`, shown), cols, colours, alive);
}

/** Empty cells in the colour of the snake that is fewer moves away. */
function drawLand(pen, land, cols) {
  pen.globalAlpha = 0.4;
  land.forEach((owner, cell) => {
    if (!owner) return;
    pen.fillStyle = PLAYERS[owner === 1 ? "own" : "other"].land;
    pen.fillRect(cell % cols, Math.floor(cell / cols), 1, 1);
  });
  pen.globalAlpha = 1;
}

scenes.two_snake = {
  overlays: { "nearer cells": false, "way to the next food": false },
  legend: {
    "nearer cells": "blue where the blue snake is fewer moves away than all others, red where another is",
    "way to the next food": "of both snakes, until one of them eats",
  },
  size: ({ rows, cols }) => [cols, rows],
  caption: (frame) => `food: blue ${[...frame.row("score")].join(" : ")}${frame.row("score").length === 2 ? " red" : " (red, yellow, purple)"}`,
  draw(pen, frame, { overlays }) {
    const { rows, cols } = frame.constants;
    drawBoard(pen, rows, cols);
    if (overlays.has("nearer cells")) drawLand(pen, frame.row("land"), cols);
    drawApple(pen, frame.at("food"), cols);
    for (const name of Object.keys(PLAYERS).reverse().filter((name) => frame.has(`${name}_head`))) {
      drawPlayer(pen, frame, name, cols);
      if (overlays.has("way to the next food")) drawWay(pen, frame, `${name}_head`, cols);
    }
  },
};
