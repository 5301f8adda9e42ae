// The page of a consultation: asks the service for each next step and shows it with its reasons.
"use strict";

const at = (id) => document.getElementById(id);
const state = { card: null, covariates: {}, key: null, known: {}, events: [], steps: [], confirmed: "" };

// --- the service ---------------------------------------------------------------------------

async function call(path, body) {
  const headers = {};
  if (state.key) headers.Authorization = `Bearer ${state.key}`;
  if (body) headers["Content-Type"] = "application/json";
  // A consultation ends with the model it began with, even if the service has a new one.
  if (body && state.card) headers["Adacos-Model"] = state.card.model;
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
  const told = (content.fields || []).map((item) => `${item.field}: ${item.message}`);
  const error = new Error(told.join("; ") || content.detail || `The service answered ${answer.status}.`);
  error.status = answer.status;
  throw error;
}

function described() {
  const acquired = {};
  const unavailable = new Set();
  for (const event of state.events) {
    for (const [name, value] of Object.entries(event.observe || {})) {
      acquired[name] = value;
      unavailable.delete(name);
    }
    for (const name of event.unavailable || []) unavailable.add(name);
  }
  const stop = state.events.some((event) => event.stop);
  return { known: state.known, acquired, unavailable: [...unavailable], stop };
}

// The key outlives a reload of this tab, and no more; a browser may refuse to keep anything.
function keepKey(key) {
  try {
    if (key) sessionStorage.setItem("adacos-key", key);
    else sessionStorage.removeItem("adacos-key");
  } catch { /* It is asked for again. */ }
}

function keptKey() {
  try {
    return sessionStorage.getItem("adacos-key");
  } catch {
    return null;
  }
}

// --- small helpers ---------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "className") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const money = (amount) => (Math.abs(amount) < 0.005 ? 0 : amount).toFixed(2);
const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
const short = (number) => String(Number(Number(number).toPrecision(4)));
const title = (name) => state.covariates[name].title;
const listed = (names) => names.map(title).join(", ");
const both = (texts) => [texts.slice(0, -1).join(", "), ...texts.slice(-1)].filter(Boolean).join(" and ");

function shown(name, value) {
  const { unit, categories } = state.covariates[name];
  if (categories.length) return String(value);
  return short(value) + (unit ? ` ${unit}` : "");
}

function labelled(label) {
  return label === state.card.classes[1] ? `Positive (class ${label})` : `Negative (class ${label})`;
}

function tell(text) {
  at("status").textContent = text;
}

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

// --- fields ------------------------------------------------------------------------------------

function field(name, prefix, labelText) {
  const own = state.covariates[name];
  const id = `${prefix}-${own.position}`;
  const binary = own.kind === "binary";
  const choices = binary ? [short(own.low), short(own.high)] : own.categories;
  const hint = [];
  if (own.help) hint.push(own.help);
  if (!choices.length) hint.push(`usually ${short(own.low)} to ${short(own.high)}`);
  const input = choices.length
    ? make("select", {}, make("option", { value: "" }, "–"),
        ...choices.map((choice) => make("option", { value: choice }, choice)))
    : make("input", { type: "text", inputmode: "decimal", autocomplete: "off" });
  input.id = id;
  input.dataset.name = name;
  input.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
  return make("div", {},
    make("label", { for: id }, (labelText || own.title) + (own.unit ? ` (${own.unit})` : "")),
    input,
    make("span", { id: `${id}-hint`, className: "hint" }, hint.join("; ")),
    make("span", { id: `${id}-problem`, className: "field-problem" }));
}

function mark(input, problem) {
  at(`${input.id}-problem`).textContent = problem;
  input.setAttribute("aria-invalid", problem ? "true" : "false");
}

// The values of the filled fields by name, or null after telling what is wrong with one.
function read(container, required) {
  const values = {};
  let wrong = null;
  for (const input of container.querySelectorAll("input, select")) {
    const own = state.covariates[input.dataset.name];
    const text = input.value.trim();
    let problem = "";
    if (text === "") {
      if (required) problem = "Enter a value, or say that it is not available.";
    } else if (own.categories.length) {
      values[own.name] = text;
    } else {
      const number = Number(text.replace(",", "."));
      if (Number.isFinite(number)) values[own.name] = number;
      else problem = "Enter a number.";
    }
    mark(input, problem);
    if (problem) wrong ||= input;
  }
  if (wrong) {
    wrong.focus();
    return null;
  }
  return values;
}

// --- the course of a consultation ----------------------------------------------------------------

