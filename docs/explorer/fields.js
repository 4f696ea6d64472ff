// The mechanisms of the explorer and their settings: names as in Python, words, and how far each slider reaches. A slider's
// reach is no domain: a number outside it may be typed, and the module says itself what it refuses.

/**
 * @typedef {Object} Field a setting that is a number
 * @property {string} label words, with the symbol
 * @property {number} low where the slider begins
 * @property {number} high where it ends
 * @property {boolean} [linear] the slider's steps are equal differences, not equal ratios
 * @property {boolean} [whole] it is a whole number
 * @property {number} value at first
 */

/** @type {Object<string, Field>} */
export const FIELDS = {
  noise_multiplier: { label: "Noise multiplier σ", low: 0.2, high: 20, value: 1 },
  sampling_rate: { label: "Sampling rate q", low: 1e-5, high: 1, value: 0.01 },
  num_records: { label: "Records", low: 100, high: 1e7, whole: true, value: 60000 },
  batch_size: { label: "Batch size", low: 1, high: 1e5, whole: true, value: 250 },
  steps: { label: "Steps", low: 1, high: 1e6, whole: true, value: 1000 },
  epochs: { label: "Epochs", low: 1, high: 1000, value: 15 },
  delta: { label: "δ", low: 1e-12, high: 0.1, value: 1e-5 },
  budget: { label: "Budget: ε at most", low: 0.1, high: 20, value: 2 },
  rounds: { label: "Rounds", low: 1, high: 1e4, whole: true, value: 100 },
  local_steps: { label: "Local steps a round", low: 1, high: 1000, whole: true, value: 5 },
  num_clients: { label: "Clients, all in every round", low: 1, high: 1e5, whole: true, value: 50 },
  clients_per_round: { label: "Clients a round, on average", low: 1, high: 1e5, whole: true, value: 100 },
  clip_norm: { label: "Clip norm", low: 0.01, high: 100, value: 1 },
  noise_std: { label: "Noise, standard deviation", low: 0.01, high: 100, value: 2 },
  smoothness: { label: "Smoothness of the loss", low: 0.01, high: 100, value: 0.5 },
  learning_rate: { label: "Learning rate", low: 1e-4, high: 10, value: 0.1 },
  index: { label: "Step that uses the record", low: 1, high: 1000, whole: true, value: 20 },
  lipschitz: { label: "Lipschitz constant of the loss", low: 0.01, high: 100, value: 1 },
  strong_convexity: { label: "Strong convexity", low: 0, high: 1, linear: true, value: 0 },
  diameter: { label: "Diameter of the set", low: 0.01, high: 1000, value: 1 },
};

/**
 * @typedef {Object} Choice a setting that is one of several words
 * @property {string} label
 * @property {Object<string, string>} options words by their names
 */

/** @type {Object<string, Choice>} */
export const CHOICES = {
  batches: { label: "Batches given by", options: { rate: "sampling rate", records: "records and batch size" } },
  length: { label: "Length given in", options: { steps: "steps", epochs: "epochs" } },
  adjacency: {
    label: "Data sets differ by",
    options: { add_or_remove: "one record added or removed", replace: "one record replaced" },
  },
};

/**
 * @typedef {Object} Mechanism
 * @property {string} label
 * @property {string} noise the field with the noise
 * @property {string} length the field with the number of steps or rounds
 * @property {string[]} choices
 * @property {string} [protects] the adjacency, where there is no choice
 * @property {(settings: Settings) => string[]} fields what is asked for
 * @property {Object<string, Field>} [own] fields that reach elsewhere than those of the others
 * @property {Settings} [usual] what it begins with, where that is not what the fields and choices begin with
 */

/** @typedef {Object<string, string>} Settings as typed and chosen, by name; "mechanism" names the mechanism */

const lengthOf = (settings) => [settings.length === "epochs" ? "epochs" : "steps"];
const training = (settings) => ["noise_multiplier", "num_records", "batch_size", ...lengthOf(settings)];

/** @type {Object<string, Mechanism>} */
export const MECHANISMS = {
  poisson: {
    label: "DP-SGD, Poisson batches",
    noise: "noise_multiplier",
    length: "steps",
    choices: ["batches", "length", "adjacency"],
    fields: (settings) =>
      settings.batches === "records" ? training(settings) : ["noise_multiplier", "sampling_rate", "steps"],
  },
  fixed: {
    label: "DP-SGD, batches of fixed size",
    noise: "noise_multiplier",
    length: "steps",
    choices: ["length", "adjacency"],
    fields: training,
    usual: { adjacency: "replace" },
  },
  shuffled: {
    label: "DP-SGD, shuffled batches",
    noise: "noise_multiplier",
    length: "steps",
    choices: ["length"],
    protects: "one record, whose place in its batch is emptied",
    fields: training,
  },
  gaussian: {
    label: "Gaussian noise",
    noise: "noise_multiplier",
    length: "steps",
    choices: ["adjacency"],
    fields: () => ["noise_multiplier", "steps"],
  },
  laplace: {
    label: "Laplace noise",
    noise: "noise_multiplier",
    length: "steps",
    choices: ["adjacency"],
    fields: () => ["noise_multiplier", "steps"],
  },
  clients: {
    label: "Federated averaging, sampled clients",
    noise: "noise_multiplier",
    length: "rounds",
    choices: [],
    protects: "one client with all its records, added or removed",
    fields: () => ["noise_multiplier", "num_clients", "clients_per_round", "rounds"],
    own: { num_clients: { label: "Clients", low: 10, high: 1e7, whole: true, value: 10000 } },
  },
  fedavg: {
    label: "Federated averaging, last model",
    noise: "noise_std",
    length: "rounds",
    choices: [],
    protects: "one record replaced",
    fields: () => ["noise_std", "clip_norm", "rounds", "local_steps", "num_clients", "learning_rate"],
  },
  last_iterate: {
    label: "Noisy SGD, last iterate of one pass",
    noise: "noise_std",
    length: "num_records",
    choices: [],
    protects: "one record replaced",
    fields: () => [
      "noise_std",
      "lipschitz",
      "num_records",
      "index",
      "learning_rate",
      "smoothness",
      "strong_convexity",
      "diameter",
    ],
    own: { num_records: { label: "Records, one a step", low: 1, high: 1000, whole: true, value: 40 } },
    usual: { noise_std: "1", learning_rate: "0.5", index: "36" },
  },
};

/**
 * @param {Settings} settings
 * @returns {Object<string, Field>} the fields as their mechanism has them
 */
export const fieldsWith = ({ mechanism }) => ({ ...FIELDS, ...MECHANISMS[mechanism].own });
