// The controls: a choice of mechanism, then what it asks for, each number as a field to type in and a slider.
import { make } from "./dom.js";
import { CHOICES, MECHANISMS, fieldsWith } from "./fields.js";
import { parse, short } from "./numbers.js";
import { relevant, startingSettings } from "./state.js";

const STOPS = 400; // places of a slider

/** @typedef {import("./state.js").Settings} Settings */

/**
 * @param {import("./fields.js").Field} field
 * @param {number} place in [0, STOPS]
 * @returns {number}
 */
function valueAt(field, place) {
  const share = place / STOPS;
  const { low, high } = field;
  const value = field.linear ? low + share * (high - low) : low * (high / low) ** share;
  return field.whole ? Math.round(value) : Number(value.toPrecision(3));
}

/**
 * @param {import("./fields.js").Field} field
 * @param {number} value
 * @returns {number} the nearest place
 */
function placeOf(field, value) {
  const { low, high } = field;
  const share = field.linear ? (value - low) / (high - low) : Math.log(value / low) / Math.log(high / low);
  return Number.isFinite(share) ? Math.round(STOPS * Math.min(Math.max(share, 0), 1)) : 0;
}

/**
 * @param {string} name
 * @param {Settings} settings changed by what is typed
 * @param {() => void} tell
 * @param {string} prefix of ids, of this form
 */
function numberRow(name, settings, tell, prefix) {
  const field = fieldsWith(settings)[name];
  const id = `${prefix}-${name}`;
  const typed = make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
  const slider = make("input", { type: "range", min: 0, max: STOPS, step: 1, "aria-label": `${field.label}, slider` });
  const place = () => {
    slider.value = String(placeOf(field, parse(settings[name])));
    slider.setAttribute("aria-valuetext", settings[name]);
  };
  typed.value = settings[name];
  typed.addEventListener("input", () => {
    settings[name] = typed.value;
    place();
    tell();
  });
  slider.addEventListener("input", () => {
    settings[name] = typed.value = short(valueAt(field, Number(slider.value)));
    slider.setAttribute("aria-valuetext", settings[name]);
    tell();
  });
  place();
  return make("div", { class: "hs-row" }, make("label", { for: id }, field.label), typed, slider);
}

/**
 * @param {string} name
 * @param {{label: string, options: Object<string, string>}} choice
 * @param {Settings} settings
 * @param {() => void} tell
 * @param {string} prefix
 */
function choiceRow(name, choice, settings, tell, prefix) {
  const id = `${prefix}-${name}`;
  const select = make("select", { id });
  for (const [value, words] of Object.entries(choice.options)) {
    select.append(make("option", { value, selected: settings[name] === value }, words));
  }
  select.addEventListener("change", () => {
    settings[name] = select.value;
    tell();
  });
  return make("div", { class: "hs-row hs-choice" }, make("label", { for: id }, choice.label), select);
}

/**
 * @param {HTMLElement} place where the controls go
 * @param {Settings} settings changed by what is typed and chosen
 * @param {() => void} tell called after every change
 * @param {string[]} [only] the fields to show, where not all that the mechanism asks for
 * @returns {() => void} draws the controls again, for other settings
 */
export function drawForm(place, settings, tell, only) {
  const prefix = place.id;
  const labels = Object.fromEntries(Object.entries(MECHANISMS).map(([name, { label }]) => [name, label]));
  let drawn = settings.mechanism;
  const again = () => {
    const focused = document.activeElement?.id;
    draw();
    tell();
    if (focused) document.getElementById(focused)?.focus();
  };
  const chosen = () => {
    const { mechanism } = settings;
    const { own, usual } = MECHANISMS[mechanism];
    const first = startingSettings({ mechanism });
    const names = ["adjacency", ...Object.keys({ ...usual, ...own, ...MECHANISMS[drawn].own })];
    for (const name of names) settings[name] = first[name];
    again();
  };
  function draw() {
    drawn = settings.mechanism;
    const rows = only ? [] : [choiceRow("mechanism", { label: "Mechanism", options: labels }, settings, chosen, prefix)];
    for (const name of only ?? relevant(settings)) {
      if (name in CHOICES) rows.push(choiceRow(name, CHOICES[name], settings, again, prefix));
      else rows.push(numberRow(name, settings, tell, prefix));
    }
    const { protects } = MECHANISMS[settings.mechanism];
    if (protects && !only) rows.push(make("p", { class: "hs-note" }, `Data sets differ by ${protects}.`));
    place.replaceChildren(...rows);
  }
  draw();
  return draw;
}
