// Translates the GDScript of the addon and its example to JavaScript, line by line: as much as they
// use. What it does not know becomes a syntax error.

export class Signal {
  private listeners: ((...args: unknown[]) => unknown)[] = [];
  connect(listener: (...args: unknown[]) => unknown) { this.listeners.push(listener); }
  emit(...args: unknown[]) { for (const listener of [...this.listeners]) listener(...args); }
  /** `await` of a signal waits for its next value. */
  then(resolve: (value: unknown) => void) {
    const once = (value: unknown) => {
      this.listeners = this.listeners.filter((one) => one !== once);
      resolve(value);
    };
    this.connect(once);
  }
}

const isOf = (value: any, type: string) => type === "float" ? typeof value === "number"
  : type === "Array" ? Array.isArray(value) : value !== null && typeof value === "object" && !Array.isArray(value);

/** The functions that every script has. */
const builtins: Record<string, unknown> = {
  Signal, isOf,
  str: String, floor: Math.floor, int: Math.trunc,
  push_error: (text: string) => { throw new Error(text); },
  json: { stringify: JSON.stringify, parse_string: JSON.parse },
  keysOf: (list: object) => Array.isArray(list) ? list : Object.keys(list),
  has: (dictionary: object, key: string) => Object.hasOwn(dictionary, key),
  isEmpty: (dictionary: object) => Object.keys(dictionary).length === 0,
  erase: (dictionary: any, key: string) => delete dictionary[key],
};

/** Translates what is outside of texts. */
function expression(line: string): string {
  const texts: string[] = [];
  const marked = line.replace(/"[^"]*"/g, (text) => `_${texts.push(text) - 1}_`);
  return translate(marked).replace(/\b_(\d+)_/g, (_, n) => texts[n]!);
}

const translate = (text: string) => text
  .replace(/\bJSON\./g, "json.")
  .replace(/(\w+) is (\w+)/g, 'isOf($1, "$2")')
  .replace(/ and /g, " && ").replace(/ or /g, " || ").replace(/\bnot /g, "!")
  .replace(/([=:]) ([^:{,]+?) if (.+?) else ([^},]+)/g, "$1 ($3 ? $2 : $4)")
  .replace(/([\w.]+)\.new\(\)/g, "new $1()").replace(/\.append\(/g, ".push(")
  .replace(/([\w.]+)\.(has|erase)\(/g, "$2($1, ").replace(/([\w.]+)\.is_empty\(\)/g, "isEmpty($1)");

/** Runs a script with what the engine has, and returns its members. */
export function runScript(source: string, engine: Record<string, unknown>): any {
  const lines = source.split("\n").map((line) => line.replace(/(^|\s)#.*/, "").trimEnd()).filter(Boolean);
  const members: string[] = [];
  const output: string[] = [];
  const depths: string[] = []; // what each open block is
  const depthOf = (line: string) => line.match(/^\t*/)![0].length;
  /** Reports whether the function that begins at a line waits for anything. */
  const waits = (start: number) => {
    for (let n = start + 1; n < lines.length && depthOf(lines[n]!) > depthOf(lines[start]!); n++) {
      if (/\bawait /.test(lines[n]!)) return true;
    }
    return false;
  };
  lines.forEach((raw, n) => {
    const line = raw.trim();
    while (depths.length > depthOf(raw)) {
      depths.pop();
      output.push("}");
    }
    const inClass = depths.at(-1) === "class";
    let match: RegExpMatchArray | null;
    const open = (text: string, kind = "block") => {
      output.push(`${text} {`);
      depths.push(kind);
    };
    const declare = (name: string) => { if (!depths.length) members.push(name); };
    if (/^extends /.test(line)) return;
    if ((match = line.match(/^class (\w+):$/))) open(`class ${match[1]}`, "class");
    else if ((match = line.match(/^signal (\w+)/))) {
      declare(match[1]!);
      output.push(`${inClass ? "" : "const "}${match[1]} = new Signal();`);
    } else if ((match = line.match(/^func (\w+)\((.*)\)(?: -> \w+)?:$/))) {
      declare(match[1]!);
      const parameters = match[2]!.replace(/(\w+): \w+/g, "$1");
      open(`${waits(n) ? "async " : ""}function ${match[1]}(${parameters})`);
    } else if ((match = line.match(/^var (\w+)(?:: \w+)?(?: ?:?= (.*))?$/))) {
      declare(match[1]!);
      output.push(`let ${expression(`${match[1]} = ${match[2] ?? "null"}`)};`);
    } else if ((match = line.match(/^(if|elif) (.+):$/))) {
      open(`${match[1] === "if" ? "if" : "else if"} (${expression(match[2]!)})`);
    } else if (line === "else:") open("else");
    else if ((match = line.match(/^for (\w+) in (.+):$/))) {
      open(`for (const ${match[1]} of keysOf(${expression(match[2]!)}))`);
    } else output.push(`${expression(line)};`);
  });
  output.push("}".repeat(depths.length));
  const exposed = members.map((name) => `get ${name}() { return ${name}; }`).join(", ");
  const scope = { ...builtins, ...engine };
  return new Function(...Object.keys(scope), `${output.join("\n")}\nreturn { ${exposed} };`)(...Object.values(scope));
}
