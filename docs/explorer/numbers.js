// Numbers as Python writes and reads them. Bounds are not written here: the module rounds them outward.

/**
 * A double as Python's repr has it: the shortest digits that read back as the same double.
 * @param {number} value
 * @returns {string} "1.0", "0.01", "1e-05", and an expression for infinity, whose repr is none
 */
export function pythonFloat(value) {
  if (value === Infinity) return 'float("inf")';
  const [, sign, first, rest = "", power] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential());
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const digits = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${first}${rest && "."}${rest}e${exponent < 0 ? "-" : "+"}${digits}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${first}${rest}`;
  const digits = (first + rest).padEnd(exponent + 1, "0");
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1) || "0"}`;
}

/**
 * What was typed, as a number: 0.3, 1e-5 or a fraction, 1/3; NaN if it is none.
 * @param {string} text
 * @returns {number}
 */
export function parse(text) {
  const fraction = /^([^/]+)\/([^/]+)$/.exec(text);
  if (fraction) return parse(fraction[1]) / (parse(fraction[2]) || NaN);
  const trimmed = text.trim().replace(/^(inf|infinity|∞)$/i, "Infinity");
  return trimmed === "" ? NaN : Number(trimmed);
}

/**
 * A setting to show in a field: whole numbers up to a billion without an exponent, others with at most four digits.
 * @param {number} value
 * @returns {string}
 */
export function short(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e10) return String(value);
  const text = String(Number(value.toPrecision(4)));
  return Math.abs(value) < 1e-3 ? Number(value.toPrecision(4)).toExponential() : text;
}
