// A game that goes on in the library: asks for step after step, and shows what comes.

const LIVE = JSON.parse(document.getElementById("data").textContent);
const HISTORY = 600; // moments that can be looked at again
const PAUSE = 1200; // milliseconds between two games of a duel
const LEGIBLE = 3000; // milliseconds for which a refusal stays, however fast the steps are
const ARROWS = { ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3 };

/** An array of a message. */
function received({ type, shape, data }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const Kind = { uint8: Uint8Array, int32: Int32Array, float32: Float32Array }[type];
  return { values: new Kind(bytes.buffer), shape };
}

/** Rows that grow by one with every moment; the oldest are forgotten. */
class Growing {
  constructor() {
    this.rows = [];
  }

  add(values) {
    this.rows.push(values);
    if (this.rows.length > HISTORY) this.rows.shift();
  }

  get count() {
    return this.rows.length;
  }

  /** As `asRows` makes them. */
  view() {
    const rows = this.rows, size = rows[0].length;
    return { count: rows.length, size, get values() { return rows.flatMap((r) => [...r]); }, row: (t) => rows[t], at: (t) => rows[t][0] };
  }
}

/** Whether a key does something to what has the focus: a choice, a slider, a box to tick, a part to open. */
function isFor({ tagName, type }, key) {
  if (key === "n") return false;
  if (tagName === "SUMMARY") return key === " ";
  return tagName === "SELECT" || tagName === "INPUT" && (type !== "checkbox" || key === " ");
}

