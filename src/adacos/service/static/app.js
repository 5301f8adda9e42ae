// The page of a consultation: asks the service for each next step and shows it with its reasons.

import { doubts, field, fill, mark, read } from "./fields.js";
import { show, showModel, showOffered, wait } from "./show.js";
import {
  at, bare, call, described, forgetConsultation, keepConsultation, keepKey, keptConsultation, keptKey, state, announce,
} from "./state.js";

// What `confirmed` holds once the user was warned that a new consultation discards the present one.
const DISCARD = "discard";

function complain(error) {
  at("problem").textContent = error.message;
  at("problem").hidden = false;
}

function focusNext() {
  const places = [
    "#key:not([hidden]) input",
    "#start:not([hidden]) :is(input, select)",
    "#question:not([hidden]) #answers :is(input, select)",
    "#decision:not([hidden]) h2",
  ];
  places.map((place) => document.querySelector(place)).find(Boolean)?.focus();
}

function quietly(action) {
  return async (event) => {
    event.preventDefault();
    at("problem").hidden = true;
    const buttons = [...document.querySelectorAll("button:enabled")];
    buttons.forEach((button) => (button.disabled = true));
    try {
      await action(event);
    } catch (error) {
      if (error.status === 401) askForKey();
      else complain(error);
    } finally {
      buttons.forEach((button) => (button.disabled = false));
      // A button that was disabled, or a field that is gone or hidden, has lost the focus.
      if (document.activeElement.offsetParent === null) focusNext();
    }
  };
}

// --- the course of a consultation ----------------------------------------------------------------

async function load() {
  const kept = keptConsultation();
  state.card = null;
  const newest = await call("/v1/model");
  const replaced = kept !== null && kept.model !== newest.model;
  // A consultation ends with the model it began with, as long as the service has that.
  const card = (replaced && await earlierCard(kept.model)) || newest;
  state.card = card;
  state.covariates = new Map(card.covariates.map((own, position) => [own.name, { ...own, position }]));
  showModel();
  at("key").hidden = true;
  keepKey(state.key);
  begin();
  if (kept && kept.model === card.model) resume(kept);
  else if (kept) refill(kept);
  focusNext();
}

async function earlierCard(model) {
  try {
    return await call("/v1/model", undefined, model);
  } catch (error) {
    if (error.status === 410) return null;
    throw error;
  }
}

function askForKey() {
  if (state.key) complain(new Error("The service did not accept this key. Check it and enter it again."));
  state.key = null;
  keepKey(null);
  at("model").textContent = "The model is shown once the key is accepted.";
  at("start").hidden = at("consultation").hidden = true;
  at("key").hidden = false;
  at("key-input").value = "";
}

function begin() {
  Object.assign(state, { known: bare(), events: [], steps: [], confirmed: "", caseId: newId(), rowKey: newId(), saved: "" });
  at("known").replaceChildren(...[...state.covariates.keys()].map((name) => field(name, "known", { optional: true })));
  at("consultation").hidden = true;
  at("start").hidden = false;
  at("reason-input").value = "";
  keepConsultation();
  announce("New consultation. Enter what is already known, then start.");
}

// After a reload of the tab: where it was left.
function resume({ known, events, steps, caseId, rowKey, saved }) {
  Object.assign(state, { known, events, steps, caseId, rowKey, saved });
  fill(at("known"), known);
  keepConsultation();
  show();
}

// Where the model is no longer there: what was entered is not lost.
function refill({ known, events }) {
  fill(at("known"), Object.assign(bare(), known, ...events.map((event) => event.observe || {})));
  complain(new Error("The model was replaced, and the one that this consultation began with is no longer served. "
    + "What was entered is filled in below as already known: check it and press Start. What was paid for it before "
    + "is not counted."));
}

// Whether a new consultation would throw away what was entered and is in no case.
function isUnsaved() {
  if (!state.steps.length || state.saved) return false;
  const entered = state.events.length > 0 || Object.keys(state.known).length > 0;
  return entered && (state.card.case_log || state.steps.at(-1).action === "acquire");
}

// Ask for the next step, unless a value just entered is so odd that it needs a second press.
async function advance(entered, containers) {
  const step = await call("/v1/step", described());
  const odd = doubts(entered, step.warnings);
  const text = JSON.stringify(entered);
  if (odd.size && state.confirmed !== text) {
    state.confirmed = text;
    doubt(odd, containers);
    return false;
  }
  state.confirmed = "";
  state.steps.push(step);
  keepConsultation();
  show();
  return true;
}

function doubt(odd, containers) {
  const wrappers = containers.flatMap((container) => [...container.querySelectorAll(".field")])
    .filter((wrapper) => odd.has(wrapper.dataset.name));
  for (const wrapper of wrappers) {
    const press = wrapper.closest("form").querySelector("button").textContent;
    mark(wrapper, `${odd.get(wrapper.dataset.name)} Correct it, or press ${press} again to use it.`);
  }
  wrappers[0].querySelector("input, select").focus();
  announce(wrappers[0].querySelector(".field-problem").textContent);
}

// Add an event and continue; whether it was accepted.
async function happen(event, containers = []) {
  state.events.push(event);
  let taken = false;
  try {
    taken = await advance(event.observe || {}, containers);
  } finally {
    if (!taken) state.events.pop();
  }
  return taken;
}

