// The elements of data and code, which are compressed by LZMA and written in base 85 (`packed` of page.py): a fifth
// smaller than what a browser decompresses itself.

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

// The bytes of a text of base 85, four of every five characters.
function bytesOf(text) {
  const values = new Uint8Array(128), bytes = new DataView(new ArrayBuffer(Math.ceil(text.length / 5) * 4));
  [...DIGITS].forEach((digit, value) => { values[digit.charCodeAt(0)] = value; });
  for (let at = 0; at < text.length; at += 5) {
    let word = 0;
    for (let i = at; i < at + 5; i++) word = word * 85 + values[text.charCodeAt(i)];
    bytes.setUint32(at / 5 * 4, word);
  }
  return new Uint8Array(bytes.buffer);
}

// Decompress the bytes of LZMA, with 3 bits of context for a literal and none for its place, behind those of the size.
function expanded(bytes) {
  const out = new Uint8Array(new DataView(bytes.buffer).getUint32(0));
  const tree = (size) => new Uint16Array(size).fill(1024);
  const match = tree(12), repeated = tree(12), notLatest = tree(12), short = tree(12), notSecond = tree(12), third = tree(12);
  const literals = tree(8 * 768), slots = [0, 1, 2, 3].map(() => tree(64)), near = tree(128), low = tree(16);
  const lengths = [0, 1].map(() => [tree(2), tree(8), tree(8), tree(256)]);
  const coder = new Uint32Array([2 ** 32 - 1, new DataView(bytes.buffer).getUint32(5)]);  // the range, and the code in it
  let at = 9;

  function widen() {
    if (coder[0] >= 1 << 24) return;
    coder[0] <<= 8;
    coder[1] = (coder[1] << 8) | bytes[at++];
  }

  // The next bit, by the probability at a place.
  function bit(odds, place) {
    const odd = odds[place], bound = (coder[0] >>> 11) * odd, is = coder[1] < bound ? 0 : 1;
    if (is === 0) {
      coder[0] = bound;
      odds[place] += (2048 - odd) >> 5;
    } else {
      coder[0] -= bound;
      coder[1] -= bound;
      odds[place] -= odd >> 5;
    }
    widen();
    return is;
  }

  // The next number of some bits, highest bit first, or lowest.
  function number(odds, bits) {
    let place = 1;
    for (let i = 0; i < bits; i++) place = (place << 1) | bit(odds, place);
    return place - (1 << bits);
  }
  function reversed(odds, bits, start) {
    let place = 1, value = 0;
    for (let i = 0; i < bits; i++) {
      const is = bit(odds, start + place);
      place = 2 * place + is;
      value += is << i;
    }
    return value;
  }

  function length([choice, first, second, rest]) {
    if (!bit(choice, 0)) return 2 + number(first, 3);
    return bit(choice, 1) ? 18 + number(rest, 8) : 10 + number(second, 3);
  }

  // The distance of a new match, with as many bits as its slot tells.
  function distance(size) {
    const slot = number(slots[Math.min(size - 2, 3)], 6), bits = (slot >> 1) - 1;
    if (slot < 4) return slot;
    const start = (2 + (slot & 1)) << bits;
    if (slot < 14) return start + reversed(near, bits, start - slot);
    let middle = 0;
    for (let i = 4; i < bits; i++) {
      coder[0] >>>= 1;
      const is = coder[1] < coder[0] ? 0 : 1;
      coder[1] -= is * coder[0];
      middle = (middle << 1) | is;
      widen();
    }
    return start + (middle << 4) + reversed(low, 4, 0);
  }

  let state = 0, latest = [0, 0, 0, 0];
  for (let done = 0; done < out.length;) {
    if (!bit(match, state)) {
      const context = (done ? out[done - 1] >> 5 : 0) * 768;
      let place = 1;
      if (state >= 7) {
        for (let like = out[done - latest[0] - 1], same = true; place < 256;) {
          const expected = (like >> 7) & 1, is = bit(literals, context + place + (same ? 256 + 256 * expected : 0));
          like <<= 1;
          place = 2 * place + is;
          same &&= is === expected;
        }
      }
      while (place < 256) place = 2 * place + bit(literals, context + place);
      out[done++] = place;
      state = state < 4 ? 0 : state - (state < 10 ? 3 : 6);
      continue;
    }
    let size;
    if (!bit(repeated, state)) {
      size = length(lengths[0]);
      latest = [distance(size), latest[0], latest[1], latest[2]];
      state = state < 7 ? 7 : 10;
    } else {
      if (!bit(notLatest, state)) {
        if (!bit(short, state)) {
          out[done] = out[done - latest[0] - 1];
          done += 1;
          state = state < 7 ? 9 : 11;
          continue;
        }
      } else {
        const which = !bit(notSecond, state) ? 1 : 2 + bit(third, state), [found] = latest.splice(which, 1);
        latest.unshift(found);
      }
      size = length(lengths[1]);
      state = state < 7 ? 8 : 11;
    }
    const back = latest[0] + 1;
    if (back >= size) out.copyWithin(done, done - back, done - back + size);
    else for (let i = done; i < done + size; i++) out[i] = out[i - back];
    done += size;
  }
  return out;
}

// The data of an element.
const unpacked = (id) => JSON.parse(new TextDecoder().decode(expanded(bytesOf(document.getElementById(id).textContent.trim()))));
