// Puts the explorer into the places of a page that ask for it: <div class="hs-explorer" data-form="full"> or "small".
import { startWorker } from "./client.js";
import { copyButton, make } from "./dom.js";
import { fieldsOf } from "./engine.js";
import { FIELDS, fieldsWith } from "./fields.js";
import { cellsFigure, deltaFigure, stepsFigure, tradeOffFigure } from "./figures.js";
import { drawForm } from "./form.js";
import { fromHash, startingSettings, toHash } from "./state.js";

/** @typedef {import("./state.js").Settings} Settings */

const FULL = ["ends", "steps", "delta", "noise", "statement", "cells"];
const WRITTEN_AFTER = 350; // milliseconds between two writings of the address; Safari allows a hundred in half a minute
const SPOKEN_AFTER = 700; // milliseconds without a change, so that a screen reader is not talked over

/** A figure whose picture comes later. */
const figure = (caption) => make("figure", {}, make("div", { class: "hs-picture" }), make("figcaption", {}, caption));

/** @param {string} label */
function codeBlock(label) {
  const code = make("pre", { tabindex: 0, role: "group", "aria-label": label });
  const copy = copyButton("Copy", () => code.textContent);
  copy.setAttribute("aria-describedby", `hs-${label.replaceAll(" ", "-")}`); // there are three such buttons
  const heading = make("h2", { id: copy.getAttribute("aria-describedby") }, label);
  return { code, block: make("div", { class: "hs-code" }, heading, copy, code) };
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
  const view = full ? fullView(answer, settings) : smallView(answer, settings);
  root.replaceChildren(make("div", { class: "hs-top" }, form, answer), ...view.rest);
  const { show, asked } = shower(parts, view, root);
  const ask = startWorker(globalThis.hockeystickWorker, show);
  const keep = seldom(() => history.replaceState(null, "", `#${toHash(settings)}`));
  const tell = () => {
    if (full) keep();
    asked();
    ask(settings, full ? FULL : ["steps"]);
  };
  const draw = drawForm(form, settings, tell, full ? undefined : ["noise_multiplier", "sampling_rate", "steps"]);
  if (full) {
    addEventListener("hashchange", (event) => {
      const given = fromHash(new URL(event.newURL).hash); // the address itself may have been written over
      if (!Object.keys(given).length) return; // a link to a heading
      Object.assign(settings, startingSettings(given));
      draw();
      tell();
    });
  }
  asked();
  ask(settings, full ? FULL : ["steps"]);
}

/**
 * A function that calls at once, and again after a while if it was called meanwhile: browsers refuse to write an address for every move of a slider.
 * @param {() => void} call
 * @returns {() => void}
 */
function seldom(call) {
  let [waiting, again] = [false, false];
  return function now() {
    again = waiting;
    if (waiting) return;
    waiting = true;
    call();
    setTimeout(() => {
      waiting = false;
      if (again) now();
    }, WRITTEN_AFTER);
  };
}

/** The parts of the whole explorer below its number. */
function fullView(answer, settings) {
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
  const link = copyButton("Copy a link to these settings", () => `${location.href.split("#")[0]}#${toHash(settings)}`);
  const file = make("a", { class: "hs-copy", download: "certificate.json" }, "Download the certificate");
  const proof = make("p", { hidden: true }, file, " of this ε, which ", make("code", {}, "hockeystick-check certificate.json"), " proves");
  const version = make("p", { class: "hs-note" });
  const codes = [statement.block, python.block, shell.block];
  const rest = [make("div", { class: "hs-figures" }, ...Object.values(figures)), ...codes, proof, make("p", {}, link), version];
  return { rest, figures, noise, version, proof, statement: statement.code, python: python.code, shell: shell.code };
}