async function load() {
  const card = await call("/v1/model");
  state.card = card;
  card.covariates.forEach((own, position) => (state.covariates[own.name] = { ...own, position }));
  at("model").textContent = `Model ${card.model} · ${card.covariates.length} covariates · adacos ${card.version}`;
  at("notice").textContent = card.notice;
  at("key").hidden = true;
  keepKey(state.key);
  begin();
  focusNext();
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
  Object.assign(state, { known: {}, events: [], steps: [], confirmed: "" });
  at("known").replaceChildren(...state.card.covariates.map((own) => field(own.name, "known")));
  at("consultation").hidden = true;
  at("start").hidden = false;
  tell("New consultation. Enter what is already known, then start.");
}

// Ask for the next step, unless a value just entered is so odd that it needs a second press.
async function advance(entered, container) {
  const step = await call("/v1/step", described());
  const odd = step.warnings.filter((warning) => warning.kind === "implausible" && warning.covariate in entered);
  const text = JSON.stringify(entered);
  if (odd.length && state.confirmed !== text) {
    state.confirmed = text;
    doubt(odd, container);
    return false;
  }
  state.confirmed = "";
  state.steps.push(step);
  show();
  return true;
}

function doubt(odd, container) {
  const press = container.closest("form").querySelector("button").textContent;
  const inputs = [...container.querySelectorAll("input")];
  for (const warning of odd) {
    const input = inputs.find((one) => one.dataset.name === warning.covariate);
    mark(input, `${warning.message} The model has seen nothing like it. Correct it, or press ${press} again to use it.`);
  }
  const first = inputs.find((one) => one.getAttribute("aria-invalid") === "true");
  first.focus();
  tell(at(`${first.id}-problem`).textContent);
}

async function happen(event, container) {
  state.events.push(event);
  let taken = false;
  try {
    taken = await advance(event.observe || {}, container);
  } finally {
    if (!taken) state.events.pop();
  }
}

function undo() {
  state.confirmed = "";
  if (!state.events.length) {
    at("consultation").hidden = true;
    at("start").hidden = false;
    tell("Back to what is already known.");
    return;
  }
  state.events.pop();
  state.steps.pop();
  show();
}

// --- what is shown ---------------------------------------------------------------------------------

function show() {
  const step = state.steps.at(-1);
  const asking = step.action === "acquire";
  at("start").hidden = true;
  at("consultation").hidden = false;
  at("question").hidden = !asking;
  at("decision").hidden = asking;
  if (asking) showQuestion(step);
  else showDecision(step);
  showCosts(step);
  showNow(step, asking);
  showSoFar(step);
  const odd = step.warnings.length ? ` Note: ${step.warnings.map((w) => w.message).join(" ")}` : "";
  tell((asking
    ? `Next question: ${listed(step.covariates)}, cost ${money(step.cost)}.`
    : `Decision${step.stopped_early ? ", taken early" : ""}: ${labelled(step.label)}, `
      + `probability ${percent(step.probability)}.`) + odd);
}

function showQuestion(step) {
  const why = step.explanation;
  at("question-title").textContent = `${listed(step.covariates)} – costs ${money(step.cost)}`;
  let reason = "It comes next in the order of the model.";
  // A policy that does not weigh costs may go on where it does not pay.
  if (why.best_plan && why.expected_saving > 0) {
    const more = why.best_plan.covariates.slice(step.covariates.length);
    reason = `Deciding now is expected to cost ${money(why.stop_now)} in all. Asking for this`
      + (more.length ? `, and then for ${listed(more)} where still worth it,` : "")
      + ` is expected to bring that down to ${money(why.best_plan.expected_total_cost)}.`;
  }
  at("reason").textContent = reason;
  at("lowered").hidden = !step.lowered.length;
  at("lowered").textContent = step.lowered.map(({ panel, covariates, had, amount }) =>
    `${listed(covariates)}: ${money(amount)} less than alone, the shared cost of panel ${panel}, `
    + (had.length ? `because ${both(had.map(title))} ${had.length > 1 ? "are" : "is"} there already.`
      : "which is paid once.")).join(" ");
  at("answers").replaceChildren(...step.covariates.map((name) => field(name, "answer")));
  at("sharing").hidden = !step.sharing.length;
  at("sharing").textContent = "Shares part of its cost with others, which then cost less: "
    + step.sharing.map(([name, amount]) => `${title(name)} ${money(amount)}`).join(", ") + ".";
  const { known, acquired } = described();
  const others = state.card.covariates.map((own) => own.name)
    .filter((name) => !(name in known) && !(name in acquired) && !step.covariates.includes(name));
  at("other").hidden = !others.length;
  at("other").open = false;
  at("other-name").replaceChildren(...others.map((name) => make("option", { value: name }, title(name))));
  showOther();
}

