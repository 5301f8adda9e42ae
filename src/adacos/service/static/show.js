// What is shown of a step: question or decision, expected costs, where the probability comes from.

import { field } from "./fields.js";
import { showTree } from "./tree.js";
import {
  at, both, chances, cutOff, decided, described, labelled, listed, make, many, money, outcome, percent, short, shown, signed, state,
  announce, threshold, title,
} from "./state.js";

export function showModel() {
  const { card } = state;
  if (card.title) at("title").textContent = document.title = card.title;
  at("headline").hidden = !card.headline;
  at("headline").textContent = card.headline || "";
  at("about").textContent = (card.outcome ? `Outcome: ${card.outcome}. ` : "") + threshold();
  at("intended").hidden = !card.intended_use;
  at("intended").textContent = `Intended use: ${card.intended_use}`;
  at("model").textContent = `Model ${card.model} · ${card.covariates.length} covariates · adacos ${card.version}`
    + (card.citation ? ` · ${card.citation}` : "")
    + [card.recalibration, card.restriction].map((own) => own ? ` · ${own.text}` : "").join("");
  at("notice").textContent = card.notice;
  showTree();
}

export function show() {
  const step = state.steps.at(-1);
  const asking = step.action === "acquire";
  at("start").hidden = true;
  at("consultation").hidden = false;
  at("question").hidden = !asking;
  at("decision").hidden = asking;
  at("undo").hidden = Boolean(state.saved);
  at("printed").textContent = `${state.card.notice} Model ${state.card.model}, adacos `
    + `${state.card.version}, ${new Date().toLocaleString()}.`;
  if (asking) showQuestion(step);
  else showDecision(step);
  showCosts(step);
  showNow(step, asking);
  showSoFar(step);
  const odd = step.warnings.length ? ` Note: ${step.warnings.map((w) => w.message).join(" ")}` : "";
  announce((asking
    ? (step.ordered ? `Ordered: ${listed(step.covariates)}.`
      : `Next question: ${listed(step.covariates)}, cost ${money(step.cost)}.`)
    : `Result${step.stopped_early ? ", stopped early" : ""}: ${labelled(step.label)}, `
      + `probability ${percent(step.probability)}.`) + odd);
}

// A saving that would be rounded to nothing decides all the same.
const saved = (amount) => (amount > 0 && amount < 0.01 ? `less than ${money(0.01)}` : money(amount));

function why(step) {
  if (step.ordered) return "Enter the results as they come in. The next question is decided when all of them are there.";
  const { because, best_plan: plan, expected_saving: saving } = step.explanation;
  if (step.cost < 0.005) {
    return step.covariates.length > 1 ? "They cost nothing, so they come first." : "It costs nothing, so it comes first.";
  }
  // A policy that does not weigh costs may continue where it does not pay, and says why.
  if (saving <= 0) return because;
  const more = plan.covariates.filter((name) => !step.covariates.includes(name));
  return `Worth asking: it costs ${money(step.cost)}`
    + (more.length ? ` and, with ${both(more.map(title))} where that is still worth asking,` : " and")
    + ` is expected to save ${saved(saving)} net by making a wrong result less likely.`
    + (because ? ` ${because}` : "");
}

// What waiting for the results of covariates costs, once for all that are ordered together.
export const wait = (names) =>
  (names.some((name) => !state.card.immediate.includes(name)) ? state.card.round_cost : 0);

