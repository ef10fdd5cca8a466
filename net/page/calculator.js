// calculator.js — the value of an arithmetic expression that a model writes. Nothing in it runs as a script.
const longest = 500; // characters
const deepest = 50; // brackets, signs and powers inside each other
const functions = {
  abs: Math.abs,
  ceil: Math.ceil,
  cos: Math.cos,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log: Math.log10,
  log10: Math.log10,
  log2: Math.log2,
  max: Math.max,
  min: Math.min,
  pow: Math.pow,
  round: Math.round,
  sin: Math.sin,
  sqrt: Math.sqrt,
  tan: Math.tan,
};
const constants = { pi: Math.PI, e: Math.E };
const sums = { "+": (a, b) => a + b, "-": (a, b) => a - b };
const products = { "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b };

/** The value as text, of fifteen digits. Throws an Error with a sentence. @param {string} expression */
export function calculate(expression) {
  const value = new Expression(expression).value();
  if (!Number.isFinite(value)) throw new Error("The result is not a finite number.");
  return String(Number(value.toPrecision(15)));
}

class Expression {
  #tokens;
  #next = 0;
  #depth = 0;

  constructor(text) {
    if (text.length > longest) throw new Error(`The expression has more than ${longest} characters.`);
    this.#tokens = tokens_of(text);
  }

  value() {
    const value = this.#sum();
    if (this.#peek() !== undefined) throw new Error(`There is something unexpected: ${this.#peek()}`);
    return value;
  }

  #peek() {
    return this.#tokens[this.#next];
  }

  #take(token) {
    if (this.#peek() !== token) return false;
    this.#next++;
    return true;
  }

  #expect(token) {
    if (!this.#take(token)) throw new Error(`A ${token} is missing.`);
  }

  #sum() {
    return this.#chain(sums, () => this.#chain(products, () => this.#signed()));
  }

  /** One operand after the other, from left to right. */
  #chain(operators, operand) {
    let value = operand();
    while (Object.hasOwn(operators, this.#peek() ?? ""))
      value = operators[this.#tokens[this.#next++]](value, operand());
    return value;
  }

  #signed() {
    if (++this.#depth > deepest) throw new Error("The expression is nested too deeply.");
    const value = this.#take("-") ? -this.#signed() : this.#take("+") ? this.#signed() : this.#power();
    this.#depth--;
    return value;
  }

  /** A power is taken before a sign in front of it, and from right to left. */
  #power() {
    const base = this.#atom();
    return this.#take("^") || this.#take("**") ? base ** this.#signed() : base;
  }

  #atom() {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw new Error("The expression ends too early.");
    if (/^[\d.]/.test(token)) return Number(token);
    if (token === "(") return this.#closed(this.#sum());
    if (Object.hasOwn(constants, token)) return constants[token];
    if (Object.hasOwn(functions, token)) return functions[token](...this.#given());
    throw new Error(`There is something unexpected: ${token}`);
  }

  #closed(value) {
    this.#expect(")");
    return value;
  }

  /** What a function is given, in brackets, with commas between. */
  #given() {
    this.#expect("(");
    const values = [this.#sum()];
    while (this.#take(",")) values.push(this.#sum());
    return this.#closed(values);
  }
}

function tokens_of(text) {
  const plain = text
    .toLowerCase()
    .replaceAll(/[×·]/g, "*")
    .replaceAll("÷", "/")
    .replaceAll("−", "-");
  const pattern = /\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[a-z]\w*|\*\*|[-+*/%^(),])/y;
  const tokens = [];
  const end = plain.trimEnd().length;
  while (pattern.lastIndex < end) {
    const from = pattern.lastIndex;
    const [, token] = pattern.exec(plain) ?? [];
    if (token === undefined) throw new Error(`There is something unexpected: ${plain.slice(from).trim()[0]}`);
    tokens.push(token);
  }
  return tokens;
}