function showOther() {
  const name = at("other-name").value;
  at("other-field").replaceChildren(...(name ? [field(name, "other-value", `Value of ${title(name)}`)] : []));
}

function facts(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function showDecision(step) {
  const positive = step.label === state.card.classes[1];
  at("decision").classList.toggle("positive", positive);
  at("decision-kicker").textContent = step.stopped_early ? "Decided early" : "Decision";
  at("decision-title").textContent = labelled(step.label);
  facts(at("decision-facts"), [
    [`Probability of class ${state.card.classes[1]}`, percent(step.probability)],
    ["Paid for values", money(step.cost)],
    ["Expected cost of a wrong decision", money(step.explanation.bayes_risk)],
    ["Expected total cost", money(step.expected_cost)],
  ]);
  at("decision-why").textContent = step.stopped_early ? whyEarly(step) : whyNow(step);
  const certificate = state.card.certificate;
  at("certificate").hidden = !certificate;
  if (certificate) {
    const reasons = departures(step);
    const caveat = `This does not extend to the present consultation: ${both(reasons)}.\n`;
    at("certificate").replaceChildren(...(reasons.length ? [make("strong", {}, caveat)] : []), certificate.text);
    at("certificate").classList.toggle("void", reasons.length > 0);
  }
  // Sent again with the same id if an answer is lost, a case is recorded once.
  state.caseId = newCaseId();
  at("record").hidden = !state.card.case_log;
  at("recorded").hidden = true;
  at("printed").textContent = `${state.card.notice} Model ${state.card.model}, adacos `
    + `${state.card.version}, ${new Date().toLocaleString()}.`;
}

function whyNow(step) {
  const { best_plan: plan, expected_saving: saving } = step.explanation;
  if (saving > 0) return `The policy stops here, though ${listed(plan.covariates)} would be expected to pay.`;
  return plan
    ? `No further question is expected to pay for itself: the best would be ${listed(plan.covariates)}, `
      + `with an expected total cost of ${money(plan.expected_total_cost)}.`
    : "There is nothing left to ask for.";
}

function whyEarly(step) {
  const { best_plan: plan, expected_saving: saving } = step.explanation;
  return `Decided early, before the questions ended: ${listed(state.steps.at(-2).covariates)} would have come next`
    + (plan && saving > 0 ? `, and going on was expected to save ${money(saving)}.` : ".");
}

// What a promise about consultations that follow the questions does not cover.
function departures(step) {
  const asked = (number) => new Set(state.steps[number].covariates);
  const other = state.events.some((event, number) =>
    Object.keys(event.observe || {}).some((name) => !asked(number).has(name)));
  return [
    [Object.keys(state.known).length, "values were known from the start"],
    [state.events.some((event) => event.unavailable), "a question was skipped"],
    [other, "a value was entered that was not asked for"],
    [step.stopped_early, "it was decided early"],
  ].filter(([holds]) => holds).map(([, reason]) => reason);
}

function showCosts(step) {
  const why = step.explanation;
  const bars = [["Deciding now", why.stop_now, "bar-now"]];
  if (why.acquire_next !== null) {
    const next = step.action === "acquire" ? listed(step.covariates) : listed(why.best_plan.covariates.slice(0, 1));
    const more = why.best_plan.covariates.length > 1;
    bars.push([`After ${next}${more ? " alone" : ""}`, why.acquire_next, "bar-next"]);
  }
  if (why.best_plan && why.best_plan.covariates.length > 1) {
    const names = why.best_plan.covariates;
    const plan = names.length > 3 ? `${listed(names.slice(0, 2))} and ${names.length - 2} more` : listed(names);
    bars.push([`Best plan: ${plan}`, why.best_plan.expected_total_cost, "bar-plan"]);
  }
  const most = Math.max(...bars.map(([, amount]) => amount), 1e-9);
  at("bars").replaceChildren(...bars.flatMap(([name, amount, kind]) => {
    const bar = make("span", { className: kind });
    bar.style.width = `${Math.max(0, (100 * amount) / most)}%`;
    return [
      make("dt", {}, make("span", {}, name), make("b", {}, money(amount))),
      make("dd", { "aria-hidden": "true" }, bar),
    ];
  }));
  at("saving").textContent = why.expected_saving > 0
    ? `Expected saving by going on: ${money(why.expected_saving)}.`
    : "Going on is not expected to save anything.";
}

function rangeInWords([low, high]) {
  if (low === null && high === null) return "at any value";
  if (low === null) return `below ${short(high)}`;
  if (high === null) return `above ${short(low)}`;
  return `between ${short(low)} and ${short(high)}`;
}

function whyWithoutFlip(step) {
  const { best_plan: plan, expected_saving: saving } = step.explanation;
  const told = `No value of ${listed(step.covariates)} alone would turn it`;
  if (!plan || saving <= 0) return `${told}.`;
  const later = plan.covariates.slice(step.covariates.length);
  return later.length
    ? `${told}: the saving comes with the questions that may follow (${listed(later)}).`
    : `${told}: the saving is that the model which includes it expects this answer to be wrong less often.`;
}

function showNow(step, asking) {
  const why = step.explanation;
  at("now-title").textContent = asking ? "If one had to decide now" : "Where the probability comes from";
  at("now").hidden = !asking;
  at("now").textContent = `${labelled(why.label)}, with a probability of ${percent(why.probability)} for class `
    + `${state.card.classes[1]} and an expected cost of a wrong decision of ${money(why.bayes_risk)}.`;
  const flips = (asking ? why.flips : []).map((flip) => {
    const words = flip.ranges.map(rangeInWords).concat(flip.values.map((value) => `= ${value}`));
    return make("li", {}, `${title(flip.covariate)} ${words.join(" or ")} would turn it to ${labelled(flip.label)}.`);
  });
  if (asking && !flips.length) flips.push(make("li", {}, whyWithoutFlip(step)));
  at("flips").replaceChildren(...flips);
  at("contributions").hidden = !why.contributions.length;
  at("contributions").tBodies[0].replaceChildren(...why.contributions.map((part) =>
    make("tr", {},
      make("th", { scope: "row" }, title(part.covariate)),
      make("td", {}, part.value === null ? "not available, estimated" : shown(part.covariate, part.value)),
      make("td", { className: "number" }, (part.log_odds < 0 ? "−" : "+") + Math.abs(part.log_odds).toFixed(2)))));
}

function showSoFar(step) {
  const rows = Object.entries(state.known).map(([name, value]) => [title(name), shown(name, value), "known"]);
  state.events.forEach((event, number) => {
    const cost = state.steps[number + 1].explanation.paid - state.steps[number].explanation.paid;
    const names = Object.keys(event.observe || {});
    const alone = names.reduce((sum, name) => sum + state.covariates[name].cost, 0);
    const less = alone - cost > 0.005 ? ` (alone ${money(alone)})` : "";
    names.forEach((name, position) =>
      rows.push([title(name), shown(name, event.observe[name]), position ? "" : money(cost) + less]));
    for (const name of event.unavailable || []) rows.push([title(name), "not available", "–"]);
    if (event.stop) rows.push(["Decided early", "", "–"]);
  });
  at("nothing-yet").hidden = rows.length > 0;
  at("events").hidden = !rows.length;
  at("events").tBodies[0].replaceChildren(...rows.map(([name, value, cost]) =>
    make("tr", {},
      make("th", { scope: "row" }, name),
      make("td", {}, value),
      make("td", { className: "number" }, cost))));
  at("paid").textContent = money(step.explanation.paid);
  at("warnings").hidden = !step.warnings.length;
  at("warnings").querySelector("ul").replaceChildren(...step.warnings.map((warning) => make("li", {}, warning.message)));
}

// --- what the user does ------------------------------------------------------------------------------

function newCaseId() {
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
  await advance(known, at("known"));
}));
at("answer-form").addEventListener("submit", quietly(async () => {
  const observe = read(at("answers"), true);
  if (observe !== null) await happen({ observe }, at("answers"));
}));
at("other-form").addEventListener("submit", quietly(async () => {
  const observe = read(at("other-field"), true);
  if (observe !== null) await happen({ observe }, at("other-field"));
}));
at("other-name").addEventListener("change", showOther);
at("skip").addEventListener("click", quietly(async () => {
  await happen({ unavailable: state.steps.at(-1).covariates });
}));
at("decide").addEventListener("click", quietly(async () => {
  await happen({ stop: true });
}));
at("undo").addEventListener("click", quietly(async () => undo()));
at("again").addEventListener("click", quietly(load));
at("print").addEventListener("click", () => window.print());
at("record").addEventListener("click", quietly(async () => {
  const recorded = await call("/v1/cases", { ...described(), id: state.caseId });
  at("record").hidden = true;
  at("recorded").hidden = false;
  at("recorded").textContent = `Recorded as case ${recorded.id}.`;
  tell(at("recorded").textContent);
}));
state.key = keptKey();
load().catch((error) => {
  if (error.status !== 401) return complain(error);
  askForKey();
  return focusNext();
});
