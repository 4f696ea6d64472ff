// Axes: from numbers to places, and the numbers that are written beside them.

/**
 * @typedef {Object} Scale
 * @property {(value: number) => number} at place of a number
 * @property {number[]} ticks
 * @property {(value: number) => string} text how a tick is written
 */

/**
 * @param {number} low
 * @param {number} high above low
 * @param {number} from place of low
 * @param {number} to place of high
 * @returns {Scale} equal differences have equal lengths
 */
export function linear(low, high, from, to) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-12); k++) ticks.push(k * step);
  return { at: (value) => from + (to - from) * ((value - low) / (high - low)), ticks, text: tickText };
}

/**
 * @param {number} low positive
 * @param {number} high above low
 * @param {number} from
 * @param {number} to
 * @returns {Scale} equal ratios have equal lengths
 */
export function logarithmic(low, high, from, to) {
  const at = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
  const decades = Math.log10(high / low);
  const ticks = [];
  const every = Math.max(1, Math.ceil(decades / 5));
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) {
    if (power % every === 0) ticks.push(10 ** power);
  }
  if (ticks.length < 2) {
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
    }
  }
  const within = [...new Set(ticks)].sort((a, b) => a - b).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return { at, ticks: within, text: tickText };
}

/**
 * @param {number} value
 * @returns {string} short, with powers of ten as such where zeros would be many
 */
export function tickText(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e4 || size < 1e-3) {
    const [digits, power] = Number(value.toPrecision(3)).toExponential().split("e");
    const raised = [...String(Number(power))].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
    return digits === "1" ? `10${raised}` : `${digits}·10${raised}`;
  }
  return String(Number(value.toPrecision(4)));
}