/** Offers a file, or nothing where there is none. */
function offer(place, text) {
  place.hidden = !text;
  place.querySelector("a").href = `data:application/json,${encodeURIComponent(text)}`;
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
function shower(parts, view, root) {
  let timer = 0;
  const placeOf = (name) => view.figures[name]?.querySelector(".hs-picture");
  // What each answer fills; all of it is old from the moment that something new is asked, until its answer of that is there.
  const filled = {
    number: [parts.number, parts.ends, parts.doubts, view.python, view.shell, view.proof],
    steps: [placeOf("steps")],
    delta: [placeOf("delta"), placeOf("tradeOff")],
    cells: [placeOf("cells")],
    noise: [view.noise],
    statement: [view.statement],
  };
  filled.error = Object.values(filled).flat();
  const placesOf = (part) => (filled[part] ?? []).filter(Boolean);
  const draw = (name, picture) => placeOf(name)?.replaceChildren(picture);
  const speak = (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => (parts.spoken.textContent = text), SPOKEN_AFTER);
  };
  /** @type {Object<string, (result: any, settings: Settings) => void>} of what was asked, since newer ones may have been typed */
  const shows = {
    number(result, settings) {
      root.classList.remove("hs-stale");
      parts.error.hidden = true;
      showNumber(parts, settings, result);
      parts.doubts.replaceChildren(...result.doubts.map((text) => make("li", {}, text)));
      if (view.statement) view.statement.textContent = "…"; // until that of these settings is there
      if (view.python) view.python.textContent = `import hockeystick as hs\n${result.python}`;
      if (view.shell) view.shell.textContent = result.shell;
      if (view.proof) offer(view.proof, result.certificate);
      speak(`${parts.number.textContent}. ${result.doubts.join(" ")}`);
    },
    ends: (result, settings) => result && showNumber(parts, settings, result),
    error(message, settings) {
      root.classList.add("hs-stale");
      parts.error.hidden = false;
      parts.error.textContent = inLabels(message, settings);
      parts.number.textContent = "no ε";
      parts.ends.textContent = "";
      parts.doubts.replaceChildren();
      speak(""); // the message itself is read out
      for (const text of [view.statement, view.python, view.shell, view.noise]) if (text) text.textContent = "";
      if (view.proof) offer(view.proof, "");
    },
    steps: (result, settings) => draw("steps", stepsFigure(settings, result, Boolean(view.noise))),
    delta(result, settings) {
      draw("delta", deltaFigure(settings, result));
      draw("tradeOff", tradeOffFigure(result));
      view.figures.tradeOff.lastChild.textContent =
        `What a test of membership must get wrong. The dashed line is guessing; the advantage of any test is at most ${result.advantage}.`;
    },
    cells: (result, settings) => draw("cells", cellsFigure(settings, result)),
    noise: (result, settings) => (view.noise.textContent = noiseText(settings, result)),
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
  const show = (part, result, newest, settings) => {
    if (newest && ["number", "ends", "error", "done"].includes(part)) root.dataset.state = part;
    if (result?.error) shows.failed(part, result.error);
    else shows[part](result, settings);
    if (newest) for (const place of placesOf(part)) place.removeAttribute("aria-busy"); // others are of older settings
  };
  const asked = () => {
    root.dataset.state = "asked";
    for (const place of placesOf("error")) place.setAttribute("aria-busy", "true");
  };
  return { show, asked };
}

/**
 * @param {Object<string, HTMLElement>} parts
 * @param {Settings} settings
 * @param {{headline: string, low: string|null, high: string, later?: boolean, milliseconds?: number}} answer
 */
function showNumber(parts, settings, { headline, low, high, later, milliseconds }) {
  const none = headline === "inf";
  parts.number.textContent = none ? `no finite ε at δ = ${settings.delta}` : `ε ≤ ${headline} at δ = ${settings.delta}`;
  const known = low === null ? `at most ${high}` : `between ${low} and ${high}`;
  const open = later ? " A lower end follows." : low === null ? " How far below is not computed." : "";
  const time = milliseconds === undefined ? "" : ` Computed in ${milliseconds.toFixed(1)} ms.`;
  parts.ends.textContent = none ? "" : `The smallest ε is ${known}: certified, rounding included.${open}${time}`;
}

/**
 * A refusal, which names arguments, with the labels that stand on the page.
 * @param {string} message
 * @param {Settings} [settings]
 */
function inLabels(message, settings) {
  if (!settings) return message;
  const fields = { ...fieldsWith(settings), count: FIELDS[fieldsOf(settings.mechanism).length] };
  return message.replace(/^\w+(?= must)|\b[a-z]+_[a-z_]+\b/g, (name) => fields[name]?.label ?? name);
}

function noiseText(settings, { budget, noise, tried }) {
  const { label } = FIELDS[fieldsOf(settings.mechanism).noise];
  if (noise === null) return `Which noise for ε = ${budget}? Not even ${tried}, a million times yours, is enough.`;
  return `Which noise for ε = ${budget}? ${label}: ${noise}, rounded up.`;
}

document.querySelectorAll(".hs-explorer").forEach(mount);
