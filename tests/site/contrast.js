// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of a page or of a picture whose contrast with their background is below the limit of WCAG 2.2 AA.
// The limit is 4.5; that of large texts is 3.
// The background of a text in a drawing is the first filled shape under its centre, or that of the page.
() => {
  const parse = text => {
    const values = (text.match(/[\d.]+/g) || []).map(Number);
    return text.startsWith("rgb") && (values.length === 3 || values[3] > 0.5) ? values.slice(0, 3) : null;
  };
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const page = () => parse(getComputedStyle(document.querySelector("body") || document.documentElement).backgroundColor);
  const isShape = element => element instanceof SVGGeometryElement;
  const paint = element => parse(getComputedStyle(element)[isShape(element) ? "fill" : "backgroundColor"]);
  const isWords = element => element instanceof SVGTextContentElement;
  const behind = element => {
    if (!element.closest("svg")) {
      for (; element; element = element.parentElement) {
        const colour = paint(element);
        if (colour) return colour;
      }
      return page() || [255, 255, 255];
    }
    element.scrollIntoView({block: "center", inline: "center"});
    const box = element.getBoundingClientRect();
    const under = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return under.filter(each => !isWords(each)).map(paint).find(Boolean) || page() || [255, 255, 255];
  };
  const style = document.documentElement.appendChild(document.createElementNS("http://www.w3.org/1999/xhtml", "style"));
  style.textContent = "* { pointer-events: auto !important; transition: none !important; scroll-behavior: auto !important }";
  const found = new Set();
  let texts = 0;
  for (const element of document.querySelectorAll("*")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("script, style, title, desc, defs, noscript") || !element.getClientRects().length) continue;
    const shown = getComputedStyle(element);
    if (shown.visibility === "hidden" || Number(shown.opacity) === 0) continue;
    const ink = parse(isWords(element) ? shown.fill : shown.color);
    if (!ink) continue;
    texts += 1;
    const [first, second] = [light(ink), light(behind(element))];
    const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
    const size = parseFloat(shown.fontSize), bold = Number(shown.fontWeight) >= 700;
    const limit = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    const label = `${element.tagName}.${element.getAttribute("class") || ""} "${element.textContent.trim().slice(0, 30)}"`;
    if (ratio < limit) found.add(`${label}: ${ratio.toFixed(2)}`);
  }
  style.remove();
  return {texts, found: [...found].slice(0, 20)};
}
