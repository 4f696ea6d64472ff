// The privacy statement in Markdown: the sentences of Python's `privacy_statement` and `Accountant.statement`, filled in.
import { asking, mostFound } from "./answers.js";
import { federationText, mechanismText } from "./commands.js";
import { fill, isLarge } from "./doubts.js";
import { ask } from "./engine.js";
import { pythonFloat } from "./numbers.js";
import { SENTENCES } from "./texts.js";

/** @typedef {import("./state.js").Values} Values */

const WEAK = 20; // as in Python: epsilons above it promise next to nothing
const KINDS = { poisson: "add_or_remove", shuffled: undefined, fixed: "replace" }; // of a training, and their adjacencies
const special = (kind) => (kind === "shuffled" ? [say("keeps_its_batch")] : []); // what adjacent means there
const [WRONG, HALF, FEW] = [0.01, 0.5, 1e-6]; // chances of being wrong, or right, without the output

const say = (name, values = {}) => fill(SENTENCES[name], values);
const sayAll = (name, values = {}) => SENTENCES[name].map((sentence) => fill(sentence, values));

/**
 * @param {import("hockeystick").Hockeystick} hs
 * @param {Values} values
 * @param {import("./training.js").Training} [training]
 * @returns {Generator<undefined, string>} of the last model alone, of which Python has no statement, what to check
 */
export function* statement(hs, values, training) {
  const conditions = `check_${values.mechanism}`;
  if (conditions in SENTENCES) {
    return markdownOf([say("none_of_last_model")], [["check", sayAll(conditions)]]);
  }
  const ofTraining = training?.records && values.adjacency === KINDS[values.mechanism];
  const parts = ofTraining ? trainingParts : accountantParts;
  const question = ask(hs, values);
  try {
    const attacked = yield* attack(hs, question);
    const [sentence, said] = parts(hs, values, training, attacked, question);
    return markdownOf([`## ${SENTENCES.title}`, sentence], said);
  } finally {
    question.free();
  }
}

/** @returns {[string, Array<[string, string[]]>]} the sentence to quote, and the parts with their headings */
function trainingParts(hs, values, training, attacked) {
  const kind = values.mechanism;
  const batches = SENTENCES.batches[kind];
  const adjacent = SENTENCES.assumed_adjacency[KINDS[kind] ?? "add_or_remove"];
  // The lower end of shuffled batches is, as in Python's statement, that of batches of one size.
  const ends = asking(hs, { ...values, sizes: "equal" }, (equal) => equal.epsilon(values.delta));
  const delta = pythonFloat(values.delta);
  const cautions = deltaTooLarge(values.delta, training.records);
  const parts = [
    ["epsilon", [interval(hs, ends, delta, kind !== "shuffled")]],
    ["otherwise", otherwise(hs, values, training)],
    ["released", [say("released_training")]],
    ["unit", [say("unit", { unit: "one record", change: changeOf(kind) })]],
    ["mechanisms", [dpsgd(values, training)]],
    ["attack", attacked],
    ["user_level", [say("user_level_elsewhere")]],
    ["check", [adjacent, ...special(kind), kind === "shuffled" ? batches : say("nobody_sees", { batches }), ...sayAll("check", training)]],
    ["not_covered", [...sayAll("not_covered"), ...cautions]],
    ["made_by", [say("made_by_page", { version: hs.version })]],
    ["again", [command(values, training)]],
  ];
  const condition = say("if_batches", { batches });
  return [headline(hs, say("subject_training"), ends.upper, delta, changeOf(kind), condition, cautions), parts];
}

/** How adjacent data sets of a training differ. */
function changeOf(kind) {
  const verb = `${SENTENCES.adjacency[KINDS[kind] ?? "add_or_remove"]} one record`;
  return [verb, ...special(kind).map((meaning) => `(${meaning})`)].join(" ");
}

