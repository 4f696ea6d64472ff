// Drawings in SVG: a curve with a mark, and a map of cells with the line of a budget. Each is an image with a text for those
// who do not see it. Shades are told apart by lightness, curves by dashes: neither needs colour.
import { linear, logarithmic } from "./scales.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 420;
const HEIGHT = 270;
const EDGE = { left: 54, right: 16, top: 12, bottom: 44 };

/**
 * @typedef {Object} Axis
 * @property {string} label
 * @property {number} low
 * @property {number} high
 * @property {boolean} [log]
 */

/**
 * @typedef {Object} Curve
 * @property {Array<[number, number]>} points a gap where a coordinate is not finite
 * @property {string} kind style: "main", "lower" or "none"
 */

/**
 * @param {string} name
 * @param {Object<string, string|number>} attributes
 * @param {string} [text]
 * @returns {SVGElement}
 */
function element(name, attributes, text) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * @param {Axis} axis
 * @param {number} from
 * @param {number} to
 */
const scaleOf = (axis, from, to) => (axis.log ? logarithmic : linear)(axis.low, axis.high, from, to);

/**
 * An empty drawing with its axes.
 * @param {{x: Axis, y: Axis, text: string}} plot
 */
function frame(plot) {
  const x = scaleOf(plot.x, EDGE.left, WIDTH - EDGE.right);
  const y = scaleOf(plot.y, HEIGHT - EDGE.bottom, EDGE.top);
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": plot.text, class: "hs-plot" });
  const right = WIDTH - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  for (const tick of x.ticks) {
    svg.append(element("line", { x1: x.at(tick), x2: x.at(tick), y1: EDGE.top, y2: bottom + 4, class: "hs-grid" }));
    svg.append(element("text", { x: x.at(tick), y: bottom + 17, "text-anchor": "middle" }, x.text(tick)));
  }
  for (const tick of y.ticks) {
    svg.append(element("line", { x1: EDGE.left - 4, x2: right, y1: y.at(tick), y2: y.at(tick), class: "hs-grid" }));
    svg.append(element("text", { x: EDGE.left - 7, y: y.at(tick) + 4, "text-anchor": "end" }, y.text(tick)));
  }
  const middle = (EDGE.left + right) / 2;
  svg.append(element("text", { x: middle, y: HEIGHT - 8, "text-anchor": "middle", class: "hs-axis" }, plot.x.label));
  const turned = { transform: `translate(13 ${(EDGE.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" };
  svg.append(element("text", { ...turned, class: "hs-axis" }, plot.y.label));
  return { svg, x, y };
}

/**
 * @param {Curve} curve
 * @param {import("./scales.js").Scale} x
 * @param {import("./scales.js").Scale} y
 * @returns {SVGElement}
 */
function path(curve, x, y) {
  let data = "";
  let begun = false;
  for (const [a, b] of curve.points) {
    const place = [x.at(a), y.at(b)];
    const shown = place.every(Number.isFinite);
    if (shown) data += `${begun ? "L" : "M"}${place[0].toFixed(1)} ${place[1].toFixed(1)}`;
    begun = shown;
  }
  return element("path", { d: data, class: `hs-curve hs-${curve.kind}` });
}

/**
 * @param {{x: Axis, y: Axis, text: string, curves: Curve[], mark?: [number, number], line?: number}} plot `line` is a level of y
 * @returns {SVGElement}
 */
export function curvePlot(plot) {
  const { svg, x, y } = frame(plot);
  if (plot.line !== undefined && plot.line > plot.y.low && plot.line < plot.y.high) {
    const place = y.at(plot.line);
    svg.append(element("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: place, y2: place, class: "hs-budget" }));
    svg.append(element("text", { x: EDGE.left + 4, y: place - 5 }, "budget"));
  }
  for (const curve of plot.curves) svg.append(path(curve, x, y));
  const mark = plot.mark && { cx: x.at(plot.mark[0]), cy: y.at(plot.mark[1]) };
  if (mark && Number.isFinite(mark.cx) && Number.isFinite(mark.cy)) {
    svg.append(element("circle", { ...mark, r: 4.5, class: "hs-mark" }));
  }
  return svg;
}

/**
 * Cells of a map, from the lowest row; a value that is not yet known is null.
 * @typedef {{columns: number[], rows: number[], values: Array<number|null>}} Cells
 */

/**
 * @param {Cells & {x: string, y: string, budget: number, mark: [number, number], text: string,
 *   name: (value: number, column: number, row: number) => string}} map columns and rows rise by equal ratios; `name` says what a cell is
 * @returns {SVGElement}
 */
export function heatMap(map) {
  const { columns, rows } = map;
  const half = (values) => Math.sqrt(values[1] / values[0]);
  const [wide, high] = [half(columns), half(rows)];
  const axis = (label, values, factor) => ({ label, low: values[0] / factor, high: values.at(-1) * factor, log: true });
  const { svg, x, y } = frame({ x: axis(map.x, columns, wide), y: axis(map.y, rows, high), text: map.text });
  const valueOf = (i, j) => map.values[j * columns.length + i];
  const parted = (one, other) =>
    one !== null && other !== null && one <= map.budget !== other <= map.budget; // NaN is never within
  let border = "";
  rows.forEach((row, j) =>
    columns.forEach((column, i) => {
      const value = valueOf(i, j);
      const [left, right] = [x.at(column / wide), x.at(column * wide)];
      const [bottom, top] = [y.at(row / high), y.at(row * high)];
      if (value === null) return;
      const box = { x: left, y: top, width: right - left, height: bottom - top };
      const cell = element("rect", { ...box, class: "hs-cell", "fill-opacity": shade(value).toFixed(3) });
      cell.append(element("title", {}, map.name(value, column, row)));
      svg.append(cell);
      if (i + 1 < columns.length && parted(value, valueOf(i + 1, j))) border += `M${right} ${top}V${bottom}`;
      if (j + 1 < rows.length && parted(value, valueOf(i, j + 1))) border += `M${left} ${top}H${right}`;
    }),
  );
  svg.append(element("path", { d: border, class: "hs-halo" }), element("path", { d: border, class: "hs-border" }));
  const [a, b] = map.mark;
  if (x.at(a) >= EDGE.left && x.at(a) <= WIDTH - EDGE.right && y.at(b) >= EDGE.top && y.at(b) <= HEIGHT - EDGE.bottom) {
    svg.append(element("circle", { cx: x.at(a), cy: y.at(b), r: 8, class: "hs-around" }));
    svg.append(element("circle", { cx: x.at(a), cy: y.at(b), r: 4.5, class: "hs-mark" }));
  }
  return svg;
}

/**
 * Darkness of a cell: none at epsilon 0.1 and below, all at 100 and above.
 * @param {number} epsilon
 */
export const shade = (epsilon) => Math.min(Math.max(Math.log10(Math.max(epsilon, 1e-9) / 0.1) / 3, 0.02), 1);
