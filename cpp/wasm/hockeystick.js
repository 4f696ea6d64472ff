// The module's public functions. Their types, units and domains are in hockeystick.d.ts.
import { Accountant } from "./accountant.js";
import { Core, HockeystickError } from "./core.js";
import { outward } from "./decimals.js";
import { mechanisms } from "./mechanisms.js";

export { HockeystickError };

/** @typedef {import("./hockeystick.js").Federation} Federation */
/** @typedef {import("./hockeystick.js").Hockeystick} Hockeystick */
/** @typedef {import("./hockeystick.js").Iteration} Iteration */
/** @typedef {import("./hockeystick.js").LoadOptions} LoadOptions */
/** @typedef {import("./hockeystick.js").ShuffledTraining} ShuffledTraining */
/** @typedef {import("./hockeystick.js").Training} Training */

const SCHEDULES = ["constant", "cyclic", "stagewise", "continuous"]; // their codes in the C API are their places

/**
 * DP-SGD with Poisson samples.
 * @param {Core} core
 */
function poissonTrainings(core) {
    const { api } = core;
    return {
        /** @param {Training & { delta: number }} t */
        dpsgdEpsilon: (t) =>
            core.bracket((out) => api.hs_dpsgd_epsilon(t.noiseMultiplier, t.samplingRate, t.steps, t.delta, out)),
        /** @param {Training & { epsilon: number }} t */
        dpsgdDelta: (t) =>
            core.bracket((out) => api.hs_dpsgd_delta(t.noiseMultiplier, t.samplingRate, t.steps, t.epsilon, out)),
        /** @param {{ samplingRate: number, steps: number, epsilon: number, delta: number }} t */
        dpsgdNoiseMultiplier: (t) =>
            core.number((out) => api.hs_dpsgd_noise_multiplier(t.samplingRate, t.steps, t.epsilon, t.delta, out)),
    };
}

/**
 * DP-SGD with shuffled batches.
 * @param {Core} core
 */
function shuffledTrainings(core) {
    const { api } = core;
    return {
        /** @param {ShuffledTraining & { delta: number }} t */
        shuffledBatchesEpsilon: (t) =>
            core.bracket((out) =>
                api.hs_shuffled_batches_epsilon(t.noiseMultiplier, t.numBatches, t.epochs ?? 1, t.delta, out),
            ),
        /** @param {ShuffledTraining & { epsilon: number }} t */
        shuffledBatchesDelta: (t) =>
            core.bracket((out) =>
                api.hs_shuffled_batches_delta(t.noiseMultiplier, t.numBatches, t.epochs ?? 1, t.epsilon, out),
            ),
    };
}

/**
 * Trainings whose last model alone is released.
 * @param {Core} core
 */
function lastModels(core) {
    const { api } = core;
    /** @param {Federation} f */
    const fedavgGdp = (f) => {
        const schedule = f.schedule ?? "constant";
        const code = SCHEDULES.indexOf(schedule);
        if (code < 0) throw new HockeystickError(`schedule must be one of ${SCHEDULES.join(", ")}, not ${schedule}`);
        const { rounds, localSteps, numClients, clipNorm, noiseStd, smoothness, learningRate } = f;
        const diameter = f.diameter ?? Infinity;
        return core.number((out) =>
            api.hs_fedavg_gdp(
                ...[code, rounds, localSteps, numClients, clipNorm, noiseStd, smoothness, learningRate, diameter, out],
            ),
        );
    };
    return {
        fedavgGdp,
        /** @param {Federation & { delta: number }} f */
        fedavgEpsilon: (f) => inDomain("delta", "lie in [0, 1]", f.delta, api.hs_gdp_epsilon(fedavgGdp(f), f.delta)),
        /** @param {Federation & { epsilon: number }} f */
        fedavgDelta: (f) => inDomain("epsilon", "be non-negative", f.epsilon, api.hs_gdp_delta(fedavgGdp(f), f.epsilon)),
        /** @param {Iteration & { epsilon: number }} i */
        pnsgdGaussian: (i) => {
            const { epsilon, index, numRecords, learningRate, noiseStd, lipschitz, smoothness, diameter } = i;
            const convexity = i.strongConvexity ?? 0;
            return core.number((out) =>
                api.hs_pnsgd_gaussian(
                    ...[epsilon, index, numRecords, learningRate, noiseStd, lipschitz, smoothness, convexity, diameter],
                    out,
                ),
            );
        },
    };
}

/**
 * Throws where a kernel had no answer, which is NaN.
 * @param {string} name
 * @param {string} domain
 * @param {number} value
 * @param {number} answer
 */
function inDomain(name, domain, value, answer) {
    if (Number.isNaN(answer)) throw new HockeystickError(`${name} must ${domain}, not ${value}`);
    return answer;
}

/**
 * @param {Core} core
 * @returns {Hockeystick}
 */
function library(core) {
    const { api } = core;
    return Object.freeze({
        version: core.text(api.hs_version()),
        accountant: (adjacency = "add_or_remove") => new Accountant(core, adjacency),
        ...mechanisms,
        ...poissonTrainings(core),
        ...shuffledTrainings(core),
        ...lastModels(core),
        formatUpper: (value, format = ".6g") => outward(value, format, 1),
        formatLower: (value, format = ".6g") => outward(value, format, -1),
        q: api.hs_q,
        logQ: api.hs_log_q,
        qInv: api.hs_q_inv,
        theta: api.hs_theta,
        logTheta: api.hs_log_theta,
        gaussianEpsilon: api.hs_gaussian_epsilon,
        gdpTradeOff: api.hs_gdp_trade_off,
    });
}

/** The bytes of hockeystick.wasm, from beside this file: Node's fetch reads no files. */
async function bytesFromBeside() {
    const address = new URL("./hockeystick.wasm", import.meta.url);
    if (typeof process === "object" && process.versions?.node) {
        const { readFile } = await import("node:fs/promises");
        return readFile(address);
    }
    const answer = await fetch(address);
    if (!answer.ok) throw new HockeystickError(`${address} cannot be read: ${answer.status} ${answer.statusText}`);
    return answer.arrayBuffer();
}

/**
 * Compiles the module.
 * @param {LoadOptions} options
 * @returns {Promise<Hockeystick>}
 */
export async function load({ wasmBinary } = {}) {
    return library(await Core.compile(wasmBinary ?? (await bytesFromBeside())));
}
