// The questions that the page asks of the module, whatever the mechanism is: epsilon at a delta, delta at an epsilon.
import { passesOf, trainingOf } from "./training.js";

/** @typedef {import("./state.js").Values} Values */
/** @typedef {{lower: number|null, upper: number}} Ends lower is null where only an upper end is known */

/**
 * What is asked of one setting. It holds memory of the module until it is freed.
 * @typedef {Object} Question
 * @property {(delta: number) => Ends} epsilon
 * @property {(epsilon: number) => Ends} delta
 * @property {(delta: number) => number} upperEpsilon the upper end alone, which may cost less
 * @property {(epsilon: number) => number} upperDelta
 * @property {boolean} [later] whether the lower end takes longer than a frame, so that the upper one is shown first
 * @property {() => void} free
 */

/**
 * Settings with another noise and another length, the length in steps or rounds.
 * @param {Values} values
 * @param {{noise?: number, length?: number}} changes
 * @returns {Values}
 */
export function changed(values, changes) {
  const { noise, length } = fieldsOf(values.mechanism);
  const copy = { ...values };
  if (changes.noise !== undefined) copy[noise] = changes.noise;
  if (changes.length !== undefined) {
    delete copy.epochs;
    copy[length] = changes.length;
  }
  return copy;
}

/**
 * The least length that a setting may have: the record of a step is used in that step.
 * @param {Values} values
 */
export const leastLength = (values) => (values.mechanism === "last_iterate" ? values.index : 1);

/**
 * The names of the settings with the noise and the length.
 * @param {string} mechanism
 */
export function fieldsOf(mechanism) {
  if (mechanism === "clients") return { noise: "noise_multiplier", length: "rounds" };
  if (mechanism === "fedavg") return { noise: "noise_std", length: "rounds" };
  if (mechanism === "last_iterate") return { noise: "noise_std", length: "num_records" };
  return { noise: "noise_multiplier", length: "steps" };
}

/**
 * @param {Values} values
 * @returns {import("./training.js").Training|undefined} of DP-SGD, or of clients that are drawn
 */
export const trainingIn = (values) =>
  ["poisson", "fixed", "shuffled", "clients"].includes(values.mechanism) ? trainingOf(values) : undefined;

/**
 * @param {Values} values
 * @returns {number} steps or rounds
 */
export const lengthIn = (values) => trainingIn(values)?.steps ?? values[fieldsOf(values.mechanism).length];

/**
 * @param {import("hockeystick").Hockeystick} hs
 * @param {Values} values
 * @returns {Question}
 * @throws {Error} with the module's message, for an argument outside its domain
 */
export function ask(hs, values) {
  if (values.mechanism === "fedavg") return askFederation(hs, values);
  if (values.mechanism === "last_iterate") return askIteration(hs, values);
  if (values.mechanism === "shuffled") return askShuffled(hs, values);
  const training = trainingIn(values);
  const accountant = hs.accountant(values.adjacency);
  try {
    accountant.compose(mechanismOf(hs, values, training), training ? training.steps : values.steps);
  } catch (error) {
    accountant.free();
    throw error;
  }
  return askAccountant(accountant);
}

/** @param {import("hockeystick").Accountant} accountant */
function askAccountant(accountant) {
  return {
    epsilon: (delta) => accountant.epsilon(delta),
    delta: (epsilon) => accountant.delta(epsilon),
    upperEpsilon: (delta) => accountant.epsilon(delta).upper,
    upperDelta: (epsilon) => accountant.delta(epsilon).upper,
    free: () => accountant.free(),
  };
}

function mechanismOf(hs, values, training) {
  if (values.mechanism === "laplace") return hs.laplace(values.noise_multiplier);
  const gaussian = hs.gaussian(values.noise_multiplier);
  if (["poisson", "clients"].includes(values.mechanism)) return hs.poissonSampled(gaussian, training.samplingRate);
  if (values.mechanism === "fixed") return hs.fixedSizeSampled(gaussian, training.records, training.batchSize, false);
  return gaussian;
}

/**
 * Shuffled batches: an upper end without amplification, and what one algorithm attains in whole passes over batches of one size,
 * which `values.sizes`, if it is "equal", takes them to be.
 */
