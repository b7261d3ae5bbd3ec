// Episodes of an environment that nobody has drawn: its numbers stand beside a line that says so.

scenes.plain_scene = {
  size: () => [440, 60],
  draw(pen, frame) {
    pen.fillStyle = colour("--muted");
    pen.font = "14px system-ui, sans-serif";
    pen.fillText(`There is no drawing of ${frame.constants.name}.`, 8, 34);
  },
};
