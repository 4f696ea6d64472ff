// From the settings of a training to the numbers of its accounting: what `Batches` and `steps_of` are in Python's
// hockeystick.training, with the same refusals.

/**
 * @typedef {Object} Training
 * @property {number} steps of the optimiser
 * @property {number} samplingRate
 * @property {number} [records]
 * @property {number} [batchSize]
 * @property {number} [numBatches] of a pass, the last one perhaps smaller
 * @property {boolean} [equal] whether shuffled batches all have one size
 */

const LARGEST = 2 ** 53;

/**
 * @param {string} name
 * @param {number} value
 */
function requireCount(name, value) {
  if (!Number.isInteger(value)) throw new RangeError(`${name} must be an integer, not ${value}`);
  if (value < 1 || value > LARGEST) throw new RangeError(`${name} must be an integer in [1, ${LARGEST}], not ${value}`);
}

/**
 * @param {import("./state.js").Values} values of one of the three kinds of DP-SGD, or of clients that are drawn
 * @returns {Training}
 * @throws {RangeError} in Python's words, for an argument outside its domain
 */
export function trainingOf(values) {
  if (values.mechanism === "clients") {
    const { num_clients: clients, clients_per_round: drawn, rounds: steps } = values;
    for (const [name, value] of Object.entries({ num_clients: clients, clients_per_round: drawn, rounds: steps })) {
      requireCount(name, value);
    }
    if (drawn > clients) throw new RangeError(`clients_per_round must be at most num_clients (${clients}), not ${drawn}`);
    return { steps, samplingRate: drawn / clients };
  }
  if (!("num_records" in values)) return { steps: values.steps, samplingRate: values.sampling_rate };
  const { num_records: records, batch_size: batchSize } = values;
  requireCount("num_records", records);
  requireCount("batch_size", batchSize);
  if (batchSize > records) {
    throw new RangeError(`batch_size must be at most the number of records (${records}), not ${batchSize}`);
  }
  const steps = "epochs" in values ? stepsOf(values.epochs, records, batchSize) : values.steps;
  requireCount("steps", steps);
  const numBatches = Math.ceil(records / batchSize);
  return { steps, samplingRate: batchSize / records, records, batchSize, numBatches, equal: records % batchSize === 0 };
}

/**
 * How often a record is used at most in shuffled batches: a pass that has begun counts whole.
 * @param {Training} training
 * @returns {number}
 */
export const passesOf = (training) => Math.ceil(training.steps / training.numBatches);

/**
 * Optimiser steps of some passes over the data, each a whole number of them; part of a pass is rounded up, too.
 * @param {number} epochs
 * @param {number} records
 * @param {number} batchSize
 * @returns {number}
 */
export function stepsOf(epochs, records, batchSize) {
  if (!(epochs > 0 && epochs < Infinity)) throw new RangeError(`epochs must be positive and finite, not ${epochs}`);
  const passes = Math.floor(epochs);
  const part = (epochs - passes) * (records / batchSize);
  // A product that is an integer but for its rounding is that integer: 0.1 epochs of 10 steps are 1 step.
  const near = Math.abs(part - Math.round(part)) <= 1e-12 * (epochs + 1) * (records / batchSize);
  return Math.max(passes * Math.ceil(records / batchSize) + (near ? Math.round(part) : Math.ceil(part)), 1);
}