// What is in the fields of the question and of the other value: nothing typed is dropped.
function typed(requiredIn) {
  const containers = [at("answers"), at("other-field")];
  const parts = containers.map((container) => read(container, container === requiredIn));
  return parts.includes(null) ? null : Object.assign(bare(), ...parts);
}

const asked = [at("answers"), at("other-field")];

async function record(requiredIn) {
  const { covariates, ordered } = state.steps.at(-1);
  // Of results that were ordered together some may be back before the others.
  const inParts = requiredIn === at("answers") && (ordered || (covariates.length > 1 && wait(covariates) > 0));
  const observe = typed(inParts ? null : requiredIn);
  if (observe === null) return false;
  const there = covariates.filter((name) => Object.hasOwn(observe, name));
  if (inParts && !there.length) return typed(requiredIn) !== null;
  if (!ordered && there.length && there.length < covariates.length && !(await happen({ order: covariates }))) return false;
  return happen({ observe }, asked);
}

async function order() {
  const observe = typed(null);
  if (observe === null) return;
  if (!(await happen({ order: state.steps.at(-1).covariates }))) return;
  if (Object.keys(observe).length) await happen({ observe }, asked);
}

// A question that is asked next, or never, whatever it is worth.
async function choose(list) {
  const name = at("other-name").value;
  const observe = typed(null);
  if (observe === null) return;
  if (Object.keys(observe).length && !(await happen({ observe }, asked))) return;
  if (!Object.hasOwn(observe, name)) await happen({ [list]: [name] });
}

async function decide() {
  const observe = typed(null);
  if (observe === null) return;
  if (Object.keys(observe).length && !(await happen({ observe }, asked))) return;
  if (state.steps.at(-1).action === "acquire") await happen({ stop: true });
}

async function skip() {
  const observe = typed(null);
  if (observe === null) return;
  const { covariates } = state.steps.at(-1);
  const unavailable = covariates.filter((name) => !Object.hasOwn(observe, name));
  if (!unavailable.length) {
    const wrapper = at("answers").querySelector(".field");
    mark(wrapper, "There is a value here: press Enter to use it, or clear it.");
    wrapper.querySelector("input, select").focus();
    return;
  }
  if (Object.keys(observe).length && !(await happen({ observe }, asked))) return;
  await happen({ unavailable });
}

// A value after the result; a consultation that was stopped early is continued.
async function add() {
  const observe = read(at("more-field"), true);
  if (observe === null) return;
  const early = state.events.at(-1)?.stop ? [state.events.pop(), state.steps.pop()] : null;
  let taken = false;
  try {
    taken = await happen({ observe }, [at("more-field")]);
  } finally {
    if (early && !taken) {
      state.events.push(early[0]);
      state.steps.push(early[1]);
    }
  }
}

function undo() {
  state.confirmed = "";
  if (!state.events.length) {
    state.steps = [];
    keepConsultation();
    at("consultation").hidden = true;
    at("start").hidden = false;
    announce("Back to what is already known.");
    return;
  }
  state.events.pop();
  state.steps.pop();
  keepConsultation();
  show();
}

// --- what the user does ------------------------------------------------------------------------------

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

at("key-form").addEventListener("submit", quietly(async () => {
  state.key = at("key-input").value.trim();
  // Other characters cannot be sent in a header, and are in no key.
  if (!/^[\x20-\x7e]+$/.test(state.key)) return askForKey();
  await load();
}));
at("start-form").addEventListener("submit", quietly(async () => {
  const known = read(at("known"), false);
  if (known === null) return;
  Object.assign(state, { known, events: [], steps: [] });
  await advance(known, [at("known")]);
}));
at("answer-form").addEventListener("submit", quietly(() => record(at("answers"))));
at("other-form").addEventListener("submit", quietly(() => record(at("other-field"))));
at("more-form").addEventListener("submit", quietly(add));
at("other-name").addEventListener("change", () => showOffered("other"));
at("more-name").addEventListener("change", () => showOffered("more"));
at("order").addEventListener("click", quietly(order));
at("ask-next").addEventListener("click", quietly(() => choose("must")));
at("never-ask").addEventListener("click", quietly(() => choose("never")));
at("skip").addEventListener("click", quietly(skip));
at("decide").addEventListener("click", quietly(decide));
at("undo").addEventListener("click", quietly(async () => {
  undo();
  focusNext();
}));
// The service may have a new model, which the next consultation begins with: no field is shown before it
// is there, or what is typed meanwhile would be lost.
at("again").addEventListener("click", quietly(() => {
  if (isUnsaved() && state.confirmed !== DISCARD) {
    state.confirmed = DISCARD;
    throw new Error("What was entered is not saved. Press New consultation again to discard it.");
  }
  forgetConsultation();
  return load();
}));
at("print").addEventListener("click", () => window.print());
at("record").addEventListener("click", quietly(async () => {
  // A consultation has one id: sent again because an answer was lost, it is saved once.
  state.saved = (await call("/v1/cases", { ...described(), id: state.caseId, reason: at("reason-input").value.trim() })).id;
  keepConsultation();
  show();
  announce(at("recorded").textContent);
}));
state.key = keptKey();
load().catch((error) => {
  if (error.status !== 401) return complain(error);
  askForKey();
  return focusNext();
});
