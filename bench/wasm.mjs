// Microseconds of processor time for a cold epsilon of DP-SGD in Node: `node bench/wasm.mjs PACKAGE [STEPS]`. bench/wasm.py runs it.
import { pathToFileURL } from "node:url";

const before = performance.now();
const { load } = await import(pathToFileURL(`${process.argv[2]}/hockeystick.js`).href);
const hs = await load();
const loaded = performance.now();
const cold = (noiseMultiplier) => hs.dpsgdEpsilon({ noiseMultiplier, samplingRate: 0.01, steps: 1000, delta: 1e-5 });
const first = cold(1);
const answered = performance.now();
const processor = () => process.cpuUsage().user + process.cpuUsage().system;
let best = Infinity;
for (let round = 0; round < 15; ++round) {
    const start = processor();
    for (let i = 0; i < 200; ++i) cold(0.8 + (200 * round + i) * 1e-4); // each noise is new, so that nothing is warm
    best = Math.min(best, (processor() - start) / 200);
}
console.log(JSON.stringify({ load: loaded - before, first: answered - loaded, cold: best, upper: first.upper }));
