/** The log for a person at a terminal: one line per event, `time level message key=value`. */
import { styleText } from 'node:util';

type Field = readonly [key: string, value: unknown];

const colors = { warn: 'yellow', error: 'red' } as const;

/** One line from one event, which is a line of JSON. `color` marks warnings and errors. */
export function readableLine(json: string, { color }: { readonly color: boolean }): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const word = String(level).padEnd(5);
  const mark =
    color && Object.hasOwn(colors, String(level)) ? colors[level as keyof typeof colors] : undefined;
  const seconds = String(time).replace(/\.\d{3}Z$/, 'Z');
  return `${[
    seconds,
    mark === undefined ? word : styleText(mark, word, { validateStream: false }),
    printable(String(msg ?? '')),
    ...Object.entries(fields)
      .flatMap(flat)
      .map(([key, value]) => `${key}=${shown(value)}`),
  ].join(' ')}\n`;
}

/** An object as the fields in it, with dotted names. The message of an error stands under the name of the error. */
function flat([key, value]: Field): Field[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[key, value]];
  const { type, message, ...others } = value as Record<string, unknown>;
  const isError = typeof type === 'string' && typeof message === 'string';
  const rest = isError ? others : value;
  const inside = Object.entries(rest).flatMap(([name, inner]) => flat([`${key}.${name}`, inner]));
  return isError
    ? [[key, /^(Operator)?Error$/.test(type) ? message : `${type}: ${message}`], ...inside]
    : inside;
}

/** A word as it is; other text in quotes, with everything that could move the cursor escaped. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[^\s"=\p{C}]+$/u.test(text)
    ? text
    : printable(typeof value === 'string' ? JSON.stringify(value) : text);
}

function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      const unit = character.charCodeAt(index).toString(16);
      return `\\u${unit.padStart(4, '0')}`;
    }).join(''),
  );
}
