/**
 * A map of texts that are new with each request, such as paths and the prefixes of keys. Before it looks into a Map, V8 enters a
 * text that is new into its table of all texts, which costs each request of a busy server a microsecond; so texts are found here
 * by a number that is made of their characters. Of those with the same number, of which there are hardly any, the last one is
 * remembered.
 */
import { RecentMap } from './recent-map.ts';

type Entry<V> = { readonly text: string; readonly value: V };

export class RecentTexts<V> {
  readonly #entries: RecentMap<number, Entry<V>>;

  /** Holds `most` values, one at least. */
  constructor(most: number) {
    this.#entries = new RecentMap(most);
  }

  get(text: string): V | undefined {
    const entry = this.#entries.get(numberOf(text));
    return entry?.text === text ? entry.value : undefined;
  }

  /** Puts the value last, and forgets the first where there are too many. */
  set(text: string, value: V): void {
    this.#entries.set(numberOf(text), { text: copyOf(text), value });
  }
}

function numberOf(text: string): number {
  let number = 0;
  for (let at = 0; at < text.length; at += 1) number = (Math.imul(number, 31) + text.charCodeAt(at)) | 0;
  return number;
}

/** Of a text that was cut from a longer one V8 keeps all of that: for the prefix of a key, the key itself. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
