// The lines of Python and of shell that give the number of the page.
import { pythonFloat } from "./numbers.js";
import { passesOf } from "./training.js";

/** @typedef {import("./state.js").Values} Values */

const count = (value) => (Number.isInteger(value) ? String(value) : pythonFloat(value));

/**
 * A mechanism of an accountant as Python's repr has it.
 * @param {Values} values
 * @param {import("./training.js").Training} [training]
 * @returns {string}
 */
export function mechanismText(values, training) {
  const noise = `noise_multiplier=${pythonFloat(values.noise_multiplier)}`;
  const gaussian = `Gaussian(${noise})`;
  switch (values.mechanism) {
    case "laplace":
      return `Laplace(${noise})`;
    case "clients":
    case "poisson":
      return `PoissonSampled(mechanism=${gaussian}, sampling_rate=${pythonFloat(training.samplingRate)})`;
    case "fixed": {
      const batch = `num_records=${training.records}, batch_size=${training.batchSize}`;
      return `FixedSizeSampled(mechanism=${gaussian}, ${batch}, replacement=False)`;
    }
    default:
      return gaussian;
  }
}

/**
 * @param {Values} values
 * @param {Array<[string, boolean]>} names arguments, and whether each is a whole number
 */
const keywords = (values, names) =>
  names.map(([name, whole]) => `${name}=${whole ? count(values[name]) : pythonFloat(values[name])}`).join(", ");

const LAST_MODEL = [
  ["noise_std", false],
  ["clip_norm", false],
  ["rounds", true],
  ["local_steps", true],
  ["num_clients", true],
  ["learning_rate", false],
];
const LAST_ITERATE = [
  ["noise_std", false],
  ["lipschitz", false],
  ["num_records", true],
  ["index", true],
  ["learning_rate", false],
  ["smoothness", false],
  ["strong_convexity", false],
  ["diameter", false],
];

const DRAWN = [["num_clients", true], ["clients_per_round", true], ["rounds", true]];

/**
 * @param {Values} values
 * @returns {string} the accountant of clients that are drawn
 */
export const federationText = (values) =>
  `hs.training.federated_parameters(${keywords(values, DRAWN)}, clip_norm=1.0, ` +
  `noise_std=${pythonFloat(values.noise_multiplier)}, noise_on="sum", sampling="poisson").accountant()`;

/**
 * An expression of Python, with `hs` for hockeystick, whose value is the bracket or the upper end that the page shows.
 * @param {Values} values
 * @param {import("./training.js").Training} [training]
 * @param {number} epsilon the upper end: for the last iterate Python is asked for its delta
 * @returns {string}
 */
export function pythonLine(values, training, epsilon) {
  const delta = pythonFloat(values.delta);
  switch (values.mechanism) {
    case "clients":
      return `${federationText(values)}.epsilon_bracket(${delta})`;
    case "fedavg":
      return `hs.federated.fedavg_epsilon(${delta}, ${keywords(values, LAST_MODEL)}, smoothness=0.0)`;
    case "last_iterate":
      return `hs.last_iterate.pnsgd_gaussian(${pythonFloat(epsilon)}, ${keywords(values, LAST_ITERATE)})`;
    case "shuffled": {
      const settings = `noise_multiplier=${pythonFloat(values.noise_multiplier)}, num_batches=${training.numBatches}`;
      return `hs.shuffled_batches_epsilon_bracket(${delta}, ${settings}, epochs=${passesOf(training)})`;
    }
    default: {
      const named = mechanismText(values, training).replace(/\b(?=[A-Z]\w+\()/g, "hs.");
      const steps = count(training ? training.steps : values.steps);
      return `hs.Accountant("${values.adjacency}").compose(${named}, ${steps}).epsilon_bracket(${delta})`;
    }
  }
}

/**
 * @param {Values} values
 * @param {import("./training.js").Training} [training]
 * @param {number} epsilon
 * @returns {string} a command for the shell: `hockeystick epsilon` where it has the mechanism, else Python's line
 */
export function shellLine(values, training, epsilon) {
  const { mechanism, adjacency } = values;
  const noise = `--noise-multiplier ${pythonFloat(values.noise_multiplier ?? 1)}`;
  const end = `--delta ${pythonFloat(values.delta)}`;
  if (mechanism === "gaussian" && adjacency === "add_or_remove") {
    return `hockeystick epsilon ${noise} --steps ${count(values.steps)} ${end}`;
  }
  if (mechanism === "clients") {
    const clients = DRAWN.map(([name]) => `--${name.replaceAll("_", "-")} ${count(values[name])}`).join(" ");
    return `hockeystick epsilon ${noise} ${clients} ${end}`;
  }
  const asked = mechanism === "shuffled" || adjacency === (mechanism === "fixed" ? "replace" : "add_or_remove");
  if (training && asked) {
    const rate = `--sampling-rate ${pythonFloat(training.samplingRate)}`;
    const batches = training.records ? `--num-records ${training.records} --batch-size ${training.batchSize}` : rate;
    const sampling = mechanism === "poisson" ? "" : ` --sampling ${mechanism}`;
    return `hockeystick epsilon ${noise} ${batches} --steps ${count(training.steps)} ${end}${sampling}`;
  }
  return `python -c '${`import hockeystick as hs; print(${pythonLine(values, training, epsilon)})`}'`;
}
