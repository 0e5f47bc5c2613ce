// The formulas of the page, compiled on first use, on BigInt, or on Number if a bound allows it.

const SAFE = 2 ** 52; // the floor of a quotient of doubles below it is exact, and so are sums and products

// True if an object has an own field; every object inherits names such as `constructor`.
function has(object, name) {
  return Object.prototype.hasOwnProperty.call(object, name);
}

function floorBig(a, b) {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

function floorSumBig(n, m, a, b) {
  let total = 0n;
  while (n > 0n) {
    const slope = floorBig(a, m), offset = floorBig(b, m);
    a -= slope * m;
    b -= offset * m;
    total += slope * (n * (n - 1n) / 2n) + offset * n;
    const top = a * n + b;
    if (top < m) break;
    n = top / m;
    b = top % m;
    [m, a] = [a, m];
  }
  return total;
}

function floorSumNumber(n, m, a, b) {
  let total = 0;
  while (n > 0) {
    const slope = Math.floor(a / m), offset = Math.floor(b / m);
    a -= slope * m;
    b -= offset * m;
    total += slope * (n * (n - 1) / 2) + offset * n;
    const top = a * n + b;
    if (top < m) break;
    n = Math.floor(top / m);
    b = top - n * m;
    [m, a] = [a, m];
  }
  return total;
}

function whole(a, b, rest, quotient) {
  if (rest) throw new Error(`a count is not an integer: ${a} / ${b}`); // the formula is wrong, not the input
  return quotient;
}

const ON_BIG = {
  fl: floorBig,
  ce: (a, b) => -floorBig(-a, b),
  qu: (a, b) => whole(a, b, a % b, a / b),
  mx: (...values) => values.reduce((x, y) => (y > x ? y : x)),
  mn: (...values) => values.reduce((x, y) => (y < x ? y : x)),
  sf: floorSumBig,
};
const ON_NUMBER = {
  fl: (a, b) => Math.floor(a / b),
  ce: (a, b) => Math.ceil(a / b),
  qu: (a, b) => whole(a, b, a % b, a / b),
  mx: Math.max,
  mn: Math.min,
  sf: floorSumNumber,
};
for (const on of [ON_BIG, ON_NUMBER]) for (const name of ["fl", "ce", "qu", "sf"]) on[name + "s"] = on[name];

// The same formulas on non-negative bounds of magnitude; `largest` is the largest value of any operation.
let largest = 0;
const see = (...sizes) => { for (const size of sizes) if (!(size <= largest)) largest = size; };
const summed = (n, m, a, b, by) => { see(n * n + a * n + b + m); return n * ((a * n + b) / by + 1); };
const ON_SIZES = {
  fl: (a, b) => { see(a, b); return a + 1; },
  ce: (a, b) => { see(a, b); return a + 1; },
  qu: (a, b) => { see(a, b); return a; },
  fls: (a, b) => { see(a, b); return a / b + 1; },
  ces: (a, b) => { see(a, b); return a / b + 1; },
  qus: (a, b) => { see(a, b); return a / b; },
  mx: (...sizes) => { see(...sizes); return Math.max(...sizes); },
  mn: (...sizes) => { see(...sizes); return Math.max(...sizes); },
  sf: (n, m, a, b) => summed(n, m, a, b, 1),
  sfs: (n, m, a, b) => summed(n, m, a, b, m),
};

const asNumber = (text) => text.replace(/(\d)n\b/g, "$1");
const FLAVOURS = {
  big: [ON_BIG, (text) => text],
  number: [ON_NUMBER, asNumber],
  sizes: [ON_SIZES, (text) => asNumber(text).replace(/-/g, "")],
};

class Formulas {
  constructor(nodes, symbols) {
    this.nodes = nodes;
    this.symbols = [...symbols, "grouped"];
    this.made = new Map();
  }

  // All nodes that some nodes depend on, in evaluation order.
  needed(places) {
    const found = new Set();
    const stack = [...places];
    while (stack.length) {
      const place = stack.pop();
      if (found.has(place)) continue;
      found.add(place);
      for (const match of this.nodes[place].matchAll(/\bx(\d+)\b/g)) stack.push(Number(match[1]));
    }
    return [...found].sort((a, b) => a - b);
  }

  // A function of all symbols that returns a function of the moving ones, which returns a list of values.
  source(places, moving, flavour) {
    const [helpers, change] = FLAVOURS[flavour];
    const key = `${flavour}|${moving.join()}|${places.join()}`;
    let made = this.made.get(key);
    if (!made) {
      const lines = this.needed(places).map((place) => `const x${place} = ${change(this.nodes[place])};`);
      const inner = `${lines.join("\n")}\nreturn [${places.map((place) => `x${place}`).join()}];`;
      const outer = new Function(...Object.keys(helpers), ...this.symbols, `return (${moving.join()}) => {${inner}}`);
      made = (...values) => outer(...Object.values(helpers), ...values);
      this.made.set(key, made);
    }
    return made;
  }

  // The exact integers of some nodes as a function of the moving symbols; all values are BigInt.
  at(places, point, moving = []) {
    const fixed = this.symbols.map((symbol) => point[symbol] ?? 0n);
    const numbers = fixed.map(Number);
    const fast = this.source(places, moving, "number")(...numbers);
    const sizes = this.source(places, moving, "sizes")(...numbers);
    let exact = null;
    return (...given) => {
      const near = given.map(Number);
      largest = 0;
      see(...near, ...sizes(...near));
      if (largest <= SAFE) return fast(...near).map(BigInt);
      exact = exact ?? this.source(places, moving, "big")(...fixed);
      return exact(...given);
    };
  }

  exact(places, point) {
    return this.at(places, point)();
  }
}
