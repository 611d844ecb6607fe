/**
 * Labels such as `team=web`, which group certificates, API keys, ACME clients and notification channels. Allowlists and
 * the reach of people grant access by them, so two labels are the same only if all their characters are.
 */
import { labelFault } from './label.ts';

/** The maximum number of labels of one object. */
export const maxLabels = 16;

const maxPartLength = 63;

const keyPattern = /^[a-z0-9](?:[a-z0-9._/-]{0,61}[a-z0-9])?$/;

/** As JSON Schema says it: roughly, because what is printable takes more than a pattern. */
export const objectLabelPattern = '^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?=[^=,]{1,126}$';

/** `key=value` in the one form in which it is stored, or what is wrong with it and what to do: a part of a sentence. */
export function readObjectLabel(text: string): { readonly label: string } | { readonly fault: string } {
  const equalsAt = text.indexOf('=');
  if (equalsAt === -1) return { fault: 'write a label as key=value, such as team=web' };
  const key = text.slice(0, equalsAt);
  if (!keyPattern.test(key)) {
    return {
      fault: `the key of a label has up to ${maxPartLength} lower-case letters, digits and . _ / -, and starts and ends with a letter or digit`,
    };
  }
  // Composed, so that letters with accents are the same however they were typed.
  const value = text.slice(equalsAt + 1).normalize('NFC');
  const fault = valueFault(value);
  return fault === undefined ? { label: `${key}=${value}` } : { fault };
}

function valueFault(value: string): string | undefined {
  if (value === '') return 'the value of a label must not be empty; write key=value, such as team=web';
  if ([...value].length > maxPartLength)
    return `the value of a label has at most ${maxPartLength} characters`;
  const forbidden = /[=,]/.exec(value)?.[0];
  if (forbidden !== undefined) return `the value of a label must not contain "${forbidden}"; remove it`;
  if (value.trim() !== value) return 'the value of a label must not start or end with a space; remove it';
  return labelFault(value, 'the value of a label');
}

/** Whether the text is the key of a label. */
export function isLabelKey(text: string): boolean {
  return keyPattern.test(text);
}

/** The key of a label. */
export function labelKey(label: string): string {
  return label.slice(0, label.indexOf('='));
}

/** The value of the label with this key; undefined without one. */
export function labelValue(labels: readonly string[], key: string): string | undefined {
  return labels.find((label) => labelKey(label) === key)?.slice(key.length + 1);
}

/** Whether any of the labels is one of the wanted ones. */
export function hasAnyLabel(labels: readonly string[], wanted: readonly string[]): boolean {
  return labels.some((label) => wanted.includes(label));
}
