// The settings: as typed, as numbers, and as the part of a link behind #.
import { CHOICES, FIELDS, MECHANISMS, fieldsWith } from "./fields.js";
import { parse, short } from "./numbers.js";

/** @typedef {import("./fields.js").Settings} Settings */

/** @typedef {Object<string, number|string>} Values the settings with numbers in the place of text */

/**
 * @param {Settings} [given] settings that differ from those at first
 * @returns {Settings}
 */
export function startingSettings(given = {}) {
  const settings = { mechanism: given.mechanism ?? "poisson" };
  for (const [name, choice] of Object.entries(CHOICES)) settings[name] = Object.keys(choice.options)[0];
  for (const [name, field] of Object.entries(fieldsWith(settings))) settings[name] = short(field.value);
  return { ...settings, ...MECHANISMS[settings.mechanism].usual, ...given };
}

/**
 * Names of all that matters to a mechanism: its choices, its fields, delta and the budget.
 * @param {Settings} settings
 * @returns {string[]}
 */
export function relevant(settings) {
  const mechanism = MECHANISMS[settings.mechanism];
  const choices = mechanism.choices.filter(
    (name) => name !== "length" || settings.mechanism !== "poisson" || settings.batches === "records",
  );
  return [...choices, ...mechanism.fields(settings), "delta", "budget"];
}

/**
 * @param {Settings} settings
 * @returns {string} what stands behind # in a link
 */
export function toHash(settings) {
  const pairs = relevant(settings).map((name) => [name, settings[name]]);
  return String(new URLSearchParams([["mechanism", settings.mechanism], ...pairs]));
}

/**
 * @param {string} hash with or without #
 * @returns {Settings} those settings that the link has; nothing for a link to a heading
 */
export function fromHash(hash) {
  const settings = {};
  for (const [written, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const name = written === "records" ? "num_records" : written; // its name in older links
    const options = name === "mechanism" ? MECHANISMS : CHOICES[name]?.options;
    if (options ? Object.hasOwn(options, value) : Object.hasOwn(FIELDS, name)) settings[name] = value;
  }
  return settings;
}

/**
 * @param {Settings} settings
 * @returns {Values}
 * @throws {RangeError} if a field has no number
 */
export function valuesOf(settings) {
  const values = { mechanism: settings.mechanism };
  for (const name of relevant(settings)) {
    if (!(name in FIELDS)) {
      values[name] = settings[name];
      continue;
    }
    values[name] = parse(settings[name]);
    if (Number.isNaN(values[name])) throw new RangeError(`${name} must be a number, not '${settings[name]}'`);
  }
  return values;
}
