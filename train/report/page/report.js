// Puts a report together: episodes, curves, scores, settings.

const EVERY = 5_000; // milliseconds between two looks at a run that still learns
const REPORT = JSON.parse(document.getElementById("data").textContent);

function section(title, ...content) {
  return element("section", {}, element("h2", {}, title), ...content);
}

/** The name of a run with its colour, where there are several. */
function runName(i) {
  const swatch = element("span", { class: "swatch", style: `background: var(--run-${i % 6})` });
  return element("span", {}, REPORT.runs.length > 1 ? swatch : "", ` ${REPORT.runs[i].name} `);
}

/** The curves of one number, of all runs that have it; of a list of numbers one for each part. */
function curvesOf(name) {
  return REPORT.records.flatMap((record, i) => {
    const found = record?.series[name];
    if (!found) return [];
    const isScore = REPORT.runs[i].score === name;
    return found.curves.map((curve, part) => ({
      ...curve,
      x: record.steps,
      colour: `var(--run-${(REPORT.runs.length > 1 ? i : part) % 6})`,
      dash: REPORT.runs.length > 1 ? part : Math.floor(part / 6),
      label: found.labels[part] ?? (found.curves.length > 1 ? String(part + 1) : ""),
      dots: isScore ? record.evaluated : [],
    }));
  });
}

/** The shape of a chart across the page; in a narrow window its text would shrink with it. */
function chartSize(height) {
  return window.innerWidth < 640 ? { height: 200 } : { width: 760, height };
}

/** What a measure is called: an ending as the program says it, all else by the words of its name. */
function nameOf(name) {
  const said = REPORT.runs.flatMap((run) => run.endings).find(([ending]) => ending && ending === name);
  return said ? said[1] : words(name);
}

/** What the lines and dots of the curves are, those that there are. */
function curveNote(charts) {
  const most = Math.max(...REPORT.runs.map((run) => run.seeds.length));
  const band = most > 2 ? ", with its 95 % interval" : "";
  const units = [...new Set(REPORT.runs.map((run) => run.unit))];
  const parts = [`Over ${units.join(" or ")}.`];
  if (most > 1) parts.push(`Each thin line is one seed, the thick line is their mean${band}.`);
  const shows = (kind) => charts.some((chart) => chart.querySelector(`circle.${kind}`));
  if (shows("game")) parts.push(`${shows("lone") ? "Large dots" : "Dots"} are scores of test games, played while training.`);
  if (shows("lone")) parts.push(`${shows("game") ? "Small dots" : "Dots"} are points of a curve without neighbours.`);
  return parts.join(" ");
}

function learning() {
  const scores = [...new Set(REPORT.runs.map((run) => run.score))].filter((name) => REPORT.records.some((record) => record?.series[name]));
  if (!scores.length) return "";
  const charts = scores.map((name) => element("div", { class: "charts whole" }, chart(words(name), curvesOf(name), chartSize(260))));
  return section("Learning", legend(), ...charts, ...endings(), element("p", { class: "note" }, curveNote(charts)));
}

/** How training games ended, of each run whose program says so. */
function endings() {
  const charts = REPORT.runs.flatMap((run, i) => {
    const record = REPORT.records[i], named = run.endings.filter(([name]) => name);
    const means = named.map(([name]) => record?.series[name]?.curves[0].mean ?? []);
    const known = (record?.steps ?? []).map((_, k) => k).filter((k) => means.length && means.every((y) => Number.isFinite(y[k])));
    if (!known.length) return [];
    const of = (name) => known.map((k) => {
      const share = (other) => means[named.findIndex(([n]) => n === other)][k];
      return name ? share(name) : Math.max(0, 1 - named.reduce((sum, [other]) => sum + share(other), 0));
    });
    const parts = run.endings.map(([name, label, colour]) => ({ label, colour, y: of(name) }));
    const heading = REPORT.runs.length > 1 ? `How games ended: ${run.name}` : "How games ended";
    return [stack(heading, known.map((k) => record.steps[k]), parts, chartSize(220))];
  });
  return charts.map((x) => element("div", { class: "charts whole" }, x));
}

function legend() {
  return REPORT.runs.length > 1 ? element("p", {}, ...REPORT.runs.map((_, i) => runName(i))) : "";
}

/** Panels of all other numbers, those of episodes before those of the agent. */
function diagnostics() {
  const names = new Map();
  REPORT.records.forEach((record, i) => {
    for (const [name, { group }] of Object.entries(record?.series ?? {})) {
      if (name !== REPORT.runs[i].score) names.set(name, group);
    }
  });
  const panels = (group) => [...names].filter(([, g]) => g === group).map(([name]) => chart(nameOf(name), curvesOf(name)));
  const parts = [["Episodes while training", panels("finished")], ["What the agent measures", panels("agent")]];
  return parts.filter(([, charts]) => charts.length).map(([heading, charts]) =>
    section(heading, legend(), element("div", { class: "charts" }, ...charts)));
}

function table(head, rows) {
  const cell = (x) => element("td", { class: typeof x === "number" ? "number" : "" }, typeof x === "number" ? short(x) : x ?? "–");
  return element("div", { class: "wide" }, element("table", {},
    element("tr", {}, ...head.map((x) => element("th", {}, x))), ...rows.map((row) => element("tr", {}, ...row.map(cell)))));
}

