// The pictures of the page, each with the text that says what it shows.
import { namedNoise } from "./answers.js";
import { fieldsOf, lengthIn } from "./engine.js";
import { FIELDS } from "./fields.js";
import { short } from "./numbers.js";
import { curvePlot, heatMap } from "./plots.js";
import { tickText } from "./scales.js";
import { valuesOf } from "./state.js";

/** @typedef {import("./state.js").Settings} Settings */

/** @param {Array<[number, number]>} points */
const largest = (points) => Math.max(...points.map(([, value]) => value).filter(Number.isFinite), 0);

/** The setting with the length, in words. */
const nameOf = (length) => (length === "num_records" ? "records, one a step" : length);

/** A number in a text that describes a picture: never below the number, to three digits. */
const shown = (value) => short(Number((value * 1.0051).toPrecision(3)));
/** The same for a probability, whose powers of ten are written as such. */
const above = (value) => tickText(Number(Math.min(value * 1.0051, 1).toPrecision(3)));

/**
 * @param {Settings} settings
 * @param {{points: Array<[number, number]>, epsilon: number}} curve with the number of these settings
 * @param {boolean} withBudget
 */
export function stepsFigure(settings, { points, epsilon }, withBudget) {
  const values = valuesOf(settings);
  const { length } = fieldsOf(values.mechanism);
  const name = nameOf(length);
  const [first, last] = [points[0], points.at(-1)];
  return curvePlot({
    x: { label: name, low: 0, high: last[0] },
    y: { label: "ε at most", low: 0, high: 1.08 * Math.max(largest(points), 1e-3) },
    curves: [{ points, kind: "main" }],
    mark: [lengthIn(values), epsilon],
    line: withBudget ? values.budget : undefined,
    text: `ε over ${name}: at most ${shown(first[1])} after ${first[0]}, ${shown(last[1])} after ${last[0]}${withBudget ? `; the budget is ${values.budget}` : ""}.`,
  });
}

/**
 * @param {Settings} settings
 * @param {{points: Array<[number, number]>, epsilon: number}} curve with the number of these settings
 */
export function deltaFigure(settings, { points, epsilon }) {
  const { delta } = valuesOf(settings);
  const least = Math.max(Math.min(...points.map(([, value]) => value).filter((value) => value > 0), delta), 1e-30);
  const low = Math.min(10 ** Math.floor(Math.log10(least)), 0.1);
  return curvePlot({
    x: { label: "ε", low: 0, high: points.at(-1)[0] },
    y: { label: "δ at most", low, high: 1, log: true },
    curves: [{ points: points.map(([at, value]) => [at, value >= low ? value : NaN]), kind: "main" }],
    mark: [epsilon, delta],
    text: `δ over ε: at most ${above(points[0][1])} at ε = 0, falling to ${above(points.at(-1)[1])} at ε = ${shown(points.at(-1)[0])}.`,
  });
}

/**
 * @param {{tradeOff: Array<[number, number]>, advantage: string}} answer
 */
export function tradeOffFigure({ tradeOff, advantage }) {
  const axis = (label) => ({ label, low: 0, high: 1 });
  const [, missed] = tradeOff.find(([rate]) => rate >= 0.1);
  return curvePlot({
    x: axis("false positives of a membership test"),
    y: axis("false negatives, at least"),
    curves: [
      { points: [[0, 1], [1, 0]], kind: "none" },
      { points: tradeOff, kind: "main" },
    ],
    text:
      `Trade-off curve: a test of membership with a tenth of false positives misses at least ${Math.floor(missed * 1000) / 10}% of the ` +
      `members. The advantage of any test is at most ${advantage}. The dashed line is guessing.`,
  });
}

/**
 * @param {Settings} settings
 * @param {import("./plots.js").Cells} cells
 */
export function cellsFigure(settings, cells) {
  const values = valuesOf(settings);
  const { noise, length } = fieldsOf(values.mechanism);
  const within = cells.values.filter((value) => value !== null && value <= values.budget).length;
  const lower = length === "num_records" ? "more noise and more records after the one in question" : `more noise and fewer ${length}`;
  const known = cells.values.filter((value) => value !== null).length;
  return heatMap({
    ...cells,
    x: nameOf(length),
    y: FIELDS[noise].label,
    budget: values.budget,
    mark: [lengthIn(values), values[noise]],
    name: (value, column, row) =>
      `ε at most ${value < Infinity ? shown(value) : "∞"} at ${Math.round(column)} ${nameOf(length)}, noise ${tickText(namedNoise(row))}`,
    text: `Map of ε over ${nameOf(length)}, and noise: ${within} of ${known} cells are within the budget of ε at most ${values.budget}; ${lower} lower ε.`,
  });
}
