// What the page shows of a setting, from the module: the number, curves, a map of cells, the least noise of a budget. The long
// ones are generators that pause between evaluations, so that the worker can hear of newer settings.
import { ask, changed, fieldsOf, leastLength, lengthIn } from "./engine.js";

/** @typedef {import("./state.js").Values} Values */

const CURVE = 36; // points of a curve
const [COLUMNS, ROWS] = [21, 15]; // cells of a map
const LONGEST = 2 ** 53; // steps that the module counts
const [REACH_OF_LENGTH, REACH_OF_NOISE] = [100, 10]; // the largest of a map over the smallest

/**
 * @template T
 * @param {import("hockeystick").Hockeystick} hs
 * @param {Values} values
 * @param {(question: import("./engine.js").Question) => T} use
 * @returns {T}
 */
export function asking(hs, values, use) {
  const question = ask(hs, values);
  try {
    return use(question);
  } finally {
    question.free();
  }
}

/**
 * Epsilon after each of some numbers of steps, to half as many again as there are; more of them where the curve bends, at its beginning.
 * @returns {Generator<undefined, {points: Array<[number, number]>}>} steps and upper ends
 */
export function* epsilonOverSteps(hs, values) {
  const least = leastLength(values);
  const most = Math.min(Math.max(Math.ceil(1.5 * lengthIn(values)), least + 3), LONGEST);
  const lengths = [...Array(CURVE).keys()].map((k) => Math.round(least + (most - least) * (k / (CURVE - 1)) ** 2));
  const points = [];
  for (const length of new Set(lengths)) {
    const upper = asking(hs, changed(values, { length }), (question) => question.upperEpsilon(values.delta));
    points.push([length, upper]);
    yield;
  }
  return { points };
}

/**
 * Delta at epsilons up to nearly twice the one at the delta that is asked for, and the advantage, which is delta(0).
 * @param {number} epsilon
 */
export function* deltaOverEpsilon(hs, values, epsilon) {
  const most = epsilon < Infinity ? Math.max(1.8 * epsilon, 0.5) : 10;
  const question = ask(hs, values);
  const points = [];
  try {
    for (let k = 0; k < CURVE; k++) {
      const at = most * (k / (CURVE - 1)) ** 1.5; // closer together where the trade-off curve bends
      points.push([at, question.upperDelta(at)]);
      yield;
    }
    return { points, advantage: points[0][1] };
  } finally {
    question.free();
  }
}

/**
 * False negatives that (epsilon, delta) leaves at a rate of false positives: Wasserman and Zhou 2010, Theorem 2.4.
 * @param {[number, number]} point epsilon and an upper bound of its delta
 * @param {number} rate
 */
const leftAt = ([epsilon, delta], rate) =>
  Math.max(1 - delta - Math.exp(epsilon) * rate, Math.exp(-epsilon) * (1 - delta - rate), 0);

/**
 * The trade-off curve from below: the largest of what some pairs of epsilon and delta leave.
 * @param {Array<[number, number]>} pairs
 * @returns {Array<[number, number]>}
 */
export function tradeOffBelow(pairs) {
  const rates = [...Array(81).keys()].map((k) => (1 - Math.cos((Math.PI * k) / 80)) / 2);
  return rates.map((rate) => [rate, Math.max(...pairs.map((pair) => leftAt(pair, rate)))]);
}

/**
 * An upper bound of the true positives at a rate of false positives, by the best line.
 *
 * With s = e^u the lines are D(s) + s rate, where D is convex (Dong, Roth and Su 2022, Proposition 6): thirds of
 * an interval find the best u, and any other would be a bound, too. The last factor is more than what rounding takes.
 * @param {import("./engine.js").Question} question
 * @param {number} rate in (0, 1)
 * @returns {Generator<undefined, number>}
 */