/** Scores after training, from eval.json, and histograms of games played for this report. */
function evaluation() {
  const parts = REPORT.runs.map((run, i) => {
    const content = REPORT.evaluations[i], found = REPORT.distributions[i];
    if (!content && !found.length) return "";
    const rows = (content?.seeds ?? []).flatMap((of) => Object.entries(of).filter(([name, x]) => name !== "seed" && (typeof x === "number" || typeof x?.mean === "number"))
      .map(([name, x]) => [words(name), String(of.seed), x.mean ?? x, x.low, x.high]));
    const shares = found.filter((x) => "share" in x && x.share !== null).map((x) => [nameOf(x.name), `${(100 * x.share).toFixed(1)} %`]);
    return element("div", {}, REPORT.runs.length > 1 ? element("h3", {}, runName(i)) : "",
      shares.length ? table([`of ${quantity(found[0].games, "games")}${run.seeds.length > 1 ? ` of seed ${run.seeds[0]}` : ""}`, "share"], shares) : "",
      element("div", { class: "charts" }, ...found.filter((x) => x.counts && x.games).map((x) => histogram(words(x.name), x))),
      found.some((x) => x.counts && !["return", "length", run.score].includes(x.name)) ? element("p", { class: "note" }, "A name that ends in sum or mean is over all steps of a game, as return and length are. All others are what the environment says at its last step, which may be a sum that it keeps itself.") : "",
      rows.length ? element("details", {}, element("summary", {}, `Scores after ${content.updates ? quantity(content.updates, "updates") : "training"} (eval.json)`), table(["measure", "seed", "mean", "low", "high"], rows)) : "");
  });
  return parts.some((x) => x) ? section("Evaluation", ...parts) : "";
}

/** The pictures of runs that have no episodes. */
function pictures() {
  const parts = (REPORT.pictures ?? []).flatMap((those, i) => those.map(({ name, png }) =>
    element("figure", {}, element("img", { src: `data:image/png;base64,${png}`, alt: words(name) }),
      element("figcaption", {}, REPORT.runs.length > 1 ? runName(i) : "", words(name)))));
  return parts.length ? [section("Pictures", ...parts)] : [];
}

function settings() {
  return section("Settings and how to repeat it", ...REPORT.runs.map((run, i) => {
    const rows = run.settings.map(({ name, value, changed }) =>
      element("tr", { class: changed ? "changed" : "" }, element("td", {}, name), element("td", {}, JSON.stringify(value))));
    return element("div", {}, element("h3", {}, runName(i)), element("pre", {}, run.command),
      element("details", {}, element("summary", {}, `${quantity(run.settings.length, "settings")}; those that differ from the preset in bold`),
        element("div", { class: "wide" }, element("table", {}, ...rows))));
  }), element("p", { class: "note" }, REPORT.made));
}

/** The sections that change while a run learns. */
function results() {
  return [learning(), ...diagnostics(), evaluation()].filter((x) => x);
}

function subtitle() {
  const parts = REPORT.runs.map((run) => {
    const seeds = quantity(run.seeds.length, "seeds");
    const steps = REPORT.live ? `${REPORT.steps.toLocaleString("en")} of ${REPORT.budget.toLocaleString("en")}` : run.steps.toLocaleString("en");
    return `${run.program} ${run.preset}, ${steps} ${run.unit}, ${seeds}`;
  });
  document.getElementById("subtitle").textContent = parts.join(" · ");
}

/** Asks for the record again and again; what is open or scrolled to stays so. */
function follow(area) {
  const look = async () => {
    try {
      const answer = await fetch("data");
      if (answer.ok) {
        Object.assign(REPORT, await answer.json());
        const top = window.scrollY, open = [...area.querySelectorAll("details")].map((d) => d.open);
        area.replaceChildren(...results());
        area.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? false; });
        window.scrollTo(0, top);
        subtitle();
      } else document.getElementById("subtitle").textContent = await answer.text();  // a file of the run cannot be read
    } catch {
      document.getElementById("subtitle").textContent = "The run has ended, or the server was stopped: what is below is the last that was seen.";
      return;
    }
    setTimeout(look, EVERY);
  };
  setTimeout(look, EVERY);
}

/** The player with all episodes, if there are any. */
async function playerOf() {
  if (!REPORT.arrays) return null;
  const buffer = await unpack(REPORT.arrays), several = REPORT.runs.length > 1;
  const clips = REPORT.scenes.flatMap((scene, i) => (scene ? scene.episodes.map((episode, k) =>
    clipOf(buffer, scene, episode, `${several ? `${REPORT.runs[i].name}: ` : ""}${k + 1}. `)) : []));
  const first = REPORT.scenes.map((scene, i) => REPORT.scenes.slice(0, i).reduce((n, s) => n + (s ? s.episodes.length : 0), 0))
    .filter((_, i) => REPORT.scenes[i]?.episodes.length);
  return clips.length ? new Player(clips, first.slice(0, 4)) : null;
}

async function start() {
  const content = document.getElementById("content"), player = await playerOf(), area = element("div");
  content.replaceChildren();
  if (player) {
    content.append(section("Episodes", player.root));
    player.draw();
    globalThis.player = player; // for people who try things in the console
  }
  area.append(...results());
  content.append(...pictures(), area, settings());
  subtitle();
  if (REPORT.live) follow(area);
  document.body.dataset.ready = "yes";
}

start();
