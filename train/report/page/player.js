// Plays episodes: several side by side, moment by moment, by one clock.
//
// A drawing of a program is an entry of `scenes`, added by its own script:
//   overlays        {name: whether it is shown at first}, what may be drawn on top
//   legend          {name: what its colours mean}, of overlays that need it
//   size(constants, frame) [width, height] of the drawing in its own units
//   at(frame, x, y) the place in the environment's units where (x, y) of the drawing lies; optional
//   caption(frame)  a line of text below it, if there is something to say
//   draw(pen, frame, view)
//     pen           a 2D context in these units
//     frame         .moment, .last, .constants, .row(name, moment = now), .at(name, moment = now),
//                   .has(name), .rows(name)
//     view          .overlays (a Set of names), .unit (units of the drawing in one pixel)

const scenes = {};
const SPEEDS = [1, 2, 5, 10, 20, 30, 60]; // moments a second

/** An episode of the data with its arrays unpacked. */
function clipOf(buffer, scene, episode, name) {
  const rows = (place) => rowsOf(buffer, place);
  const each = (object, f) => Object.fromEntries(Object.entries(object).map(([k, v]) => [k, f(v)]));
  return {
    name,
    drawing: scenes[scene.drawing],
    constants: each({ ...scene.constants, ...episode.constants }, (x) => (x && x.array ? rows(x.array) : x)),
    title: episode.title,
    count: episode.moments,
    frames: each(episode.frames, rows),
    lines: each(episode.lines, rows),
    bars: each(episode.bars, (b) => ({ labels: b.labels, limits: b.limits, values: rows(b.values), chosen: b.chosen && rows(b.chosen) })),
  };
}

/** What a drawing gets to see of a clip at a moment. */
function frameOf(clip, moment) {
  const rows = clip.frames;
  return {
    moment,
    last: clip.count - 1,
    constants: clip.constants,
    has: (name) => name in rows,
    rows: (name) => rows[name],
    row: (name, at = moment) => rows[name].row(at),
    at: (name, at = moment) => rows[name].at(at),
  };
}

/** One episode of a player: a choice, the drawing, what the agent thinks. */
class Pane {
  constructor(clips, chosen, changed) {
    this.clips = clips;
    this.clip = clips[chosen];
    this.canvas = element("canvas", { role: "img" });
    this.caption = element("p", { class: "caption" });
    this.details = element("div", { class: "thoughts" });
    this.choice = element(
      "select",
      { "aria-label": "episode", change: () => { this.clip = clips[this.choice.value]; this.rebuild(); changed(); } },
      ...clips.map((clip, i) => element("option", { value: i, selected: i === chosen }, `${clip.name}${clip.title}`)),
    );
    this.root = element("div", { class: "pane" }, this.choice, element("div", { class: "board" }, this.canvas, this.caption), this.details);
    this.rebuild();
  }

  /** Makes the rows of numbers anew, for another clip. */
  rebuild() {
    this.bars = Object.entries(this.clip.bars).map(([title, bars]) => {
      const known = bars.values.values.filter((x) => !Number.isNaN(x));
      const least = Math.min(0, known.reduce((a, b) => Math.min(a, b), 0));
      const most = Math.max(known.reduce((a, b) => Math.max(a, b), -Infinity), least + 1e-9);
      return { bars, limits: bars.limits ?? bars.labels.map(() => [least, most]), rows: new BarRows(title, bars.labels) };
    });
    this.details.replaceChildren(...this.bars.map((b) => b.rows.root));
  }

  /** Draws a moment; episodes that are over stay at their last one. */
  show(time, overlays) {
    const clip = this.clip, moment = Math.min(time, clip.count - 1);
    const frame = frameOf(clip, moment), [width, height] = clip.drawing.size(clip.constants, frame);
    const scale = fit(this.canvas, width, height);
    clip.drawing.draw(this.canvas.getContext("2d"), frame, { overlays, unit: 1 / scale });
    this.caption.textContent = clip.drawing.caption?.(frame) ?? "";
    this.canvas.setAttribute("aria-label", `${clip.title}, moment ${moment}`);
    for (const { bars, rows, limits } of this.bars) {
      rows.show(bars.values.row(moment), limits, bars.chosen ? bars.chosen.at(moment) : -1);
    }
  }
}