function askShuffled(hs, values) {
  const training = trainingOf(values);
  const settings = { noiseMultiplier: values.noise_multiplier, numBatches: training.numBatches };
  const shown = askAccountant(
    hs.accountant("add_or_remove").compose(hs.gaussian(values.noise_multiplier), passesOf(training)),
  );
  const whole = Math.floor(training.steps / training.numBatches);
  const attained = (training.equal || values.sizes === "equal") && whole >= 1 && training.numBatches <= 1e6;
  const ends = (upper, lower) => ({ lower: attained ? Math.min(lower(), upper) : null, upper });
  return {
    ...shown,
    later: attained,
    epsilon: (delta) =>
      ends(shown.epsilon(delta).upper, () => hs.shuffledBatchesEpsilon({ ...settings, epochs: whole, delta }).lower),
    delta: (epsilon) =>
      ends(shown.delta(epsilon).upper, () => hs.shuffledBatchesDelta({ ...settings, epochs: whole, epsilon }).lower),
  };
}

function askFederation(hs, values) {
  const federation = {
    rounds: values.rounds,
    localSteps: values.local_steps,
    numClients: values.num_clients,
    clipNorm: values.clip_norm,
    noiseStd: values.noise_std,
    smoothness: 0, // of no influence with a constant learning rate and no projection
    learningRate: values.learning_rate,
  };
  // The last model is mu-GDP, as Gaussian noise of 1/mu is: certified ends for that noise, which is less by more than mu's rounding.
  const noise = Math.min((1 - ROUNDING) / hs.fedavgGdp(federation), 2 ** 1000);
  const { upperEpsilon, upperDelta, free } = askAccountant(hs.accountant().compose(hs.gaussian(noise)));
  return { ...askBounds(upperEpsilon, upperDelta), free };
}

const ROUNDING = 2e-12; // more than the relative rounding of a bound of the last model, in mu and in log delta

/**
 * @param {(delta: number) => number} upperEpsilon
 * @param {(epsilon: number) => number} upperDelta
 * @returns {Question} of bounds without lower ends
 */
const askBounds = (upperEpsilon, upperDelta) => ({
  epsilon: (delta) => ({ lower: null, upper: upperEpsilon(delta) }),
  delta: (epsilon) => ({ lower: null, upper: upperDelta(epsilon) }),
  upperEpsilon,
  upperDelta,
  free: () => {},
});

function askIteration(hs, values) {
  const iteration = {
    index: values.index,
    numRecords: values.num_records,
    learningRate: values.learning_rate,
    noiseStd: values.noise_std,
    lipschitz: values.lipschitz,
    smoothness: values.smoothness,
    strongConvexity: values.strong_convexity,
    diameter: values.diameter,
  };
  const outward = (delta) => Math.min(Math.exp((1 - ROUNDING) * Math.log(delta)) * (1 + 2 ** -50), 1);
  const deltaAt = (epsilon) => outward(hs.pnsgdGaussian({ ...iteration, epsilon }));
  return askBounds((delta) => leastEpsilon(deltaAt, delta), deltaAt);
}

const LARGEST_EPSILON = 2 ** 1000; // of bounds that grow with 1/noise^2; a search by doubling is there soon

/**
 * An epsilon at which a bound of delta is small enough: that is tested at the number returned, so that it is an upper end
 * whether or not it is the smallest.
 * @param {(epsilon: number) => number} deltaAt an upper bound of delta
 * @param {number} delta
 * @returns {number} infinity if no epsilon up to 2^1000 has it
 */
export function leastEpsilon(deltaAt, delta) {
  if (!(delta >= 0 && delta < 1)) throw new RangeError(`delta must lie in [0, 1), not ${delta}`);
  if (deltaAt(0) <= delta) return 0;
  let good = 1;
  while (deltaAt(good) > delta) {
    good *= 2;
    if (good > LARGEST_EPSILON) return Infinity;
  }
  let bad = good === 1 ? 0 : good / 2;
  for (let k = 0; k < 60 && good - bad > 1e-10 * good; k++) {
    const middle = (good + bad) / 2;
    if (deltaAt(middle) <= delta) good = middle;
    else bad = middle;
  }
  return good;
}
