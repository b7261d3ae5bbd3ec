// Building the page, and numbers as people write them.

/** An HTML element; properties that are functions listen to the event of their name. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** An SVG element. */
function drawn(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A number in at most four digits. */
function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (typeof x !== "number") return String(x);
  const size = Math.abs(x);
  if (size >= 1e9 || (size > 0 && size < 1e-3)) return x.toExponential(2).replace("e+", "e");
  if (size >= 1e4) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(4)));
}

/** So many things, named in the plural: "1 game", "2,000 games". */
function quantity(count, things) {
  return count === 1 ? `1 ${things.replace(/s$/, "")}` : `${count.toLocaleString("en")} ${things}`;
}

/** A colour of the style sheet, such as "--ink". */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Names of fields as words: "death_wall" is "death wall". */
function words(name) {
  return name.replaceAll("_", " ");
}

/** A filled circle on a canvas. */
function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

/**
 * Makes a canvas sharp and ready to draw `width` by `height` units; returns the pixels of a unit.
 * The style sheet gets to know the shape, to leave room for the controls.
 */
function fit(canvas, width, height) {
  for (const name of [".board", ".player"]) canvas.closest(name)?.style.setProperty("--aspect", width / height);
  const wide = canvas.clientWidth || 300, density = window.devicePixelRatio || 1;
  const pixels = [Math.round(wide * density), Math.round((wide * density * height) / width)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  const pen = canvas.getContext("2d");
  pen.setTransform(pixels[0] / width, 0, 0, pixels[1] / height, 0, 0);
  pen.clearRect(0, 0, width, height);
  return wide / width;
}
