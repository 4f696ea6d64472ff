// What a reader sees who chooses every slice in turn, and then points at the first cell, as JSON in an element at the end of the page.
const until = async (look) => { for (;;) { const seen = look(); if (seen) return seen; await new Promise((go) => setTimeout(go, 50)) } }
const roots = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((e) => e.shadowRoot ? roots(e.shadowRoot) : [])]
const find = (selector) => roots(document).map((root) => root.querySelector(selector)).find((element) => element)
const point = (element, x, y) => element.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: y, isPrimary: true, bubbles: true, composed: true}))
window.addEventListener("load", async () => {
  const picture = await until(() => window.Bokeh?.documents[0]?.get_model_by_name("picture-0"))
  const words = () => picture.renderers[0].data_source.data["epsilon text"]
  await until(() => words()[0] != " ")
  const select = Bokeh.documents[0].get_model_by_name("select sampling_rate")
  const choose = async (value) => { select.value = value; await new Promise((go) => setTimeout(go, 200)); return [...words()] }
  const slices = []
  for (const [value] of [...select.options, ["0"]]) slices.push(await choose(value))
  const area = find(".bk-events")
  const box = find(".bk-CartesianFrame").getBoundingClientRect()
  const [x, y] = [box.left + 2, box.bottom - 2]
  const tooltip = await until(() => { point(area, x, y); return find(".bk-tooltip-row-value")?.parentElement.parentElement.textContent })
  const result = document.createElement("pre")
  result.id = "probe"
  result.textContent = JSON.stringify({slices: slices.slice(0, -1), tooltip})
  document.body.append(result)
})
