// Puts the explorer into the places of a page that ask for it: <div class="hs-explorer" data-form="full"> or "small".
import { startWorker } from "./client.js";
import { copyButton, make } from "./dom.js";
import { fieldsOf } from "./engine.js";
import { FIELDS } from "./fields.js";
import { cellsFigure, deltaFigure, stepsFigure, tradeOffFigure } from "./figures.js";
import { drawForm } from "./form.js";
import { fromHash, startingSettings, toHash } from "./state.js";

const FULL = ["steps", "delta", "noise", "cells", "statement"];
const SPOKEN_AFTER = 700; // milliseconds without a change, so that a screen reader is not talked over

/** A figure whose picture comes later. */
const figure = (caption) => make("figure", {}, make("div", { class: "hs-picture" }), make("figcaption", {}, caption));

/** @param {string} label */
function codeBlock(label) {
  const code = make("pre", { tabindex: 0, "aria-label": label });
  return { code, block: make("div", { class: "hs-code" }, make("h3", {}, label), copyButton("Copy", () => code.textContent), code) };
}

function numberBlock() {
  const number = make("p", { class: "hs-number" }, "…");
  const ends = make("p", { class: "hs-ends" });
  const error = make("p", { class: "hs-error", role: "alert", hidden: true });
  const doubts = make("ul", { class: "hs-doubts" });
  const spoken = make("p", { class: "hs-spoken", role: "status", "aria-live": "polite" });
  return { number, ends, error, doubts, spoken };
}

/**
 * Mounts one explorer.
 * @param {HTMLElement} root
 * @param {number} order of this explorer on its page
 */
function mount(root, order) {
  const full = root.dataset.form === "full";
  const settings = startingSettings(full ? fromHash(location.hash) : {});
  const form = make("form", { id: `hs${order}`, class: "hs-form", "aria-label": "Settings" });
  form.addEventListener("submit", (event) => event.preventDefault());
  const parts = numberBlock();
  const answer = make("div", { class: "hs-answer" }, ...Object.values(parts));
  const view = full ? fullView(answer) : smallView(answer, settings);
  root.replaceChildren(make("div", { class: "hs-top" }, form, answer), ...view.rest);
  const { show, asked } = shower(settings, parts, view, root);
  const ask = startWorker(globalThis.hockeystickWorker, show);
  const tell = () => {
    if (full) history.replaceState(null, "", `#${toHash(settings)}`);
    asked();
    ask(settings, full ? FULL : ["steps"]);
  };
  const draw = drawForm(form, settings, tell, full ? undefined : ["noise_multiplier", "sampling_rate", "steps"]);
  if (full) {
    addEventListener("hashchange", () => {
      Object.assign(settings, startingSettings(fromHash(location.hash)));
      draw();
      tell();
    });
  }
  asked();
  ask(settings, full ? FULL : ["steps"]);
}

/** The parts of the whole explorer below its number. */
function fullView(answer) {
  const noise = make("p", { class: "hs-noise" });
  answer.append(noise);
  const figures = {
    steps: figure("ε as the training goes on. The line is the budget; the mark is your setting."),
    delta: figure("δ for every ε: one training has many pairs (ε, δ), and this curve is all of them."),
    tradeOff: figure("What a test of membership must get wrong. The dashed line is guessing."),
    cells: figure("ε of noise and length, from 0.1 or less (blank) to 100 or more (solid). The line is the border of the budget, the mark your setting."),
  };
  const statement = codeBlock("Privacy statement");
  const python = codeBlock("The same in Python");
  const shell = codeBlock("The same in a shell");
  const link = copyButton("Copy a link to these settings", () => location.href);
  const version = make("p", { class: "hs-note" });
  const codes = [statement.block, python.block, shell.block];
  const rest = [make("div", { class: "hs-figures" }, ...Object.values(figures)), ...codes, make("p", {}, link), version];
  return { rest, figures, noise, version, statement: statement.code, python: python.code, shell: shell.code };
}

