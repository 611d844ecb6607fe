/** docs/reference/limits.md: its table of limits has the numbers that the vault goes by. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { second } from '../../../src/base/duration.ts';
import { failurePace } from '../../../src/domain/access/limits/key-limits.ts';
import { maxEntries } from '../../../src/domain/inputs.ts';
import {
  defaultBodyLimit,
  longBodyLimit,
  maxValues,
  shortRest,
} from '../../../src/http/request/request-body.ts';
import {
  defaultConnectionLimits,
  headerSize,
  heldSize,
  maxHeaders,
} from '../../../src/http/server/connection-limits.ts';
import { maxHeldHeaders } from '../../../src/http/server/version-wait.ts';

const doc = readFileSync(new URL('../../../docs/reference/limits.md', import.meta.url), 'utf8');

test('docs/reference/limits.md has the limits of the code', () => {
  const { most, headersMs, requestMs, idleMs, stalledMs, slowest, retained } = defaultConnectionLimits;
  for (const row of [
    `| request line and headers | ${headerSize / 1024} KiB, ${maxHeaders} headers, ${headersMs / second} seconds |`,
    `| body | ${defaultBodyLimit / 1024} KiB; ${longBodyLimit / 1_048_576} MiB with PEM, lists or settings, 4 MiB of an import; ${requestMs / second} seconds |`,
    `| a list in a body | ${maxEntries} entries |`,
    `| entries of all lists and members in a body | ${maxValues} |`,
    `| a body that the operation does not take, or no longer, after an error | ${shortRest / 1024} KiB |`,
    `| a connection between two requests | ${idleMs / second} seconds |`,
    `| a response that the client does not read | ${stalledMs / second} seconds behind a pace of ${slowest / 1024} KiB a second |`,
    `one caller half of them; ${maxHeldHeaders / 1024} KiB of headers each | 304 with \`Retry-After\` |`,
    `| connections | \`--max-connections\`, ${most} |`,
    `All connections together buffer about ${retained / 1_048_576} MiB of `,
    `more than ${headerSize / 1024} KiB of\nrequests; it counts waiting requests last, and closes their connections above ${heldSize / 1024} KiB.`,
    `| a burst of ${failurePace.burst}, then ${failurePace.perMinute} a minute |`,
  ]) {
    assert.ok(doc.includes(row), row);
  }
});

// test/domain/acme-server/orders/order-retention.test.ts asserts these times.
test('docs/reference/limits.md has one time for failed orders, and one for others', () => {
  const lines = doc.split('\n').filter((line) => line.startsWith('Orders of ACME clients '));
  assert.deepEqual(lines, [
    'Orders of ACME clients are kept for a week after they expire; failed ones for two hours after they failed.',
  ]);
});
