// Bounds as text: an upper bound is rounded up to the digits shown, a lower bound down, in exact arithmetic of integers.
import { HockeystickError } from "./core.js";

const FORMAT = /^([1-9]\d{0,2})?(?:\.(\d{1,3}))?([efg%])$/;
const TEN = 10n;

/**
 * The smallest (towards = 1) or largest (towards = -1) decimal of a format that is not on the wrong side of a number.
 * @param {number} value
 * @param {string} format as Python's format specifications ".4f", ".3e", "13.4g", ".2%"
 * @param {1 | -1} towards
 */
export function outward(value, format, towards) {
    const found = FORMAT.exec(format);
    if (!found)
        throw new HockeystickError(
            `format must be a width, a precision and one of e, f, g and %, such as '.4g', not '${format}'`,
        );
    const precision = found[2] === undefined ? 6 : Number(found[2]);
    const text = Number.isFinite(value) ? digits(value, precision, found[3], towards) : special(value);
    return text.padStart(Number(found[1] ?? 0));
}

/** @param {number} value */
function special(value) {
    if (Number.isNaN(value)) return "nan";
    return value > 0 ? "inf" : "-inf";
}

/**
 * A double as numerator / 2^shift, without any rounding.
 * @param {number} value
 * @returns {[bigint, bigint]}
 */
function exact(value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    const bits = view.getBigUint64(0);
    const exponent = (bits >> 52n) & 0x7ffn;
    const fraction = (bits & 0xfffffffffffffn) | (exponent ? 1n << 52n : 0n);
    const power = (exponent || 1n) - 1075n;
    const size = power > 0n ? fraction << power : fraction;
    return [bits >> 63n ? -size : size, power > 0n ? 0n : -power];
}

/**
 * numerator 10^places / 2^shift as an integer, rounded to one side.
 * @param {[bigint, bigint]} number
 * @param {number} places may be negative
 * @param {1 | -1} towards
 */
function scaled([numerator, shift], places, towards) {
    const over = places >= 0 ? numerator * TEN ** BigInt(places) : numerator;
    const under = (places < 0 ? TEN ** BigInt(-places) : 1n) << shift;
    const quotient = over / under;
    const rest = over % under;
    if (rest === 0n || rest > 0n !== towards > 0) return quotient; // division goes towards 0
    return quotient + BigInt(towards);
}

/**
 * An integer over 10^places, in digits with a point.
 * @param {bigint} integer
 * @param {number} places at least 0
 */
function pointed(integer, places) {
    const sign = integer < 0n ? "-" : "";
    const all = (integer < 0n ? -integer : integer).toString().padStart(places + 1, "0");
    return sign + (places ? `${all.slice(0, -places)}.${all.slice(-places)}` : all);
}

/**
 * A number's decimal with so many significant digits: an integer and its power of ten.
 * @param {number} value
 * @param {number} significant
 * @param {1 | -1} towards
 * @returns {[bigint, number]}
 */
function significantDigits(value, significant, towards) {
    if (value === 0) return [0n, 0];
    const number = exact(value);
    const length = (/** @type {bigint} */ integer) => (integer < 0n ? -integer : integer).toString().length;
    let exponent = Math.floor(Math.log10(Math.abs(value))) + 1; // too large, by two at most
    while (tooSmall(number, exponent)) exponent -= 1;
    const integer = scaled(number, significant - 1 - exponent, towards);
    return length(integer) > significant ? [integer / TEN, exponent + 1] : [integer, exponent]; // 9.99 becomes 10.0
}

/**
 * Whether a number is smaller than 10^exponent: its first digit is not there yet.
 * @param {[bigint, bigint]} number
 * @param {number} exponent
 */
function tooSmall(number, exponent) {
    return scaled(number[0] < 0n ? [-number[0], number[1]] : number, -exponent, -1) === 0n;
}

/**
 * @param {number} value
 * @param {number} precision
 * @param {string} kind
 * @param {1 | -1} towards
 */
function digits(value, precision, kind, towards) {
    if (kind === "f") return pointed(scaled(exact(value), precision, towards), precision);
    if (kind === "%") {
        const [numerator, shift] = exact(value);
        return `${pointed(scaled([numerator * 100n, shift], precision, towards), precision)}%`;
    }
    const significant = kind === "e" ? precision + 1 : Math.max(precision, 1);
    const [integer, exponent] = significantDigits(value, significant, towards);
    if (kind === "e") return scientific(integer, exponent, significant - 1);
    if (-4 <= exponent && exponent < significant) {
        return value === 0 ? "0" : stripped(pointed(integer, significant - 1 - exponent));
    }
    const [mantissa, power] = scientific(integer, exponent, significant - 1).split("e");
    return `${stripped(mantissa)}e${power}`;
}

/**
 * @param {bigint} integer
 * @param {number} exponent
 * @param {number} places
 */
function scientific(integer, exponent, places) {
    const size = Math.abs(exponent).toString().padStart(2, "0");
    return `${pointed(integer, places)}e${exponent < 0 ? "-" : "+"}${size}`;
}

/** @param {string} text */
function stripped(text) {
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
