// The page's side of the worker. The worker's text is part of the page, since a page that is opened as a file may load none.

/**
 * @param {string} text of the worker
 * @param {(part: string, result: any, newest: boolean, settings: import("./state.js").Settings) => void} show what to do with an
 *   answer, unless a newer one was shown; `newest` if it is of what was asked last, `settings` of what it is the answer
 * @returns {(settings: import("./state.js").Settings, parts: string[]) => void} asks
 */
export function startWorker(text, show) {
  const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const shown = {};
  let last = 0;
  worker.onmessage = ({ data: { id, part, result, settings } }) => {
    const place = ["ends", "error"].includes(part) ? "number" : part; // these three take each other's place
    if (id < (shown[place] ?? 0)) return;
    shown[place] = id;
    show(part, result, id === last, settings);
  };
  worker.onerror = (event) => show("error", `The accountant did not start in this browser: ${event.message ?? "it has no workers"}`, true);
  return (settings, parts) => worker.postMessage({ id: ++last, settings, parts });
}
