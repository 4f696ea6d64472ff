// Mechanisms as plain objects: a name, and the call of the C API that makes a handle. Handles live only while they are composed.

/** @typedef {import("./core.js").Core} Core */
/** @typedef {import("./hockeystick.js").Mechanism} Mechanism */
/** @typedef {{ name: string, make: (core: Core, out: number) => number }} Made */

/**
 * @param {string} name
 * @param {(core: Core, out: number) => number} make
 * @returns {Mechanism}
 */
function mechanism(name, make) {
    return Object.freeze({ name, make });
}

/**
 * @param {Mechanism} mechanism
 * @returns {Made}
 */
function made(mechanism) {
    const found = /** @type {any} */ (mechanism);
    if (typeof found?.make === "function") return found;
    throw new TypeError(`mechanism must be made by a function of this module, not ${String(mechanism)}`);
}

/**
 * Calls body with the handle of a mechanism, which is freed afterwards.
 * @template T
 * @param {Core} core
 * @param {Mechanism} mechanism
 * @param {(handle: number) => T} body
 * @returns {T}
 */
export function withHandle(core, mechanism, body) {
    const { make } = made(mechanism);
    return core.scope(() => {
        const out = core.room(8);
        core.check(make(core, out));
        const handle = core.address(out);
        try {
            return body(handle);
        } finally {
            core.api.hs_mechanism_free(handle);
        }
    });
}

/**
 * @param {Core} core
 * @param {Mechanism} inner
 * @param {number} out
 * @param {(handle: number, out: number) => number} make
 */
const around = (core, inner, out, make) => withHandle(core, inner, (handle) => make(handle, out));

/** @param {number} x */
const text = (x) => String(x);

export const mechanisms = {
    /** @param {number} noise */
    gaussian: (noise) =>
        mechanism(`Gaussian(${text(noise)})`, ({ api }, out) => api.hs_mechanism_gaussian(noise, out)),
    /** @param {number} noise */
    laplace: (noise) => mechanism(`Laplace(${text(noise)})`, ({ api }, out) => api.hs_mechanism_laplace(noise, out)),
    /** @param {number} noiseStd @param {number} sensitivity */
    discreteGaussian: (noiseStd, sensitivity = 1) =>
        mechanism(`DiscreteGaussian(${text(noiseStd)}, ${text(sensitivity)})`, ({ api }, out) =>
            api.hs_mechanism_discrete_gaussian(noiseStd, sensitivity, out),
        ),
    /** @param {number} inverseScale @param {number} sensitivity */
    discreteLaplace: (inverseScale, sensitivity = 1) =>
        mechanism(`DiscreteLaplace(${text(inverseScale)}, ${text(sensitivity)})`, ({ api }, out) =>
            api.hs_mechanism_discrete_laplace(inverseScale, sensitivity, out),
        ),
    /** @param {number} noiseStd @param {number} sensitivity @param {number} dimension */
    discreteGaussianVector: (noiseStd, sensitivity, dimension = Infinity) =>
        mechanism(`DiscreteGaussianVector(${[noiseStd, sensitivity, dimension].join(", ")})`, ({ api }, out) =>
            api.hs_mechanism_discrete_gaussian_vector(noiseStd, sensitivity, dimension, out),
        ),
    /** @param {number} noiseStd @param {number} clients @param {number} sensitivity @param {number} dimension */
    distributedDiscreteGaussian: (noiseStd, clients, sensitivity, dimension = Infinity) =>
        mechanism(
            `DistributedDiscreteGaussian(${[noiseStd, clients, sensitivity, dimension].join(", ")})`,
            ({ api }, out) =>
                api.hs_mechanism_distributed_discrete_gaussian(noiseStd, clients, sensitivity, dimension, out),
        ),
    /** @param {number} variance @param {number} sensitivity @param {number} dimension */
    skellam: (variance, sensitivity, dimension = Infinity) =>
        mechanism(`Skellam(${[variance, sensitivity, dimension].join(", ")})`, ({ api }, out) =>
            api.hs_mechanism_skellam(variance, sensitivity, dimension, out),
        ),
    /** @param {number} epsilon */
    exponentialMechanism: (epsilon) =>
        mechanism(`ExponentialMechanism(${text(epsilon)})`, ({ api }, out) =>
            api.hs_mechanism_exponential(epsilon, out),
        ),
    /** @param {number} epsilon @param {number} delta */
    approximateDp: (epsilon, delta) =>
        mechanism(`ApproximateDP(${text(epsilon)}, ${text(delta)})`, ({ api }, out) =>
            api.hs_mechanism_approximate_dp(epsilon, delta, out),
        ),
    /** @param {number} noise @param {number} buckets */
    randomizedResponse: (noise, buckets) =>
        mechanism(`RandomizedResponse(${text(noise)}, ${text(buckets)})`, ({ api }, out) =>
            api.hs_mechanism_randomized_response(noise, buckets, out),
        ),
    /** @param {Mechanism} inner @param {number} rate */
    poissonSampled: (inner, rate) =>
        mechanism(`PoissonSampled(${made(inner).name}, ${text(rate)})`, (core, out) =>
            around(core, inner, out, (handle) => core.api.hs_mechanism_poisson_sampled(handle, rate, out)),
        ),
    /** @param {Mechanism} inner @param {number} records @param {number} batch @param {boolean} replacement */
    fixedSizeSampled: (inner, records, batch, replacement = false) =>
        mechanism(`FixedSizeSampled(${made(inner).name}, ${text(records)}, ${text(batch)})`, (core, out) =>
            around(core, inner, out, (handle) =>
                core.api.hs_mechanism_fixed_size_sampled(handle, records, batch, replacement ? 1 : 0, out),
            ),
        ),
    /** @param {number} noise @param {number} steps @param {number} selected */
    randomAllocation: (noise, steps, selected = 1) =>
        mechanism(`RandomAllocation(Gaussian(${text(noise)}), ${text(steps)}, ${text(selected)})`, ({ api }, out) =>
            api.hs_mechanism_random_allocation(noise, steps, selected, out),
        ),
};