/** The smallest form: one curve, and the way to the whole explorer. */
function smallView(answer, settings) {
  const figures = { steps: figure("ε as the training goes on, one record added or removed.") };
  const more = make("a", { href: "explorer/index.html" }, "All settings, mechanisms and curves");
  more.addEventListener("click", () => (more.href = `explorer/index.html#${toHash(settings)}`));
  answer.append(figures.steps, make("p", { class: "hs-note" }, more));
  return { rest: [], figures };
}

/**
 * What shows answers: a function of the part and its result, and one to call when something new is asked.
 */
function shower(settings, parts, view, root) {
  let epsilon = NaN;
  let timer = 0;
  const draw = (name, picture) => view.figures[name]?.querySelector(".hs-picture").replaceChildren(picture);
  const speak = (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => (parts.spoken.textContent = text), SPOKEN_AFTER);
  };
  /** @type {Object<string, (result: any) => void>} */
  const shows = {
    number(result) {
      epsilon = result.upper;
      root.classList.remove("hs-stale");
      parts.error.hidden = true;
      showNumber(parts, settings, result);
      if (view.statement) view.statement.textContent = "…"; // until that of these settings is there
      if (view.python) view.python.textContent = `import hockeystick as hs\n${result.python}`;
      if (view.shell) view.shell.textContent = result.shell;
      speak(`${parts.number.textContent}. ${result.doubts.join(" ")}`);
    },
    error(message) {
      root.classList.add("hs-stale");
      parts.error.hidden = false;
      parts.error.textContent = message;
      parts.number.textContent = "no ε";
      parts.ends.textContent = "";
      parts.doubts.replaceChildren();
    },
    steps: (result) => draw("steps", stepsFigure(settings, result, epsilon, Boolean(view.noise))),
    delta(result) {
      draw("delta", deltaFigure(settings, result, epsilon));
      draw("tradeOff", tradeOffFigure(result));
      view.figures.tradeOff.lastChild.textContent =
        `What a test of membership must get wrong. The dashed line is guessing; the advantage of any test is at most ${result.advantage}.`;
    },
    cells: (result) => draw("cells", cellsFigure(settings, result)),
    noise: ({ budget, noise }) => (view.noise.textContent = noiseText(settings, budget, noise)),
    statement: (text) => (view.statement.textContent = text),
    version: (text) => view.version && (view.version.textContent = `hockeystick ${text}, compiled to WebAssembly; nothing that you type leaves this page.`),
    done() {},
    failed(part, message) {
      const missing = () => make("p", { class: "hs-error" }, message);
      const places = part === "delta" ? ["delta", "tradeOff"] : [part];
      for (const name of places) draw(name, missing());
      if (part === "noise") view.noise.textContent = message;
      if (part === "statement") view.statement.textContent = message;
    },
  };
  const show = (part, result, newest) => {
    if (newest && ["number", "error", "done"].includes(part)) root.dataset.state = part;
    try {
      if (result?.error) shows.failed(part, result.error);
      else shows[part](result);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // a field was emptied while its answer was on the way
    }
  };
  return { show, asked: () => (root.dataset.state = "asked") };
}

function showNumber(parts, settings, { lower, headline, ends, doubts, milliseconds }) {
  const none = headline === "inf";
  parts.number.textContent = none ? "no finite ε" : `ε ≤ ${headline} at δ = ${settings.delta}`;
  const [low, high] = ends;
  const known = lower === null ? `at most ${high}; how far below is not known here` : `between ${low} and ${high}`;
  parts.ends.textContent = `The smallest ε is ${known}: certified, rounding included. Computed in ${milliseconds.toFixed(1)} ms.`;
  parts.doubts.replaceChildren(...doubts.map((text) => make("li", {}, text)));
}

function noiseText(settings, budget, noise) {
  const { label } = FIELDS[fieldsOf(settings.mechanism).noise];
  if (noise === null) return `No noise brings ε down to ${budget} here.`;
  return `Which noise for ε = ${budget}? ${label}: ${noise}, rounded up.`;
}

document.querySelectorAll(".hs-explorer").forEach(mount);