/** A line over time with the moment marked; a click goes there. */
class Line {
  constructor(name, go) {
    this.name = name;
    this.canvas = element("canvas", { click: (event) => go(event.offsetX / this.canvas.clientWidth) });
    this.value = element("span", { class: "value" });
    this.root = element("div", { class: "line" }, element("span", {}, name), this.canvas, this.value);
  }

  show(panes, time, count) {
    const density = window.devicePixelRatio || 1;
    const width = (this.canvas.width = Math.round(this.canvas.clientWidth * density));
    const height = (this.canvas.height = Math.round(34 * density));
    const pen = this.canvas.getContext("2d"), all = panes.map((p) => p.clip.lines[this.name]);
    let low = Infinity, high = -Infinity;
    for (const rows of all) for (const y of rows?.values ?? []) { if (y < low) low = y; if (y > high) high = y; }
    const x = (t) => (count > 1 ? (t / (count - 1)) * width : 0);
    const y = (v) => height - 3 - ((v - low) / (high - low || 1)) * (height - 6);
    pen.lineWidth = 1.2 * density;
    all.forEach((rows, i) => {
      if (!rows) return;
      pen.strokeStyle = colour(`--run-${i % 6}`);
      pen.beginPath();
      for (let t = 0, open = false; t < rows.count; t++) {
        const v = rows.at(t);
        if (Number.isNaN(v)) { open = false; continue; }
        open ? pen.lineTo(x(t), y(v)) : pen.moveTo(x(t), y(v));
        open = true;
      }
      pen.stroke();
      pen.fillStyle = pen.strokeStyle;
      for (const t of lonePoints([...rows.values])) disc(pen, x(t), y(rows.at(t)), 1.5 * density);
    });
    pen.fillStyle = colour("--ink");
    pen.fillRect(x(Math.min(time, count - 1)) - density / 2, 0, density, height);
    const told = (v) => short(Math.abs(v) < 1e-4 * (high - low) ? 0 : v); // stored in 16 bits
    this.value.textContent = all.map((rows) => (rows ? told(rows.at(Math.min(time, rows.count - 1))) : "–")).join(" · ");
  }
}

