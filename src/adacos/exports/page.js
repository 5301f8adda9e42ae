// The page around the evaluator above it in the same script: asks, takes values back, shows the answer.

const policy = checkPolicy(JSON.parse(document.getElementById("policy").textContent));
const held = []; // [name, value] in the order of the questions
const at = (id) => document.getElementById(id);
const say = (id, text) => { at(id).textContent = text; };
const percent = (share) => `${(100 * share).toFixed(1)}%`;
const money = (amount) => {
  const text = amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return policy.currency ? `${text} ${policy.currency}` : text;
};
const rangeOf = ({ low, high }) => [low, high].map((end) => Number(end.toPrecision(12))).join(" to ");
const covariateOf = (name) => policy.covariates.find((one) => one.name === name);
const classOf = (label) => {
  const said = policy.class_names[policy.classes.indexOf(label)];
  return said ? `${said} (${label})` : String(label);
};

/** How a value that was entered is shown. */
function shown(covariate, value) {
  if (value === null) return "not available";
  const choice = covariate.choices.find((one) => one.value === value);
  const text = choice ? choice.label : String(value);
  return covariate.unit && !choice ? `${text} ${covariate.unit}` : text;
}

/** A list to choose from, or a field for a number. */
function fieldFor(covariate) {
  const listed = covariate.choices.map((one) => [one.value, one.label]);
  for (const rare of covariate.grouped) listed.push([rare, rare]);
  if (listed.length === 0) {
    const input = document.createElement("input");
    input.inputMode = "decimal";
    input.autocomplete = "off";
    input.read = () => {
      const text = input.value.trim();
      if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) {
        const point = text.includes(",") ? " Write decimals with a point." : "";
        throw new PolicyError("not_a_number", `${covariate.label} needs a number.${point}`);
      }
      return Number(text);
    };
    return input;
  }
  const select = document.createElement("select");
  select.add(new Option("Choose …", ""));
  listed.forEach(([, label], place) => select.add(new Option(label, String(place))));
  select.read = () => {
    if (select.value === "") throw new PolicyError("empty", `Choose a value of ${covariate.label}.`);
    return listed[Number(select.value)][0];
  };
  return select;
}

function problem(text) {
  say("problem", text);
  at("problem").hidden = text === "";
  at("value").setAttribute("aria-invalid", String(text !== ""));
}

/** What is said of a number outside the range of the training rows. */
function outside(covariate, value) {
  if (typeof value !== "number" || covariate.low === null) return "";
  const nearest = Math.min(Math.max(value, covariate.low), covariate.high);
  if (nearest === value) return "";
  return ` (outside the training range ${rangeOf(covariate)}; counts as ${nearest})`;
}

function ask(step) {
  const covariate = covariateOf(step.acquire);
  const label = covariate.label || covariate.name;
  say("asked", `Next: ${label}`);
  say("price", `Costs ${money(step.price)}.`);
  say("name", covariate.unit ? `${label} (${covariate.unit})` : label);
  const field = fieldFor(covariate);
  field.id = "value";
  field.setAttribute("aria-describedby", "hint problem");
  at("field").replaceChildren(field);
  const range = covariate.kind === "numeric" ? `In training: ${rangeOf(covariate)}.` : "";
  say("hint", [covariate.help, range].filter(Boolean).join(" "));
  problem("");
  field.focus();
}

function answer(step) {
  say("answer", `Result: ${classOf(step.label)}`);
  const rows = [step.probability].flat().map((chance, k, { length }) => {
    const own = policy.classes[length === 1 ? 1 : k];
    return [`Probability of ${classOf(own)}`, percent(chance)];
  });
  if (policy.cut_off !== null) rows.push(["Cut-off", percent(policy.cut_off)]);
  rows.push(["Paid", money(step.paid)], ["Expected total cost", money(step.expectedCost)]);
  at("numbers").replaceChildren(...rows.flatMap(([term, number]) => {
    const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
    dt.textContent = term;
    dd.textContent = number;
    return [dt, dd];
  }));
  at("answer").focus();
}

function show() {
  const step = nextStep(policy, Object.fromEntries(held));
  at("question").hidden = step.acquire === null;
  at("result").hidden = step.acquire !== null;
  at("undo").disabled = held.length === 0;
  at("values").replaceChildren(...held.map(([name, value]) => {
    const covariate = covariateOf(name);
    const item = document.createElement("li");
    item.textContent = `${covariate.label || name}: ${shown(covariate, value)}${outside(covariate, value)}`;
    return item;
  }));
  say("paid", `${held.length === 0 ? "Nothing entered yet. " : ""}Paid: ${money(step.paid)}.`);
  if (step.acquire === null) answer(step); else ask(step);
}

function asked() {
  return nextStep(policy, Object.fromEntries(held)).acquire;
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    held.push([asked(), at("value").read()]);
    show();
  } catch (error) {
    problem(error.message);
    at("value").focus();
  }
});
at("unavailable").addEventListener("click", () => {
  if (policy.protocol !== undefined) {
    held.push([asked(), null]);
    show();
    return;
  }
  problem(
    "This page needs every value that it asks for. Where one is not available, the model file still decides: "
    + "use adacos ask or adacos serve.",
  );
});
at("undo").addEventListener("click", () => { held.pop(); show(); });
at("again").addEventListener("click", () => { held.length = 0; show(); });
say("notice", [policy.headline, policy.notice].filter(Boolean).join(" "));
say("about", [["Outcome", policy.outcome], ["Intended use", policy.intended_use]]
  .filter(([, text]) => text).map(([name, text]) => `${name}: ${text.replace(/\.$/, "")}.`).join(" "));
say("model", `${policy.policy}, model ${policy.model}. No value leaves this page.`);
show();
