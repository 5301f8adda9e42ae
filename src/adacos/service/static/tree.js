// The tree of a policy that branches: questions, shares of rows, what they pay, how they are answered.

import { at, make, money, named, state } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
const whole = (share) => `${(100 * share).toFixed(0)}%`;

export function showTree() {
  const { tree, class_names: names, classes } = state.card;
  at("picture").hidden = !tree;
  if (!tree) return;
  const answer = names[1] || `class ${classes[1]}`;
  const dark = classes.length > 2 || tree.places.some((place) => place.answers) ? "" : `; the dark part was answered ${answer}`;
  at("picture-about").textContent = `${tree.rows} rows followed this tree. A bar is the share of all rows that end `
    + `in a branch${dark}. The percentage after a value is the share of rows that have it.`;
  at("tree").replaceChildren(item(tree.places, 0, answer));
}

function item(places, number, answer) {
  const place = places[number];
  const head = place.condition ? `${place.condition} (${whole(place.share)})` : "Everyone";
  const parts = [make("strong", {}, head)];
  if (place.question) parts.push(make("span", {}, `asked ${place.question}`));
  else parts.push(make("span", {}, leaf(place, answer)), bar(place));
  const below = place.below.map((next) => item(places, next, answer));
  return make("li", {}, ...parts, ...(below.length ? [make("ul", {}, ...below)] : []));
}

function leaf(place, answer) {
  const asked = place.acquired.map(([name, share]) => `${name} ${whole(share)}`).join(", ");
  const answered = place.answers
    ? place.answers.map((share, k) => [state.card.decision_names?.[k] ?? named(state.card.classes[k]), share]).filter(([, share]) => share > 0)
    : [[answer, place.positive]];
  const answers = answered.map(([name, share]) => `${name}: ${whole(share)}`).join(", ");
  return `${asked || "nothing more"}; paid ${money(place.cost)}, answered ${answers}`;
}

function bar({ share, positive = 0 }) {
  const drawing = document.createElementNS(SVG, "svg");
  // The words next to it say the same.
  drawing.setAttribute("aria-hidden", "true");
  drawing.setAttribute("viewBox", "0 0 100 4");
  drawing.setAttribute("preserveAspectRatio", "none");
  const pieces = [["all", 0, 100], ["negative", 0, 100 * share * (1 - positive)],
    ["positive", 100 * share * (1 - positive), 100 * share * positive]];
  for (const [kind, x, width] of pieces) {
    const piece = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ class: `tree-${kind}`, x, width, y: 0, height: 4 })) {
      piece.setAttribute(name, value);
    }
    drawing.append(piece);
  }
  return drawing;
}
