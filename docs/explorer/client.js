// The page's side of the worker. The worker's text is part of the page, since a page that is opened as a file may load none.

/**
 * @param {string} text of the worker
 * @param {(part: string, result: any, newest: boolean) => void} show what to do with an answer, unless a newer one was shown; `newest`
 *   if it is of what was asked last
 * @returns {(settings: import("./state.js").Settings, parts: string[]) => void} asks
 */
export function startWorker(text, show) {
  const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const shown = {};
  let last = 0;
  worker.onmessage = ({ data: { id, part, result } }) => {
    if (id < (shown[part] ?? 0)) return;
    shown[part] = id;
    show(part, result, id === last);
  };
  worker.onerror = (event) => show("error", `The accountant did not start in this browser: ${event.message}`, true);
  return (settings, parts) => worker.postMessage({ id: ++last, settings, parts });
}
