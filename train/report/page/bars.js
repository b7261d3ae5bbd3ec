// What an agent makes of its options: a bar for each, with its name and number.

class BarRows {
  constructor(title, labels) {
    this.rows = labels.map((label) => {
      const fill = element("div", { class: "fill" }), value = element("span", { class: "value" });
      return { fill, value, parts: [element("span", {}, label), element("div", { class: "track" }, fill), value] };
    });
    this.title = title;
    this.heading = element("summary", {}, title);
    const list = element("div", { class: "bars" }, ...this.rows.flatMap((row) => row.parts));
    this.root = element("details", { open: labels.length <= 8 }, this.heading, list);
  }

  /** Shows values, each within its limits, from 0 on where that lies within; of actions, which is taken. */
  show(values, limits, chosen) {
    this.heading.textContent = chosen >= 0 ? `${this.title} (blue: the action taken)` : this.title;
    this.rows.forEach((row, i) => {
      const [low, high] = limits[i], value = values[i], zero = Math.min(Math.max(0, low), high);
      const share = (x) => (Number.isNaN(x) ? 0 : (100 * (Math.min(Math.max(x, low), high) - low)) / (high - low));
      row.fill.style.marginLeft = `${Math.min(share(value), share(zero))}%`;
      row.fill.style.width = `${Number.isNaN(value) ? 0 : Math.abs(share(value) - share(zero))}%`;
      row.fill.classList.toggle("chosen", i === chosen);
      row.value.textContent = short(Math.abs(value) < 1e-4 * (high - low) ? 0 : value);
    });
  }
}
