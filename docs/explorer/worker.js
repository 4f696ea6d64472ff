// The thread that computes. Of a request, the number comes first, then its lower end if that takes long, the curves, and what takes longer: the least noise, the
// map, the statement. The newest request wins: its number is answered between two evaluations of an older one, whose curves are
// finished if they have just begun (a slider that moves all the time would show none else), and whose rest is dropped.
import { load } from "hockeystick";
import { asking, deltaOverEpsilon, epsilonOfCells, epsilonOverSteps, leastNoise, tradeOffBelow } from "./answers.js";
import { certificate } from "./certificate.js";
import { pythonLine, shellLine } from "./commands.js";
import { doubtsOf } from "./doubts.js";
import { trainingIn } from "./engine.js";
import { valuesOf } from "./state.js";
import { statement } from "./statement.js";
import { BYTES } from "./wasm_bytes.js";

const SLICE = 8; // milliseconds of work between two looks at what has arrived
const CURVES = 120; // milliseconds that curves may go on for when a newer request waits

/**
 * @typedef {Object} Request
 * @property {number} id grows
 * @property {import("./state.js").Settings} settings
 * @property {string[]} parts of LATER, in the order in which they are wanted
 */

const ready = load({ wasmBinary: Uint8Array.from(atob(BYTES), (letter) => letter.charCodeAt(0)) });
ready.then(
  (hs) => postMessage({ id: 0, part: "version", result: hs.version }),
  (error) => postMessage({ id: Infinity, part: "error", result: `The accountant did not start in this browser: ${error.message}` }),
);

/** @type {Request|undefined} */
let newest;
let working = false;

self.onmessage = async ({ data }) => {
  newest = data;
  if (working) return;
  working = true;
  const hs = await ready; // if there is none, the page has been told, and no request is answered
  while (newest) {
    const request = newest;
    newest = undefined;
    await answer(hs, request);
  }
  working = false;
};

/** Lets messages arrive. */
const turn = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(undefined);
  });

/**
 * @param {Request} request
 * @param {string} part
 * @param {unknown} result
 */
const send = (request, part, result) => postMessage({ id: request.id, part, result, settings: request.settings });

/**
 * Answers the number of a request.
 * @param {import("hockeystick").Hockeystick} hs
 * @param {Request & {values?: import("./state.js").Values, ends?: import("./engine.js").Ends, later?: boolean}} request what is found is
 *   kept in it
 * @returns {boolean} whether there is one
 */
function answerNumber(hs, request) {
  if (request.ends) return true;
  try {
    const began = performance.now();
    const values = valuesOf(request.settings);
    const training = trainingIn(values);
    const [ends, later] = asking(hs, values, (question) => [
      question.later ? { lower: null, upper: question.upperEpsilon(values.delta) } : question.epsilon(values.delta),
      Boolean(question.later),
    ]);
    Object.assign(request, { values, ends, later });
    send(request, "number", {
      ...shownEnds(hs, ends),
      later,
      doubts: doubtsOf(values, training, ends.upper),
      python: pythonLine(values, training, ends.upper),
      shell: shellLine(values, training, ends.upper),
      certificate: certificate(values, training, ends.upper, hs.version),
      milliseconds: performance.now() - began,
    });
    return true;
  } catch (error) {
    send(request, "error", error.message);
    return false;
  }
}

/**
 * @param {import("hockeystick").Hockeystick} hs
 * @param {import("./engine.js").Ends} ends
 * @returns {{upper: number, headline: string, low: string|null, high: string}} both ends, and as text rounded outward
 */
const shownEnds = (hs, { lower, upper }) => ({
  upper,
  headline: hs.formatUpper(upper, ".4g"),
  low: lower === null ? null : hs.formatLower(lower, ".10g"),
  high: hs.formatUpper(upper, ".10g"),
});

/**
 * What comes after the number, by name.
 * @type {Object<string, (hs: import("hockeystick").Hockeystick, request: any) => Generator>}
 */
const LATER = {
  *ends(hs, { values, later }) {
    if (!later) return null;
    yield;
    return shownEnds(hs, asking(hs, values, (question) => question.epsilon(values.delta)));
  },
  *steps(hs, { values, ends }) {
    return { ...(yield* epsilonOverSteps(hs, values)), epsilon: ends.upper };
  },
  *delta(hs, { values, ends }) {
    const { points, advantage } = yield* deltaOverEpsilon(hs, values, ends.upper);
    const text = hs.formatUpper(advantage, ".2%");
    return { points, epsilon: ends.upper, tradeOff: tradeOffBelow(points), advantage: text };
  },
  *noise(hs, { values }) {
    const { noise, tried } = yield* leastNoise(hs, values);
    const [found, most] = [hs.formatUpper(noise, ".5g"), hs.formatLower(tried, ".5g")];
    return { budget: values.budget, noise: noise === Infinity ? null : found, tried: most };
  },
  *cells(hs, { values }) {
    return yield* epsilonOfCells(hs, values);
  },
  *statement(hs, { values }) {
    yield;
    return yield* statement(hs, values, trainingIn(values));
  },
};
const QUICK = ["ends", "steps", "delta"];

/**
 * @param {import("hockeystick").Hockeystick} hs
 * @param {Request} request
 */
async function answer(hs, request) {
  if (!answerNumber(hs, request)) return;
  const began = performance.now();
  for (const part of request.parts) {
    try {
      if (!(await finish(hs, request, part, began))) return;
    } catch (error) {
      send(request, part, { error: error.message });
    }
  }
  send(request, "done", null);
}

/** @returns {Promise<boolean>} false if it was dropped for a newer request */
async function finish(hs, request, part, began) {
  const task = LATER[part](hs, request);
  let looked = performance.now();
  for (let next = task.next(); ; next = task.next()) {
    if (next.done) {
      send(request, part, next.value);
      return true;
    }
    if (next.value) send(request, part, next.value);
    if (performance.now() - looked < SLICE) continue;
    await turn();
    looked = performance.now();
    if (!newest) continue;
    answerNumber(hs, newest);
    if (!QUICK.includes(part) || looked - began > CURVES) {
      task.return();
      return false;
    }
  }
}
