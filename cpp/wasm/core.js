// The compiled module: its memory, its status codes, and its errors. The C API that it exports is c_api.h.

const OK = 0;

/** A bad argument, memory that does not suffice, or a bug of the library; the message says which. */
export class HockeystickError extends Error {
    /** @param {string} message */
    constructor(message) {
        super(message);
        this.name = "HockeystickError";
    }
}

/** What the module asks of its surroundings: nothing that it could compute with. It has no environment variables and no files. */
function surroundings() {
    const success = () => 0;
    return {
        env: { emscripten_notify_memory_growth: success },
        wasi_snapshot_preview1: {
            environ_sizes_get: success,
            environ_get: success,
            proc_exit: (/** @type {number} */ code) => {
                throw new HockeystickError(`the module stopped with code ${code}. This is a bug in hockeystick.`);
            },
        },
    };
}

/**
 * What is no number becomes NaN, which every function refuses with the argument's name: WebAssembly would take the empty
 * text of a field, and null, for 0.
 * @param {unknown} value
 */
const numeric = (value) => (typeof value === "number" ? value : NaN);

/**
 * The exports, with functions of the C API that take numbers alone.
 * @param {Record<string, any>} exports
 */
function guarded(exports) {
    const entries = Object.entries(exports).map(([name, value]) =>
        name.startsWith("hs_")
            ? [name, (/** @type {unknown[]} */ ...given) => value(...given.map(numeric))]
            : [name, value],
    );
    return Object.fromEntries(entries);
}

/**
 * A message with the adjacencies as they are called here, where the C API has its constants.
 * @param {string} message
 */
const ofThisModule = (message) =>
    message.replace(/HS_(ADD_OR_REMOVE|REPLACE)/g, (_, name) => `adjacency '${name.toLowerCase()}'`);

export class Core {
    /** @type {any} the exports */
    api;
    /** @type {number[]} what the scope has allocated */
    kept = [];

    /**
     * @param {BufferSource} bytes of hockeystick.wasm
     * @returns {Promise<Core>}
     */
    static async compile(bytes) {
        const { instance } = await WebAssembly.instantiate(bytes, surroundings());
        const core = new Core();
        core.api = guarded(instance.exports);
        core.api._initialize(); // with counts of 0, the environment is not read: see above
        return core;
    }

    /**
     * Calls body and takes back what it allocated.
     * @template T
     * @param {() => T} body
     * @returns {T}
     */
    scope(body) {
        const before = this.api.stackSave();
        const kept = this.kept;
        this.kept = [];
        try {
            return body();
        } finally {
            for (const pointer of this.kept) this.api.free(pointer);
            this.kept = kept;
            this.api.stackRestore(before);
        }
    }

    /**
     * Allocates bytes that live until the end of the scope.
     * @param {number} bytes
     * @returns {number} where they begin
     */
    room(bytes) {
        if (bytes <= 1024) return this.api.stackAlloc(bytes);
        const pointer = this.api.malloc(bytes);
        if (pointer === 0) throw new HockeystickError("out of memory");
        this.kept.push(pointer);
        return pointer;
    }

    /**
     * Copies numbers into the module's memory.
     * @param {ArrayLike<number>} values
     */
    doubles(values) {
        const pointer = this.room(8 * values.length);
        new Float64Array(this.api.memory.buffer, pointer, values.length).set(Array.from(values, numeric));
        return pointer;
    }

    /** @param {number} pointer */
    double(pointer) {
        return new DataView(this.api.memory.buffer).getFloat64(pointer, true);
    }

    /** @param {number} pointer */
    address(pointer) {
        return new DataView(this.api.memory.buffer).getUint32(pointer, true);
    }

    /** @param {number} pointer to a text that ends with 0 */
    text(pointer) {
        const bytes = new Uint8Array(this.api.memory.buffer, pointer);
        return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    }

    /**
     * Throws what a function of the C API reported.
     * @param {number} status
     */
    check(status) {
        if (status !== OK) throw new HockeystickError(ofThisModule(this.text(this.api.hs_last_error_message())));
    }

    /**
     * Calls a function that writes n brackets behind its last argument.
     * @param {number} n
     * @param {(out: number) => number} call
     * @returns {import("./hockeystick.js").Bracket[]}
     */
    brackets(n, call) {
        const out = this.room(16 * n);
        this.check(call(out));
        return Array.from({ length: n }, (_, i) => ({
            lower: this.double(out + 16 * i),
            upper: this.double(out + 16 * i + 8),
        }));
    }

    /**
     * Calls a function that writes one number.
     * @param {(out: number) => number} call
     */
    number(call) {
        return this.scope(() => {
            const out = this.room(8);
            this.check(call(out));
            return this.double(out);
        });
    }

    /**
     * Calls a function that writes one bracket.
     * @param {(out: number) => number} call
     */
    bracket(call) {
        return this.scope(() => this.brackets(1, call)[0]);
    }
}
