/** Problem documents as CAs send them, and as people read them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { problemSentence, readProblem } from '../../src/acme/problem-document.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const urn = (type: string) => `urn:ietf:params:acme:error:${type}`;

function sentence(json: unknown): string {
  const problem = readProblem(json);
  assert(problem);
  return problemSentence(problem);
}

test('problemSentence appends subproblems with their identifiers to the detail', () => {
  const json = {
    type: urn('rejectedIdentifier'),
    detail: 'Some of the identifiers were rejected',
    subproblems: [
      { type: urn('caa'), detail: 'CAA forbids it', identifier: { type: 'dns', value: 'a.example.com' } },
      { type: urn('rejectedIdentifier'), identifier: { type: 'dns', value: 'b.example.com' } },
      { type: urn('dns'), detail: 'no such name' },
      'odd',
    ],
  };
  assert.equal(
    sentence(json),
    'Some of the identifiers were rejected (a.example.com: CAA forbids it; b.example.com: rejectedIdentifier; no such name; about:blank)',
  );
});

test('problemSentence includes the instance URL only for userActionRequired', () => {
  const instance = 'https://ca.test/terms';
  const json = { type: urn('userActionRequired'), detail: 'New terms.', instance };
  assert.equal(sentence(json), 'New terms. Visit https://ca.test/terms');
  assert.equal(sentence({ ...json, type: urn('malformed') }), 'New terms.');
});

test('a problem without a detail is described by its title or type', () => {
  assert.equal(sentence({ type: urn('caa') }), 'the CA rejected the request: caa');
  assert.equal(sentence({ title: 'Not today' }), 'Not today');
  assert.equal(sentence({}), 'the CA rejected the request: about:blank');
});

test('members of a wrong type count as missing', () => {
  const problem = readProblem(
    { type: 7, detail: ['x'], status: 'x', instance: {}, subproblems: { a: 1 }, identifier: 3 },
    404,
  );
  const expected = { type: 'about:blank', detail: '', status: 404, instance: undefined, subproblems: [] };
  assert.deepEqual(problem, expected);
  for (const json of [null, [], 'text', 7, undefined]) assert.equal(readProblem(json), undefined);
});

test('readProblem and problemSentence limit text lengths and the number of subproblems', () => {
  const subproblems = Array.from({ length: 5000 }, (_, number) => ({
    type: urn('dns'),
    detail: `\u0007${'y'.repeat(5000)}`,
    identifier: { type: 'dns', value: `${number}.example.com` },
  }));
  const problem = readProblem({ type: 'z'.repeat(10_000), detail: 'x'.repeat(100_000), subproblems });
  assert(problem);
  assert.equal(problem.subproblems.length, 100);
  assert(JSON.stringify(problem).length < 150_000);
  assert.match(problemSentence(problem), /9\.example\.com: y+…; and 90 more\)$/);
});

test('problemSentence returns one line of less than 20,000 characters for any JSON problem', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\u001b[2J', '\n', 'a'.repeat(5000), urn('dns'), '\ud800'),
  );
  const value = fc.oneof(
    text,
    fc.integer(),
    fc.constant(null),
    fc.boolean(),
    fc.array(text, { maxLength: 2 }),
  );
  const keys = fc.constantFrom(
    'type',
    'detail',
    'title',
    'status',
    'instance',
    'identifier',
    'value',
    '__proto__',
    'x',
  );
  const flat = fc.dictionary(keys, value, { noNullPrototype: true });
  const problem = fc
    .tuple(flat, fc.array(fc.oneof(flat, value), { maxLength: 120 }), fc.boolean())
    .map(([outer, subproblems, hasThem]) => (hasThem ? { ...outer, subproblems } : outer));
  const property = fc.property(fc.oneof(problem, fc.jsonValue()), (json) => {
    const read = readProblem(json);
    if (read === undefined) return;
    const said = problemSentence(read);
    assert.doesNotMatch(said, /[\p{Cc}\u2028\u2029]/u);
    assert(said.length < 20_000, `${said.length} characters`);
  });
  fc.assert(property, fuzzRuns(500));
});
