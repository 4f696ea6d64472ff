// The certificate of the page's number: what `Accountant.certificate(delta=...)` writes in Python, to the byte, for checker/hockeystick_check.py.
import { pythonFloat } from "./numbers.js";

/** @typedef {import("./state.js").Values} Values */

const SMALLEST = 2 ** -999; // as in Python: below it the exponent has more digits than the checker reads

/** A double in full, as decimals if they are exact; else in hexadecimal, as Python's float.hex has it. */
function exactly(value) {
  const decimal = pythonFloat(value);
  const digits = (text) => text.split("e")[0].replace(/\.?0*$/, "");
  if (value === 0 || digits(value.toExponential(99)) === digits(value.toExponential())) return decimal;
  const bits = new BigUint64Array(Float64Array.of(value).buffer)[0];
  const exponent = Number(bits >> 52n) - 1023;
  return `0x1.${(bits % 2n ** 52n).toString(16).padStart(13, "0")}p${exponent < 0 ? "" : "+"}${exponent}`;
}

/**
 * @param {Values} values
 * @param {import("./training.js").Training} [training]
 */
function mechanismOf(values, training) {
  const noise = { name: values.mechanism === "laplace" ? "Laplace" : "Gaussian", noise_multiplier: exactly(values.noise_multiplier) };
  if (!training) return noise;
  if (values.mechanism !== "fixed") return { name: "PoissonSampled", mechanism: noise, sampling_rate: exactly(training.samplingRate) };
  const batches = { num_records: String(training.records), batch_size: String(training.batchSize), replacement: false };
  return { name: "FixedSizeSampled", mechanism: noise, ...batches };
}

/**
 * @param {Values} values
 * @param {import("./training.js").Training} [training]
 * @param {number} epsilon the upper end at delta
 * @param {string} version of hockeystick
 * @returns {string} empty where the checker has no rule for the mechanism, or does not take a number
 */
export function certificate(values, training, epsilon, version) {
  const { mechanism, adjacency = "add_or_remove", noise_multiplier: noise, delta } = values;
  const count = training ? training.steps : values.steps;
  const covered = ["gaussian", "laplace", "poisson", "clients"].includes(mechanism) || (mechanism === "fixed" && adjacency !== "replace");
  const taken = noise >= 1e-2 && noise <= 1e6 && count >= 1 && count <= 1e9 && epsilon <= 1e5 && !(training?.records > 1e15);
  if (!covered || !taken || [epsilon, delta, training?.samplingRate].some((x) => x > 0 && x < SMALLEST)) return "";
  const whole = {
    format: "hockeystick-certificate 1",
    adjacency,
    claim: { epsilon: exactly(epsilon), delta: exactly(delta), delta_is: "at most" },
    ledger: [{ count: String(count), mechanism: mechanismOf(values, training) }],
    written_by: { name: "hockeystick", version },
  };
  return `${JSON.stringify(whole, null, 2)}\n`;
}
