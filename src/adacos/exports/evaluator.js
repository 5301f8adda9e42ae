/**
 * Decides by a `policy.json` of adacos, as the policy in Python does. Depends on nothing.
 *
 *   import { acquire, nextStep } from "./evaluator.js";
 *   nextStep(policy, { Age: 50 });        // { acquire: "BMI", price: 1, paid: 1 }
 *   acquire(policy, { Age: 50, … });      // walks one row to its stop
 *
 * Values are numbers or, for a categorical covariate, texts; null stands for unavailable. A protocol
 * says what it does then. Of other policies a value that is unavailable, and a category never seen
 * in training, are refused with a `PolicyError`: what they would say, given the other values, is
 * not in the file.
 */

/** A value or a file that cannot be used: `code` says why, `covariate` which one it is about. */
export class PolicyError extends Error {
  constructor(code, message, covariate = null) {
    super(message);
    this.name = "PolicyError";
    this.code = code;
    this.covariate = covariate;
  }
}

// What rounding may make of a sum, as a share of what it is made of.
const TIE = 1e-9;

/** Refuse what is not a policy of the format that this file reads. */
export function checkPolicy(policy) {
  if (policy?.format !== "adacos-policy" || policy.version !== 1) {
    const found = `${policy?.format} ${policy?.version}`;
    throw new PolicyError("format", `needs adacos-policy version 1, received ${found}`);
  }
  return policy;
}

/** The value of the interval that a number is in. */
function valueAt({ breaks, values }, number) {
  let k = 0;
  while (k < breaks.length && number >= breaks[k]) k += 1;
  return values[k];
}

/** Straight lines between points; constant beyond the ends. */
function interpolated([x, y], value) {
  const last = x.length - 1;
  if (value <= x[0]) return y[0];
  if (value >= x[last]) return y[last];
  let k = 0;
  while (value >= x[k + 1]) k += 1;
  return y[k] + ((y[k + 1] - y[k]) / (x[k + 1] - x[k])) * (value - x[k]);
}

/** Whether there is no value. */
const isGone = (value) => value === null || value === undefined || Number.isNaN(value);

/** A value as it counts: held within the training range, or a category; "" for one never seen. */
function read(covariate, value) {
  const { name } = covariate;
  if (covariate.categories.length > 0) {
    if (typeof value !== "string") {
      throw new PolicyError("not_a_text", `${name} needs a category as text`, name);
    }
    const own = covariate.grouped.includes(value) ? "other" : value;
    return covariate.categories.includes(own) ? own : "";
  }
  const number = typeof value === "boolean" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number)) {
    throw new PolicyError("not_a_number", `${name} needs a finite number`, name);
  }
  return Math.min(Math.max(number, covariate.low), covariate.high);
}

/** A value as the terms read it: its place among knots, a number, or the place of a category. */
export function encode(covariate, value) {
  const { name, kind } = covariate;
  if (isGone(value)) {
    const told = "has no value; this file decides only where every value asked for is available";
    throw new PolicyError("unavailable", `${name} ${told}`, name);
  }
  const held = read(covariate, value);
  if (typeof held === "string") {
    const place = covariate.categories.indexOf(held);
    if (place < 0) {
      const told = "was never seen in training and says nothing; this file cannot decide without it";
      throw new PolicyError("unseen_category", `${name} = ${value} ${told}`, name);
    }
    return { place };
  }
  if (kind !== "numeric") return { number: held };
  const mapped = covariate.map === null ? held : interpolated(covariate.map, held);
  const [low, high, intervals] = covariate.knots;
  const position = Math.min(Math.max((mapped - low) * (intervals / (high - low)), 0), intervals);
  const interval = Math.min(Math.floor(position), intervals - 1);
  return { interval, t: position - interval };
}

/** What one encoded value adds to the log-odds. */
function contribution(term, encoded) {
  if (encoded.interval !== undefined) {
    const [a, b, c, d] = term[encoded.interval];
    return a + encoded.t * (b + encoded.t * (c + encoded.t * d));
  }
  if (encoded.place !== undefined) return term[0] + term[1 + encoded.place];
  return term[0] + term[1] * encoded.number;
}

/** Log-odds by the model of one set: of the second class, or of each later one against the first. */
function logOddsAt({ intercept, terms }, encoded) {
  const sum = (start, termOf) =>
    terms.reduce((total, term, k) => total + contribution(termOf(term), encoded[k]), start);
  if (!Array.isArray(intercept)) return sum(intercept, (term) => term);
  return intercept.map((start, j) => sum(start, (term) => term[j]));
}

