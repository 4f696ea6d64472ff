// Elements of the page.

/**
 * @param {string} name of the element
 * @param {Object<string, any>} [properties] attributes; those whose names begin with "on" are functions
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/**
 * A button that copies a text, and says that it has.
 * @param {string} label
 * @param {() => string} text
 * @returns {HTMLElement}
 */
export function copyButton(label, text) {
  const button = make("button", { type: "button", class: "hs-copy", onclick: copy }, label);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied: select the text";
    }
    setTimeout(() => (button.textContent = label), 2000);
  }
  return button;
}
