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

// Plots: drawn by Plotly; a choice among several redraws.
const figures = JSON.parse(document.getElementById("figures").textContent);
for (const place of document.querySelectorAll("div.plot")) {
  const mine = figures[place.dataset.figures];
  const chooser = document.querySelector(`select[data-plot="${place.id}"]`);
  const draw = () => {
    const figure = mine[chooser ? chooser.selectedIndex : 0];
    const buttons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
    const options = { displaylogo: false, responsive: true, modeBarButtons: buttons, plotlyServerURL: "" };
    place.style.height = `${figure.layout.height || 420}px`;
    Plotly.react(place, figure.data, figure.layout, options);
  };
  if (chooser) chooser.addEventListener("change", draw);
  draw();
}
