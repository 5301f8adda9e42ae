// What the page knows: the model card, the consultation, and how both are put into words.

export const at = (id) => document.getElementById(id);

// Covariates have any name, also that of something every object inherits: hence a map, and objects
// without ancestors.
export const state = {
  card: null, covariates: new Map(), key: null, known: bare(), events: [], steps: [], confirmed: "", caseId: "",
  rowKey: "", saved: "",
};

export function bare() {
  return Object.create(null);
}

// --- the service ---------------------------------------------------------------------------

export async function call(path, body, model = body && state.card?.model) {
  const headers = {};
  if (state.key) headers.Authorization = `Bearer ${state.key}`;
  if (body) headers["Content-Type"] = "application/json";
  // A consultation ends with the model it began with, even if the service has a new one.
  if (model) headers["Adacos-Model"] = model;
  let answer;
  try {
    answer = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
    });
  } catch {
    throw new Error("The service cannot be reached. Try again.");
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  const problems = (content.fields || []).map((item) => `${item.field}: ${item.message}`);
  const error = new Error(problems.join("; ") || content.detail || `The service answered ${answer.status}.`);
  error.status = answer.status;
  throw error;
}

export function described() {
  const acquired = bare();
  const ordered = new Set();
  const unavailable = new Set();
  const chosen = { must: new Set(), never: new Set() };
  for (const event of state.events) {
    for (const name of event.order || []) {
      ordered.add(name);
      unavailable.delete(name);
    }
    for (const [name, value] of Object.entries(event.observe || {})) {
      acquired[name] = value;
      ordered.delete(name);
      unavailable.delete(name);
    }
    for (const name of event.unavailable || []) {
      unavailable.add(name);
      ordered.delete(name);
    }
    for (const [list, other] of [["must", "never"], ["never", "must"]]) {
      for (const name of event[list] || []) {
        chosen[list].add(name);
        chosen[other].delete(name);
      }
    }
  }
  const stop = state.events.some((event) => event.stop);
  return {
    known: state.known, acquired, ordered: [...ordered], unavailable: [...unavailable], stop, key: state.rowKey,
    must: [...chosen.must], never: [...chosen.never],
  };
}

// --- what outlives a reload of this tab, and no more ------------------------------------------

// A browser may refuse to keep anything: then the key is asked for again, and a reload begins again.
function store(name, value) {
  try {
    if (value) sessionStorage.setItem(name, value);
    else sessionStorage.removeItem(name);
  } catch { /* Nothing is kept. */ }
}

function stored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

export const keepKey = (key) => store("adacos-key", key);
export const keptKey = () => stored("adacos-key");

export function keepConsultation() {
  const { known, events, steps, caseId, rowKey, saved } = state;
  store("adacos-consultation", steps.length
    ? JSON.stringify({ model: state.card.model, known, events, steps, caseId, rowKey, saved })
    : null);
}

export const forgetConsultation = () => store("adacos-consultation", null);

// The consultation that was kept, with whatever model.
export function keptConsultation() {
  try {
    const kept = JSON.parse(stored("adacos-consultation"));
    return kept && kept.steps.length === kept.events.length + 1 ? kept : null;
  } catch {
    return null;
  }
}

// --- words ---------------------------------------------------------------------------------------

const within = (amount) => (Math.abs(amount) < 0.005 ? 0 : amount)
  .toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
export const money = (amount) => within(amount) + (state.card.currency ? `\u00a0${state.card.currency}` : "");
export const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);
export const percent = (share) => `${(100 * share).toFixed(1)}%`;
export const short = (number) => String(Number(Number(number).toPrecision(4)));
export const title = (name) => state.covariates.get(name).label;
export const listed = (names) => names.map(title).join(", ");
export const both = (texts) =>
  [texts.slice(0, -1).join(", "), ...texts.slice(-1)].filter(Boolean).join(" and ");

export function shown(name, value) {
  const { unit, choices, categories } = state.covariates.get(name);
  const choice = choices.find((one) => one.value === value);
  if (choice) return choice.label;
  if (categories.length) return String(value);
  return short(value) + (unit ? ` ${unit}` : "");
}

// Of two classes the second is the positive one; of more there is none.
export const many = () => state.card.classes.length > 2;

export function named(label) {
  const name = state.card.class_names[state.card.classes.indexOf(label)];
  return name || (typeof label === "string" ? label : `class ${label}`);
}

// What is decided, where that is not which class it is.
export const decided = () => state.card.decision_names || null;

export function labelled(label) {
  if (decided()) return String(label);
  if (many()) return named(label);
  const number = state.card.classes.indexOf(label);
  const verdict = number === 1 ? "Positive" : "Negative";
  const name = state.card.class_names[number];
  return name ? `${verdict}: ${name}` : `${verdict} (class ${label})`;
}

// Each class with its probability, the most probable first; a class 1.0 goes by "1.0", though 1 in JSON.
export function chances({ probabilities }) {
  const of = (label) => probabilities[label] ?? probabilities[Number(label).toFixed(1)];
  return state.card.classes.map((label) => [named(label), of(label)]).sort((one, other) => other[1] - one[1]);
}

export const outcome = () =>
  state.card.outcome || state.card.class_names[1] || `class ${state.card.classes[1]}`;

// The probability at or above which the answer is positive.
export function cutOff() {
  const { threshold: from } = state.card;
  return from >= 0.01 ? percent(from) : `${Number((100 * from).toPrecision(2))}%`;
}

export function threshold() {
  if (decided()) return state.card.rule;
  if (many()) return "The answer is the class with the lowest expected cost of being wrong.";
  const { threshold: from, threshold_reason: reason } = state.card;
  if (from === null) return "The answer is the one that the protocol names, whatever the probability.";
  if (from === 0) return "Everyone is called positive.";
  return `Called positive at ${cutOff()} or above: ${reason}.`;
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "className") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export function announce(text) {
  at("status").textContent = text;
}
