"use strict";

// Tables: a click on a heading sorts by its column, a second one the other way round.
function sortTable(table, column, descending) {
  const body = table.tBodies[0];
  const isNumber = table.tHead.rows[0].cells[column].classList.contains("number");
  const keyed = Array.from(body.rows, (row, index) => {
    const text = row.cells[column].dataset.order;
    return { row, index, missing: text === "", key: isNumber ? Number(text) : text };
  });
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.missing || b.missing) return a.missing - b.missing || a.index - b.index;
    const order = isNumber ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true });
    return sign * order || a.index - b.index;
  });
  body.append(...keyed.map((one) => one.row));
}

for (const table of document.querySelectorAll("table[data-sorts]")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortTable(table, column, descending);
    });
  });
}

// Search: a row stays where it has every word.
for (const input of document.querySelectorAll("input[data-table]")) {
  const table = document.getElementById(input.dataset.table);
  const count = document.getElementById(input.dataset.table + "-count");
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
  };
  input.addEventListener("input", search);
  search();
}

// Drawings: a slider chooses the step that is seen, a button runs through all of them.
for (const panel of document.querySelectorAll(".steps")) {
  const slider = panel.querySelector("input[type=range]");
  if (!slider) continue;
  const button = panel.querySelector("button");
  const steps = Array.from(panel.querySelectorAll(".step"));
  let timer = null;
  const show = () => steps.forEach((step, index) => { step.hidden = index + 1 !== Number(slider.value); });
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
    button.setAttribute("aria-pressed", "false");
  };
  slider.addEventListener("input", () => { stop(); show(); });
  button.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    button.textContent = "Stop";
    button.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      slider.value = (Number(slider.value) % steps.length) + 1;
      show();
    }, 900);
  });
}

// Plots: drawn by Plotly in the colours of the page; a choice among several draws anew, and so does another
// style or width, or paper.  On narrow screens the legend stands below, and a finger scrolls the page.
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = window.matchMedia("(max-width: 640px)");
const print = window.matchMedia("print");

function coloured(node, colours) {
  if (Array.isArray(node)) {
    return typeof node[0] === "number" ? node : node.map((one) => coloured(one, colours));
  }
  if (node !== null && typeof node === "object") {
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, coloured(value, colours)]));
  }
  return typeof node === "string" && node in colours ? colours[node] : node;
}

function fitted(figure, width) {
  const style = getComputedStyle(document.documentElement);
  const [ink, soft, line, paper] = ["ink", "soft", "line", "paper"].map((name) =>
    style.getPropertyValue("--" + name).trim());
  const colours = { "#000000": ink, "#ffffff": paper };
  const data = coloured(figure.data, colours);
  const layout = coloured(figure.layout, colours);
  Object.assign(layout, { width, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" });
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink };
  layout.font = { ...layout.font, color: ink };
  for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
    layout[key] = { gridcolor: line, linecolor: soft, ...layout[key] };
  }
  layout.height = layout.height || 420;
  for (const one of data.filter((trace) => trace.texttemplate && trace.type === "heatmap")) {
    const longest = Math.max(...one.text.flat().map((text) => text.length));
    if (7 * longest + 4 > (width - (width < 640 ? 90 : 230)) / one.x.length) delete one.texttemplate;
  }
  if (width < 640) {
    const named = data.filter((one) => one.name && one.showlegend !== false);
    const longest = Math.max(0, ...named.map((one) => one.name.length));
    const beside = Math.max(1, Math.floor((width - 20) / (46 + 6.5 * longest)));
    const rows = named.length > 1 && layout.showlegend !== false ? Math.ceil(named.length / beside) : 0;
    const title = layout.legend && layout.legend.title ? 20 : 0;
    layout.margin = { ...layout.margin, l: 10, r: 10, b: layout.margin.b + 20 * rows + title };
    layout.height += 20 * rows + title;
    if (title) layout.legend.title.side = "top";
    layout.legend = { ...layout.legend, orientation: "h", x: 0, xref: "container", y: 0, yref: "container",
                      yanchor: "bottom", xanchor: "left" };
    layout.font.size = 11;
    layout.dragmode = false;
    for (const one of data.filter((trace) => trace.colorbar)) {
      one.colorbar = { ...one.colorbar, orientation: "h", y: 1, yanchor: "bottom", thickness: 10, len: 1,
                       title: { ...one.colorbar.title, side: "top" } };
      layout.margin.t = 70;
      layout.height += 40;
    }
  }
  return { data, layout };
}

for (const place of document.querySelectorAll("div.plot")) {
  const mine = figures[place.dataset.figures];
  const chooser = document.querySelector(`select[data-plot="${place.id}"]`);
  let width = 0; // Plotly's own way to follow the window forgets the ranges of axes
  const draw = () => {
    width = place.clientWidth;
    const figure = fitted(mine[chooser ? chooser.selectedIndex : 0], width);
    const buttons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
    const options = { displaylogo: false, modeBarButtons: buttons, plotlyServerURL: "",
                      displayModeBar: narrow.matches ? false : "hover" };
    place.style.height = `${figure.layout.height}px`;
    Plotly.newPlot(place, figure.data, figure.layout, options).then(() => {
      for (const drawing of document.querySelectorAll(".plot svg, #js-plotly-tester")) {
        drawing.setAttribute("aria-hidden", "true"); // the plot has a name as a whole
      }
    });
  };
  if (chooser) chooser.addEventListener("change", draw);
  for (const query of [dark, print]) query.addEventListener("change", draw);
  let waiting = 0;
  new ResizeObserver(() => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => place.clientWidth !== width && draw(), 100);
  }).observe(place);
  draw();
}
