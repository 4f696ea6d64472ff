/** Certified differential privacy accounting in JavaScript: the C++ core of hockeystick, compiled to WebAssembly.
 *
 *     import { load } from "hockeystick";
 *     const hs = await load();
 *     const epsilon = hs.dpsgdEpsilon({ noiseMultiplier: 1, samplingRate: 0.01, steps: 1000, delta: 1e-5 });
 *     console.log(hs.formatLower(epsilon.lower, ".10f"), hs.formatUpper(epsilon.upper, ".10f"));
 *
 * Names and domains are those of the Python package, in camelCase. An argument outside its domain throws a
 * HockeystickError that names it, its value and its domain; what is no number, as the text of a field, counts as NaN.
 * Natural logarithms throughout.
 */

/** Certified ends: the truth lies between them, rounding included. */
export interface Bracket {
    readonly lower: number;
    readonly upper: number;
}

/** A bad argument, memory that does not suffice, or a bug of the library; the message says which. */
export class HockeystickError extends Error {}

/** "add_or_remove": data sets differ by a record that is there or not. "replace": one record becomes another. */
export type Adjacency = "add_or_remove" | "replace";

/** What one step releases: a plain object, made by the functions below and used in `Accountant.compose`, which checks its numbers. */
export interface Mechanism {
    readonly name: string;
}

/** Steps that are composed, and what all of them together reveal. Holds memory of the module until `free` or garbage collection. */
export interface Accountant {
    readonly adjacency: Adjacency;
    /** Adds `count` steps (1 by default, a whole number in [0, 2^53]) and returns the accountant. */
    compose(mechanism: Mechanism, count?: number): Accountant;
    /** Epsilon at `delta` in [0, 1). */
    epsilon(delta: number): Bracket;
    /** Delta at `epsilon` >= 0. */
    delta(epsilon: number): Bracket;
    /** Epsilons at many deltas, which cost less than one at a time. */
    epsilons(deltas: ArrayLike<number>): Bracket[];
    deltas(epsilons: ArrayLike<number>): Bracket[];
    free(): void;
}

export interface Training {
    /** Standard deviation of the noise over the clip norm. */
    noiseMultiplier: number;
    /** Probability with which a step's Poisson sample has a record. */
    samplingRate: number;
    steps: number;
}

/** Noisy federated averaging whose last model alone is released; see hockeystick.federated in Python. */
export interface Federation {
    rounds: number;
    localSteps: number;
    numClients: number;
    clipNorm: number;
    noiseStd: number;
    smoothness: number;
    learningRate: number;
    schedule?: "constant" | "cyclic" | "stagewise" | "continuous";
    /** Of the convex set that the global model is projected onto; unbounded if absent. */
    diameter?: number;
}

/** Projected noisy SGD that releases its last iterate, for the record of step `index` of `numRecords`; see hockeystick.last_iterate. */
export interface Iteration {
    index: number;
    numRecords: number;
    learningRate: number;
    noiseStd: number;
    lipschitz: number;
    smoothness: number;
    strongConvexity?: number;
    diameter: number;
}

/** DP-SGD whose epochs are shuffled and cut into batches; see hockeystick.shuffled_batches_epsilon_bracket in Python. */
export interface ShuffledTraining {
    noiseMultiplier: number;
    numBatches: number;
    epochs?: number;
}

export interface Hockeystick {
    readonly version: string;

    /** DP-SGD: Gaussian noise on Poisson samples, add-or-remove adjacency. */
    dpsgdEpsilon(training: Training & { delta: number }): Bracket;
    dpsgdDelta(training: Training & { epsilon: number }): Bracket;
    /** The least noise multiplier whose certified epsilon does not exceed the budget. */
    dpsgdNoiseMultiplier(training: { samplingRate: number; steps: number; epsilon: number; delta: number }): number;

    accountant(adjacency?: Adjacency): Accountant;

    gaussian(noiseMultiplier: number): Mechanism;
    laplace(noiseMultiplier: number): Mechanism;
    discreteGaussian(noiseStd: number, sensitivity?: number): Mechanism;
    discreteLaplace(inverseScale: number, sensitivity?: number): Mechanism;
    /** On each coordinate of a vector of integers, of any number if there is no dimension; refused where no pair is known. */
    discreteGaussianVector(noiseStd: number, sensitivity: number, dimension?: number): Mechanism;
    distributedDiscreteGaussian(
        noiseStd: number,
        numClients: number,
        sensitivity: number,
        dimension?: number,
    ): Mechanism;
    skellam(noiseVariance: number, sensitivity: number, dimension?: number): Mechanism;
    exponentialMechanism(epsilon: number): Mechanism;
    approximateDp(epsilon: number, delta: number): Mechanism;
    randomizedResponse(noiseProbability: number, numBuckets: number): Mechanism;
    poissonSampled(mechanism: Mechanism, samplingRate: number): Mechanism;
    fixedSizeSampled(mechanism: Mechanism, numRecords: number, batchSize: number, replacement?: boolean): Mechanism;
    randomAllocation(noiseMultiplier: number, steps: number, numSelected?: number): Mechanism;

    /** Upper bounds for the last model of a federation, up to a relative rounding of 1e-12: mu of Gaussian DP, epsilon, delta. */
    fedavgGdp(federation: Federation): number;
    fedavgEpsilon(federation: Federation & { delta: number }): number;
    fedavgDelta(federation: Federation & { epsilon: number }): number;
    /** Upper bound of delta for the last iterate of projected noisy SGD, up to a relative rounding of 1e-12 in log delta. */
    pnsgdGaussian(iteration: Iteration & { epsilon: number }): number;
    /** What is proven (upper) and what is attained (lower) for shuffled batches. */
    shuffledBatchesEpsilon(training: ShuffledTraining & { delta: number }): Bracket;
    shuffledBatchesDelta(training: ShuffledTraining & { epsilon: number }): Bracket;

    /** The smallest decimal of this format (".4f", ".3e", ".6g", ".2%") that is at least the number. */
    formatUpper(value: number, format?: string): string;
    /** The largest decimal of this format that is at most the number. */
    formatLower(value: number, format?: string): string;

    /** Kernels: the normal tail, its logarithm and inverse, and the delta of normal laws that are `r` deviations apart. */
    q(x: number): number;
    logQ(x: number): number;
    qInv(p: number): number;
    theta(epsilon: number, r: number): number;
    logTheta(epsilon: number, r: number): number;
    gaussianEpsilon(r: number, delta: number): number;
    /** The least rate of records that a test of mu-GDP misses at a false-positive rate. */
    gdpTradeOff(mu: number, falsePositiveRate: number): number;
}

export interface LoadOptions {
    /** The bytes of hockeystick.wasm, where they shall not be read from beside the module. */
    wasmBinary?: ArrayBuffer | Uint8Array;
}

/** Compiles the module; without options it reads hockeystick.wasm from beside itself, and nothing else, ever. */
export function load(options?: LoadOptions): Promise<Hockeystick>;
