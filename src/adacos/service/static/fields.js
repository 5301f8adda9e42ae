// Fields for values: buttons for few choices, a list for many, a line for a number.

import { at, bare, make, short, state } from "./state.js";

const MOST_BUTTONS = 6;

export function field(name, prefix, { label, optional = false } = {}) {
  const own = state.covariates.get(name);
  const id = `${prefix}-${own.position}`;
  const text = (label || own.label) + (own.unit ? ` (${own.unit})` : "");
  const described = `${id}-hint ${id}-problem`;
  const hint = own.help ? [own.help] : [];
  if (own.date) hint.push("a date such as 2026-01-31");
  if (!own.choices.length) hint.push(`in training ${short(own.low)} to ${short(own.high)}`);
  const about = [
    make("span", { id: `${id}-hint`, className: "hint" }, hint.join("; ")),
    make("span", { id: `${id}-problem`, className: "field-problem" }),
  ];
  let content;
  if (own.choices.length && own.choices.length <= MOST_BUTTONS) {
    content = [make("fieldset", { id, className: "choices", "aria-describedby": described },
      make("legend", {}, text), ...buttons(own, id, optional)), ...about];
  } else {
    const input = own.choices.length
      ? make("select", { id }, make("option", { value: "" }, "–"),
          ...own.choices.map((choice, number) => make("option", { value: number }, choice.label)))
      : make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off" });
    input.setAttribute("aria-describedby", described);
    content = [make("label", { for: id }, text), input, ...about];
  }
  const wrapper = make("div", { className: "field" }, ...content);
  wrapper.dataset.name = name;
  wrapper.querySelectorAll("input, select").forEach((input) => (input.dataset.name = name));
  return wrapper;
}

function buttons(own, id, optional) {
  const choices = own.choices.map((choice, number) => [number, choice.label]);
  if (optional) choices.unshift(["", "not known"]);
  return choices.map(([number, text]) => make("span", { className: "choice" },
    make("input", { type: "radio", name: id, id: `${id}-${number}`, value: number, checked: number === "" }),
    make("label", { for: `${id}-${number}` }, text)));
}

const control = (wrapper) => wrapper.querySelector("fieldset, select, input");

// What is in a field: a text to read, or the number of a choice.
function raw(wrapper) {
  const found = wrapper.querySelector("input:checked, select, input:not([type=radio])");
  return found ? found.value.trim() : "";
}

export function mark(wrapper, problem) {
  const own = control(wrapper);
  at(`${own.id}-problem`).textContent = problem;
  own.setAttribute("aria-invalid", problem ? "true" : "false");
}

export function fill(container, values) {
  for (const wrapper of container.querySelectorAll(".field")) {
    const { name } = wrapper.dataset;
    if (!Object.hasOwn(values, name)) continue;
    const number = state.covariates.get(name).choices.findIndex((choice) => choice.value === values[name]);
    const radio = wrapper.querySelector(`input[value="${number}"]`);
    if (radio) radio.checked = true;
    else if (number >= 0) control(wrapper).value = number;
    else if (typeof values[name] === "number") control(wrapper).value = values[name];
  }
}

// The values of the filled fields by name, or null after telling what is wrong with one.
export function read(container, required) {
  const values = bare();
  let wrong = null;
  for (const wrapper of container.querySelectorAll(".field")) {
    const own = state.covariates.get(wrapper.dataset.name);
    const text = raw(wrapper);
    let problem = "";
    if (text === "") {
      if (required) problem = "Enter a value, or say that it is not available.";
    } else if (own.choices.length) {
      values[own.name] = own.choices[Number(text)].value;
    } else if (own.date && /^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].+)?$/.test(text)) {
      values[own.name] = text;
    } else if (/^[-+]?[1-9]\d{0,2},\d{3}$/.test(text)) {
      // Some write 1,234 for a thousand, others for a little more than one.
      problem = `Enter ${text.replace(",", ".")} or ${text.replace(",", "")}, without a comma.`;
    } else {
      const number = Number(text.replace(",", "."));
      // Number() would take 0x1F, 0b11 and 0o17 too.
      if (/^[-+]?(\d+[.,]?\d*|[.,]\d+)(e[-+]?\d+)?$/i.test(text) && Number.isFinite(number)) values[own.name] = number;
      else problem = "Enter a number.";
    }
    mark(wrapper, problem);
    if (problem) wrong ||= wrapper;
  }
  if (wrong) {
    wrong.querySelector("input, select").focus();
    return null;
  }
  return values;
}

// Why an entered value needs a second press, by name.
export function doubts(entered, warnings) {
  const found = new Map();
  for (const warning of warnings) {
    if (Object.hasOwn(entered, warning.covariate)) found.set(warning.covariate, warning.message);
  }
  return found;
}
