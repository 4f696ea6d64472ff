// What TypeScript takes, and finds wrong, of the package's types.
import { load, HockeystickError, type Bracket, type Hockeystick, type Mechanism } from "./hockeystick.js";
const hs: Hockeystick = await load();
const step: Mechanism = hs.poissonSampled(hs.gaussian(1), 0.01);
const epsilon: Bracket = hs.accountant("replace").compose(step, 10).epsilon(1e-5);
if (epsilon.upper > 1) throw new HockeystickError(hs.formatUpper(epsilon.upper));
// @ts-expect-error: a bracket cannot be written to
epsilon.upper = 0;
// @ts-expect-error: there is no such adjacency
hs.accountant("swap");
// @ts-expect-error: delta is missing
hs.dpsgdEpsilon({ noiseMultiplier: 1, samplingRate: 0.01, steps: 10 });
