// Draws walks to a goal in a maze, with envs/grid/drawing.js.

const OPTIONS = ["2nd eigenvector up", "2nd eigenvector down", "3rd eigenvector up", "3rd eigenvector down"];

/** Numbers of states as shades between the two ends of their range. */
function shadesOf(values, constants) {
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  return (state) => diverging(constants, high > low ? (2 * (values[state] - low)) / (high - low) - 1 : 0);
}

/** The cells where the walk has been so far, as a line. */
function drawWalk(pen, frame) {
  const { cells } = frame.constants;
  pen.strokeStyle = MAZE.agent;
  pen.lineWidth = 0.12;
  pen.lineJoin = "round";
  pen.beginPath();
  for (let t = 0; t <= frame.moment; t++) {
    const [row, col] = cells.row(frame.at("position", t));
    pen.lineTo(col + 0.5, row + 0.5);
  }
  pen.stroke();
}

scenes.goals = {
  overlays: { "way so far": true, values: false, potential: false, "best actions": false, ...Object.fromEntries(OPTIONS.map((name) => [`option: ${name}`, false])) },
  legend: {
    values: "the largest Q of each state, from blue (low) to red (high)",
    potential: "what shapes the rewards of this arm, from blue (far) to red (near)",
    "best actions": "the action with the largest Q",
  },
  size: ({ rows, cols }) => [cols, rows],
  draw(pen, frame, { overlays }) {
    const { cells, goal, value, potential, best, options, ends } = frame.constants;
    const shown = overlays.has("potential") ? potential : overlays.has("values") ? value : null;
    drawMaze(pen, frame.constants, shown && shadesOf(shown.values, frame.constants));
    drawPassages(pen, frame.constants);
    const [row, col] = cells.row(goal);
    pen.fillStyle = MAZE.goal;
    pen.fillRect(col + 0.1, row + 0.1, 0.8, 0.8);
    if (overlays.has("best actions")) best.values.forEach((a, s) => drawArrow(pen, cells.row(s), a, "#00000080"));
    OPTIONS.forEach((name, o) => {
      if (!overlays.has(`option: ${name}`) || o >= options.count) return;
      const ended = ends.row(o);
      options.row(o).forEach((a, s) => ended[s] || drawArrow(pen, cells.row(s), a, "#a8007080"));
    });
    if (overlays.has("way so far")) drawWalk(pen, frame);
    const [y, x] = cells.row(frame.at("position"));
    pen.fillStyle = "#ffffff";
    disc(pen, x + 0.5, y + 0.5, 0.4);
    pen.fillStyle = MAZE.agent;
    disc(pen, x + 0.5, y + 0.5, 0.32);
  },
};
