// Rows of a JSON file through the evaluator: the answer to each, or the code of its refusal.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, policy, rows] = process.argv.slice(2);
const { acquire } = await import(pathToFileURL(module));
const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const held = read(policy);
const answers = read(rows).map((row) => {
  try {
    return acquire(held, row);
  } catch (error) {
    return { code: error.code, covariate: error.covariate, message: error.message };
  }
});
console.log(JSON.stringify(answers));
