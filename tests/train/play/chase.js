// Which way the red snake goes for the food by the shortest free way; null once it cannot move.
const f = game.frame(), { rows, cols } = f.constants;
const head = f.at("other_head"), food = f.at("food"), heading = f.at("other_heading");
if (head < 0 || game.ending) return null;
const isTaken = (cell) => ["own_entered", "other_entered"].some((name) => f.row(name)[cell] !== -(2 ** 31));
const placeOf = (cell) => [cell % cols, Math.floor(cell / cols)];
const [x, y] = placeOf(head), [u, v] = placeOf(food);
const ways = [[0, -1], [1, 0], [0, 1], [-1, 0]]
  .map(([dx, dy], direction) => ({ direction, x: x + dx, y: y + dy }))
  .filter((way) => way.direction !== (heading + 2) % 4)
  .filter((way) => way.x >= 0 && way.y >= 0 && way.x < cols && way.y < rows)
  .filter((way) => !isTaken(way.y * cols + way.x));
const distance = (way) => Math.abs(way.x - u) + Math.abs(way.y - v);
ways.sort((a, b) => distance(a) - distance(b));
return ways.length ? ways[0].direction : heading;