class LiveGame {
  constructor(root) {
    this.playing = true;
    this.speed = 10;
    this.byHand = false;
    this.wanted = null; // the direction of the newest arrow key
    this.waiting = false; // for an answer
    this.preparing = false; // players who are to meet
    this.overlays = new Set(Object.entries(scenes[LIVE.drawing].overlays ?? {}).filter(([, on]) => on).map(([name]) => name));
    this.edit = LIVE.edits.find((e) => !e.limits)?.name ?? null;
    this.build(root);
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    this.socket = new WebSocket(address);
    this.socket.onmessage = (event) => this.hear(JSON.parse(event.data));
    this.socket.onclose = () => this.say("The game has ended: the program that plays it is not running any more, or too many pages are open.");
    window.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => this.draw());
  }

  build(root) {
    const button = (label, text, click) => element("button", { type: "button", "aria-label": label, title: label, click }, text);
    this.canvas = element("canvas", { role: "img", tabindex: -1, "aria-label": `${LIVE.program}, live`, click: (event) => this.place(event) });
    this.caption = element("p", { class: "caption" });
    this.thoughts = element("div", { class: "thoughts" });
    this.play = button("play or pause (space)", "❚❚", () => this.toggle());
    this.speeds = element("select", { "aria-label": "steps a second", change: () => { this.speed = Number(this.speeds.value); } },
      ...SPEEDS.map((s) => element("option", { value: s, selected: s === this.speed }, `${s} a second`)));
    this.hand = element("input", { type: "checkbox", change: () => { this.byHand = this.hand.checked; this.wanted = null; this.canvas.focus({ preventScroll: true }); } });
    this.status = element("p", { class: "note", role: "status", "aria-live": "polite" });
    const overlays = Object.keys(scenes[LIVE.drawing].overlays ?? {}).map((name) => element("label", {},
      element("input", { type: "checkbox", checked: this.overlays.has(name), change: () => { this.overlays.has(name) ? this.overlays.delete(name) : this.overlays.add(name); this.draw(); } }), ` ${name}`));
    this.lineArea = element("div", { class: "lines" });
    root.append(element("section", { class: "player single" },
      element("div", { class: "panes" }, element("div", { class: "pane" }, element("div", { class: "board" }, this.canvas, this.caption), this.thoughts)),
      element("div", { class: "controls" }, this.play, button("one step (→ while nobody steers)", "|▶", () => { this.pause(); this.step(); }), this.speeds,
        button("begin anew (n)", "new game", () => this.send({ do: "new" })),
        LIVE.hand ? element("label", {}, this.hand, ` ${LIVE.hand} (arrow keys, h)`) : ""),
      this.duel(), this.pads(button), element("div", { class: "overlays" }, ...overlays), this.edits(), this.status, this.lineArea));
  }

  /** Who plays whom, how it stands between them, and whether they go on. */
  duel() {
    if (!LIVE.duel) return "";
    const { names, sides, start } = LIVE.duel;
    this.seats = sides.map((side, i) => element("select", { "aria-label": `${side} player`, change: () => this.meet() },
      ...names.map((name) => element("option", { value: name, selected: name === start[i] }, name))));
    this.standing = element("span", { class: "standing", "aria-live": "polite" });
    this.goesOn = element("input", { type: "checkbox" });
    const seats = sides.map((side, i) => element("label", {}, `${i ? "against " : ""}${side} `, this.seats[i]));
    return element("div", { class: "overlays" }, ...seats, this.standing, element("label", {}, this.goesOn, " game after game"));
  }

  /** A new game between those who are chosen, whose programs may have to be compiled. */
  meet() {
    this.preparing = true;
    this.say("Preparing the players …");
    this.send({ do: "new", players: this.seats.map((seat) => seat.value) });
  }

  showStanding(players, [won, drawn, lost]) {
    this.seats.forEach((seat, i) => { seat.value = players[i]; });
    this.standing.textContent = ` games: ${players[0]} ${won} : ${lost} ${players[1]}${drawn ? `, ${drawn} drawn` : ""} `;
  }

  /** Buttons for those without arrow keys. */
  pads(button) {
    if (!LIVE.hand) return "";
    const names = [["up", "↑", 0], ["left", "←", 3], ["down", "↓", 2], ["right", "→", 1]];
    return element("div", { class: "pads" }, ...names.map(([name, sign, direction]) => button(name, sign, () => this.steer(direction))));
  }

  edits() {
    this.sliders = {}; // by name, each with its text
    const parts = LIVE.edits.map((edit) => {
      if (!edit.limits) {
        const chosen = element("input", { type: "radio", name: "place", checked: edit.name === this.edit, change: () => { this.edit = edit.name; } });
        return element("label", {}, chosen, ` a click: ${edit.label}`);
      }
      const [low, high] = edit.limits, value = element("output", {});
      const slider = element("input", { type: "range", min: low, max: high, step: (high - low) / 200, "aria-label": edit.label,
        change: () => { this.send({ do: "edit", name: edit.name, value: Number(slider.value) }); }, input: () => { value.textContent = ` ${short(Number(slider.value))}`; } });
      this.sliders[edit.name] = { slider, value };
      return element("label", {}, `${edit.label} `, slider, value);
    });
    return parts.length ? element("div", { class: "overlays" }, ...parts) : "";
  }

  /** Sliders show what the game has, also after a change that was refused. */
  showNumbers() {
    for (const [name, number] of Object.entries(this.numbers ?? {})) {
      const { slider, value } = this.sliders[name];
      slider.value = number;
      value.textContent = ` ${short(number)}`;
    }
  }

  send(message) {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    this.waiting = true;
    this.socket.send(JSON.stringify(message));
  }

  step() {
    if (this.waiting || this.preparing || this.ending) return;
    this.send(this.byHand && this.wanted !== null ? { do: "step", direction: this.wanted } : { do: "step" });
  }

  hear(message) {
    this.waiting = false;
    if (message.error || message.moment === 0) this.preparing = false; // not by a step that was made before
    if (message.error) {
      this.say(message.error);
      this.legibleUntil = performance.now() + LEGIBLE;
      this.showNumbers();
    } else {
      this.take(message);
      this.draw();
    }
    document.body.dataset.ready = "yes";
    if (!this.ticking) this.tick();
  }

  /** A new moment, or the first of a new game. */
  take({ moment, frames, lines, bars, ending, constants, numbers, players, score }) {
    if (moment === 0) this.frames = this.lines = null;
    if (numbers) {
      this.numbers = numbers;
      this.showNumbers();
    }
    if (constants) {
      this.legibleUntil = 0; // of a refusal: what came after it was accepted
      this.constants = Object.fromEntries(Object.entries(constants).map(([name, x]) => {
        if (!x?.data) return [name, x];
        const { values, shape } = received(x);
        return [name, asRows(values, shape[0], values.length / shape[0])];
      }));
    }
    this.frames ??= Object.fromEntries(Object.keys(frames).map((name) => [name, new Growing()]));
    this.lines ??= Object.fromEntries(Object.keys(lines).map((name) => [name, new Growing()]));
    const again = moment === this.moment && moment > 0; // an edit of what is shown
    this.moment = moment;
    for (const [name, x] of Object.entries(frames)) {
      if (again) this.frames[name].rows.pop();
      this.frames[name].add(received(x).values);
    }
    for (const [name, x] of Object.entries(lines)) {
      if (again) this.lines[name].rows.pop();
      this.lines[name].add([x ?? NaN]);
    }
    this.bars = bars;
    this.ending = ending;
    this.endedAt = performance.now();
    if (this.preparing) return;
    if (players) this.showStanding(players, score);
    if (ending) this.say(`${ending}: ${quantity(moment, "steps")}. Press n for a new game.`);
    else if (!(performance.now() < this.legibleUntil)) this.say("");
  }

  frame() {
    const shown = Object.fromEntries(Object.entries(this.frames).map(([name, rows]) => [name, rows.view()]));
    const clip = { frames: shown, constants: this.constants, count: this.frames[Object.keys(this.frames)[0]].count };
    return frameOf(clip, clip.count - 1);
  }

  draw() {
    if (!this.frames) return;
    const drawing = scenes[LIVE.drawing], frame = this.frame();
    const [width, height] = drawing.size(frame.constants, frame);
    this.scale = fit(this.canvas, width, height);
    drawing.draw(this.canvas.getContext("2d"), frame, { overlays: this.overlays, unit: 1 / this.scale });
    this.caption.textContent = `step ${this.moment.toLocaleString("en")}${drawing.caption ? ` · ${drawing.caption(frame)}` : ""}`;
    this.showThoughts();
    this.showLines();
  }

  showThoughts() {
    const names = JSON.stringify(Object.entries(this.bars).map(([name, b]) => [name, b.labels.length]));
    if (names !== this.barNames) {
      this.barNames = names;
      this.rows = Object.entries(this.bars).map(([title, bars]) => new BarRows(title, bars.labels));
      this.thoughts.replaceChildren(...this.rows.map((r) => r.root));
    }
    Object.values(this.bars).forEach((bars, i) => {
      const values = received(bars.values).values;
      const least = Math.min(0, ...values.filter(Number.isFinite)), most = Math.max(...values.filter(Number.isFinite), least + 1e-9);
      this.rows[i].show(values, bars.limits ?? bars.labels.map(() => [least, most]), bars.chosen);
    });
  }

  showLines() {
    const views = Object.fromEntries(Object.entries(this.lines).map(([name, rows]) => [name, rows.view()]));
    const names = Object.keys(views).join();
    if (names !== this.lineNames) { // another player may value nothing
      this.lineNames = names;
      this.drawnLines = Object.keys(views).map((name) => new Line(name, () => {}));
      this.lineArea.replaceChildren(...this.drawnLines.map((l) => l.root));
    }
    const clip = { lines: views, count: views[Object.keys(views)[0]].count };
    for (const line of this.drawnLines) line.show([{ clip }], clip.count - 1, clip.count);
  }

  /** A click into the drawing: where that is in the units of the environment. */
  place(event) {
    if (!this.edit || !this.frames) return;
    const drawing = scenes[LIVE.drawing], x = event.offsetX / this.scale, y = event.offsetY / this.scale;
    const at = drawing.at ? drawing.at(this.frame(), x, y) : [x, y];
    if (at) this.send({ do: "edit", name: this.edit, value: at });
  }

  tick() {
    this.ticking = true;
    let before = 0;
    const next = (now) => {
      if (this.playing && now - before >= 1000 / this.speed) {
        before = now;
        this.step();
      }
      const isOver = this.playing && this.ending && !this.waiting && !this.preparing;
      if (isOver && this.goesOn?.checked && now - this.endedAt >= PAUSE) this.send({ do: "new" });
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  toggle() {
    this.playing ? this.pause() : this.resume();
  }

  pause() {
    this.playing = false;
    this.play.textContent = "▶";
  }

  resume() {
    this.playing = true;
    this.play.textContent = "❚❚";
  }

  /** An arrow: steers from the next step on; a paused game makes that step. */
  steer(direction) {
    if (!this.byHand) { this.byHand = true; this.hand.checked = true; }
    this.wanted = direction;
    if (!this.playing) this.step();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isFor(event.target, event.key)) return;
    const actions = { " ": () => this.toggle(), n: () => this.send({ do: "new" }) };
    if (LIVE.hand) {
      actions.h = () => { this.byHand = this.hand.checked = !this.byHand; this.wanted = null; };
      for (const [name, direction] of Object.entries(ARROWS)) actions[name] = () => this.steer(direction);
    } else {
      actions.ArrowRight = () => { this.pause(); this.step(); };
    }
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  say(text) {
    this.status.textContent = text;
  }
}

const content = document.getElementById("content");
content.replaceChildren();
document.getElementById("subtitle").textContent = `${LIVE.program}, live${LIVE.learns ? "; it learns from every step" : ""}`;
globalThis.game = new LiveGame(content);