/** The player: panes, a timeline, lines over time. Space, arrows, Home, End, + and - steer it. */
class Player {
  constructor(clips, shown) {
    this.clips = clips;
    this.time = 0;
    this.playing = false;
    this.speed = 10;
    this.overlays = new Set();
    this.panes = shown.map((i) => this.pane(i));
    this.build();
    this.refresh();
    new ResizeObserver(() => this.draw()).observe(this.root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  pane(i) {
    return new Pane(this.clips, i, () => { this.refresh(); this.draw(); });
  }

  get count() {
    return Math.max(...this.panes.map((p) => p.clip.count));
  }

  build() {
    const button = (label, text, click) => element("button", { type: "button", "aria-label": label, title: label, click }, text);
    this.play = button("play or pause (space)", "▶", () => this.toggle());
    this.slider = element("input", { type: "range", min: 0, value: 0, "aria-label": "moment", input: () => this.go(Number(this.slider.value)) });
    this.moment = element("span", { class: "moment", "aria-live": "off" });
    this.speeds = element(
      "select",
      { "aria-label": "moments a second", change: () => { this.speed = Number(this.speeds.value); } },
      ...SPEEDS.map((s) => element("option", { value: s, selected: s === this.speed }, `${s} a second`)),
    );
    this.controls = element(
      "div", { class: "controls" }, this.slider, this.play,
      button("one step back (←)", "◀|", () => this.step(-1)), button("one step on (→)", "|▶", () => this.step(1)),
      this.speeds, button("show one more episode beside", "+ episode", () => this.beside(1)),
      button("show one episode less", "− episode", () => this.beside(-1)), this.moment,
    );
    this.choices = element("div", { class: "overlays" });
    this.legend = element("p", { class: "note" });
    this.area = element("div", { class: "panes" });
    this.lineArea = element("div", { class: "lines" });
    this.root = element(
      "section", { class: "player", tabindex: 0, "aria-label": "player", keydown: (e) => this.key(e) },
      this.area, this.controls, this.choices, this.legend, this.lineArea,
      element("p", { class: "note help" }, "Space plays and pauses, ← and → step, Home and End jump, + and − change the speed."),
    );
  }

  /** What depends on which episodes are shown. */
  refresh() {
    this.area.replaceChildren(...this.panes.map((p) => p.root));
    this.root.classList.toggle("single", this.panes.length === 1);
    this.slider.max = this.count - 1;
    this.time = Math.min(this.time, this.count - 1);
    const known = Object.assign({}, ...this.panes.map((p) => p.clip.drawing.overlays ?? {}));
    this.seen ??= new Set();
    for (const [name, first] of Object.entries(known)) {
      if (!this.seen.has(name) && first) this.overlays.add(name);
      this.seen.add(name);
    }
    const toggled = (name) => () => { this.overlays.has(name) ? this.overlays.delete(name) : this.overlays.add(name); this.draw(); };
    this.choices.replaceChildren(...Object.keys(known).map((name) =>
      element("label", {}, element("input", { type: "checkbox", checked: this.overlays.has(name), change: toggled(name) }), ` ${name}`)));
    this.legends = Object.assign({}, ...this.panes.map((p) => p.clip.drawing.legend ?? {}));
    const names = [...new Set(this.panes.flatMap((p) => Object.keys(p.clip.lines)))];
    this.lines = names.map((name) => new Line(name, (share) => this.go(Math.round(share * (this.count - 1)))));
    this.lineArea.replaceChildren(...this.lines.map((line) => line.root));
  }

  beside(change) {
    if (change < 0 && this.panes.length > 1) this.panes.pop();
    if (change > 0 && this.panes.length < 4) {
      const shown = this.panes.map((p) => p.clips.indexOf(p.clip));
      const free = this.clips.findIndex((_, i) => !shown.includes(i));
      this.panes.push(this.pane(Math.max(free, 0)));
    }
    this.refresh();
    this.draw();
  }

  go(moment) {
    this.time = Math.max(0, Math.min(this.count - 1, moment));
    this.draw();
  }

  step(by) {
    this.pause();
    this.go(this.time + by);
  }

  toggle() {
    this.playing ? this.pause() : this.start();
  }

  pause() {
    this.playing = false;
    this.play.textContent = "▶";
  }

  start() {
    if (this.time >= this.count - 1) this.time = 0;
    this.playing = true;
    this.play.textContent = "❚❚";
    let before = performance.now(), owed = 0;
    const tick = (now) => {
      if (!this.playing) return;
      owed = Math.min(owed + ((now - before) / 1000) * this.speed, this.speed);
      before = now;
      const steps = Math.floor(owed);
      if (steps) { owed -= steps; this.go(this.time + steps); }
      if (this.time >= this.count - 1) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  key(event) {
    const { tagName, type } = event.target, isOwn = ["SELECT", "BUTTON", "SUMMARY"].includes(tagName) || type === "checkbox";
    if (event.ctrlKey || event.metaKey || event.altKey || isOwn && event.key === " ") return; // which opens, presses or ticks it
    const faster = (by) => {
      this.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(this.speed) + by))];
      this.speeds.value = this.speed;
    };
    const actions = {
      " ": () => this.toggle(), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      Home: () => this.step(-this.count), End: () => this.step(this.count), "+": () => faster(1), "-": () => faster(-1),
    };
    if (!(event.key in actions) || event.target.tagName === "SELECT") return;
    event.preventDefault();
    actions[event.key]();
  }

  draw() {
    for (const pane of this.panes) pane.show(this.time, this.overlays);
    this.legend.textContent = [...this.overlays].filter((name) => this.legends[name]).map((name) => `${name}: ${this.legends[name]}`).join(". ");
    for (const line of this.lines) line.show(this.panes, this.time, this.count);
    this.slider.value = this.time;
    this.moment.textContent = `${this.time.toLocaleString("en")} of ${(this.count - 1).toLocaleString("en")}`;
  }
}
