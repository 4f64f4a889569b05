// What a page shows, measured where it is shown: evaluated by tests/browser.py in a real browser.
() => {
  const told = { overflow: [], overlaps: [], clipped: [], scrolls: [], names: [], tables: [], small: [], texts: [] };
  const root = document.documentElement;
  const visible = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const what = (node) => {
    const owner = node.closest("[id]");
    const text = node.textContent.trim().replace(/\s+/g, " ").slice(0, 50);
    return `${owner ? "#" + owner.id : ""} <${node.tagName.toLowerCase()}> ${text}`;
  };

  // The page is as wide as its window, and so is everything that does not scroll in a box of its own.
  if (root.scrollWidth > window.innerWidth) told.overflow.push(`page ${root.scrollWidth} of ${window.innerWidth}`);
  for (const node of document.body.querySelectorAll("*")) {
    if (node.closest("svg, .scroll, pre, script, style") || !visible(node)) continue;
    const box = node.getBoundingClientRect();
    if (box.width && (box.left < -0.5 || box.right > window.innerWidth + 0.5)) told.overflow.push(what(node));
    if (node.clientWidth && getComputedStyle(node).overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1
        && node.tagName !== "INPUT") told.overflow.push(`cut: ${what(node)}`);
  }
  for (const input of document.querySelectorAll("input[placeholder]")) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = getComputedStyle(input).font;
    if (pen.measureText(input.placeholder).width > input.clientWidth - 12) told.clipped.push(`placeholder: ${input.placeholder}`);
  }

  // No short table scrolls up and down in a box.
  for (const box of document.querySelectorAll("*")) {
    const style = getComputedStyle(box);
    if (!/auto|scroll/.test(style.overflowY) || box.scrollHeight <= box.clientHeight + 1 || box === root) continue;
    const rows = box.querySelectorAll("tbody tr").length;
    if (rows <= 60) told.scrolls.push(`${what(box)}: ${rows} rows`);
  }

  // Texts of a plot: corners on the page, so that turned ones are measured as they stand.
  const corners = (text) => {
    const box = text.getBBox(), matrix = text.getScreenCTM();
    return [[0, 0], [1, 0], [1, 1], [0, 1]].map(([x, y]) => {
      const point = new DOMPoint(box.x + x * box.width, box.y + y * box.height).matrixTransform(matrix);
      return [point.x, point.y];
    });
  };
  const apart = (one, other) => {
    for (const shape of [one, other]) {
      for (let i = 0; i < 2; i += 1) {
        const axis = [shape[i + 1][0] - shape[i][0], shape[i + 1][1] - shape[i][1]];
        const length = Math.hypot(...axis) || 1;
        const along = (corner) => (corner[0] * axis[0] + corner[1] * axis[1]) / length;
        const [a, b] = [one.map(along), other.map(along)];
        if (Math.max(...a) <= Math.min(...b) + 1.5 || Math.max(...b) <= Math.min(...a) + 1.5) return true;
      }
    }
    return false;
  };
  const drawn = [];
  for (const picture of document.querySelectorAll(".plot, main svg[role=img]")) {
    const place = picture.getBoundingClientRect();
    const texts = Array.from(picture.querySelectorAll("text")).filter((text) =>
      text.textContent.trim() && visible(text) && text.getBBox().width && !text.closest(".hoverlayer, .notifier"));
    const shapes = texts.map(corners);
    shapes.forEach((shape, index) => {
      const tall = Math.min(Math.hypot(shape[3][0] - shape[0][0], shape[3][1] - shape[0][1]), 99);
      if (tall < 9) told.small.push(`${tall.toFixed(1)} ${what(texts[index])}`);
      if (shape.some(([x, y]) => x < place.left - 1 || x > place.right + 1 || y < place.top - 1 || y > place.bottom + 1)) {
        told.clipped.push(what(texts[index]));
      }
      for (let other = 0; other < index; other += 1) {
        if (!apart(shape, shapes[other])) told.overlaps.push(`${what(texts[index])} | ${texts[other].textContent}`);
      }
    });
    drawn.push({ id: picture.id || what(picture), texts: texts.length,
                 marks: picture.querySelectorAll(picture.matches("svg") ? "rect" : ".point, .js-line, image, .trace path").length });
  }

  // Names for those who do not see, headings in sequence, cells under headings.
  const named = (node) => node.getAttribute("aria-label") || (node.getAttribute("aria-labelledby") || "").split(" ")
    .map((id) => (document.getElementById(id) || { textContent: "" }).textContent).join(" ").trim();
  for (const node of document.querySelectorAll("figure, [role=img], .plot, canvas, img, nav, table, [role=region]")) {
    if (!node.closest(".plot .svg-container") && !named(node)) told.names.push(what(node));
  }
  for (const input of document.querySelectorAll("input, select")) {
    if (!input.labels || !input.labels.length) told.names.push(what(input));
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const mine = Number(heading.tagName[1]);
    if (mine > level + 1 || (mine === 1 && level) || !heading.textContent.trim()) told.names.push(`heading ${what(heading)}`);
    level = mine;
  }
  const seen = new Set();
  for (const node of document.querySelectorAll("[id]")) {
    if (!node.closest(".plot .svg-container") && seen.has(node.id)) told.names.push(`twice: #${node.id}`);
    seen.add(node.id);
  }
  for (const table of document.querySelectorAll("table")) {
    const heads = table.querySelectorAll("thead th[scope=col]").length;
    const odd = Array.from(table.tBodies[0].rows).some((row) => row.cells.length !== heads);
    if (!heads || odd) told.tables.push(what(table));
  }

  // Every text with its colour and place, to be held against the pixels behind it.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const opaque = (node) => {
    let found = 1;
    for (let one = node; one && one !== document.body; one = one.parentElement) found *= Number(getComputedStyle(one).opacity);
    return found;
  };
  while (walker.nextNode()) {
    const text = walker.currentNode, owner = text.parentElement;
    if (!text.data.trim() || owner.closest("script, style, option, [aria-hidden=true], .hoverlayer, .notifier")) continue;
    if (!visible(owner) || told.texts.length >= 4000) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getClientRects()[0];
    if (!box || box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(owner), inSvg = owner instanceof SVGElement;
    told.texts.push({ what: what(owner), colour: inSvg ? style.fill : style.color, opacity: opaque(owner),
                      large: parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700),
                      box: [box.left + window.scrollX, box.top + window.scrollY, box.right + window.scrollX, box.bottom + window.scrollY] });
  }
  return { ...told, drawn, words: document.querySelector("main").innerText.trim().length };
}