function accountantParts(hs, values, training, attacked, question) {
  const ends = question.epsilon(values.delta);
  const delta = pythonFloat(values.delta);
  const [ofClients, adjacency] = [values.mechanism === "clients", values.adjacency ?? "add_or_remove"];
  const unit = ofClients ? say("clients_unit") : "one record";
  const change = `${SENTENCES.adjacency[adjacency]} ${unit}`;
  // Mechanisms of Poisson samples do not know how many records there are.
  const cautions = values.mechanism === "fixed" ? deltaTooLarge(values.delta, training?.records) : [];
  const steps = training ? training.steps : values.steps;
  const mechanism = mechanismText(values, training);
  const assumed = {
    poisson: [say("assumed_poisson")],
    fixed: [say("assumed_fixed_size", { how: say("without_replacement"), records: training?.records })],
    clients: [
      `${steps} rounds; ${say("clients_drawn", { rate: pythonFloat(training?.samplingRate ?? 1) })}`,
      say("clients_secret"),
      ...sayAll("clients_shared"),
      say("clients_noise"),
      SENTENCES.clients_adjacent[adjacency],
      say("clients_protected", { against: say("clients_against") }),
    ],
  };
  const check = [SENTENCES.assumed_adjacency[adjacency].replace("one record", unit), say("assumed_fixed")];
  const again = ofClients
    ? ["import hockeystick as hs", `print(${federationText(values)}.statement(${delta}))`]
    : ["from hockeystick import Accountant", "from hockeystick.mechanisms import *",
        `print(Accountant('${adjacency}').compose(${mechanism}, ${steps}).statement(${delta}))`];
  const parts = [
    ["epsilon", [interval(hs, ends, delta, true)]],
    ["released", [say("released_accountant")]],
    ["unit", [say("unit", { unit, change })]],
    ["mechanisms", [`${steps} times ${mechanism}`]],
    ["attack", attacked],
    ...(ofClients ? [] : [["user_level", [say("user_level_elsewhere")]]]),
    ["check", [...check, ...(assumed[values.mechanism] ?? [])]],
    ["not_covered", [...sayAll("not_covered"), ...cautions]],
    ["made_by", [say("made_by_page", { version: hs.version })]],
    ["again", again],
  ];
  return [headline(hs, say("subject"), ends.upper, delta, change, "", cautions), parts];
}

/** What to say where a delta allows to publish one of so many records. */
function deltaTooLarge(delta, records) {
  return isLarge(delta, records) ? [say("delta_too_large", { delta: pythonFloat(delta), records })] : [];
}

function headline(hs, subject, epsilon, delta, change, condition, cautions) {
  const where = { subject, delta, change, condition };
  const before = cautions.map((caution) => say("headline_delta", { caution })).join("");
  if (epsilon === Infinity) return before + say("headline_infinite", where);
  const weak = epsilon <= WEAK ? "" : say("headline_weak", { weak: WEAK });
  return before + say("headline", { epsilon: hs.formatUpper(epsilon, ".4g"), ...where }) + weak;
}

function interval(hs, ends, delta, attained) {
  const [low, high] = [hs.formatLower(ends.lower ?? 0, ".6g"), hs.formatUpper(ends.upper, ".6g")];
  return say(attained ? "interval" : "interval_of_a_kind", { delta, low, high });
}

/** Epsilon for the other ways to make batches. */
function otherwise(hs, values, training) {
  const others = Object.keys(KINDS).filter((name) => name !== values.mechanism);
  return others.map((name) => {
    const other = { ...values, mechanism: name, adjacency: KINDS[name], sizes: "equal" };
    const { lower, upper } = asking(hs, other, (question) => question.epsilon(values.delta));
    const shown = { low: hs.formatLower(lower ?? 0, ".4g"), high: hs.formatUpper(upper, ".4g") };
    const ofAKind = name === "shuffled" && !training.equal;
    const words = ofAKind ? "ends_of_a_kind" : upper <= lower * 1.001 ? "ends_close" : "ends";
    return say("otherwise", { ends: say(words, shown), batches: SENTENCES.batches[name], change: changeOf(name) });
  });
}

/** @returns {Generator<undefined, string[]>} hundreds of deltas, between which it pauses */
function* attack(hs, question) {
  const [found, guess, rare] = [yield* mostFound(question, WRONG), yield* mostFound(question, HALF), yield* mostFound(question, FEW)];
  return sayAll("attack", {
    wrong: "1%",
    found: hs.formatUpper(found, ".3%"),
    advantage: hs.formatUpper(question.upperDelta(0), ".3%"),
    half: "50%",
    guess: hs.formatUpper(guess, ".3%"),
    few: "1e-06",
    rare: hs.formatUpper(rare, ".3g"),
  });
}

/** The settings of a training as its sentences name them. */
const named = (values, training) => ({
  steps: training.steps,
  records: training.records,
  noise_multiplier: pythonFloat(values.noise_multiplier),
});

const dpsgd = (values, training) => say("dpsgd", {
  ...named(values, training),
  batches: say("dpsgd_batches", { batch_size: training.batchSize }),
  norm: say("clip_norm"),
});

function command(values, training) {
  const asked = { batches: ` --batch-size ${training.batchSize}`, norm: "", delta: pythonFloat(values.delta), sampling: values.mechanism };
  return say("command", { ...named(values, training), ...asked });
}

/** Text in which no character of Markdown has a meaning. */
const plain = (text) => text.replace(/[*_`<[#]/g, "\\$&");

/**
 * @param {string[]} above
 * @param {Array<[string, string[]]>} parts
 */
function markdownOf(above, parts) {
  const blocks = [...above];
  for (const [name, lines] of parts) {
    const heading = `**${SENTENCES.headings[name]}:**`;
    if (name === "again") blocks.push([heading, "", "```", ...lines, "```"].join("\n"));
    else if (lines.length === 1) blocks.push(`${heading} ${plain(lines[0])}`);
    else blocks.push([heading, "", ...lines.map((line) => `- ${plain(line)}`)].join("\n"));
  }
  return blocks.join("\n\n");
}
