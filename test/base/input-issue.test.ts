/** Refused input is described in plain words, never in those of zod. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { describeIssue } from '../../src/base/input-issue.ts';

const schema = z.object({
  number: z.number(),
  whole: z.int().min(1).max(10),
  text: z.string().min(2).max(3),
  one: z.string().min(1),
  list: z.array(z.string()).max(2),
  flag: z.boolean(),
  settings: z.record(z.string(), z.string()),
  choice: z.enum(['a', 'b']),
  fixed: z.literal('x'),
  link: z.url(),
  code: z.string().regex(/^\d+$/),
  above: z.number().gt(0),
  either: z.union([z.string(), z.number()]),
  own: z.string().refine(() => false, 'must be our own text'),
});
const good = { number: 1, whole: 1, text: 'ab', one: 'a', list: [], flag: true, settings: {}, choice: 'a' };
const input = { ...good, fixed: 'x', link: 'https://a', code: '1', above: 1, either: 1 };

test('describeIssue states the requirement for each kind of invalid value', () => {
  const cases: [refused: Record<string, unknown>, expected: string][] = [
    [{ number: undefined }, 'is missing'],
    [{ number: '1' }, 'must be a number'],
    [{ whole: 0 }, 'must be at least 1'],
    [{ whole: 11 }, 'must be at most 10'],
    [{ whole: 1.5 }, 'must be a whole number'],
    [{ text: 1 }, 'must be a string'],
    [{ text: 'a' }, 'must have at least 2 characters'],
    [{ text: 'abcd' }, 'must have at most 3 characters'],
    [{ one: '' }, 'must have at least 1 character'],
    [{ list: 'a' }, 'must be a list'],
    [{ list: ['a', 'b', 'c'] }, 'must have at most 2 entries'],
    [{ flag: 'yes' }, 'must be true or false'],
    [{ settings: 'a' }, 'must be an object'],
    [{ choice: 'c' }, 'must be one of "a", "b"'],
    [{ fixed: 'y' }, 'must be "x"'],
    [{ link: 'no' }, 'must be a URL'],
    [{ code: 'a' }, 'has an invalid format'],
    [{ above: 0 }, 'must be greater than 0'],
    [{ either: true }, 'is invalid'],
    [{ own: 'a' }, 'must be our own text'],
  ];
  for (const [refused, expected] of cases) {
    const rest = 'own' in refused ? schema : schema.omit({ own: true });
    const [issue] = rest.safeParse({ ...input, ...refused }).error?.issues ?? [];
    assert(issue !== undefined, expected);
    assert.equal(describeIssue(issue), expected);
  }
});

const strict = z.strictObject({ version: z.number(), own: z.string().min(1, 'write an own text') });

test('describeIssue with a subject returns a sentence and keeps custom messages of the schema', () => {
  const cases: [refused: Record<string, unknown>, expected: string][] = [
    [{ version: '1' }, 'version must be a number'],
    [{ version: undefined }, 'version is missing'],
    [{ own: '' }, 'write an own text'],
    [{ color: 1 }, 'unknown field "color"'],
    [{ color: 1, ['s'.repeat(40)]: 1 }, 'unknown fields "color", (not a name)'],
  ];
  for (const [refused, expected] of cases) {
    const [issue] = strict.safeParse({ version: 1, own: 'a', ...refused }).error?.issues ?? [];
    assert(issue !== undefined, expected);
    assert.equal(describeIssue(issue, 'version'), expected);
  }
  const [unknown] = strict.safeParse({ version: 1, own: 'a', color: 1 }).error?.issues ?? [];
  assert(unknown !== undefined);
  assert.equal(describeIssue(unknown), 'has unknown field "color"');
});
