// Asks the package in the folder that is named for what is no number, of freed accountants and of a memory that has grown; writes a line each.
import { pathToFileURL } from "node:url";

const { load } = await import(pathToFileURL(`${process.argv[2]}/hockeystick.js`).href);
const hs = await load();
const said = (f) => {
    try {
        return JSON.stringify(f());
    } catch (error) {
        return `${error.name}: ${error.message}`;
    }
};
const training = { noiseMultiplier: 1, samplingRate: 0.01, steps: 10 };
const freed = hs.accountant().compose(hs.gaussian(1));
freed.free();
freed.free();
const kept = hs.accountant();
for (let i = 0; i < 200; ++i) kept.compose(hs.discreteGaussian(1000 + i)); // 60 MB of tables, so that the memory grows
const lines = [
    said(() => hs.dpsgdDelta({ ...training, epsilon: "" })),
    said(() => hs.dpsgdDelta({ ...training, epsilon: null })),
    said(() => hs.dpsgdEpsilon({ ...training, steps: 10n, delta: 1e-5 })),
    said(() => hs.dpsgdEpsilon({ ...training, samplingrate: 0.1, noiseMultiplier: undefined, delta: 1e-5 })),
    said(() => hs.accountant().compose(hs.gaussian("1"))),
    said(() => hs.accountant().compose(hs.gaussian(1), null)),
    said(() => hs.accountant().compose(hs.poissonSampled(3, 0.1))),
    said(() => hs.accountant().compose(hs.gaussian(1)).epsilons([1e-5, "1e-6"])),
    said(() => hs.q("") === hs.q(""))  /* NaN */,
    said(() => hs.formatLower("1.5")),
    said(() => freed.epsilon(1e-5)),
    said(() => freed.compose(hs.gaussian(1))),
    said(() => kept.epsilons(Float64Array.from({ length: 3000 }, (_, i) => 1e-5 / (i + 1))).every((e) => e.upper >= e.lower)),
];
console.log(lines.join("\n"));
