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

for (const table of document.querySelectorAll("table")) {
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

// Plots: drawn by Plotly in the colours of the page; a choice among several redraws, and so does another
// style or width. On narrow screens the legend stands below, and a finger scrolls the page.
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = window.matchMedia("(max-width: 640px)");

function coloured(node, colours) {
  if (Array.isArray(node)) {
    return typeof node[0] === "number" ? node : node.map((one) => coloured(one, colours));
  }
  if (node !== null && typeof node === "object") {
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, coloured(value, colours)]));
  }
  return typeof node === "string" && node in colours ? colours[node] : node;
}

function fitted(figure) {
  const style = getComputedStyle(document.documentElement);
  const [ink, soft, line, paper] = ["ink", "soft", "line", "paper"].map((name) =>
    style.getPropertyValue("--" + name).trim());
  const colours = { "#000000": ink, "#ffffff": paper };
  const data = coloured(figure.data, colours);
  const layout = coloured(figure.layout, colours);
  Object.assign(layout, { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" });
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink };
  layout.font = { ...layout.font, color: ink };
  for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
    layout[key] = { gridcolor: line, linecolor: soft, ...layout[key] };
  }
  if (narrow.matches) {
    const names = data.filter((one) => one.name && one.showlegend !== false).length;
    const rows = names > 1 && layout.showlegend !== false ? Math.ceil(names / 2) : 0;
    layout.height = (layout.height || 420) + 22 * rows;
    layout.legend = { ...layout.legend, orientation: "h", x: 0, y: -0.2, yanchor: "top" };
    layout.margin = { ...layout.margin, l: 10, r: 10 };
    layout.font.size = 11;
    layout.dragmode = false;
  }
  return { data, layout };
}

for (const place of document.querySelectorAll("div.plot")) {
  const mine = figures[place.dataset.figures];
  const chooser = document.querySelector(`select[data-plot="${place.id}"]`);
  const draw = () => {
    const figure = fitted(mine[chooser ? chooser.selectedIndex : 0]);
    const buttons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
    const options = { displaylogo: false, responsive: true, modeBarButtons: buttons, plotlyServerURL: "",
                      displayModeBar: narrow.matches ? false : "hover" };
    place.style.height = `${figure.layout.height || 420}px`;
    Plotly.react(place, figure.data, figure.layout, options);
  };
  if (chooser) chooser.addEventListener("change", draw);
  dark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  draw();
}