function showQuestion(step) {
  at("question-kicker").textContent = step.ordered ? "Ordered" : "Next question";
  at("question-title").textContent = `${listed(step.covariates)} – ${step.ordered ? "paid" : `costs ${money(step.cost)}`}`;
  at("reason").textContent = why(step);
  const waited = step.ordered ? 0 : wait(step.covariates);
  at("order").hidden = at("order-hint").hidden = !waited;
  at("lowered").hidden = !step.lowered.length && !waited;
  at("lowered").textContent = [
    ...(waited ? [`${step.covariates.length > 1 ? "They are ordered together. " : ""}${money(waited)} of the cost is for the wait.`] : []),
    ...step.lowered.map(({ panel, covariates, had, amount }) =>
      `${listed(covariates)}: ${money(amount)} less than alone, because the shared cost of panel ${panel} `
      + (had.length ? `was paid with ${both(had.map(title))}.` : "is paid once.")),
  ].join(" ");
  at("answers").replaceChildren(...step.covariates.map((name) => field(name, "answer")));
  at("sharing").hidden = !step.sharing.length;
  at("sharing").textContent = "Once this is paid, these cost less: "
    + step.sharing.map(([name, amount]) => `${title(name)} ${money(amount)}`).join(", ") + ".";
  showAlternatives(step);
  offer("other", step.covariates);
}

// The covariates without a value, to choose from: in place of the question, or after the decision.
function offer(id, asked) {
  const { known, acquired } = described();
  const names = [...state.covariates.keys()].filter((name) =>
    !Object.hasOwn(known, name) && !Object.hasOwn(acquired, name) && !asked.includes(name));
  at(id).hidden = !names.length;
  at(id).open = false;
  at(`${id}-name`).replaceChildren(...names.map((name) => make("option", { value: name }, title(name))));
  showOffered(id);
}

export function showOffered(id) {
  const name = at(`${id}-name`).value;
  at(`${id}-field`).replaceChildren(
    ...(name ? [field(name, `${id}-value`, { label: `Value of ${title(name)}` })] : []));
}

// What each open question costs, and what the policy expects in all where it has a figure.
function showAlternatives({ alternatives = [], covariates: next }) {
  const inOneOrder = alternatives.some(({ others }) => others.length);
  at("alternatives-about").textContent = "All open questions"
    + (alternatives.some(({ expected_total_cost: total }) => total !== null) ? ", the lowest expected total cost first." : ".")
    + (inOneOrder ? " This policy asks in one order, so a total cost includes the questions that are asked before." : "");
  const about = ({ covariate, others }) => {
    const names = others.slice(0, 2).map(title);
    if (others.length > 2) names.push(`${others.length - 2} more`);
    const isNext = next.includes(covariate);
    return [isNext ? "next question" : "", names.length ? `${isNext ? "with" : "after"} ${both(names)}` : ""]
      .filter(Boolean).join(", ");
  };
  at("alternatives").tBodies[0].replaceChildren(...alternatives.map((one) =>
    make("tr", {},
      make("th", { scope: "row" }, title(one.covariate), make("span", { className: "hint" }, about(one))),
      make("td", { className: "number" }, money(one.cost)),
      make("td", { className: "number" }, one.expected_total_cost === null ? "–" : money(one.expected_total_cost)))));
}