export function* mostFound(question, rate) {
  const line = (u) =>
    u >= 0
      ? question.upperDelta(u) + Math.exp(u) * rate
      : -Math.expm1(u) + Math.exp(u) * (question.upperDelta(-u) + rate);
  let [low, high] = [-40, -Math.log(rate)]; // beyond these a line is 1, but for what a double does not hold, or above 1
  let least = 1;
  while (high - low > 1e-6) {
    const [a, b] = [(2 * low + high) / 3, (low + 2 * high) / 3];
    const atA = line(a);
    yield;
    const atB = line(b);
    yield;
    least = Math.min(least, atA, atB);
    if (atA < atB) high = b;
    else low = a;
  }
  return Math.min(least * (1 + 2 ** -48), 1);
}

/**
 * The middle of a map's axis: a power of ten or its root, so that small changes of a setting leave the map where it is.
 * @param {number} value
 */
const snapped = (value) => 10 ** (Math.round(2 * Math.log10(value)) / 2);

const spread = (middle, reach, number) =>
  [...Array(number).keys()].map((k) => middle * reach ** (k / (number - 1) - 0.5));

/**
 * The middles of a map's cells; a column of fewer than one step does not occur.
 * @param {Values} values
 */
export function axesOfMap(values) {
  const reach = Math.sqrt(REACH_OF_LENGTH); // to either side
  const middle = Math.min(Math.max(snapped(lengthIn(values)), reach), LONGEST / reach);
  return {
    columns: spread(middle, REACH_OF_LENGTH, COLUMNS),
    rows: spread(snapped(values[fieldsOf(values.mechanism).noise]), REACH_OF_NOISE, ROWS),
  };
}

/** The noise of a map's row, to the digits that its text has, so that the text is true of the epsilon. */
export const namedNoise = (row) => Number(row.toPrecision(3));

/**
 * Epsilon of every cell at a whole number of steps, row by row; what is known so far is yielded after each row.
 * @returns {Generator<import("./plots.js").Cells|undefined, import("./plots.js").Cells>}
 */
export function* epsilonOfCells(hs, values) {
  const { columns, rows } = axesOfMap(values);
  const cells = { columns, rows, values: Array(columns.length * rows.length).fill(null) };
  for (const [j, noise] of rows.entries()) {
    for (const [i, length] of columns.entries()) {
      const whole = Math.min(Math.max(Math.round(length), 1), LONGEST);
      if (whole < leastLength(values)) continue;
      const setting = changed(values, { noise: namedNoise(noise), length: whole });
      cells.values[j * columns.length + i] = asking(hs, setting, (question) => question.upperEpsilon(values.delta));
      yield;
    }
    if (j + 1 < rows.length) yield cells;
  }
  return cells;
}

/**
 * The least noise whose certified epsilon is within the budget, to six digits, and at least that.
 * @returns {Generator<undefined, {noise: number, tried: number}>} infinity if the largest that was tried, a million times the present
 *   noise, is not enough
 */
export function* leastNoise(hs, values) {
  const { noise } = fieldsOf(values.mechanism);
  const within = (candidate) =>
    asking(hs, changed(values, { noise: candidate }), (question) => question.upperEpsilon(values.delta) <= values.budget);
  if (!(values.budget > 0)) throw new RangeError(`budget must be positive, not ${values.budget}`);
  let good = values[noise];
  let bad = good;
  const most = 2 ** 20 * good;
  while (!within(good)) {
    yield;
    bad = good;
    good *= 2;
    if (good > most) return { noise: Infinity, tried: most };
  }
  while (bad === good || within(bad)) {
    yield;
    good = bad;
    bad /= 2;
    if (bad < 2 ** -20 * values[noise]) return { noise: good, tried: most };
  }
  while (good / bad > 1 + 1e-7) {
    const middle = Math.sqrt(good * bad);
    if (within(middle)) good = middle;
    else bad = middle;
    yield;
  }
  return { noise: good, tried: most };
}
