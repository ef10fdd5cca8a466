// json_prefix.js — whether a text that grows can still become JSON.
const word = /^(?:t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?)$/;
const number = /^-?(?:(?:0|[1-9]\d*)(?:\.\d*|(?:\.\d+)?[eE][+-]?\d*)?)?$/;
const whole = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const longest_number = 1000; // characters

export class JsonPrefix {
  broken = false;
  #open = []; // brackets that are not closed
  /** first: a value or ]; first key: a key or }; more: a comma or a bracket
   * @type {"value" | "first" | "key" | "first key" | "colon" | "more" | "end"} */
  #next = "value";
  #string = ""; // the state inside of a string: "in", "escape", or the hex digits of \u that are missing
  #word = ""; // a number, true, false or null that is not over

  /** Takes the text that follows. */
  feed(text) {
    for (const c of text) if (!this.broken && !this.#take(c)) this.broken = true;
  }

  /** Returns whether `c` may stand there. */
  #take(c) {
    if (this.#string) return this.#in_string(c);
    if (this.#word && !/[\s,\]}:]/.test(c)) return this.#in_word(this.#word + c);
    if (this.#word && !this.#end_word()) return false;
    if (/[ \t\n\r]/.test(c)) return true;
    switch (this.#next) {
      case "colon":
        return c === ":" && this.#then("value");
      case "more":
        if (c === ",") return this.#then(this.#open.at(-1) === "{" ? "key" : "value");
        return this.#close(c);
      case "first key":
      case "key":
        if (c === "}" && this.#next === "first key") return this.#close(c);
        return c === '"' && this.#begin_string();
      case "first":
        if (c === "]") return this.#close(c);
      // falls through
      case "value":
        return this.#begin(c);
    }
    return false; // nothing follows the end
  }

  #begin(c) {
    if (c === "{" || c === "[") {
      this.#open.push(c);
      return this.#then(c === "{" ? "first key" : "first");
    }
    return c === '"' ? this.#begin_string() : this.#in_word(c);
  }

  #close(c) {
    if (c !== { "{": "}", "[": "]" }[this.#open.pop()]) return false;
    return this.#value_over();
  }

  #begin_string() {
    this.#string = "in";
    return true;
  }

  #in_string(c) {
    if (this.#string === "escape") {
      this.#string = c === "u" ? "4" : "in";
      return /["\\/bfnrtu]/.test(c);
    }
    if (this.#string !== "in") {
      this.#string = this.#string === "1" ? "in" : String(this.#string - 1);
      return /[\da-fA-F]/.test(c);
    }
    if (c === "\\") this.#string = "escape";
    if (c !== '"') return c >= " ";
    this.#string = "";
    if (this.#next === "key" || this.#next === "first key") return this.#then("colon");
    return this.#value_over();
  }

  #in_word(written) {
    this.#word = written;
    return written.length <= longest_number && (word.test(written) || number.test(written));
  }

  #end_word() {
    const over = whole.test(this.#word);
    this.#word = "";
    return over && this.#value_over();
  }

  #value_over() {
    return this.#then(this.#open.length > 0 ? "more" : "end");
  }

  #then(next) {
    this.#next = next;
    return true;
  }
}