function facts(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function showDecision(step) {
  const positive = !many() && !decided() && step.label === state.card.classes[1];
  at("decision").classList.toggle("positive", positive);
  at("decision-kicker").textContent = step.stopped_early ? "Stopped early" : "Result";
  at("decision-title").textContent = labelled(step.label);
  facts(at("decision-facts"), [
    ...(many() ? chances(step.explanation) : [[outcome(), step.probability]])
      .map(([name, chance]) => [`Probability of ${name}`, percent(chance)]),
    ["Paid so far", money(step.cost)],
    [decided() ? "Expected cost of this decision" : "Expected cost of a wrong answer", money(step.explanation.bayes_risk)],
    ["Expected total cost", money(step.expected_cost)],
  ]);
  // What the cut-off was certified for is not said where the certificate does not cover it.
  at("rule").textContent = state.card.certificate && step.not_covered ? "" : threshold();
  at("decision-why").textContent = step.stopped_early ? whyEarly(step) : whyNow(step);
  const { certificate, headline } = state.card;
  at("certificate").hidden = !certificate;
  if (certificate) {
    const caveat = step.not_covered;
    at("certificate").replaceChildren(
      ...(headline ? [make("strong", {}, `${headline}\n`)] : []),
      ...(caveat ? [make("strong", {}, `${caveat}\n`)] : []),
      certificate.text);
    at("certificate").classList.toggle("void", Boolean(caveat || headline));
  }
  at("record").hidden = !state.card.case_log || Boolean(state.saved);
  at("reason-row").hidden = at("record").hidden;
  at("recorded").hidden = !state.saved;
  at("recorded").textContent = `Saved as case ${state.saved}.`;
  offer("more", []);
  // What was saved is not changed behind the back of the record.
  if (state.saved) at("more").hidden = true;
}

function whyNow(step) {
  const { because, best_plan: plan, expected_saving: saving } = step.explanation;
  if (saving > 0) return because || `This policy stops here, although ${listed(plan.covariates)} would be expected to save ${saved(saving)}.`;
  const ends = plan
    ? `No further question is expected to pay for itself. The best would be ${listed(plan.covariates)}, `
      + `with an expected total cost of ${money(plan.expected_total_cost)}.`
    : "There is nothing left to ask.";
  return because ? `${ends} ${because}` : ends;
}

function whyEarly(step) {
  const { best_plan: plan, expected_saving: saving } = step.explanation;
  return `Stopped early. The next question would have been ${listed(state.steps.at(-2).covariates)}`
    + (plan && saving > 0 ? `, and continuing was expected to save ${saved(saving)}.` : ".");
}

function showCosts(step) {
  const { stop_now: now, acquire_next: next, best_plan: plan, expected_saving: saving } = step.explanation;
  const bars = [["If you stop now", now, "bar-now"]];
  // What several free ones alone would bring is not known.
  if (next !== null && !(step.action === "acquire" && step.covariates.length > 1)) {
    const names = step.action === "acquire" ? step.covariates : plan.covariates.slice(0, 1);
    bars.push([`After ${listed(names)}${plan.covariates.length > 1 ? " alone" : ""}`, next, "bar-next"]);
  }
  if (plan && plan.covariates.length > 1) {
    const names = plan.covariates;
    const text = names.length > 3 ? `${listed(names.slice(0, 2))} and ${names.length - 2} more` : listed(names);
    bars.push([`Best plan: ${text}`, plan.expected_total_cost, "bar-plan"]);
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
  at("saving").textContent = step.ordered ? ""
    : saving > 0 ? `Continuing is expected to save ${saved(saving)}.`
      // What is asked by somebody's choice is not weighed.
      : plan || step.action !== "acquire" ? "Continuing is not expected to save anything." : "";
}

function rangeInWords([low, high]) {
  if (low === null && high === null) return "at any value";
  if (low === null) return `below ${short(high)}`;
  if (high === null) return `above ${short(low)}`;
  return `between ${short(low)} and ${short(high)}`;
}

function whyWithoutFlip(step) {
  return step.explanation.expected_saving > 0
    ? "No single value would change the result, but the answer may make a later question worth asking, or unnecessary."
    : "No single value would change the result.";
}

function flipsOf(step) {
  const asked = step.explanation.flips.filter((flip) => step.covariates.includes(flip.covariate));
  const found = asked.map((flip) => {
    const { choices, categories } = state.covariates.get(flip.covariate);
    const inside = (value) => flip.values.includes(value)
      || (!categories.length && flip.ranges.some(([low, high]) => (low ?? -Infinity) <= value && value <= (high ?? Infinity)));
    const words = choices.length
      ? [`= ${choices.filter((one) => inside(one.value)).map((one) => one.label).join(" or ")}`]
      : flip.ranges.map(rangeInWords).concat(flip.values.map((value) => `= ${shown(flip.covariate, value)}`));
    return `${title(flip.covariate)} ${words.join(" or ")} would change the result to ${labelled(flip.label)}.`;
  });
  // Where several are asked at once, nothing is known of one alone.
  return found.length || step.covariates.length > 1 ? found : [whyWithoutFlip(step)];
}

function showNow(step, asking) {
  const { label, probability, bayes_risk: risk } = step.explanation;
  at("now-title").textContent = asking ? "If you stopped now" : "Where the probability comes from";
  at("now").hidden = !asking;
  const expected = `Expected cost of ${decided() ? "this decision" : "a wrong answer"} ${money(risk)}.`;
  at("now").textContent = many()
    ? `Result: ${labelled(label)}. Probabilities: `
      + `${chances(step.explanation).map(([name, chance]) => `${name} ${percent(chance)}`).join(", ")}. ${expected}`
    : `${decided() ? "Result: " : ""}${labelled(label)}. Probability of ${outcome()} ${percent(probability)}`
      + `${state.card.threshold === null ? "" : ` (cut-off ${cutOff()})`}. ${expected}`;
  at("flips").replaceChildren(...(asking ? flipsOf(step) : []).map((text) => make("li", {}, text)));
  showContributions(step, asking);
}

function showContributions(step, asking) {
  const { contributions, intercept, probability, label } = step.explanation;
  at("contributions").hidden = intercept === null;
  if (intercept === null) return;
  // Of several classes the log-odds are those of the answer against the most probable other class.
  const other = many() ? chances(step.explanation).find(([name], place) => (decided() ? place === 1 : name !== labelled(label))) : null;
  const sum = Math.log(probability / (other ? other[1] : 1 - probability));
  at("contributions").caption.textContent = "What each value adds to the log-odds"
    + (other ? ` of ${decided() ? chances(step.explanation)[0][0] : labelled(label)} against ${other[0]}` : "");
  const rest = sum - contributions.reduce((total, part) => total + part.log_odds, intercept);
  const unknown = (name) => (asking && step.covariates.includes(name) ? "asked, estimated" : "not available, estimated");
  const rows = [
    ["Start: an average case", "", intercept],
    ...contributions.map(({ covariate, value, log_odds: part }) =>
      [title(covariate), value === null ? unknown(covariate) : shown(covariate, value), part]),
  ];
  if (Math.abs(rest) >= 0.005) rows.push(["Correction for values not known", "", rest]);
  const row = ([name, value, part]) => make("tr", {},
    make("th", { scope: "row" }, name),
    make("td", {}, value),
    make("td", { className: "number" }, signed(part)));
  at("contributions").tBodies[0].replaceChildren(...rows.map(row));
  at("contributions").tFoot.replaceChildren(row(["Sum", `probability ${percent(probability)}`, sum]));
}

function showSoFar(step) {
  const rows = Object.entries(state.known).map(([name, value]) => [title(name), shown(name, value), "known"]);
  const ordered = new Set();
  state.events.forEach((event, number) => {
    const back = Object.keys(event.observe || {});
    for (const name of back.filter((one) => ordered.has(one))) rows.push([title(name), shown(name, event.observe[name]), "ordered"]);
    const names = event.order || back.filter((name) => !ordered.has(name));
    const waited = wait(names);
    const cost = state.steps[number + 1].explanation.paid - state.steps[number].explanation.paid - waited;
    const alone = names.reduce((sum, name) => sum + state.covariates.get(name).cost, 0);
    const less = alone - cost > 0.005 ? `alone ${money(alone)}` : "";
    const single = money(cost) + (less ? ` (${less})` : "");
    const value = (name) => (event.order ? "ordered" : shown(name, event.observe[name]));
    names.forEach((name) => rows.push([title(name), value(name), names.length > 1 ? "" : single]));
    if (names.length > 1) rows.push(["Together", less, money(cost)]);
    if (waited) rows.push(["Wait", "", money(waited)]);
    for (const name of event.order || []) ordered.add(name);
    // What was ordered and is unavailable is not paid after all.
    for (const name of event.unavailable || []) {
      rows.push([title(name), "not available", ordered.has(name) && cost < -0.005 ? money(cost) : "–"]);
    }
    for (const name of event.must || []) rows.push([title(name), "to be asked", "–"]);
    for (const name of event.never || []) rows.push([title(name), "never asked", "–"]);
    if (event.stop) rows.push(["Stopped early", "", "–"]);
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
