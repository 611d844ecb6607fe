/**
 * A value that must not be shown. Printing, serializing or inspecting it gives `[secret]`; `expose()` is the only
 * access, easy to find and rarely called.
 */
import { inspect } from 'node:util';

const shown = '[secret]';

export class Secret<T extends string | Buffer = Buffer> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** The value itself. Pass it on immediately; never store it, log it or put it into an error. */
  expose(): T {
    return this.#value;
  }

  toString(): string {
    return shown;
  }

  toJSON(): string {
    return shown;
  }

  [Symbol.toPrimitive](): string {
    return shown;
  }

  [inspect.custom](): string {
    return shown;
  }
}
