// The page of a consultation: asks the service for each next step and shows it with its reasons.
"use strict";

const at = (id) => document.getElementById(id);
const state = { card: null, covariates: {}, key: null, known: {}, events: [], steps: [] };

// --- the service ---------------------------------------------------------------------------

async function call(path, body) {
  const headers = {};
  if (state.key) headers.Authorization = `Bearer ${state.key}`;
  if (body) headers["Content-Type"] = "application/json";
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
  return { known: state.known, acquired, unavailable: [...unavailable] };
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
    at(`${input.id}-problem`).textContent = problem;
    input.setAttribute("aria-invalid", problem ? "true" : "false");
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
  begin();
  focusNext();
}

function askForKey() {
  at("start").hidden = at("consultation").hidden = true;
  at("key").hidden = false;
}

function begin() {
  Object.assign(state, { known: {}, events: [], steps: [] });
  at("known").replaceChildren(...state.card.covariates.map((own) => field(own.name, "known")));
  at("consultation").hidden = true;
  at("start").hidden = false;
  tell("New consultation. Enter what is already known, then start.");
}

async function advance() {
  const step = await call("/v1/step", described());
  state.steps.push(step);
  show();
}

async function happen(event) {
  state.events.push(event);
  try {
    await advance();
  } catch (error) {
    state.events.pop();
    throw error;
  }
}

function undo() {
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
    : `Decision: ${labelled(step.label)}, probability ${percent(step.probability)}.`) + odd);
}

function showQuestion(step) {
  const why = step.explanation;
  at("question-title").textContent = `${listed(step.covariates)} – costs ${money(step.cost)}`;
  let reason = "It comes next in the order of the model.";
  if (why.best_plan) {
    const more = why.best_plan.covariates.slice(step.covariates.length);
    reason = `Deciding now is expected to cost ${money(why.stop_now)} in all. Asking for this`
      + (more.length ? ` (and perhaps ${listed(more)})` : "")
      + ` is expected to bring that down to ${money(why.best_plan.expected_total_cost)}.`;
  }
  at("reason").textContent = reason;
  at("answers").replaceChildren(...step.covariates.map((name) => field(name, "answer")));
  at("sharing").hidden = !step.sharing.length;
  at("sharing").textContent = "Shares its cost with others, which then cost less: "
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
  at("decision-title").textContent = labelled(step.label);
  facts(at("decision-facts"), [
    [`Probability of class ${state.card.classes[1]}`, percent(step.probability)],
    ["Paid for values", money(step.cost)],
    ["Expected cost of a wrong decision", money(step.explanation.bayes_risk)],
    ["Expected total cost", money(step.expected_cost)],
  ]);
  const plan = step.explanation.best_plan;
  at("decision-why").textContent = plan
    ? `No further question is expected to pay for itself: the best would be ${listed(plan.covariates)}, `
      + `with an expected total cost of ${money(plan.expected_total_cost)}.`
    : "There is nothing left to ask for.";
  const certificate = state.card.certificate;
  at("certificate").hidden = !certificate;
  if (certificate) {
    const free = Object.keys(state.known).length;
    at("certificate").textContent = certificate.text
      + (free ? "\nThis does not extend to rows of which values were known from the start, as here." : "");
  }
  // Sent again with the same id if an answer is lost, a case is recorded once.
  state.caseId = newCaseId();
  at("record").hidden = !state.card.case_log;
  at("recorded").hidden = true;
  at("printed").textContent = `${state.card.notice} Model ${state.card.model}, adacos `
    + `${state.card.version}, ${new Date().toLocaleString()}.`;
}

function showCosts(step) {
  const why = step.explanation;
  const bars = [["Deciding now", why.stop_now, "bar-now"]];
  if (why.acquire_next !== null) {
    const next = step.action === "acquire" ? listed(step.covariates) : listed(why.best_plan.covariates.slice(0, 1));
    bars.push([`After ${next}`, why.acquire_next, "bar-next"]);
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
  at("saving").textContent = why.expected_saving > 0 && step.action === "acquire"
    ? `Expected saving by going on: ${money(why.expected_saving)}.`
    : "Going on is not expected to save anything.";
}

function rangeInWords([low, high]) {
  if (low === null && high === null) return "at any value";
  if (low === null) return `below ${short(high)}`;
  if (high === null) return `above ${short(low)}`;
  return `between ${short(low)} and ${short(high)}`;
}

function showNow(step, asking) {
  const why = step.explanation;
  at("now-title").textContent = asking ? "If one had to decide now" : "Where the probability comes from";
  at("now").hidden = !asking;
  at("now").textContent = `${labelled(why.label)}, with a probability of ${percent(why.probability)} for class `
    + `${state.card.classes[1]} and an expected cost of a wrong decision of ${money(why.bayes_risk)}.`;
  const flips = why.flips.map((flip) => {
    const words = flip.ranges.map(rangeInWords).concat(flip.values.map((value) => `= ${value}`));
    return make("li", {}, `${title(flip.covariate)} ${words.join(" or ")} would turn it to ${labelled(flip.label)}.`);
  });
  if (asking && !flips.length) {
    flips.push(make("li", {}, `No value of ${listed(step.covariates)} alone would turn it.`));
  }
  at("flips").replaceChildren(...flips);
  at("contributions").hidden = !why.contributions.length;
  at("contributions").tBodies[0].replaceChildren(...why.contributions.map((part) =>
    make("tr", {},
      make("th", { scope: "row" }, title(part.covariate)),
      make("td", {}, part.value === null ? "not available" : shown(part.covariate, part.value)),
      make("td", { className: "number" }, (part.log_odds < 0 ? "−" : "+") + Math.abs(part.log_odds).toFixed(2)))));
}

function showSoFar(step) {
  const rows = Object.entries(state.known).map(([name, value]) => [title(name), shown(name, value), "known"]);
  state.events.forEach((event, number) => {
    const cost = state.steps[number + 1].explanation.paid - state.steps[number].explanation.paid;
    Object.entries(event.observe || {}).forEach(([name, value], position) =>
      rows.push([title(name), shown(name, value), position ? "" : money(cost)]));
    for (const name of event.unavailable || []) rows.push([title(name), "not available", "–"]);
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
  state.key = at("key-input").value;
  await load();
}));
at("start-form").addEventListener("submit", quietly(async () => {
  const known = read(at("known"), false);
  if (known === null) return;
  Object.assign(state, { known, events: [], steps: [] });
  await advance();
}));
at("answer-form").addEventListener("submit", quietly(async () => {
  const observe = read(at("answers"), true);
  if (observe !== null) await happen({ observe });
}));
at("other-form").addEventListener("submit", quietly(async () => {
  const observe = read(at("other-field"), true);
  if (observe !== null) await happen({ observe });
}));
at("other-name").addEventListener("change", showOther);
at("skip").addEventListener("click", quietly(async () => {
  await happen({ unavailable: state.steps.at(-1).covariates });
}));
at("undo").addEventListener("click", quietly(async () => undo()));
at("again").addEventListener("click", quietly(async () => begin()));
at("print").addEventListener("click", () => window.print());
at("record").addEventListener("click", quietly(async () => {
  const recorded = await call("/v1/cases", { ...described(), id: state.caseId });
  at("record").hidden = true;
  at("recorded").hidden = false;
  at("recorded").textContent = `Recorded as case ${recorded.id}.`;
  tell(at("recorded").textContent);
}));
load().catch((error) => {
  if (error.status !== 401) return complain(error);
  askForKey();
  return focusNext();
});
