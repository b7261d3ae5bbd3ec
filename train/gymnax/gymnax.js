// Draws the pictures of train/gymnax/drawings/drawing.py, which come in tiles (train/gymnax/drawings/tiles.py).

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

const whole = element("canvas"); // a picture on its way to where it is shown

/** A picture of one byte a pixel, the number of its colour. */
function drawImageOf(pen, bytes, palette, [width, height]) {
  const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  const colours = new Uint8Array(4 * 256).fill(255);
  for (let i = 0; 3 * i < palette.length; i++) colours.set(palette.subarray(3 * i, 3 * i + 3), 4 * i);
  const packed = new Uint32Array(colours.buffer);
  bytes.forEach((index, i) => { pixels[i] = packed[index]; });
  [whole.width, whole.height] = [width, height];
  whole.getContext("2d").putImageData(image, 0, 0);
  pen.drawImage(whole, 0, 0);
}

scenes.gymnax = {
  size: ({ pixels }, frame) => pixels ?? (frame?.has("pixels") ? [...frame.row("pixels")] : [440, 60]),
  draw(pen, frame) {
    const { side, pixels } = frame.constants;
    if (frame.has("image")) {
      drawImageOf(pen, frame.row("image"), frame.row("palette"), frame.row("pixels"));
      return;
    }
    const across = Math.ceil(pixels[0] / side);
    frame.row("picture").forEach((tile, i) => {
      const x = (i % across) * side, y = Math.floor(i / across) * side;
      pen.drawImage(tilePicture(frame.constants, tile), x, y, side, side);
    });
  },
};
