// Draws the pictures of train/gymnax/drawing.py, which come in tiles (train/gymnax/tiles.py).

const painted = new WeakMap(); // pictures of tiles, by the arrays that hold all tiles of a scene

/** One tile as a small picture. */
function tilePicture({ tiles, colours, side }, number) {
  if (!painted.has(tiles)) painted.set(tiles, new Map());
  const made = painted.get(tiles);
  if (!made.has(number)) {
    const canvas = element("canvas", { width: side, height: side }), image = new ImageData(side, side);
    tiles.row(number).forEach((index, i) => image.data.set([...colours.row(index), 255], 4 * i));
    canvas.getContext("2d").putImageData(image, 0, 0);
    made.set(number, canvas);
  }
  return made.get(number);
}

scenes.gymnax = {
  size: ({ pixels }) => pixels ?? [440, 60],
  draw(pen, frame) {
    const { tiles, side, pixels, name } = frame.constants;
    if (!tiles) {
      pen.fillStyle = colour("--muted");
      pen.font = "14px system-ui, sans-serif";
      pen.fillText(`There is no drawing of ${name}.`, 8, 34);
      return;
    }
    const across = Math.ceil(pixels[0] / side);
    frame.row("picture").forEach((tile, i) => {
      const x = (i % across) * side, y = Math.floor(i / across) * side;
      pen.drawImage(tilePicture(frame.constants, tile), x, y, side, side);
    });
  },
};
