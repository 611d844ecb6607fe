/** Tests the harness that watches the console's pages in all other tests, with pages that break the rules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violations } from '../harness/console/axe.ts';
import { visit } from '../harness/console/visit.ts';
import { startWatch } from '../harness/console/watch.ts';
import { needs } from '../harness/processes/missing-program.ts';

const chromium = needs('chromium');

/** A script that adds an element with this attribute. */
const add = (tag: string, attribute: string, value: string) =>
  `const added = document.createElement('${tag}'); added.${attribute} = ${JSON.stringify(value)}; document.body.append(added)`;

/** Scripts that break a rule, the browser event that reports each, and the expected complaint. */
const violatingScripts = [
  {
    script: `document.body.setAttribute('style', 'color: red')`,
    by: 'console',
    complaint: /style-src 'self'/,
  },
  {
    script: add('script', 'textContent', '1'),
    by: 'console',
    complaint: /script-src 'self'/,
  },
  { script: add('img', 'src', 'http://evil.localhost:9/'), by: 'console', complaint: /img-src 'self'/ },
  { script: add('iframe', 'src', '/about'), by: 'console', complaint: /frame|default-src 'none'/ },
  {
    script: `void fetch('http://evil.localhost:9/').catch(() => {})`,
    by: 'console',
    complaint: /connect-src 'self'/,
  },
  { script: `void fetch('/api/v1/nothing')`, by: 'console', complaint: /status of 404/ },
  { script: `console.warn('careful')`, by: 'console', complaint: /careful/ },
  { script: `setTimeout(() => { throw new Error('a bug') })`, by: 'pageerror', complaint: /a bug/ },
  { script: `void Promise.reject(new Error('forgotten'))`, by: 'pageerror', complaint: /forgotten/ },
  {
    script: `location.href = 'http://other.localhost:9/'`,
    by: 'requestfailed',
    complaint: /requested http:..other/,
  },
] as const;

test('every violation of the content security policy and every error is reported', chromium, async (t) => {
  const { alice, url, expectComplaint, excuse } = await visit(t);
  const { page, context, open } = await alice();
  // Some are reported twice.
  excuse(/evil\.localhost/);
  const watch = startWatch(url);
  watch.add(context);
  for (const { script, by, complaint } of violatingScripts) {
    await open('/about');
    assert.doesNotMatch(watch.complaints().join('\n'), complaint, 'reported before it happened');
    const reported = page.waitForEvent(by as 'console');
    await page.evaluate(`{ ${script} }`);
    await reported;
    assert.match(watch.complaints().join('\n'), complaint);
    expectComplaint(complaint);
  }
});

test('an expected complaint that does not happen is reported', () => {
  const watch = startWatch('http://127.0.0.1:9');
  assert.deepEqual(watch.complaints(), []);
  watch.expectComplaint(/status of 400/);
  assert.deepEqual(watch.complaints(), ['nothing matched /status of 400/']);
});

test('a field without a label and text without contrast are violations', chromium, async (t) => {
  const { alice } = await visit(t);
  const { page } = await alice();
  assert.deepEqual(await violations(page), []);
  await page.evaluate(add('input', 'type', 'text'));
  await page.evaluate(`document.querySelector('h1').style.color = 'white'`);
  const found = (await violations(page)).join('\n');
  assert.match(found, /^label: /m);
  assert.match(found, /^color-contrast: /m);
});
