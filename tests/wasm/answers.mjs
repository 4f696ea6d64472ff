// Answers cells with the package in the folder that is named. Reads [[function, argument, ...], ...] as JSON and writes what each
// returns, or {error: its message, name: its class}. The function "ledger" composes mechanisms and asks the accountant.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { load } = await import(pathToFileURL(`${process.argv[2]}/hockeystick.js`).href);
const hs = await load();

const INFINITE = { inf: Infinity, "-inf": -Infinity };
const revived = (_, value) => INFINITE[value] ?? value;
const written = (_, value) => (Math.abs(value) === Infinity ? (value > 0 ? "inf" : "-inf") : value);

/** A mechanism from [function, argument, ...], where an argument may be one. */
function built([name, ...settings]) {
    return hs[name](...settings.map((each) => (Array.isArray(each) ? built(each) : each)));
}

function ledger(adjacency, steps, question, at) {
    const accountant = hs.accountant(adjacency);
    try {
        for (const [mechanism, count] of steps) accountant.compose(built(mechanism), count);
        return accountant[question](at);
    } finally {
        accountant.free();
    }
}

function answer([name, ...settings]) {
    try {
        return name === "ledger" ? ledger(...settings) : hs[name](...settings);
    } catch (error) {
        return { error: error.message, name: error.name };
    }
}

const cells = JSON.parse(readFileSync(0, "utf8"), revived);
process.stdout.write(JSON.stringify(cells.map(answer), written));