/**
 * What comes next for a row of which the values asked for so far are given, by name.
 *
 * `acquire` is the covariate to ask for and `price` what it costs now; null and 0 when the row
 * stops; `paid` is what was paid so far. A row that stops has `probability`, `label` and
 * `expectedCost` too. Of three and more classes `probability` lists those of all.
 */
export function nextStep(policy, values) {
  const { covariates, stages, paid, protocol } = checkPolicy(policy);
  if (protocol !== undefined) return nextOfProtocol(policy, values);
  const given = (name) => Object.hasOwn(values, name);
  const encoded = [];
  const ask = (k) => ({ acquire: covariates[k].name, price: paid[k + 1] - paid[k], paid: paid[k] });
  for (const stage of stages) {
    for (let k = encoded.length; k < stage.acquired; k += 1) {
      if (!given(covariates[k].name)) return ask(k);
      encoded.push(encode(covariates[k], values[covariates[k].name]));
    }
    const logOdds = logOddsAt(stage, encoded);
    if (stage.continues === null || valueAt(stage.continues, logOdds) === 0) {
      return stopped(policy, logOdds, encoded.length);
    }
  }
  throw new PolicyError("format", "the last set of the file has no end");
}

/** Whether a value that was read satisfies a test. */
function holds({ operator, values }, value) {
  if (operator === "in") return values.includes(value);
  if (operator === "<") return value < values[0];
  if (operator === "<=") return value <= values[0];
  if (operator === ">") return value > values[0];
  return operator === ">=" && value >= values[0];
}

/** What comes next by a protocol, test by test from its start. */
function nextOfProtocol({ covariates, protocol, classes }, values) {
  const { tests, answers } = protocol;
  const had = new Set();
  const panels = new Set();
  let paid = 0;
  let place = protocol.start;
  while (place < tests.length) {
    const test = tests[place];
    const covariate = covariates[test.covariate];
    const { name, panel } = covariate;
    const price = covariate.cost - (panels.has(panel) ? covariate.discount : 0);
    if (!Object.hasOwn(values, name)) return { acquire: name, price, paid };
    if (isGone(values[name])) {
      place = test.unavailable;
      continue;
    }
    const value = read(covariate, values[name]);
    if (!had.has(name)) {
      had.add(name);
      if (panel >= 0) panels.add(panel);
      paid += price;
    }
    // A category never seen is paid for, and says nothing.
    if (value === "") place = test.unavailable;
    else place = holds(test, value) ? test.yes : test.no;
  }
  const { label, probability, error_cost: errorCost } = answers[place - tests.length];
  const expectedCost = paid + errorCost;
  return { acquire: null, price: 0, paid, probability, label: classes[label], expectedCost };
}

/** The answer to a row that stops after so many covariates. */
function stopped(policy, logOdds, count) {
  const { misclassification_costs: costs, classes } = policy;
  const paid = policy.paid[count];
  if (Array.isArray(logOdds)) {
    const greatest = Math.max(0, ...logOdds);
    const odds = [0, ...logOdds].map((each) => Math.exp(each - greatest));
    const total = odds.reduce((sum, each) => sum + each, 0);
    const probability = odds.map((each) => each / total);
    const mean = (own) => classes.map((_, label) =>
      probability.reduce((sum, chance, k) => sum + chance * own(costs[k][label]), 0));
    const errors = mean((cost) => cost);
    const sizes = mean(Math.abs);
    // Of labels that cost the same but for rounding the last one.
    const limit = Math.min(...errors.map((error, label) => error + TIE * sizes[label]));
    const label = errors.findLastIndex((error) => error <= limit);
    const expectedCost = paid + Math.min(...errors);
    return { acquire: null, price: 0, paid, probability, label: classes[label], expectedCost };
  }
  const probability = 1 / (1 + Math.exp(-logOdds));
  const label = valueAt(policy.label, logOdds);
  const [first, second] = costs;
  const risk = (1 - probability) * first[label] + probability * second[label];
  return {
    acquire: null,
    price: 0,
    paid,
    probability,
    label: classes[label],
    expectedCost: paid + risk,
  };
}

/**
 * One row walked to its stop: the answer, and `order`, what was acquired. Others are not read, and
 * what a protocol asks for in vain is not in `order`.
 */
export function acquire(policy, row) {
  const values = Object.create(null);
  const order = [];
  let step = nextStep(policy, values);
  while (step.acquire !== null) {
    const value = Object.hasOwn(row, step.acquire) ? row[step.acquire] : null;
    if (!isGone(value)) order.push(step.acquire);
    values[step.acquire] = value;
    step = nextStep(policy, values);
  }
  return { ...step, order };
}
