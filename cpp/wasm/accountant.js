// An accountant: a handle of the C API, freed when it is no longer used.
import { HockeystickError } from "./core.js";
import { withHandle } from "./mechanisms.js";

/** @typedef {import("./core.js").Core} Core */
/** @typedef {import("./hockeystick.js").Adjacency} Adjacency */
/** @typedef {import("./hockeystick.js").Mechanism} Mechanism */

const ADJACENCIES = ["add_or_remove", "replace"]; // their codes in the C API are their places

/** @type {FinalizationRegistry<() => void>} */
const forgotten = new FinalizationRegistry((free) => free());

export class Accountant {
    /** @type {Core} */ #core;
    /** @type {number} */ #handle;

    /**
     * @param {Core} core
     * @param {Adjacency} adjacency
     */
    constructor(core, adjacency) {
        const code = ADJACENCIES.indexOf(adjacency);
        if (code < 0) {
            throw new HockeystickError(`adjacency must be one of ${ADJACENCIES.join(", ")}, not ${adjacency}`);
        }
        this.#core = core;
        this.adjacency = adjacency;
        this.#handle = core.scope(() => {
            const out = core.room(8);
            core.check(core.api.hs_accountant_create(code, out));
            return core.address(out);
        });
        const handle = this.#handle;
        forgotten.register(this, () => core.api.hs_accountant_destroy(handle), this);
    }

    /**
     * @param {Mechanism} mechanism
     * @param {number} count
     */
    compose(mechanism, count = 1) {
        const { api } = this.#core;
        withHandle(this.#core, mechanism, (handle) =>
            this.#core.check(api.hs_accountant_compose(this.#open(), handle, count)),
        );
        return this;
    }

    /** @param {number} delta */
    epsilon(delta) {
        return this.epsilons([delta])[0];
    }

    /** @param {number} epsilon */
    delta(epsilon) {
        return this.deltas([epsilon])[0];
    }

    /** @param {ArrayLike<number>} deltas */
    epsilons(deltas) {
        return this.#answers(this.#core.api.hs_accountant_epsilon, deltas);
    }

    /** @param {ArrayLike<number>} epsilons */
    deltas(epsilons) {
        return this.#answers(this.#core.api.hs_accountant_delta, epsilons);
    }

    free() {
        forgotten.unregister(this);
        this.#core.api.hs_accountant_destroy(this.#handle);
        this.#handle = 0;
    }

    #open() {
        if (this.#handle === 0) throw new HockeystickError("the accountant has been freed");
        return this.#handle;
    }

    /**
     * @param {(handle: number, values: number, n: number, out: number) => number} question
     * @param {ArrayLike<number>} values
     */
    #answers(question, values) {
        const core = this.#core;
        return core.scope(() => {
            const asked = core.doubles(values);
            return core.brackets(values.length, (out) => question(this.#open(), asked, values.length, out));
        });
    }
}
