// Arrays of a report, packed by train/report/arrays.py.

/** Unpacks the block of text that holds all arrays: an ArrayBuffer. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

/** The array of a reference, as rows: `row(t)` is a typed array, `at(t)` its first number. */
function rowsOf(buffer, place) {
  const { offset, bits, shape, low, high } = place;
  const size = shape.slice(1).reduce((a, b) => a * b, 1);
  const count = shape.length ? shape[0] : 1;
  const Stored = { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array }[bits];
  const stored = new Stored(buffer, offset, count * size).slice();
  for (let i = size; i < stored.length; i++) stored[i] += stored[i - size]; // modulo its range
  const values = low === undefined
    ? bits === 32 ? new Int32Array(stored.buffer) : stored
    : Float32Array.from(stored, (x) => (x === 65535 ? NaN : low + (high - low) * (x / 65534)));
  return asRows(values, count, size);
}

/** Rows of a flat array; also of arrays that grow while a game is played. */
function asRows(values, count, size) {
  return {
    count,
    size,
    values,
    row: (t) => values.subarray(t * size, (t + 1) * size),
    at: (t) => values[t * size],
  };
}
