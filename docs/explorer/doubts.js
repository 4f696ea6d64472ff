// Settings that are legal and that nearly nobody means: Python's ImplausibleSettingWarning, with its texts and limits.
import { DOUBTS } from "./texts.js";

/**
 * @param {string} template
 * @param {Object<string, string|number>} values
 * @returns {string} the template with {names} filled in
 */
export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));

/**
 * A number as Python's "g" writes it: six significant digits.
 * @param {number} value
 * @returns {string}
 */
export function general(value) {
  const [digits, power] = value.toExponential(5).split("e");
  const exponent = Number(power);
  if (value === 0 || (exponent >= -4 && exponent < 6)) return String(Number(value.toPrecision(6)));
  return `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/**
 * @param {number} delta
 * @param {number|undefined} records
 * @returns {boolean} whether publishing one of so many records at random has such a delta
 */
export const isLarge = (delta, records) => delta >= 1 / records;

/**
 * @param {string} name
 * @param {Object<string, string|number>} values
 */
function told(name, values) {
  const [what, likely] = [DOUBTS[name].what, DOUBTS[name].likely].map((part) => fill(part, values));
  return fill(DOUBTS.told, { what, where: "", likely });
}

/**
 * @param {import("./state.js").Values} values
 * @param {import("./training.js").Training} [training] of DP-SGD
 * @param {number} epsilon its upper end
 * @returns {string[]} what to doubt
 */
export function doubtsOf(values, training, epsilon) {
  const found = [];
  if (training) {
    const { samplingRate: rate, steps, records } = training;
    if (values.noise_multiplier < DOUBTS.low_noise_below && rate >= DOUBTS.high_rate_from) {
      found.push(told("swapped", { low: DOUBTS.low_noise_below, high: DOUBTS.high_rate_from }));
    }
    if (rate > 0 && steps >= 1 && steps <= 1 / rate - 1) {
      found.push(fill(DOUBTS.few_steps, { steps: general(steps), pass: general(1 / rate) }));
    }
    const population = records ?? values.num_clients;
    if (isLarge(values.delta, population)) found.push(told("large_delta", { population }));
  }
  if (epsilon > DOUBTS.no_privacy_above && epsilon < Infinity) {
    found.push(told("no_privacy", { most: general(DOUBTS.no_privacy_above) }));
  }
  return found;
}
